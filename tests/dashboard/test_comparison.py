"""Plans side by side: differences by hand, the inputs that differ, the sentence."""

import math

import pytest

from planner.answer.planning import plan
from planner.dashboard import comparison
from planner.dashboard.comparison import Figure, difference
from planner.scenario.scenario import Scenario
from tests.answer.cases import planned


@pytest.mark.parametrize(
    ("ours", "other", "less", "said"),
    [
        (2.0, 3.0, True, "+50 %, worse"),
        (3.0, 2.0, True, "−33 %, better"),
        (100.0, 250.0, False, "2.5×, better"),
        (0.5, 0.6, None, "+20 %"),
        (7.0, 7.0, True, "same"),
        (math.nan, 7.0, True, ""),
    ],
)
def test_differences_by_hand(ours, other, less, said):
    a = Figure(label="x", value=ours, text="", less_is_better=less)
    b = Figure(label="x", value=other, text="", less_is_better=less)
    assert difference(a, b) == said


# A median error of 14 % spans factors of 1.14 either way: 1.13 is inside, 1.15 and 1 ÷ 1.15 are not.
@pytest.mark.parametrize(
    ("other", "error", "said"),
    [
        (0.995, 0.14, "−0.5 %, within error"),
        (1.13, 0.14, "+13 %, within error"),
        (1.15, 0.14, "+15 %, worse"),
        (1 / 1.15, 0.14, "−13 %, better"),
        (0.995, 0.0, "−0.5 %, better"),
        (0.995, math.nan, "−0.5 %, better"),
    ],
)
def test_what_our_error_hides_is_neither_better_nor_worse(other, error, said):
    a = Figure(label="x", value=1.0, text="", less_is_better=True, error=error)
    assert difference(a, Figure(label="x", value=other, text="", less_is_better=True, error=error)) == said


def test_shares_differ_by_points():
    a = Figure(label="x", value=0.40, text="40 %", less_is_better=False, is_share=True)
    assert difference(a, Figure(label="x", value=0.42, text="42 %", is_share=True)) == "+2 points, better"
    assert difference(a, Figure(label="x", value=0.15, text="15 %", is_share=True)) == "−25 points, worse"


SMALL = Scenario(num_requests=300)


def test_a_rate_that_poisson_arrivals_hold_is_not_told_of_users_who_wait():
    def held(done):
        return next(item for item in comparison.figures(done) if item.label == "Meets the targets up to")

    assert held(planned(arrivals="closed", concurrent_users=4)).text == "—"
    assert held(planned()).text.endswith(" req/s")


def test_differing_inputs_are_named_in_the_forms_words():
    other = SMALL.replace(gpu="L40S", enable_prefix_caching=False, title="another", users=700)
    third = SMALL.replace(users=800)
    assert comparison.differing_fields([SMALL, other]) == ["gpu", "enable_prefix_caching", "users"]
    rows = [tuple(row.values()) for row in comparison.input_table([plan(item) for item in (SMALL, other, third)])]
    assert rows == [
        ("GPU", "H100\u00a0SXM", "L40S", "H100\u00a0SXM"),
        ("Prefix\u00a0caching", "on", "off", "on"),
        ("Users", "500", "700", "800"),
    ]
    assert comparison.asks_another_question([SMALL, SMALL.replace(gpu="L40S"), third])
    assert not comparison.asks_another_question([SMALL, SMALL.replace(gpu="L40S")])


def test_plans_are_called_by_their_names():
    plans = [plan(SMALL), plan(SMALL.replace(title="A")), plan(SMALL.replace(title="A", gpu="L40S"))]
    assert comparison.names_of(plans) == ["This plan", "A", "A (3)"]
    assert list(comparison.figure_table(plans)[0]) == ["Figure", "This plan", "A", "A \\(3\\)"]
    hostile = comparison.figure_table([plan(SMALL.replace(title="[x](javascript:1)")), plans[1]])
    assert "[x](" not in str(hostile[0])


def test_the_sentence_tells_which_is_cheaper():
    cheap, dear = plan(SMALL.replace(usd_per_gpu_hour=1.0)), plan(SMALL.replace(usd_per_gpu_hour=3.0, title="Dear"))
    # 730 h × 1 GPU × 2 USD of difference = 1,460 USD a month.
    assert cheap.num_gpus == dear.num_gpus == 1
    assert "this plan costs 1,460 USD less a month" in comparison.sentence([cheap, dear])
    assert "Plan 2 costs 1,460 USD less a month" in comparison.sentence([dear, cheap])
    middle = plan(SMALL.replace(usd_per_gpu_hour=2.0, title="Middle"))
    said = comparison.sentence([dear, middle, cheap])
    assert said == "All 3 plans meet the targets; Plan 3 costs 730.00 USD less a month (730.00 USD against 1,460 USD)"
    assert comparison.sentence([cheap, cheap]) == "Both are the same plan"
    refused = plan(SMALL.replace(model="deepseek-ai/DeepSeek-V3"))
    assert comparison.sentence([cheap, refused]) == "Only this plan starts"
    assert len(comparison.figure_table([refused, cheap])) == len(comparison.figure_table([cheap, dear]))


def test_charts_of_money_gpus_and_latencies():
    plans = [plan(SMALL), plan(SMALL.replace(usd_per_gpu_hour=1.0, title="Cheap"))]
    found = {chart.subtitle.split(";")[0]: chart for chart in comparison.charts(plans)}
    assert set(found) == {"GPUs", "p95 TTFT", "p95 TPOT", "Cost per month"}
    assert found["Cost per month"].title == "Lowest cost per month: 730.00 USD, Cheap"  # 730 h × 1 USD
    assert found["GPUs"].title == "GPUs: 1 in each"
    assert "median error" in found["p95 TTFT"].subtitle
