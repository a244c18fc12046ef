"""One rank's share: layers of the slowest stage, types, kernels, the drafter."""

import pytest

from planner.catalog.models import get_model
from planner.inputs.hardware import Parallelism
from planner.step_time.rank_share import weight_kernel
from tests.step_time.cases import LLAMA, share


# 32 layers in 3 stages: the slowest holds 11.
@pytest.mark.parametrize(("stages", "layers"), [(1, 32), (2, 16), (3, 11), (4, 8)])
def test_layers_of_the_slowest_stage(stages, layers):
    made = share(split=Parallelism(pipeline_parallel_size=stages))
    assert sum(count for _, count in made.layers) == pytest.approx(layers)


@pytest.mark.parametrize(
    ("cache", "size", "kernel"), [("auto", 2, "bf16"), ("fp8", 1, "fp8"), ("nvfp4", 0.5625, "fp8")]
)
def test_type_of_the_cache(cache, size, kernel):
    made = share(cache=cache)
    assert made.kv_bytes == size  # 4 bits and an 8-bit scale per 16 elements
    assert made.kv_kernel == kernel


def test_rates_and_widths_of_the_deployment():
    made = share(tp=4)
    assert (made.tp, made.attention_ranks) == (4, 1)
    assert made.bandwidth == 3350e9  # H100 SXM data sheet


# SGLang's automatic choice on Blackwell is for DeepSeek-V3 and its descendants, not for small latent models.
@pytest.mark.parametrize(
    ("model", "family", "setting", "backend"),
    [
        ("deepseek-ai/DeepSeek-V3", "sglang", "auto", "flashinfer_trtllm"),
        ("deepseek-ai/DeepSeek-V2-Lite", "sglang", "auto", ""),
        ("deepseek-ai/DeepSeek-V3", "vllm", "auto", ""),
        ("Qwen/Qwen3-30B-A3B", "sglang", "triton", "triton"),
    ],
)
def test_kernels_of_the_experts(model, family, setting, backend):
    assert share(model, "B200", family=family, moe_runner_backend=setting).moe_backend == backend


# VLLM_ROCM_USE_AITER is off by default in vllm/envs.py of 0.11.0 to 0.33.0; Triton's FP8 experts as SGLang runs them
# (serving_kernels.csv) reach 0.12 of MI300X's peak.
@pytest.mark.parametrize(
    ("family", "setting", "backend", "compute"),
    [("vllm", "auto", "triton", 0.12), ("vllm", "aiter", "aiter", None), ("sglang", "auto", "", 0.12)],
)
def test_experts_of_vllm_on_amd_without_aiter(family, setting, backend, compute):
    made = share("Qwen/Qwen3-30B-A3B", "MI300X", weights="fp8_block", family=family, moe_runner_backend=setting)
    assert made.moe_backend == backend
    found = made.profile.parameters("experts", "fp8_block")[0].compute
    assert found == compute if compute else found > 0.12


# vLLM runs FP8 blocks of experts with DeepGEMM on Hopper since 0.11.1 (#26197) and until 0.15 (#33490), unless eight
# ranks divide each expert (#29346).
@pytest.mark.parametrize(
    ("version", "gpu", "weights", "split", "backend"),
    [
        ("0.11.0", "H200 SXM", "fp8_block", Parallelism(tensor_parallel_size=2), ""),
        ("0.11.1", "H200 SXM", "fp8_block", Parallelism(tensor_parallel_size=2), "deep_gemm"),
        ("0.14.1", "H100 SXM", "fp8_block", Parallelism(tensor_parallel_size=4), "deep_gemm"),
        ("0.15.0", "H200 SXM", "fp8_block", Parallelism(tensor_parallel_size=2), ""),
        ("0.12.0", "H200 SXM", "fp8_block", Parallelism(tensor_parallel_size=8), ""),
        ("0.12.0", "H200 SXM", "fp8_block", Parallelism(tensor_parallel_size=8, expert_parallel=True), "deep_gemm"),
        ("0.12.0", "H200 SXM", "bf16", Parallelism(tensor_parallel_size=4), ""),
        ("0.12.0", "B200", "fp8_block", Parallelism(tensor_parallel_size=2), ""),
    ],
)
def test_releases_that_align_experts(version, gpu, weights, split, backend):
    made = share("Qwen/Qwen3-235B-A22B", gpu, weights=weights, split=split, version=version)
    assert made.moe_backend == backend


