"""A plan as text."""

import pytest

from planner.answer.report import figures, memory_rows, plan_text, policy_rows
from planner.scenario.link import from_query
from planner.units import GIB, format_number
from tests.answer.cases import planned

REFUSED = {"model": "meta-llama/Llama-3.3-70B-Instruct"}


def gib(text):
    return float(text.removesuffix(" GiB"))


@pytest.mark.parametrize("changes", [{}, {"occupied_gib": 3.0}, {"engine": "sglang", "model": "Qwen/Qwen3.5-9B"}])
def test_parts_of_the_memory_sum_to_the_gpu(changes):
    *parts, total = memory_rows(planned(**changes))
    assert total[0] == "Total"
    assert sum(gib(size) for _, size in parts) == pytest.approx(gib(total[1]), abs=0.05)
    assert gib(total[1]) == pytest.approx(planned(**changes).memory.total_bytes / GIB, abs=0.005)


def test_what_is_not_there_has_no_row():
    names = {name for name, _ in memory_rows(planned())}
    assert not names & {"States", "Other processes"}
    assert "Other processes" in {name for name, _ in memory_rows(planned(occupied_gib=3.0))}


def test_headline_figures_are_those_of_the_plan():
    done = planned()
    found = {name: value for name, value, _ in figures(done)}
    assert found["GPUs"] == str(done.num_gpus)
    assert list(found) == [
        *("GPUs", "p95 TTFT", "p95 TPOT", "Meet every target", "Simulated", "Meets the targets up to"),
        *("Per million tokens", "Per month"),
    ]
    assert figures(planned(**REFUSED)) == ()


def test_policies_stand_under_their_header():
    header, *rows = policy_rows(planned())
    assert [row[0] for row in rows] == [item.title for item in planned().policies]
    assert {len(row) for row in rows} == {len(header)}


@pytest.mark.parametrize("changes", [{}, REFUSED])
def test_the_text_opens_with_the_answer_and_ends_with_the_link(changes):
    done = planned(**changes)
    lines = plan_text(done).split("\n")
    assert lines[0] == done.headline
    assert from_query(lines[-1].removeprefix("Link: ")).scenario == done.scenario
    for text in (*done.reasons, *(finding.text for finding in done.findings)):
        assert any(text in line for line in lines)


def test_the_rate_that_holds_is_that_of_all_replicas_or_a_dash():
    def told(done):
        return next(value for name, value, _ in figures(done) if name == "Meets the targets up to")

    two = planned(num_replicas=2)
    assert told(two) == f"{format_number(2 * two.curve.slo_rate_rps)} req/s"
    assert told(planned(tpot_target_s=0.0005)) == "—"
