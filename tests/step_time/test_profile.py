"""Which measurements hold on a GPU, and what they are worth there."""

import dataclasses

import numpy as np
import pytest

from planner.catalog.gpus import get_gpu, gpu_names
from planner.step_time import kernels
from planner.step_time.profile import (
    ALL_REDUCE_BYTES,
    KERNELS_MEASURED,
    MOST_BANDWIDTH,
    NOTHING_MEASURED,
    SAME_ARCHITECTURE,
    chip_family,
    device_of,
    efficiency_profile,
    evidence_class,
    fitted_numbers,
    measured_gpu,
    peak_flops,
    runs_left_out,
    stored_profile,
)


# NVIDIA data sheets, dense: H100 SXM 989 bf16 and 1,979 fp8; A100 312 bf16 and no fp8.
@pytest.mark.parametrize(
    ("gpu", "dtype", "tflops", "kernel"),
    [
        ("H100 SXM", "bf16", 989, "bf16"),
        ("H100 SXM", "fp8", 1979, "fp8"),
        ("A100 SXM 80GB", "fp8", 312, "int4"),  # widened on the fly, multiplied in 16 bits
        ("A100 SXM 80GB", "mxfp4", 312, "mxfp4"),
        ("H100 SXM", "nvfp4", 989, "int4"),
    ],
)
def test_rate_at_which_weights_are_multiplied(gpu, dtype, tflops, kernel):
    rate, name = peak_flops(get_gpu(gpu), dtype)
    assert rate == pytest.approx(tflops * 1e12, rel=0.001)
    assert name == kernel


# SMs of the data sheets: H100 SXM 132, A100 108; GH200 is an H100 with other memory.
@pytest.mark.parametrize(("gpu", "sms"), [("H100 SXM", 132), ("A100 SXM 80GB", 108), ("GH200 96GB", 132)])
def test_device_of_a_gpu(gpu, sms):
    device = device_of(get_gpu(gpu))
    assert device.num_sms == pytest.approx(sms, abs=1)
    assert device.bandwidth == get_gpu(gpu).memory_bandwidth_gb_s * 1e9


@pytest.mark.parametrize(
    ("gpu", "stands_for"),
    [
        ("H100 SXM", "H100 SXM"),
        ("GH200 96GB", "H100 SXM"),
        ("RTX 4090", "L40S"),
        ("A100 SXM 40GB", "A100 SXM 80GB"),
        ("T4", "A100 SXM 80GB"),
        ("MI300X", "H100 SXM"),
    ],
)
def test_gpus_without_measurements_take_those_of_their_architecture(gpu, stands_for):
    name, error = measured_gpu(get_gpu(gpu))
    assert name == stands_for
    assert (error == 0) == (gpu == stands_for)


def test_another_architecture_adds_more_error_than_another_gpu():
    errors = [measured_gpu(get_gpu(name))[1] for name in ("H100 SXM", "GH200 96GB", "Gaudi 2")]
    assert errors[0] == 0 < errors[1] < errors[2]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "llamacpp"])
@pytest.mark.parametrize("gpu", gpu_names())
def test_every_gpu_has_parameters_for_every_kernel(gpu, engine):
    profile = efficiency_profile(get_gpu(gpu), engine)
    for kind, made in kernels.PARAMETERS.items():
        for dtype in ("bf16", "fp8") if "attention" in kind or "latent" in kind else ("bf16", "fp8", "int4", "mxfp4"):
            parameters, residual = profile.parameters(kind, dtype)
            assert isinstance(parameters, made)
            assert 0 <= residual < 1
    decode, _ = profile.parameters("decode_attention", "bf16")
    assert max(decode.bandwidth, decode.bandwidth_single) <= MOST_BANDWIDTH  # no cache is read faster than memory


def test_what_nobody_measured_is_an_error():
    with pytest.raises(LookupError, match="telepathy"):
        efficiency_profile(get_gpu("H100 SXM"), "vllm").parameters("telepathy", "bf16")
    profile = dataclasses.replace(efficiency_profile(get_gpu("H100 SXM"), "vllm"), measured="L40S")
    assert profile.source.startswith(stored_profile(get_gpu("L40S"), "vllm")["source"])


@pytest.mark.parametrize("gpu", ["H100 SXM", "L40S", "B200", "A100 SXM 40GB"])
@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_larger_messages_never_take_less(gpu, ranks):
    sizes, seconds = efficiency_profile(get_gpu(gpu), "vllm").all_reduce(ranks)
    assert np.array_equal(sizes, ALL_REDUCE_BYTES)
    assert np.all(seconds > 0)
    assert seconds[-1] > 10 * seconds[0]
    # A ring moves 2 × (n − 1) ÷ n of the message over a link whose one way is half of the published rate.
    if ranks <= get_gpu(gpu).gpus_per_node:
        assert seconds[-1] > sizes[-1] * 2 * (ranks - 1) / ranks / (get_gpu(gpu).link_gb_s * 1e9) / 2


def test_ranks_beyond_a_node_cross_the_network():
    profile = efficiency_profile(get_gpu("H100 SXM"), "vllm")
    within, beyond = (profile.all_reduce(ranks)[1] for ranks in (8, 16))
    # 2 × 1 GiB at 50 GB/s on top
    assert beyond[-1] - within[-1] == pytest.approx(75e-6 + 2 * 2**30 / 50e9, rel=0.25)


