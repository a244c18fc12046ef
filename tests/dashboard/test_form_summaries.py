"""What a closed group says of itself."""

from planner.dashboard.form_fields import GROUPS, HEADINGS
from planner.dashboard.form_summaries import summary
from planner.scenario.fields import fields_by_name
from planner.scenario.scenario import Scenario


def test_the_group_is_closed_and_says_what_is_set(open_app):
    assert summary("advanced", Scenario()) == "engine defaults"
    assert summary("advanced", Scenario(block_size=32)) == "KV block size"
    three = Scenario(block_size=32, kv_offload_gib=5.0, num_lora_adapters=3)
    assert summary("advanced", three) == "KV block size, 2 more"
    assert list(GROUPS).index("advanced") == list(GROUPS).index("engine") + 1
    assert set(HEADINGS) <= set(fields_by_name())
