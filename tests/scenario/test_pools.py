"""Inputs of prefill and decode on separate replicas."""

import pytest

from planner.errors import InvalidInput
from planner.scenario.fields import fields_by_name
from planner.scenario.link import from_query, to_query
from planner.scenario.pools import DEPLOYMENTS
from planner.scenario.scenario import Scenario

APART = Scenario(deployment="disaggregated")


def test_a_link_carries_them():
    asked = APART.replace(prefill_replicas=3, decode_replicas=2, kv_transfer_gb_s=25.0)
    assert from_query(to_query(asked)).scenario == asked
    assert Scenario().deployment == DEPLOYMENTS[0]
    names = list(fields_by_name())
    assert names.index("num_replicas") < names.index("deployment") < names.index("engine")


def test_the_network_carries_the_cache_of_all_gpus():
    # H100 SXM: 900 GB/s of NVLink both ways, so the 400 Gb/s port of each GPU is the limit; L4: PCIe 4.0, 64 both ways.
    assert APART.replace(tensor_parallel_size=4).kv_transfer_bytes_per_s == 4 * 50e9
    assert APART.replace(gpu="L4").kv_transfer_bytes_per_s == 32e9
    assert APART.replace(kv_transfer_gb_s=12.5).kv_transfer_bytes_per_s == 12.5e9


def test_what_given_replicas_take_has_one_of_each_kind_where_none_is_given():
    assert APART.fixed_pools == (None, None)
    assert not APART.fixes_pools
    asked = APART.replace(question="take", decode_replicas=3)
    assert (asked.fixed_pools, asked.fixes_pools) == ((1, 3), True)


@pytest.mark.parametrize(
    ("changes", "field"), [({"arrivals": "closed"}, "deployment"), ({"num_replicas": 3}, "num_replicas")]
)
def test_what_cannot_be_planned_apart_is_named(changes, field):
    with pytest.raises(InvalidInput) as caught:
        APART.replace(**changes)
    assert caught.value.field == field
    assert Scenario(**changes).is_disaggregated is False
