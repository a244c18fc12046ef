import json

import pytest

from planner.commands.plans import add_to
from planner.scenario.link import to_json
from planner.scenario.scenario import Scenario
from tests.commands.running import declared, run


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


def test_html_escapes_what_the_user_wrote(tmp_path, capsys):
    page = tmp_path / "plan.html"
    code, _, _ = run("plan", "n=<script>alert(1)</script>", "--requests", "300", "--html", str(page), capsys=capsys)
    assert code == 0
    assert "<script>" not in page.read_text()
    assert "&lt;script&gt;" in page.read_text()


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


def test_these_are_its_commands():
    assert declared(add_to) == {"plan", "time", "deploy", "check", "fields"}
