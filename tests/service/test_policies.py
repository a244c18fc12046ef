"""Policies side by side, in closed form where every step takes one second."""

import dataclasses
import math

import numpy as np
import pytest

from planner.inputs.traffic import ServiceLevel
from planner.service.policies import LAB_POLICIES, POLICY_TITLES, compare_policies
from tests.service.cases import SLOTS, requests_of, toy

LEVEL = ServiceLevel(ttft_s=100.0, tpot_s=10.0)


def compared(outputs, replica=None, names=LAB_POLICIES, **changes):
    found = compare_policies(replica or toy(), dataclasses.replace(requests_of(outputs), **changes), LEVEL, names=names)
    return {item.name: item for item in found}


def test_throughput_of_each_policy_by_hand():
    # Answers of 10 tokens: one at a time a request takes 10 steps; 8 slots that are always full end 8 in 10 steps.
    found = compared([10] * 400)
    assert tuple(found) == LAB_POLICIES
    assert found["one-at-a-time"].capacity_rps == pytest.approx(0.1, rel=0.02)
    for name in ("reserve-max", "paged"):
        assert found[name].capacity_rps == pytest.approx(SLOTS / 10, rel=0.02)
    for item in found.values():
        assert item.capacity_tokens_per_s == pytest.approx(item.capacity_rps * (1 + 10))
        assert item.title == POLICY_TITLES[item.name]
        assert math.isnan(item.usd_per_million_tokens_at_capacity)
        assert item.metrics.num_requests == 400
        assert item.result.timeline is not None


def test_a_static_batch_lasts_as_long_as_its_longest_answer():
    # Batches of 4 and 20 tokens by turns: each lasts 20 steps, while continuous batching fills the free slots.
    found = compared([4, 20] * 400)
    assert found["static"].capacity_rps == pytest.approx(SLOTS / 20, rel=0.1)
    assert found["paged"].capacity_rps == pytest.approx(SLOTS / 12, rel=0.05)


def test_what_is_turned_away_brings_no_tokens():
    prompts = np.tile([1, 5000], 2000)  # the context holds 4,096
    (item,) = compared([10] * 4000, names=("paged",), prompt_tokens=prompts).values()
    assert item.metrics.num_rejected == 2000
    assert item.capacity_rps == pytest.approx(2 * SLOTS / 10, rel=0.02)
    assert item.capacity_tokens_per_s == pytest.approx(SLOTS / 10 * 11, rel=0.02)


def test_policies_keep_the_slots_for_adapters():
    replica = toy()
    replica = dataclasses.replace(replica, engine=dataclasses.replace(replica.engine, max_loras=2))
    adapters = np.arange(400) % 2
    for item in compared([10] * 400, replica=replica, adapter=adapters).values():
        assert item.metrics.num_rejected == 0
