"""Matrices, experts and collectives of a layer."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.hardware import Parallelism
from planner.step_time.model import explain_step
from tests.step_time.cases import LLAMA, ONE, VLLM, decode


def test_tensor_parallelism_divides_weights_and_adds_collectives():
    where = (get_model(LLAMA), get_gpu("H100 SXM"), VLLM)
    alone = explain_step(*where, ONE, decode(1, 16))
    four = explain_step(*where, Parallelism(tensor_parallel_size=4), decode(1, 16))
    assert alone["collectives"] == 0
    assert four["collectives"] > 0
    assert four["weights_read"] == pytest.approx(alone["weights_read"] / 4, rel=0.02)
