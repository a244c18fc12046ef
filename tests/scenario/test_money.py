"""Inputs of what things cost."""

from planner.scenario.fields import fields_by_name, unsimulated_names
from planner.scenario.link import from_query, to_query
from planner.scenario.money import Money
from planner.scenario.runtime import EngineRuntime
from planner.scenario.scenario import Scenario


def test_all_of_them_are_prices_that_no_simulation_depends_on():
    own = Money.__dataclass_fields__.keys() - EngineRuntime.__dataclass_fields__.keys()
    assert own <= unsimulated_names()
    assert {fields_by_name()[name].metadata["group"] for name in own} == {"prices"}


def test_a_link_carries_them():
    asked = Scenario(gpu_purchase_usd=25_000.0, api_cached_share=0.3, pue=1.2)
    assert from_query(to_query(asked)).scenario == asked
    assert to_query(asked).endswith("&acs=0.3&buy=25000&pue=1.2")
