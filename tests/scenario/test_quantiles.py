"""Lengths of a recording as the few numbers of a link."""

import pytest

from planner.errors import InvalidInput
from planner.scenario import Scenario, from_query, to_query
from planner.scenario.quantiles import LEVELS, quantiles_of, quantiles_text

TEXT = ".".join(str(round(100 * level) + 1) for level in LEVELS)


def test_between_levels_the_law_is_linear():
    law = quantiles_of("prompt_quantiles", quantiles_text(1 + 1000 * level for level in LEVELS))
    assert len(law) == 1001
    assert law[250] == pytest.approx(251.0)
    assert law[-1] == 1001


def test_the_longest_lengths_fit_in_a_field():
    text = quantiles_text([1e12] * len(LEVELS))
    assert len(text) <= 120 + 7
    assert Scenario(lengths="quantiles", prompt_quantiles=TEXT, output_quantiles=TEXT).traffic.prompt_tokens.quantiles


@pytest.mark.parametrize(
    "text", ["", "1.2.3", TEXT.replace("1.", "x.", 1), "0" + TEXT[1:], ".".join(["9"] * 15 + ["8"])]
)
def test_what_is_no_law_is_refused(text):
    with pytest.raises(InvalidInput) as caught:
        Scenario(lengths="quantiles", prompt_quantiles=text)
    assert caught.value.field == "prompt_quantiles"


def test_a_link_carries_them():
    scenario = Scenario(lengths="quantiles", prompt_quantiles=TEXT, output_quantiles=TEXT)
    assert from_query(to_query(scenario)).scenario == scenario
