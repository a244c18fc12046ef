"""The form shows what has an effect."""

from planner.dashboard.form_fields import relevant
from planner.scenario.fields import fields_by_name
from planner.scenario.scenario import Scenario


def values(**changes):
    return {name: getattr(Scenario(), name) for name in fields_by_name()} | changes


def test_fields_without_effect_are_not_shown():
    assert not relevant("draft_model", values())
    assert relevant("draft_model", values(num_speculative_tokens=2))
    assert not relevant("max_loras", values())
    assert relevant("max_loras", values(num_lora_adapters=2))
    assert not relevant("num_prefix_groups", values())
    assert relevant("num_prefix_groups", values(shared_prefix_tokens=100))
    assert not relevant("router", values(arrivals="closed"))
    assert not relevant("mamba_full_memory_ratio", values())
    assert relevant("mamba_full_memory_ratio", values(engine="sglang"))
    assert relevant("max_state_slots", values(max_state_slots=7))  # so that it can be taken back
