"""GPUs and splits refuse what cannot be; memory and GPU counts by hand."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InvalidInput
from planner.inputs.hardware import Gpu, Parallelism

# NVIDIA L4 data sheet: 24 GB, 300 GB/s, 121 TFLOP/s in bf16 without sparsity; the driver reports 22.5 GiB.
L4 = Gpu(name="L4", memory_gb=24, memory_gib=22.5, memory_bandwidth_gb_s=300, bf16_tflops=121)


def test_memory_is_what_the_driver_reports():
    assert L4.memory_bytes == 22.5 * 2**30


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("memory_gb", 0),
        ("memory_gib", -1.0),
        ("memory_bandwidth_gb_s", float("nan")),
        ("bf16_tflops", 0.0),
        ("fp8_tflops", 0.0),
        ("link_gb_s", 0),
        ("gpus_per_node", 0),
        ("gpus_per_node", 1.5),
        ("usd_per_hour_typical", -0.1),
        ("tdp_w", 0),
    ],
)
def test_a_gpu_that_cannot_be_names_its_field(field, value):
    with pytest.raises(InvalidInput) as caught:
        dataclasses.replace(L4, **{field: value})
    assert caught.value.field == field


def test_what_the_hardware_lacks_may_stay_open_and_a_price_may_be_nothing():
    assert L4.fp8_tflops is None
    assert dataclasses.replace(L4, usd_per_hour_low=0).usd_per_hour_low == 0
    assert dataclasses.replace(L4, fp8_tflops=0.1, tdp_w=0.5).fp8_tflops == 0.1


@given(st.integers(1, 32), st.integers(1, 16), st.integers(1, 8), st.booleans())
def test_gpus_of_a_replica(tensor, pipeline, data, experts):
    split = Parallelism(
        tensor_parallel_size=tensor,
        pipeline_parallel_size=pipeline,
        attention_data_parallel_size=data,
        expert_parallel=experts,
    )
    assert split.gpus_per_replica == tensor * pipeline * data


def test_sharding_the_cache_along_tokens_takes_no_gpus_of_its_own():
    assert Parallelism(tensor_parallel_size=8, decode_context_parallel_size=8).gpus_per_replica == 8


@pytest.mark.parametrize("field", [item.name for item in dataclasses.fields(Parallelism) if item.type == "int"])
@pytest.mark.parametrize("value", [0, -2, 1025, 2.0, True])
def test_impossible_sizes_name_their_field(field, value):
    with pytest.raises(InvalidInput) as caught:
        Parallelism(**{field: value})
    assert caught.value.field == field
