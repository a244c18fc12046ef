import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.catalog.models import catalog_date, model_names
from planner.scenario.link import to_json, to_query
from planner.scenario.scenario import Scenario

ROOT = Path(__file__).parents[1]


def run(*arguments, capsys):
    code = main(list(arguments))
    out = capsys.readouterr()
    return code, out.out, out.err


def test_plan_prints_the_answer(capsys):
    code, out, err = run("plan", "--requests", "300", capsys=capsys)
    assert (code, err) == (0, "")
    assert "Llama-3.1-8B-Instruct" in out
    assert "Link: ?v=2" in out


def test_plan_json_is_complete_and_strict(capsys):
    code, out, _ = run("plan", "u=50&tp=2", "--requests", "300", "--json", capsys=capsys)
    body = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert code == 0
    assert body["scenario"]["users"] == 50
    assert body["num_gpus"] == 2 * body["num_replicas"]
    assert {"memory", "metrics", "curve", "policies", "cost", "chain", "findings", "headline"} <= set(body)


def test_the_three_forms_of_a_scenario_agree(tmp_path, capsys):
    scenario = Scenario(users=123, num_requests=300)
    file = tmp_path / "scenario.json"
    file.write_text(to_json(scenario))
    outputs = {
        run("plan", form, capsys=capsys)[1]
        for form in (str(file), to_query(scenario), f"https://plan.example.com/?{to_query(scenario)}")
    }
    assert len(outputs) == 1


def test_html_escapes_what_the_user_wrote(tmp_path, capsys):
    page = tmp_path / "plan.html"
    code, _, _ = run("plan", "n=<script>alert(1)</script>", "--requests", "300", "--html", str(page), capsys=capsys)
    assert code == 0
    assert "<script>" not in page.read_text()
    assert "&lt;script&gt;" in page.read_text()


def test_simulate_reports_its_speed(capsys):
    code, out, _ = run("simulate", "--preset", "reference", "--requests", "2000", "--json", capsys=capsys)
    body = json.loads(out)
    assert code == 0
    assert body["requests"] == 2000
    assert body["simulated_requests_per_s"] == pytest.approx(2000 / body["wall_s"])


def test_simulate_compares_policies_on_the_same_requests(capsys):
    _, out, _ = run("simulate", "--policy", "static", "--policy", "paged", "--requests", "400", "--json", capsys=capsys)
    first, second = json.loads(out)["policies"]
    assert (first["policy"], second["policy"]) == ("static", "paged")
    assert first["requests"] == second["requests"] == 400


def test_seed_prints_the_articles_table(capsys):
    code, out, _ = run("seed", capsys=capsys)
    assert code == 0
    for figure in (
        "25,505",
        "8,020",
        "3,319",
        "11,880",
        "3,682",
        "1,565",
        "24,817",
        "7,758",
        "3,101",
        "36 KB",
        "288 MB",
    ):
        assert figure in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "missing.json"),
        ("plan", "--requests", "0"),
        ("plan", "--preset", "nothing"),
        ("plan", "--trace", "missing.csv"),
        ("plan", "--html", "/nonexistent/folder/x.html", "--requests", "100"),
        ("simulate", "--policy", "nothing"),
        ("simulate", "m=meta-llama/Llama-3.3-70B-Instruct"),
        ("validate", "missing.csv"),
        (),
        ("validate",),
        ("nonsense",),
        ("plan", "--nonsense"),
        ("plan", "--requests", "many"),
        ("plan", "file:///plan.json"),
        ("plan", "https://plan.example.com/plan.json"),
        ("plan", "u=1&" * 20_000),
        ("calibrate",),
        ("calibrate", "missing.csv"),
        ("plan", "--calibration", "missing.json"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, capsys):
    code, _, err = run(*arguments, capsys=capsys)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert err.startswith("error: ")


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


START_UP = """\
INFO 03-20 03:37:45 [core.py:101] Initializing a V1 LLM engine (v0.17.0) with config: model='Qwen/Qwen3-8B', \
dtype=torch.bfloat16, max_seq_len=16384, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=None
INFO 03-20 03:38:45 [gpu_model_runner.py:2000] Model loading took 15.27 GiB memory and 5.1 seconds
INFO 03-20 03:38:56 [kv_cache_utils.py:1000] GPU KV cache size: 321,120 tokens
"""


