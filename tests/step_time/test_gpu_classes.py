"""GPUs without kernel tables, and links: each against a published measurement that is not a serving row."""

import numpy as np
import pytest

from planner.catalog.gpus import get_gpu, gpu_names
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.step_time import kernels
from planner.step_time.layers import expert_parts
from planner.step_time.model import step_time_table
from planner.step_time.profile import class_of, device_of, efficiency_profile, evidence_of, peak_flops
from planner.step_time.rank_share import RankShare
from planner.step_time.step_table import PrefillChunk, StepWork
from planner.tables import read_table
from tests.step_time.cases import share

BITS = {"bf16": 16.0, "fp8": 8.0, "fp8_block": 8.0, "int4": 4.25, "nvfp4": 4.25}


def product_s(gpu, dtype, tokens, out, inner, engine="vllm"):
    card = get_gpu(gpu)
    kernel = peak_flops(card, dtype)[1]
    parameters, _ = efficiency_profile(card, engine).parameters("gemm", kernel)
    size = (np.array([float(n)]) for n in (tokens, out, inner))
    return float(kernels.gemm_parts(parameters, device_of(card, kernel), *size, BITS[dtype]).total[0])


def all_reduce_s(gpu, ranks, message):
    return float(
        kernels.collective_s(*efficiency_profile(get_gpu(gpu), "vllm").all_reduce(ranks), np.array([message]))[0]
    )


@pytest.mark.parametrize(
    ("gpu", "dtype", "size", "measured_us", "within"),
    [
        # DeepGEMM, github.com/vllm-project/vllm/issues/49932
        ("H20", "fp8_block", (16, 24576, 7168), 93, 0.15),
        ("H20", "fp8_block", (4096, 24576, 7168), 2 * 4096 * 24576 * 7168 / 275e6, 0.2),
        # Marlin W4, 4.98 TFLOP/s at one token, github.com/inclusionAI/humming/pull/2
        ("H100 SXM", "int4", (1, 8192, 8192), 2 * 8192**2 / 4.98e6, 0.2),
        # AITER FP8 from 1 to 64 tokens, github.com/ROCm/aiter/pull/1092
        ("MI300X", "fp8", (64, 1280, 8192), 10.7, 0.2),
        # tuned kernels of github.com/ROCm/aiter aiter/configs/model_configs @e4048607a5
        ("MI355X", "bf16", (16, 5120, 25600), 48.3, 0.2),
        ("MI355X", "bf16", (4096, 5120, 25600), 968.3, 0.2),
        ("MI355X", "fp8", (4096, 5120, 25600), 453.6, 0.2),
        ("MI355X", "fp8_block", (4096, 7168, 7168), 235.9, 0.25),
        ("MI355X", "nvfp4", (4096, 9216, 7168), 135.4, 0.2),
        ("MI300X", "fp8_block", (4096, 5120, 8704), 473.5, 0.2),
    ],
)
def test_small_products_where_no_table_measured_them(gpu, dtype, size, measured_us, within):
    assert 1e6 * product_s(gpu, dtype, *size) == pytest.approx(measured_us, rel=within)


@pytest.mark.parametrize(
    ("gpu", "dtype", "measured_tflops"),
    [
        # github.com/xzwgit/gpu-flops-bench
        ("RTX 4090", "bf16", 179),
        ("RTX 5090", "bf16", 254),
        # github.com/mag-/gpu_benchmark (H100 NVL with a caveat there)
        ("H100 NVL", "bf16", 489),
        # calebcoffie.com/benchmarks
        ("RTX 3090", "bf16", 65),
    ],
)
def test_large_products_reach_what_benchmarks_reach(gpu, dtype, measured_tflops):
    n = 8192.0
    assert 2 * n**3 / product_s(gpu, dtype, n, n, n) == pytest.approx(1e12 * measured_tflops, rel=0.15)


@pytest.mark.parametrize(
    ("gpu", "model", "tokens_per_s"),
    [
        # Qwen3-8B in 16 bits, github.com/AlexsJones/llmfit/pull/1046
        ("RTX 4090", "Qwen/Qwen3-8B", 58.7),
        # Llama-3-8B on one A10G, 30 ms a token
        ("A10G", "meta-llama/Llama-3.1-8B-Instruct", 1000 / 30),
    ],
)
def test_graphics_memory_is_read_at_nine_tenths_of_its_rate(gpu, model, tokens_per_s):
    share = RankShare(model=get_model(model), gpu=get_gpu(gpu), engine=EngineSettings(), parallelism=Parallelism())
    step = step_time_table(share).step_s(StepWork(num_decodes=1, kv_tokens=500, num_logit_rows=1))
    assert 1 / step == pytest.approx(tokens_per_s, rel=0.1)