# What the kernel tables hold: three engines on A100, H100, H200, B200, L40S and RTX PRO 6000; FP8 experts on H100, none
# on A100; nothing of AMD, and of Ada only the L40S.
@pytest.mark.parametrize(
    ("gpu", "engine", "kernel", "evidence"),
    [
        ("H100 SXM", "vllm", ("gemm", "bf16"), KERNELS_MEASURED),
        ("H100 SXM", "vllm", ("gemm", "int4"), SAME_ARCHITECTURE),
        ("H100 SXM", "llamacpp", ("gemm", "bf16"), SAME_ARCHITECTURE),
        ("B300", "sglang", ("experts", "nvfp4"), KERNELS_MEASURED),
        ("RTX 4090", "vllm", ("gemm", "bf16"), SAME_ARCHITECTURE),
        ("MI300X", "vllm", ("gemm", "bf16"), NOTHING_MEASURED),
        ("Gaudi 3", "vllm", ("gemm", "bf16"), NOTHING_MEASURED),
        ("V100 SXM2 32GB", "vllm", ("gemm", "bf16"), NOTHING_MEASURED),
    ],
)
def test_how_near_the_evidence_is(gpu, engine, kernel, evidence):
    assert evidence_class(get_gpu(gpu), engine, (kernel,)) == evidence


def test_without_published_runs_a_class_keeps_the_kernels_of_its_reference():
    def gemm(gpu, *, left_out):
        efficiency_profile.cache_clear()
        if not left_out:
            return efficiency_profile(get_gpu(gpu), "vllm").parameters("gemm", "bf16")[0]
        with runs_left_out():
            return efficiency_profile(get_gpu(gpu), "vllm").parameters("gemm", "bf16")[0]

    # H100 NVL reaches 0.76 of the SXM's share of bandwidth, by runs that were published
    assert gemm("H100 NVL", left_out=True).bandwidth == gemm("H100 SXM", left_out=True).bandwidth
    assert gemm("H100 NVL", left_out=False).bandwidth == pytest.approx(
        0.76 * gemm("H100 SXM", left_out=False).bandwidth
    )
    efficiency_profile.cache_clear()


def test_gpus_of_a_family_share_its_kernels_and_keep_their_links():
    for gpu in ("B300", "GB200", "GB300"):
        own, shared = (stored_profile(get_gpu(name), "vllm") for name in (gpu, "B200"))
        assert own["gemm"] == shared["gemm"]
        assert own["all_reduce"] != shared["all_reduce"]
        assert measured_gpu(get_gpu(gpu)) == (gpu, 0.0)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_blackwell_ultra_is_as_fast_as_its_kernel_tables_say(engine):
    # AIConfigurator's tables, B300 ÷ B200: attention of prompts 1.2, 4-bit products 1.37 (of a peak 1.56 times as high)
    def reached(gpu, kind, dtype, name):
        parameters = efficiency_profile(get_gpu(gpu), engine).parameters(kind, dtype)[0]
        return getattr(parameters, name) * (peak_flops(get_gpu(gpu), dtype)[0] if kind == "gemm" else 1.0)

    for gpu in ("B300", "GB300"):
        attention = [reached(name, "prefill_attention", "bf16", "compute") for name in (gpu, "B200")]
        assert attention[0] / attention[1] == pytest.approx(1.2)
    products = [reached(name, "gemm", "nvfp4", "compute_8192") for name in ("B300", "B200")]
    assert products[0] / products[1] == pytest.approx(1.37, rel=0.01)


def test_fitted_numbers_are_counted():
    counts = fitted_numbers()
    # by hand: llama.cpp and TGI have no kernels of their own; six PCIe links have a latency and a bandwidth each
    assert counts["links"] == 12
    assert 1_000 < counts["kernels"] < 1_400
    assert sum(counts.values()) < 1_600


# Blackwell's workstation and consumer chips (compute capability 12.0, 12.1) lack the instructions of B200 (10.0), on
# which its kernels rest; Ampere, Ada and Hopper are one instruction set whatever the link.
@pytest.mark.parametrize(
    ("gpu", "family"),
    [
        ("B200", "Blackwell"),
        ("B300", "Blackwell"),
        ("RTX PRO 6000 Blackwell Server", "Blackwell workstation"),
        ("RTX 5090", "Blackwell workstation"),
        ("GB10 (DGX Spark)", "Blackwell workstation"),
        ("H100 PCIe", "Hopper"),
        ("A100 PCIe 80GB", "Ampere"),
        ("RTX 3090", "Ampere"),
        ("L40S", "Ada"),
    ],
)
def test_chips_that_run_the_same_kernels(gpu, family):
    assert chip_family(get_gpu(gpu)) == family


# The vLLM tables of latent attention hold 143 to 322 us of launches that a CUDA graph replays without; SGLang and
# TensorRT-LLM measured 14 to 31 us on the same GPUs, the kernel tables' own figures.
@pytest.mark.parametrize(("gpu", "most_us"), [("H100 SXM", 15), ("A100 SXM 80GB", 31), ("L40S", 14), ("MI300X", 15)])
def test_latent_attention_is_replayed_from_a_graph(gpu, most_us):
    served = efficiency_profile(get_gpu(gpu), "vllm").parameters("latent_decode", "bf16")[0]
    assert served.base_us <= most_us
    measured = efficiency_profile(get_gpu(gpu), "vllm", as_measured=True).parameters("latent_decode", "bf16")[0]
    assert measured.base_us > 100
    assert served.bandwidth == measured.bandwidth
