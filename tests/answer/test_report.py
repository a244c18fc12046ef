"""A plan as text."""

import dataclasses
import math

import pytest

from planner import plan
from planner.answer.report import figures, memory_rows, plan_text, policy_rows, sure_line
from planner.scenario.link import from_query
from planner.units import GIB, format_number
from planner.workload.offered import draw
from tests.answer.cases import SMALL, planned

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


def test_the_link_of_a_replayed_trace_says_that_it_does_not_carry_it():
    trace = draw(SMALL.replace(arrivals="bursty", prompt_spread=0.5, lengths="lognormal"))
    done = plan(SMALL.replace(max_model_len=16_384), requests=trace)
    text = plan_text(done)
    assert "No link carries the trace" in text
    assert from_query(text.rsplit("Link: ", 1)[1]).scenario == done.scenario
    assert "No link carries the trace" not in plan_text(planned())


def test_the_verdict_stands_under_the_answer_with_the_command_that_measures_it():
    done = planned()
    lines = plan_text(done).split("\n")
    assert done.verdict.text[1:] in lines[2]
    assert lines[3].startswith("Chance that each target holds: at least ")
    assert lines[3].endswith("; that all hold at once can be less likely.")
    assert " with 1 GPU" in lines[3]
    assert lines[4].endswith(done.verdict.measurement)
    never = planned(tpot_target_s=0.0005).verdict
    assert sure_line(never).startswith("Chance that each target holds: no number of replicas reaches 50 %")
    one = dataclasses.replace(never, targets=never.targets[:1])
    assert sure_line(one) == "Chance that the target holds: no number of replicas reaches 50 %"


def test_chances_that_take_as_many_gpus_are_one_figure():
    verdict = planned().verdict
    first = verdict.sure[0]
    rising = [(0.5, 2), (0.9, 2), (0.95, 4)]
    sure = tuple(dataclasses.replace(first, share=share, num_gpus=gpus) for share, gpus in rising)
    told = sure_line(dataclasses.replace(verdict, sure=sure, targets=verdict.targets[:1]))
    assert told == "Chance that the target holds: at least 90 % with 2 GPUs, at least 95 % with 4 GPUs"


def test_a_burst_says_why_other_numbers_have_no_chance():
    burst = planned(arrivals="once", num_requests=60).verdict
    assert "not known for a burst" in sure_line(burst)
    assert sure_line(dataclasses.replace(burst, probability=math.nan)) == ""


def test_a_rate_that_poisson_arrivals_hold_is_not_told_of_users_who_wait():
    def held(done):
        return next(value for name, value, _ in figures(done) if name == "Meets the targets up to")

    assert held(planned(arrivals="closed", concurrent_users=4)) == "—"
    assert held(planned()).endswith(" req/s")
