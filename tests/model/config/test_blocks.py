"""Matrices of each building block."""

from planner.model.config.build import model_from_config
from planner.model.shape import Shard, TensorGroup
from tests.model.config.cases import LLAMA


def test_matrices_carry_their_shard_and_group() -> None:
    layer = model_from_config(LLAMA).layer_kinds[0]
    shards = {linear.name: (linear.shard, linear.group) for linear in layer.linears}
    assert shards["q_proj"] == (Shard.COLUMN, TensorGroup.ATTENTION)
    assert shards["k_proj"][0] is Shard.KV_COLUMN
    assert shards["down_proj"] == (Shard.ROW, TensorGroup.MLP)
