"""The scheduler's limits: all resolved, fixed once made."""

import dataclasses

import pytest

from planner.inputs.limits import Limits

LIMITS = Limits(max_num_seqs=4, max_num_batched_tokens=512, max_model_len=1024, num_kv_blocks=100, block_size=16)


def test_nothing_is_left_open_but_blocks_beside_the_growing_ones():
    required = {item.name for item in dataclasses.fields(Limits) if item.default is dataclasses.MISSING}
    assert required == {item.name for item in dataclasses.fields(Limits)} - {"fixed_blocks_per_sequence"}
    assert LIMITS.fixed_blocks_per_sequence == 0  # a model without windows or states


def test_limits_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        LIMITS.num_kv_blocks = 7  # type: ignore[misc]
    assert dataclasses.replace(LIMITS, num_kv_blocks=7).num_kv_blocks == 7