@pytest.mark.parametrize("tokens", [1, 64])
def test_few_tokens_take_the_time_of_a_whole_tile_where_compute_is_short(tokens):
    # wgmma multiplies 64 rows: 2 · 64 · 24576 · 7168 FLOP at 148 TFLOP/s are 152 us, the bytes at 4 TB/s only 88
    floor_s = 2 * 64 * 24576 * 7168 / 148e12
    assert product_s("H20", "bf16", tokens, 24576, 7168) > floor_s
    # on H100 the same tile takes 23 us and the bytes 105
    assert product_s("H100 SXM", "bf16", 1, 24576, 7168) == pytest.approx(105e-6 / 0.86 + 3e-6, rel=0.05)


def test_unpacking_binds_four_bit_weights_by_multiprocessors():
    # 1.44 TB/s on the 132 SMs of an H100: an H20 has 78, an H100 NVL as many as the H100, and more bandwidth
    weights = 8192 * 8192 * 4.25 / 8
    taken = {gpu: product_s(gpu, "int4", 1, 8192, 8192) - 3.2e-6 for gpu in ("H100 SXM", "H100 NVL", "H20")}
    assert weights / taken["H100 SXM"] == pytest.approx(1.44e12, rel=0.05)
    assert taken["H20"] / taken["H100 SXM"] == pytest.approx(132 / 78, rel=0.02)
    assert taken["H100 NVL"] == pytest.approx(taken["H100 SXM"], rel=0.02)


@pytest.mark.parametrize(
    ("gpu", "tokens", "tokens_per_s"),
    [
        # Q6_K, github.com/ggml-org/llama.cpp/pull/7860
        ("RTX 3090", 2048, 3525),
        # github d893a/localscore-insights, prompts of 16 to 4,096 tokens: the class line is read from another GPU
        ("RTX A6000", 1332, 3447),
        # ROCm, github.com/ggml-org/llama.cpp/pull/26284
        ("RX 7900 XTX", 2048, 3227),
        # Metal, github.com/brand-o/normiebench/issues/40 and 3
        ("Apple M1 Max", 512, 500),
        ("Apple M4", 512, 225),
    ],
)
def test_llama_cpp_reads_prompts_at_the_rate_of_its_own_kernels(gpu, tokens, tokens_per_s):
    replica = share("meta-llama/Llama-3.1-8B-Instruct", gpu, weights="gguf_q4_k_m", family="llamacpp")
    work = StepWork(chunks=(PrefillChunk(num_tokens=tokens),), num_logit_rows=1)
    assert tokens / step_time_table(replica).step_s(work) == pytest.approx(tokens_per_s, rel=0.1)


def test_llama_cpp_reads_prompts_in_16_bits_where_no_tensor_core_multiplies_8():
    # ggml-cuda/mmq.cu: ggml_cuda_should_use_mmq, from 64 tokens on, and cuBLAS multiplies as it does a 16-bit file
    work = StepWork(chunks=(PrefillChunk(num_tokens=2048),), num_logit_rows=1)
    own, other = (
        step_time_table(share("meta-llama/Llama-3.1-8B-Instruct", "V100 SXM2 32GB", weights=weights, family="llamacpp"))
        for weights in ("gguf_q4_k_m", "gguf_f16")
    )
    assert own.step_s(work) == pytest.approx(other.step_s(work), rel=0.1)


@pytest.mark.parametrize(("gpu", "cores"), [("Apple M1", 7), ("Apple M1 Pro 14 core", 14), ("Apple M1 Max", 32)])
def test_unpacking_binds_four_bit_weights_by_cores_on_m1(gpu, cores):
    # 5.4 to 6.7 GB/s a core: github d893a/localscore-insights assets/localscore_results.tsv
    weights = 14336 * 4096 * 4.25 / 8
    assert 5.4e9 < weights / product_s(gpu, "int4", 1, 4096, 14336, "llamacpp") / cores < 6.7e9


# Qwen3.5-397B's experts on two MI355X, MXFP4 by MXFP4, and Qwen3-Next's in FP8 on one: github.com/ROCm/aiter
# qwen3_5_397b_fp4_tuned_fmoe.csv @e4048607a5, pull/2748.
@pytest.mark.parametrize(
    ("model", "weights", "split", "tokens", "measured_us"),
    [
        ("Qwen/Qwen3.5-397B-A17B", "mxfp4", 2, 1, 21.3),
        ("Qwen/Qwen3.5-397B-A17B", "mxfp4", 2, 1024, 306.9),
        ("Qwen/Qwen3.5-397B-A17B", "mxfp4", 2, 4096, 557.9),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "fp8_block", 1, 1, 33.3),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "fp8_block", 1, 4096, 512.2),
    ],
)
def test_experts_on_cdna4_take_what_their_tuned_kernels_take(model, weights, split, tokens, measured_us):
    replica = share(model, "MI355X", tp=split, weights=weights, family="sglang")
    layer = next(layer for layer, _ in replica.layers if layer.experts)
    found = 1e6 * float(expert_parts(replica, layer, np.array([float(tokens)])).total[0])
    assert found == pytest.approx(measured_us, rel=0.25)


