"""What the memory page substitutes into the overheads' formulas comes to the figure that it stands under."""

import re

import pytest

from planner.answer.planning import size
from planner.memory.demand import Demand
from planner.memory.overheads_text import activation_text, graphs_text, non_torch_text
from planner.memory.verdict import start_verdict
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


def texts(**changes):
    scenario = Scenario(num_requests=100, **changes)
    demand = Demand(model=scenario.model_shape, gpu=scenario.gpu_spec, engine=scenario.engine_settings,
                    parallelism=scenario.parallelism, max_model_len=scenario.max_model_len)  # fmt: skip
    verdict = start_verdict(demand)
    return [make(demand, verdict) for make in (activation_text, non_torch_text, graphs_text)]


def test_engines_without_graphs_say_so():
    assert texts(engine="llama.cpp")[2][1] == "0"
    assert texts()[2][1] != "0"


def test_an_encoder_is_a_term_of_its_own():
    with_tower, without = (texts(model=name)[0] for name in ("Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct"))
    assert "encoder" in with_tower[0]
    assert "encoder" not in without[0]
    assert "largest image or video" in with_tower[1]


def test_symbols_and_values_have_as_many_terms():
    for symbols, values in texts(tensor_parallel_size=2):
        assert symbols.count("×") <= values.count("×") + 1
        assert symbols.count("(") == symbols.count(")")
        assert values.count("(") == values.count(")")
