"""Published names find the catalog entry that they mean. Expected ids read off the model cards by hand."""

import pytest

from planner.accuracy.names import find_engine_preset, find_gpu, find_model, reduce_name


@pytest.mark.parametrize(
    ("published", "catalog"),
    [
        ("LLaMA-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct"),
        ("Llama 3.1 8B", "meta-llama/Llama-3.1-8B-Instruct"),
        ("Llama-3.1-8B-Instruct-FP8", "meta-llama/Llama-3.1-8B-Instruct"),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"),
        ("Llama2-70B", "meta-llama/Llama-2-70b-hf"),
        ("Llama-3-70B", "meta-llama/Meta-Llama-3-70B-Instruct"),
        ("Llama 4 Maverick", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"),
        ("DeepSeek R1 0528", "deepseek-ai/DeepSeek-R1"),
        ("DeepSeek-V3.1-NVFP4", "deepseek-ai/DeepSeek-V3.1"),
        ("DeepSeek-V3.2-Exp", "deepseek-ai/DeepSeek-V3.2"),
        ("GPT-OSS 120B", "openai/gpt-oss-120b"),
        ("Qwen3-235B-A22B-Instruct-2507-FP8", "Qwen/Qwen3-235B-A22B-Instruct-2507"),
        ("Qwen3-Coder-480B-A35B-Instruct-FP8", "Qwen/Qwen3-Coder-480B-A35B-Instruct"),
        ("Qwen3-Coder-Next", "Qwen/Qwen3-Next-80B-A3B-Instruct"),
        ("Mixtral-8x7B", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
        ("MiniMax-M2.7", "MiniMaxAI/MiniMax-M2.7"),
        ("Falcon 180B", "tiiuae/falcon-180B"),
        ("Vicuna-7B", "meta-llama/Llama-2-7b-hf"),
        ("GLM-4.6-FP8", "zai-org/GLM-4.6"),
    ],
)
def test_a_published_model_name_finds_its_shape(published, catalog):
    assert find_model(published) == catalog


def test_an_unknown_model_is_not_guessed():
    assert find_model("Grok-9 1.2T") is None


@pytest.mark.parametrize(
    ("published", "catalog"),
    [
        ("H100-SXM-80GB", "H100 SXM"),
        ("H200-SXM-141GB", "H200 SXM"),
        ("GB200-192GB(NVL72)", "GB200"),
        ("A100-80GB", "A100 SXM 80GB"),
        ("A100-PCIe(80GB?)", "A100 PCIe 80GB"),
        ("RTX-PRO-6000-Blackwell-Server-96GB", "RTX PRO 6000 Blackwell Server"),
        ("GH200-480GB", "GH200 96GB"),
        ("L40S-48GB", "L40S"),
        ("MI300X-192GB", "MI300X"),
    ],
)
def test_a_published_gpu_name_finds_its_board(published, catalog):
    assert find_gpu(published) == catalog


def test_an_unknown_gpu_is_not_guessed():
    assert find_gpu("Cerebras WSE-3") is None


@pytest.mark.parametrize(
    ("published", "preset"),
    [
        ("TensorRT-LLM+Triton", "tensorrt-llm"),
        ("vLLM-Ascend", "vllm"),
        ("SGLang", "sglang"),
        ("Llama.cpp", "llama.cpp"),
        ("MindIE", "paged"),
        ("ollama (llama.cpp)", "ollama"),
        ("TensorRT-LLM (NIM)", "tensorrt-llm"),
        ("text-generation-inference", "tgi"),
    ],
)
def test_engine_presets(published, preset):
    assert find_engine_preset(published) == preset


def test_reducing_keeps_what_tells_shapes_apart():
    assert reduce_name("Qwen/Qwen3-30B-A3B-FP8") != reduce_name("Qwen/Qwen3-32B-FP8")
    assert reduce_name("Llama-3.1-8B") != reduce_name("Llama-3-8B")