# vLLM's fused_moe/oracle/unquantized.py: CUTLASS before Triton in 0.20.2 but not in 0.19.1, behind it with data
# parallelism; TRT-LLM's kernels, before both, run on SM100 alone. The table of RTX PRO 6000 has 0.658 of the peak for
# TensorRT-LLM's CUTLASS and 0.408 for Triton (catalog/efficiency.json).
@pytest.mark.parametrize(
    ("gpu", "version", "weights", "split", "backend", "compute"),
    [
        ("RTX PRO 6000 Blackwell Server", "0.20.2", "bf16", Parallelism(), "flashinfer_cutlass", 0.658),
        ("RTX PRO 6000 Blackwell Server", "0.19.1", "bf16", Parallelism(), "", 0.408),
        ("RTX PRO 6000 Blackwell Server", "0.20.2", "bf16", Parallelism(attention_data_parallel_size=2), "", 0.408),
        ("RTX PRO 6000 Blackwell Server", "0.20.2", "fp8", Parallelism(), "", None),
        ("B200", "0.20.2", "bf16", Parallelism(), "", None),
        ("H100 SXM", "0.20.2", "bf16", Parallelism(), "", 0.595),
    ],
)
def test_experts_in_16_bits_run_cutlass_on_workstation_blackwell(gpu, version, weights, split, backend, compute):
    made = share("Qwen/Qwen3-30B-A3B", gpu, weights=weights, split=split, version=version)
    assert made.moe_backend == backend
    if compute:
        assert made.profile.parameters("experts", "bf16")[0].compute == pytest.approx(compute, abs=1e-3)


# The A100 table of experts in 4 bits measured Marlin with INT4 (sglang_marlin_moe); FP8 there runs it too.
@pytest.mark.parametrize(
    ("gpu", "weights", "backend", "compute"),
    [
        ("A100 SXM 80GB", "awq_int4", "", 0.4862),
        ("A100 SXM 80GB", "fp8_block", "marlin_fp8", 0.25),
        ("H100 SXM", "fp8", "", None),
    ],
)
def test_int4_experts_on_ampere_reach_what_their_table_measured(gpu, weights, backend, compute):
    made = share("Qwen/Qwen3-30B-A3B", gpu, weights=weights, version="0.20")
    assert made.moe_backend == backend
    if compute:
        assert made.profile.parameters("experts", "int4")[0].compute == pytest.approx(compute)


def test_a_draft_model_is_divided_as_the_model_and_drafts_nothing_itself():
    made = share(tp=4, draft="meta-llama/Llama-3.2-1B-Instruct", num_speculative_tokens=3)
    assert made.drafter is not None
    assert made.drafter.model.name == "meta-llama/Llama-3.2-1B-Instruct"
    assert (made.drafter.tp, made.drafter.engine.num_speculative_tokens, made.drafter.drafter) == (4, 0, None)
    assert share().drafter is None


@pytest.mark.parametrize(
    ("dtype", "bits", "kernel"),
    [
        ("bf16", 16, "bf16"),
        ("fp8", 8, "fp8"),
        ("fp8_block", 8, "fp8_block"),
        ("awq_int4", 4.25, "int4"),
        ("gguf_q4_k_m", 4.8, "int4"),
        ("nvfp4", 4.5, "nvfp4"),
        ("nvfp4", 8, "fp8"),  # what an NVFP4 checkpoint keeps in 8 bits
        ("fp8", 16, "bf16"),
    ],
)
def test_kernel_family_of_a_scheme(dtype, bits, kernel):
    assert weight_kernel(get_model(LLAMA), dtype, bits) == kernel
