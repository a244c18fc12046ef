import json
import subprocess
import sys
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.scenario import Scenario
from planner.share import to_json, to_query

ROOT = Path(__file__).parents[1]


def run(*arguments, capsys):
    code = main(list(arguments))
    out = capsys.readouterr()
    return code, out.out, out.err


def test_plan_prints_the_answer(capsys):
    code, out, err = run("plan", "--requests", "300", capsys=capsys)
    assert (code, err) == (0, "")
    assert "Llama-3.1-8B-Instruct" in out
    assert "Link: ?v=1" in out


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
    ],
)
def test_bad_input_is_one_clear_line(arguments, capsys):
    code, _, err = run(*arguments, capsys=capsys)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert err.startswith("error: ")


def test_a_file_that_is_no_measurement_is_refused(tmp_path, capsys):
    file = tmp_path / "other.csv"
    file.write_text("a,b\n1,2\n")
    code, _, err = run("validate", str(file), capsys=capsys)
    assert code == 2
    assert "step_ms" in err


def test_a_wrong_part_of_a_link_is_a_warning(capsys):
    code, _, err = run("plan", "u=abc&tp=1", "--requests", "300", capsys=capsys)
    assert code == 0
    assert err.startswith("warning: users")


def test_the_module_runs_as_a_program():
    out = subprocess.run(
        [sys.executable, "-m", "planner", "plan", "-"], input="no json", capture_output=True, text=True, cwd=ROOT
    )
    assert out.returncode == 2
    assert "Traceback" not in out.stderr
