"""What follows from the figures of a plan: free memory, being short of a full step, the scheduler's limits."""

import pytest

from planner.catalog.gpus import get_gpu
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
