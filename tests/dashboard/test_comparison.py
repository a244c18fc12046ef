"""Two plans side by side: differences by hand, the inputs that differ, the sentence."""

import math

import pytest

from planner.answer.planning import plan
from planner.dashboard import comparison
from planner.dashboard.comparison import Figure, difference
from planner.scenario.scenario import Scenario


@pytest.mark.parametrize(
    ("ours", "other", "less", "said"),
    [
        (2.0, 3.0, True, "+50 %, worse"),
        (3.0, 2.0, True, "−33 %, better"),
        (100.0, 250.0, False, "2.5×, better"),
        (0.5, 0.6, None, "+20 %"),
        (7.0, 7.0, True, "same"),
        (math.nan, 7.0, True, "—"),
    ],
)
def test_differences_by_hand(ours, other, less, said):
    a = Figure(label="x", value=ours, text="", less_is_better=less)
    b = Figure(label="x", value=other, text="", less_is_better=less)
    assert difference(a, b) == said


SMALL = Scenario(num_requests=300)


def test_differing_inputs_are_named_in_the_forms_words():
    other = SMALL.replace(gpu="L40S", enable_prefix_caching=False, title="another", users=700)
    assert comparison.differing(SMALL, other) == ["gpu", "enable_prefix_caching", "users"]
    rows = [tuple(row.values()) for row in comparison.input_table(SMALL, other)]
    assert rows == [
        ("GPU", "H100\u00a0SXM", "L40S"),
        ("Prefix\u00a0caching", "on", "off"),
        ("Users", "500", "700"),
    ]
    assert comparison.asks_another_question(SMALL, other)
    assert not comparison.asks_another_question(SMALL, SMALL.replace(gpu="L40S"))


def test_the_sentence_tells_which_is_cheaper():
    cheap, dear = plan(SMALL.replace(usd_per_gpu_hour=1.0)), plan(SMALL.replace(usd_per_gpu_hour=3.0))
    # 730 h × 1 GPU × 2 USD of difference = 1,460 USD a month.
    assert cheap.num_gpus == dear.num_gpus == 1
    assert "this plan costs 1,460 USD less a month" in comparison.sentence(cheap, dear)
    assert "the other plan costs 1,460 USD less a month" in comparison.sentence(dear, cheap)
    assert comparison.sentence(cheap, cheap) == "Both links open the same plan"
    refused = plan(SMALL.replace(model="deepseek-ai/DeepSeek-V3"))
    assert comparison.sentence(cheap, refused) == "Only this plan starts"
    assert len(comparison.figure_table(refused, cheap)) == len(comparison.figure_table(cheap, dear))
