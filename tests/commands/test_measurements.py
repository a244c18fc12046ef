import json

from planner.commands.measurements import add_to
from tests.commands.running import declared, run

SAVED_RUN = {
    "backend": "vllm",
    "model_id": "Qwen/Qwen3-8B",
    "max_concurrency": 4,
    "completed": 40,
    "total_input_tokens": 40 * 1024,
    "total_output_tokens": 40 * 256,
    "output_throughput": 320.0,
    "request_throughput": 1.25,
    "mean_ttft_ms": 60.0,
    "mean_tpot_ms": 12.0,
}


def test_a_benchmark_calibrates_a_plan_through_a_file(tmp_path, capsys):
    run_file, made = tmp_path / "run.json", tmp_path / "calibration.json"
    run_file.write_text(json.dumps(SAVED_RUN))
    code, out, _ = run("calibrate", str(run_file), "--out", str(made), capsys=capsys)
    assert code == 0
    assert "Calibrated to 1 run" in out
    mine = ("m=Qwen/Qwen3-8B&nr=100", "--calibration", str(made))
    code, out, _ = run("plan", *mine, capsys=capsys)
    assert code == 0
    assert "calibrated to your 1 measurement" in out
    code, out, _ = run("simulate", *mine, "--json", capsys=capsys)
    assert code == 0
    slower = json.loads(out)["metrics"]["tpot_s"]["mean"]
    assert slower > 1.2 * json.loads(run("simulate", mine[0], "--json", capsys=capsys)[1])["metrics"]["tpot_s"]["mean"]
    code, _, err = run("plan", "m=Qwen/Qwen3-8B&g=L4", *mine[1:], capsys=capsys)
    assert code == 2
    assert "another GPU" in err
    code, out, _ = run("calibrate", str(run_file), str(run_file), "--json", capsys=capsys)  # one file for each load
    assert code == 0
    assert json.loads(out)["calibration"]["calibration_runs"] == 2


def test_the_load_test_to_run_next_is_a_command(capsys):
    code, out, _ = run("advise", "m=Qwen/Qwen3-8B&nr=100", "--json", capsys=capsys)
    assert code == 0
    found = json.loads(out)
    assert found["tests"][0]["command"].startswith("vllm bench serve")
    assert found["tests"][0]["error"] < found["error"]


def test_a_file_that_is_no_measurement_is_refused(tmp_path, capsys):
    file = tmp_path / "other.csv"
    file.write_text("a,b\n1,2\n")
    code, _, err = run("validate", str(file), capsys=capsys)
    assert code == 2
    assert "step_ms" in err


def test_odd_rows_and_columns_cost_no_measurement_file(tmp_path, capsys):
    file = tmp_path / "steps.csv"
    good = "meta-llama/Meta-Llama-3.1-8B,H100 SXM,vllm,1,bfloat16,bfloat16,decode,4,1024,7"
    odd = [good.replace("4,1024", cell) for cell in ("inf,1024", "-4,1024", "4,-100")]
    odd += [",,vllm,1,bfloat16,bfloat16,decode,4,1024,7", good.replace("decode", "foo")]
    header = "model,gpu,engine,tp,weight_dtype,kv_dtype,phase,batch,ctx,step_ms"
    file.write_text("\n".join([header, *odd, good]) + "\n")
    code, out, err = run("validate", str(file), "--json", capsys=capsys)
    body = json.loads(out)
    assert (code, err) == (0, "")
    assert (body["rows"], body["predicted"], body["skipped"]) == (6, 1, 5)
    file.write_text("id,step_ms\na,1\n")
    code, _, err = run("validate", str(file), capsys=capsys)
    assert (code, len(err.splitlines())) == (2, 1)


def test_predictions_open_in_a_spreadsheet_without_formulas(tmp_path, capsys):
    file, predicted = tmp_path / "steps.csv", tmp_path / "predicted.csv"
    header = "id,model,gpu,engine,tp,weight_dtype,kv_dtype,phase,batch,ctx,step_ms"
    row = "=1+1,meta-llama/Meta-Llama-3.1-8B,H100 SXM,vllm,1,bfloat16,bfloat16,decode,4,1024,7"
    file.write_text(f"{header}\n{row}\n")
    code, _, err = run("validate", str(file), "--out", str(predicted), capsys=capsys)
    assert (code, err) == (0, "")
    cells = predicted.read_text().splitlines()[1].split(",")
    assert cells[0] == "'=1+1"
    assert float(cells[1]) > 0
    code, _, err = run("validate", str(file), "--out", str(tmp_path), capsys=capsys)
    assert (code, len(err.splitlines())) == (2, 1)


def test_read_says_what_a_log_holds(tmp_path, capsys):
    log = tmp_path / "vllm.log"
    log.write_text("vllm serve Qwen/Qwen3-8B --max-model-len 8192\nGPU KV cache size: 123,456 tokens\n")
    code, out, _ = run("read", str(log), "--json", capsys=capsys)
    body = json.loads(out)
    assert code == 0
    assert {"kind", "understood", "not_understood", "scenario", "overlay"} <= set(body)
    assert body["scenario"]["model"] == "Qwen/Qwen3-8B"
    assert run("read", str(tmp_path / "none.log"), capsys=capsys)[0] == 2


def test_these_are_its_commands():
    assert declared(add_to) == {"read", "calibrate", "advise", "validate"}