def test_a_start_up_log_replaces_the_estimate_of_its_own_deployment(tmp_path, capsys):
    log = tmp_path / "log.txt"
    log.write_text(START_UP)
    own = "m=Qwen/Qwen3-8B&ctx=16384&nr=100"
    code, out, _ = run("plan", own, "--log", str(log), "--json", capsys=capsys)
    assert code == 0
    assert json.loads(out)["memory"]["kv_tokens"] == 321_120
    code, _, err = run("plan", own + "&tp=2", "--log", str(log), capsys=capsys)
    assert code == 2
    assert "tensor_parallel_size" in err


def test_the_load_test_to_run_next_is_a_command(capsys):
    code, out, _ = run("advise", "m=Qwen/Qwen3-8B&nr=100", "--json", capsys=capsys)
    assert code == 0
    found = json.loads(out)
    assert found["tests"][0]["command"].startswith("vllm bench serve")
    assert found["tests"][0]["error"] < found["error"]


def test_profiles_of_step_times_are_no_calibration_of_a_plan(tmp_path, capsys):
    made = tmp_path / "profiles.json"
    made.write_text('{"H100 SXM": {"vllm": {"gemm": {}}}}')
    code, _, err = run("plan", "--calibration", str(made), capsys=capsys)
    assert code == 2
    assert "calibrate BENCHMARK" in err


def test_a_file_that_is_no_measurement_is_refused(tmp_path, capsys):
    file = tmp_path / "other.csv"
    file.write_text("a,b\n1,2\n")
    code, _, err = run("validate", str(file), capsys=capsys)
    assert code == 2
    assert "step_ms" in err


@pytest.mark.parametrize(
    ("scenario", "named"),
    [
        ("u=abc&tp=1", "Users (users) = 'abc'"),
        ("m=foo", "Model (model) = 'foo'"),
        ("u=1.5&tp=abc&g=L40S", "tensor_parallel_size"),
        ("usres=50", "usres"),
        ("http://localhost:8501/?v=1&u=-5", "users"),
        ('{"model": "foo/bar"}', "Model (model) = 'foo/bar'"),
        ('{"users": -5}', "Users (users) = -5"),
        ('{"usres": 5}', "usres"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "simulate", "recommend"])
def test_no_other_question_is_answered(command, scenario, named, tmp_path, capsys):
    if scenario.startswith("{"):
        (tmp_path / "s.json").write_text(scenario)
        scenario = str(tmp_path / "s.json")
    code, out, err = run(command, scenario, capsys=capsys)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert named in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("scenario", "warned"),
    [
        ("m=openai-community/gpt2", "max_model_len"),  # the default context gives way to the model
        ("v=99&u=7&later=1", "newer version"),
        ("http://localhost:8501/?v=1&u=7&utm_source=chat", "utm_source"),
    ],
)
def test_what_gave_way_is_a_warning(scenario, warned, capsys):
    code, out, err = run("plan", scenario, "--requests", "300", capsys=capsys)
    assert code == 0
    assert out
    assert all(line.startswith("warning: ") for line in err.splitlines())
    assert warned in err


@pytest.mark.parametrize("address", ["http://localhost:8501/", "https://plan.example.com", "?"])
def test_the_link_of_the_default_plan_has_no_query(address, capsys):
    code, out, err = run("simulate", address, "--requests", "100", "--json", capsys=capsys)
    assert (code, err) == (0, "")
    assert json.loads(out)["requests"] == 100


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_json_of_a_plan_plans_the_same(encoding, tmp_path, capsys):
    question = "u=50&tp=2&g=L40S&usd=1.5&nr=300&n=Budget+%C3%9F"
    _, out, _ = run("plan", question, "--json", capsys=capsys)
    file = tmp_path / "plan.json"
    file.write_text(out, encoding=encoding)
    code, again, err = run("plan", str(file), "--json", capsys=capsys)
    assert (code, err) == (0, "")
    assert json.loads(again)["scenario"] == json.loads(out)["scenario"]
    assert json.loads(again)["link"] == "v=2&n=Budget+%C3%9F&g=L40S&tp=2&u=50&usd=1.5&nr=300"


def test_standard_input_may_begin_with_a_mark(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'\xef\xbb\xbf{"num_requests": 150}')))
    _, out, _ = run("simulate", "-", "--json", capsys=capsys)
    assert json.loads(out)["requests"] == 150
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe\xff")))
    code, _, err = run("simulate", "-", capsys=capsys)
    assert (code, len(err.splitlines())) == (2, 1)


