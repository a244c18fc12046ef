"""What follows from the figures of a plan: free memory, being short of a full step, the scheduler's limits."""

import dataclasses

import pytest

from planner.catalog.gpus import get_gpu
from planner.memory.memory_plan import MemoryPlan
from tests.memory.cases import LLAMA, plan


@pytest.mark.parametrize("family", ["trtllm", "tgi"])
def test_an_engine_that_forgets_its_graphs_is_short_of_a_full_step(family: str) -> None:
    # 70 B in 16 bits on an H200: 1 − share of what is free after loading is less than the graphs take.
    made = plan("meta-llama/Llama-3.1-70B-Instruct", family=family, gpu=get_gpu("H200 SXM"), version="1.2")
    parts = made.weights_bytes + made.activation_bytes + made.non_torch_bytes + made.kv_pool_bytes
    assert made.starts
    assert made.is_short == (parts + made.cuda_graph_bytes > made.total_bytes)
    assert made.is_short
    assert not plan(LLAMA, family=family, gpu=get_gpu("H200 SXM"), version="1.2").is_short


def test_what_is_left_by_hand() -> None:
    made = plan(LLAMA, occupied_gib=0.0)
    figures = {"weights_bytes": 10.0, "activation_bytes": 5.0, "non_torch_bytes": 2.0, "cuda_graph_bytes": 1.0,
               "state_bytes": 4.0, "kv_pool_bytes": 60.0, "occupied_bytes": 3.0, "total_bytes": 100.0}  # fmt: skip
    assert dataclasses.replace(made, **figures).free_bytes == 15.0
    # A pool that lacks memory takes none.
    assert dataclasses.replace(made, **(figures | {"kv_pool_bytes": -60.0})).free_bytes == 75.0


def test_less_than_five_mebibytes_is_not_short() -> None:
    made: MemoryPlan = plan(LLAMA)
    short = dataclasses.replace(made, total_bytes=made.total_bytes - made.free_bytes)
    assert short.free_bytes == 0 and not short.is_short
    assert not dataclasses.replace(short, cuda_graph_bytes=short.cuda_graph_bytes + 4 * 2**20).is_short
    lacking = dataclasses.replace(short, cuda_graph_bytes=short.cuda_graph_bytes + 6 * 2**20)
    assert lacking.is_short
    assert not dataclasses.replace(lacking, starts=False).is_short


def test_the_scheduler_sees_the_plans_limits() -> None:
    made = plan("openai/gpt-oss-20b")
    limits = made.limits()
    for name in ("max_num_seqs", "max_num_batched_tokens", "max_model_len", "num_kv_blocks", "block_size"):
        assert getattr(limits, name) == getattr(made, name)
    assert limits.fixed_blocks_per_sequence == made.fixed_blocks_per_sequence > 0
