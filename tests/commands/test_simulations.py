import json

import pytest

from planner.commands.simulations import offered
from planner.scenario.scenario import Scenario
from tests.commands.running import run


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


def test_simulate_prints_a_line_per_policy(capsys):
    _, one, _ = run("simulate", "--requests", "100", capsys=capsys)
    _, two, _ = run("simulate", "--requests", "100", "--policy", "sglang", "--policy", "orca", capsys=capsys)
    assert [line.split(":")[0] for line in one.splitlines()] == ["vllm"]
    assert [line.split(":")[0] for line in two.splitlines()] == ["sglang", "orca"]


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


def test_a_replica_gets_its_share_of_the_peak():
    scenario = Scenario(demand="rate", rate_rps=12.0, num_replicas=3, question="will", num_requests=2000)
    requests = offered(scenario, None, None)
    assert len(requests) / requests.arrival_s[-1] == pytest.approx(scenario.peak_rate_rps / 3, rel=0.1)
