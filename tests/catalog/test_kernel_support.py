"""Kernels by engine, precision and architecture."""

from planner.catalog.gpus import get_gpu, gpu_names
from planner.catalog.kernel_support import cache_support, kernel_architecture, kernel_support
from planner.inputs.hardware import Gpu
from planner.tables import read_table

KINDS = {"native", "weight_only", "emulated", "refused", "unverified"}


def test_every_line_has_a_source_and_says_one_of_five_things():
    for row in read_table("catalog/kernel_support.csv"):
        assert row["support"] in KINDS
        assert row["source"].startswith("https://")


def test_what_the_engines_say():
    # vLLM cuda.py: bfloat16 from compute capability 8.0 on; FP8 on Ampere by Marlin, weight-only.
    cases = [
        ("vllm", "T4", "bf16", "refused"),
        ("vllm", "T4", "fp16", "native"),
        ("vllm", "A100 SXM 80GB", "fp8", "weight_only"),
        ("vllm", "H100 SXM", "fp8_block", "native"),
        ("vllm", "B200", "int8", "refused"),
        ("vllm", "RTX 5090", "nvfp4_linear", "native"),
        ("sglang", "T4", "fp8", "refused"),
        ("llamacpp", "H100 SXM", "fp8", "refused"),
        # Marlin takes 4 and 8 bits from Turing on; ROCm's Triton kernel and TensorRT-LLM's table have 4 alone.
        ("vllm", "A100 SXM 80GB", "gptq_int8", "weight_only"),
        ("vllm", "MI300X", "gptq_int4", "weight_only"),
        ("vllm", "MI300X", "gptq_int8", "unverified"),
        ("sglang", "T4", "gptq_int8", "refused"),
        ("llamacpp", "Apple M4 Max", "gguf_q4_k_m", "native"),
    ]
    for engine, gpu, dtype, said in cases:
        assert kernel_support(engine, "", get_gpu(gpu), dtype).support == said, (engine, gpu, dtype)


def test_a_scheme_without_a_line_of_its_own_borrows_none():
    assert kernel_support("trtllm", "", get_gpu("H100 SXM"), "gptq_int8") is None


def test_a_refusal_that_came_with_a_release_does_not_hold_before():
    # vLLM pull 43529 moved bitsandbytes to a plugin in 0.28.
    gpu = get_gpu("A100 SXM 80GB")
    assert kernel_support("vllm", "0.28.0", gpu, "bnb_nf4").support == "refused"
    assert kernel_support("vllm", "0.27.1", gpu, "bnb_nf4").support == "unverified"


def test_unknown_architectures_are_unverified_and_unknown_schemes_are_nothing():
    assert kernel_support("vllm", "", get_gpu("RX 7900 XTX"), "bf16").support == "unverified"
    assert kernel_support("vllm", "", get_gpu("H100 SXM"), "fp8_fp4_experts") is None
    by_hand = Gpu(name="custom", memory_gb=10, memory_gib=9, memory_bandwidth_gb_s=500, bf16_tflops=50)
    assert kernel_support("vllm", "", by_hand, "bf16") is None


def test_caches_below_16_bits_alone_need_kernels():
    assert cache_support("vllm", "", get_gpu("T4"), "fp8").support == "refused"
    assert cache_support("vllm", "", get_gpu("H100 SXM"), "fp8_e5m2").support == "native"
    assert cache_support("vllm", "", get_gpu("T4"), "auto") is None


def test_blackwell_is_two_architectures():
    kinds = {name: kernel_architecture(get_gpu(name)) for name in gpu_names()}
    assert {kinds[name] for name in ("B200", "B300", "GB200", "GB300")} == {"Blackwell_datacenter"}
    assert {kinds[name] for name in ("RTX 5090", "RTX PRO 6000 Blackwell Server", "GB10 (DGX Spark)")} == {
        "Blackwell_consumer"
    }