def test_simulate_prints_a_line_per_policy(capsys):
    _, one, _ = run("simulate", "--requests", "100", capsys=capsys)
    _, two, _ = run("simulate", "--requests", "100", "--policy", "sglang", "--policy", "orca", capsys=capsys)
    assert [line.split(":")[0] for line in one.splitlines()] == ["vllm"]
    assert [line.split(":")[0] for line in two.splitlines()] == ["sglang", "orca"]


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


def test_the_module_runs_as_a_program():
    out = subprocess.run(
        [sys.executable, "-m", "planner", "plan", "-"], input="no json", capture_output=True, text=True, cwd=ROOT
    )
    assert out.returncode == 2
    assert "Traceback" not in out.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "https://[::1"),
        ("plan", "https://[::1/plan.json"),
        ("plan", "/dev/zero"),
        ("plan", "--trace", "/dev/zero"),
        ("validate", "https://example.com/steps.csv"),
        ("validate", "file:///etc/hostname"),
        ("validate", "s3://bucket/steps.csv"),
        ("validate", "."),
        ("calibrate", "https://example.com/steps.csv"),
    ],
)
def test_addresses_and_devices_are_no_files(arguments, monkeypatch, capsys):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a connection"))
    code, out, err = run(*arguments, capsys=capsys)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("error: ")


def test_closed_standard_input_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    code, out, err = run("plan", "-", capsys=capsys)
    assert (code, out, len(err.splitlines())) == (2, "", 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_one_line():
    for arguments in (("seed",), ("plan", "--requests", "100", "--html", "/dev/full")):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "planner", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT
            )
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("error: ")


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


def test_deploy_prints_every_form_and_writes_the_files(tmp_path, capsys):
    code, out, err = run("deploy", "--requests", "100", "--out", str(tmp_path), capsys=capsys)
    assert (code, err) == (0, "")
    assert "vllm serve meta-llama/Llama-3.1-8B-Instruct" in out
    assert "kind: Deployment" in out
    names = {file.name for file in tmp_path.iterdir()}
    assert {"serve.sh", "compose.yaml", "kubernetes.yaml", "kserve.yaml", "client.py", "load_test.sh"} <= names
    assert (tmp_path / "serve.sh").read_text() in out


def test_deploy_prints_one_form_alone(capsys):
    code, out, _ = run("deploy", "e=sglang", "--requests", "100", "--format", "sglang", capsys=capsys)
    assert code == 0
    assert "python -m sglang.launch_server" in out
    assert "kind:" not in out


@pytest.mark.parametrize(
    ("query", "form", "said"),
    [
        ("e=sglang", "vllm", "plan with engine = vllm"),
        ("e=orca", "k8s", "an engine with a server"),
        ("m=deepseek-ai/DeepSeek-V3", "vllm", "weights"),
        ("m=deepseek-ai/DeepSeek-V3&tp=8&pp=2", "docker-compose", "spans 2 machines"),
    ],
)
def test_deploy_says_why_there_is_no_command(query, form, said, capsys):
    code, out, err = run("deploy", query, "--requests", "60", "--format", form, capsys=capsys)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_check_is_a_gate(tmp_path, capsys):
    _, out, _ = run("plan", "--requests", "300", "--json", capsys=capsys)
    file = tmp_path / "plan.json"
    file.write_text(out)
    code, out, _ = run("check", str(file), capsys=capsys)
    assert (code, "The verdict stands." in out) == (0, True)
    body = json.loads(file.read_text())
    file.write_text(json.dumps(body | {"num_gpus": body["num_gpus"] + 1}))
    code, out, _ = run("check", str(file), capsys=capsys)
    assert code == 1
    assert f"GPUs: {body['num_gpus'] + 1} before, {body['num_gpus']} now." in out
    file.write_text(to_json(Scenario()))
    assert run("check", str(file), capsys=capsys)[0] == 2


def test_fields_are_listed(capsys):
    code, out, _ = run("fields", "--json", capsys=capsys)
    assert code == 0
    assert {"name", "link", "unit", "default", "valid", "help"} <= set(json.loads(out)[0])


def test_read_says_what_a_log_holds(tmp_path, capsys):
    log = tmp_path / "vllm.log"
    log.write_text("vllm serve Qwen/Qwen3-8B --max-model-len 8192\nGPU KV cache size: 123,456 tokens\n")
    code, out, _ = run("read", str(log), "--json", capsys=capsys)
    body = json.loads(out)
    assert code == 0
    assert {"kind", "understood", "not_understood", "scenario", "overlay"} <= set(body)
    assert body["scenario"]["model"] == "Qwen/Qwen3-8B"
    assert run("read", str(tmp_path / "none.log"), capsys=capsys)[0] == 2