# Qwen3-Coder-30B-A3B in GPTQ with vLLM on one R9700, time a token with about so many requests
# (github.com/kyuz0/amd-r9700-vllm-toolboxes benchmarks/benchmark_results_amd-r9700).
@pytest.mark.parametrize(("requests", "measured_ms"), [(10, 45), (64, 88)])
def test_four_bit_experts_without_marlin_are_read_at_a_quarter_of_the_memory_rate(requests, measured_ms):
    replica = share("Qwen/Qwen3-Coder-30B-A3B-Instruct", "Radeon AI PRO R9700", weights="gptq_int4")
    work = StepWork(num_decodes=requests, kv_tokens=300 * requests, num_logit_rows=requests)
    assert 1e3 * step_time_table(replica).step_s(work) == pytest.approx(measured_ms, rel=0.2)


# Marlin on A10: 3.87 times as fast as 16 bits up to 16 or 32 tokens (github.com/IST-DASLab/marlin: 18,432 × 73,728).
@pytest.mark.parametrize("tokens", [1, 16])
def test_marlin_is_the_same_kernel_behind_any_link(tokens):
    size = (tokens, 73728, 18432)
    assert product_s("A10", "bf16", *size) / product_s("A10", "int4", *size) == pytest.approx(3.87, rel=0.15)
    sxm, pcie = (efficiency_profile(get_gpu(f"A100 {name} 80GB"), "vllm") for name in ("SXM", "PCIe"))
    assert pcie.parameters("gemm", "int4") == sxm.parameters("gemm", "int4")


def test_all_reduces_of_geforce_pass_through_host_memory():
    # NCCL on 2 × 2080 Ti without peer-to-peer: 280 us for 1 MB on PCIe 3 (Anthony-Hoo.github.io); PCIe 4 has twice that
    # bandwidth, and an RTX 3090 lies between the two.
    assert 140e-6 < all_reduce_s("RTX 3090", 2, 2**20) < 280e-6
    # across sockets without peer-to-peer, L40S: 116 us for 256 KB and 1,649 us for 4 MB on four GPUs (AIConfigurator)
    assert all_reduce_s("RTX 4090", 4, 2**18) == pytest.approx(116e-6, rel=0.2)
    assert all_reduce_s("RTX 4090", 4, 2**22) == pytest.approx(1649e-6, rel=0.2)


def test_all_reduces_with_peer_to_peer_reach_the_published_bus_bandwidth():
    # 8 × RTX PRO 6000 on PCIe 5: 37.6 to 41 GB/s (github.com/voipmonitor/rtx6kpro)
    size = 2.0**28
    bus = size * 2 * 7 / 8 / all_reduce_s("RTX PRO 6000 Blackwell Server", 8, size)
    assert bus == pytest.approx(39e9, rel=0.15)


def test_a_bridge_joins_two_cards_only():
    message = 2.0**22
    assert all_reduce_s("H100 NVL", 4, message) > 4 * all_reduce_s("H100 NVL", 2, message)


def test_lists_of_classes_name_known_gpus_and_say_where_values_come_from():
    rows = read_table("catalog/gpu_classes.csv")
    assert {row["gpu"] for row in rows} <= set(gpu_names())
    assert len({row["gpu"] for row in rows}) == len(rows)
    known = {row["class"] for row in read_table("catalog/efficiency_classes.csv")}
    without = {row["class"] for row in rows} - known
    assert without == {"turing", "volta", "cdna2"}
    for name in ("gpu_classes", "efficiency_classes", "all_reduce_links"):
        assert all(row["source"] for row in read_table(f"catalog/{name}.csv"))


def test_a_gpu_that_is_not_listed_takes_the_class_of_its_architecture():
    known = get_gpu("H20")
    stranger = type(known)(
        name="H25",
        architecture="Hopper",
        memory_gb=96.0,
        memory_gib=96.0,
        memory_bandwidth_gb_s=4000.0,
        bf16_tflops=300.0,
    )
    assert class_of(stranger)["class"] == "hopper"
    assert "same architecture" in evidence_of(stranger)
    assert "kernels timed on this class" in evidence_of(known)
    assert "published runs" in evidence_of(get_gpu("H100 NVL"))
    assert evidence_of(get_gpu("H100 SXM")) == "kernels measured on H100 SXM"
    assert "another architecture" in evidence_of(get_gpu("Gaudi 2"))
