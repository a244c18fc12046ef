import math

from planner.answer import EVIDENCE, Candidate
from planner.charts.alternatives import cost_against_latency, finding, named
from planner.scenario.scenario import Scenario


def row(gpus, usd, ttft, gpu="H100 SXM", evidence=EVIDENCE[0], status="meets targets", sure=0.95):
    return Candidate(
        scenario=Scenario(gpu=gpu),
        status=status,
        num_gpus=gpus,
        usd_per_month=usd,
        ttft_s=ttft,
        tpot_s=0.02,
        evidence=evidence,
        probability=sure,
    )


ROWS = (row(2, 1000.0, 0.8, "L40S"), row(1, 3000.0, 0.2), row(1, 4000.0, 0.1, "MI300X", EVIDENCE[1]))


def test_each_point_is_a_plan_with_the_shape_of_its_evidence():
    chart = cost_against_latency(ROWS, None, 1.0)
    points = {(x, y) for trace in chart.figure["data"] for x, y in zip(trace["x"], trace["y"], strict=True)}
    assert points == {(item.ttft_s, item.usd_per_month) for item in ROWS}
    symbols = {trace["marker"]["symbol"] for trace in chart.figure["data"]}
    assert len(symbols) == len(chart.figure["data"]) == 2
    assert all(f"{item.num_gpus} × {item.scenario.gpu}" in chart.alt for item in ROWS)


def test_the_present_plan_is_a_ring_and_the_target_a_line():
    chart = cost_against_latency(ROWS, row(1, 3285.0, 0.12), 1.0)
    ring = chart.figure["data"][-1]
    assert ring["marker"]["symbol"] == "circle-open"
    assert (ring["x"], ring["y"]) == ([0.12], [3285.0])
    assert [shape["x0"] for shape in chart.figure["layout"]["shapes"]] == [1.0]
    assert not cost_against_latency(ROWS, None, None).figure["layout"]["shapes"]


def test_the_title_says_what_the_cheapest_saves():
    assert finding(ROWS, row(1, 4000.0, 0.1)) == (
        "2 × L40S costs 75 % less than this plan and is 95 % sure: 1,000 USD a month"
    )
    assert finding(ROWS, row(1, 900.0, 0.1)).startswith("None of the deployments tried is cheaper")
    missed = row(1, 4000.0, 3.0, status="misses targets")
    assert finding(ROWS, missed) == "2 × L40S is the cheapest tried and 95 % sure: 1,000 USD a month"
    assert finding((), None) == "No deployment tried meets the targets"
    assert named(row(1200, 1.0, 1.0)) == "1,200 × H100 SXM"


def test_the_title_names_a_row_as_sure_as_the_plan_before_a_cheaper_one_in_doubt():
    doubtful, sound = row(2, 1000.0, 0.8, "L40S", sure=0.2), row(1, 3000.0, 0.2, sure=0.8)
    assert finding((doubtful, sound), row(1, 4000.0, 0.1, sure=0.7)) == (
        "1 × H100 SXM costs 25 % less than this plan and is 80 % sure: 3,000 USD a month"
    )
    only = "2 × L40S costs 75 % less than this plan, but is only 20 % sure"
    assert finding((doubtful,), row(1, 4000.0, 0.1, sure=0.7)) == only
    # The sound one is dearer than this plan: the doubtful one is still worth a word.
    assert finding((doubtful, row(1, 5000.0, 0.2, sure=0.8)), row(1, 4000.0, 0.1, sure=0.7)) == only
    # Without published measurements no row has a chance.
    unknown = row(2, 1000.0, 0.8, "L40S", sure=math.nan)
    assert finding((unknown,), row(1, 4000.0, 0.1, sure=math.nan)) == (
        "2 × L40S costs 75 % less than this plan: 1,000 USD a month"
    )


def test_gpus_that_cost_nothing_are_points_too():
    chart = cost_against_latency((row(1, 0.0, 0.2),), row(1, 0.0, 0.2), 1.0)
    assert chart.figure["data"][0]["y"] == [0.0]


def test_without_a_row_there_is_no_chart():
    assert cost_against_latency((), row(1, 1.0, 0.1), 1.0) is None


def names_in(chart, rows):
    texts = [note["text"] for note in chart.figure["layout"]["annotations"]]
    return [named(item) for item in rows if any(named(item) in text for text in texts)]


def test_names_do_not_lie_on_each_other():
    apart = (row(2, 1000.0, 0.8, "L40S"), row(1, 5000.0, 0.1))
    assert names_in(cost_against_latency(apart, None, 1.0), apart) == ["2 × L40S", "1 × H100 SXM"]
    near = (row(1, 1350.0, 0.24, "MI300X"), row(1, 1424.0, 0.235, "MI325X"), row(1, 5000.0, 0.1))
    assert names_in(cost_against_latency(near, None, 1.0), near) == ["1 × MI300X", "1 × H100 SXM"]


def test_a_long_name_is_short_and_stands_on_the_side_with_room():
    rows = (row(2, 1000.0, 0.9, "RTX PRO 6000 Blackwell Server"), row(1, 5000.0, 0.1))
    notes = cost_against_latency(rows, None, 1.0).figure["layout"]["annotations"]
    long, short = notes[0], notes[1]
    assert "2 × RTX PRO 6000…" in long["text"]
    assert (long["xanchor"], short["xanchor"]) == ("right", "left")
