"""What the memory page substitutes into the overheads' formulas comes to the figure that it stands under."""

import re

import pytest

from planner.answer.planning import size
from planner.scenario.scenario import Scenario
from planner.units import GIB

CASES = [
    {},
    {"model": "Qwen/Qwen3-30B-A3B", "tensor_parallel_size": 2},
    {"model": "deepseek-ai/DeepSeek-V3", "gpu": "H200 SXM", "tensor_parallel_size": 8},
    {"model": "google/gemma-3-27b-it", "max_num_batched_tokens": 32_768},
    {"model": "openai/gpt-oss-120b", "gpu": "B200"},
    {"model": "Qwen/Qwen2.5-VL-7B-Instruct", "engine": "vllm-0.19"},
    {"gpu": "RTX 4090", "tensor_parallel_size": 2, "pipeline_parallel_size": 2},
    {"engine": "sglang"},
    {"engine": "ollama", "gpu": "RTX 4090"},
    {"engine": "orca"},
]


def worked_out(text: str) -> float:
    """Value of a substituted formula: words and the parts after 'of' are explanations. [GiB]"""
    text = re.sub(r" of [^,)]*(?:,\d{3}[^,)]*)*(?=, |\))", "", text).replace(" B", "")
    text = text.replace("×", "*").replace("÷", "/")
    return float(eval(re.sub(r"(?<=\d),(?=\d{3})", "", text), {"__builtins__": {}, "max": max}))


@pytest.mark.parametrize("changes", CASES, ids=str)
@pytest.mark.parametrize("name", ["activation", "non_torch", "cuda_graphs"])
def test_the_substituted_values_come_to_the_figure(changes, name):
    memory = size(Scenario(num_requests=100, **changes)).memory
    item = next(item for item in memory.formulas if item.name == name)
    value = worked_out(item.substituted)
    if "24 B" in item.substituted:  # llama.cpp's is written in bytes
        value /= GIB
    assert value == pytest.approx(item.value, abs=0.003)