def test_time_prints_the_day_the_failure_and_the_months(capsys):
    code, out, _ = run("time", "d=rate&rps=60&day=office", "--requests", "400", capsys=capsys)
    assert code == 0
    for part in ("24 hours", "autoscaled", "One replica fails", "24 months"):
        assert part in out


def test_time_takes_the_hours_of_a_trace(tmp_path, capsys):
    file = tmp_path / "day.csv"
    rows = [f"{hour * 3600 + k * 60},100,50" for hour in range(24) for k in range(2 if hour < 12 else 1)]
    file.write_text("Timestamp,Request tokens,Response tokens\n" + "\n".join(rows))
    code, out, err = run("time", "d=rate&rps=5", "--requests", "300", "--trace", str(file), "--json", capsys=capsys)
    assert (code, err) == (0, "")
    body = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert body["day"]["rates_rps"] == [5.0] * 12 + [2.5] * 12
    assert [item["name"] for item in body["day"]["policies"]] == ["fixed", "scheduled", "autoscaled"]
    assert "day=drawn" in body["link"]
    assert body["growth"]["months"][0]["month"] == 0


def test_the_search_prints_the_best_with_its_price_and_a_line_for_each_row(capsys):
    options = ("--gpus", "L40S:4", "--price", "ondemand", "--requests", "200")
    code, out, _ = run("recommend", "?u=50", *options, capsys=capsys)
    assert code == 0
    lines = out.splitlines()
    assert "L40S" in lines[0]
    assert "USD per GPU-hour (CoreWeave 8x, on demand, 2026-09-20)" in lines[0]
    assert "considered" in lines[1]
    assert "hosted API" in lines[2]  # 50 users ask for little
    assert all(" × L40S " in line for line in lines[3:])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--gpus", "H9000:8"), "My GPUs (my_gpus)"),
        (("--vendor", "Nvidea"), "Vendor (gpu_vendor)"),
        (("--price", "owned"), "My GPUs (my_gpus)"),
        (("--max-gpus", "0"), "GPUs at most (most_gpus)"),
        (("--dask", "nowhere"), "--dask"),
    ],
)
def test_a_restriction_of_the_search_that_is_wrong_is_one_line(options, named, capsys):
    code, out, err = run("recommend", *options, capsys=capsys)
    assert (code, out) == (2, "")
    assert named in err
    assert len(err.splitlines()) == 1


def test_fits_lists_models_and_names_the_nearest_gpu(capsys):
    code, out, _ = run("fits", "RTX 4060", "--engine", "llama-server", "--json", capsys=capsys)
    rows = json.loads(out)
    assert code == 0
    assert rows
    assert all(row["engine"] == "llama-server" and row["link"].startswith("v=") for row in rows)
    code, out, err = run("fits", "RTX 4099", capsys=capsys)
    assert (code, out) == (2, "")
    assert "RTX 4090" in err


def test_a_trace_with_names_of_its_own_is_read_by_the_columns_named(tmp_path, capsys):
    file = tmp_path / "own.csv"
    file.write_text("seconds,in,out\n" + "".join(f"{n},{n + 10},7\n" for n in range(50)))
    named = [part for text in ("arrival=seconds", "prompt=in", "output=out") for part in ("--column", text)]
    code, out, _ = run("read", str(file), *named, "--json", capsys=capsys)
    assert code == 0
    told = {item["name"]: item["value"] for item in json.loads(out)["understood"]}
    assert told["prompt_mean_tokens"] == sum(range(10, 60)) / 50
    code, out, _ = run("simulate", "--trace", str(file), *named, "--json", capsys=capsys)
    assert (code, json.loads(out)["requests"]) == (0, 50)
    for wrong in ("seconds", "when=seconds", "arrival=nothing"):
        code, _, err = run("read", str(file), "--column", wrong, capsys=capsys)
        assert code == 2
        assert len(err.strip().splitlines()) == 1


def test_catalog_says_its_date_and_what_configs_change(tmp_path, capsys):
    assert main(["catalog"]) == 0
    assert capsys.readouterr().out.startswith(f"Catalog of {catalog_date()}: {len(model_names()):,} models")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}), encoding="utf-8")
    assert main(["catalog", "refresh", str(tmp_path), "--json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["state"] == "unreadable" and "num_hidden_layers" in finding["problem"]
    assert main(["catalog", "refresh"]) == 2
