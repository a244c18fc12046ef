"""What fits on a GPU."""

import pytest

from planner.answer.fits import BOTH, decode_rate, fits, fits_text
from planner.answer.planning import size
from planner.catalog.gpus import get_gpu
from planner.errors import InvalidInput
from planner.memory.runtime import visible_memory_bytes
from planner.scenario.link import from_query, to_query
from planner.units import GIB

FEW = ("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-32B", "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V3")


def by_key(found):
    return {(item.model, item.engine): item for item in found}


def test_only_what_starts_is_listed_each_with_weights_that_fit():
    found = by_key(fits("RTX 4090", models=FEW))
    assert not any(model == "deepseek-ai/DeepSeek-V3" for model, _ in found)  # 671B parameters
    room = visible_memory_bytes(get_gpu("RTX 4090")) / GIB
    assert all(0 < item.weights_gib < room for item in found.values())
    for item in found.values():
        assert size(item.scenario).fits


def test_weights_are_the_widest_that_hold_the_context():
    found = by_key(fits("RTX 4090", models=FEW))
    # 16 bits of 8B are 15.0 GiB; of 32B neither 16 nor 8 bits fit in 24 GiB.
    assert found[FEW[0], "vllm"].weight_dtype == "bf16"
    assert found[FEW[1], "vllm"].weights_gib < 21
    assert found[FEW[1], "llama-server"].weight_dtype in ("gguf_q4_k_m", "gguf_q3_k_m")


def test_a_row_opens_its_own_plan():
    item = by_key(fits("RTX 4090", models=FEW))[FEW[0], "vllm"]
    opened = from_query(to_query(item.scenario)).scenario
    plan = size(opened)
    assert item.longest_context_tokens == min(plan.memory.longest_context_tokens, plan.model.longest_context)
    assert item.weights_gib == plan.memory.weights_bytes / GIB
    assert item.tokens_per_s_alone == decode_rate(plan, 1)


def test_reading_the_weights_bounds_the_speed():
    # One user's token reads all weights once: 1,008 GB/s over 15.0 GiB are at most 63 tokens/s.
    for item in fits("RTX 4090", models=FEW[:1]):
        assert item.tokens_per_s_alone < 1008e9 / (item.weights_gib * GIB)
        assert item.tokens_per_s_alone < item.tokens_per_s_of_eight <= 8 * item.tokens_per_s_alone


def test_more_gpus_and_shorter_contexts_hold_no_fewer_models():
    models = (*FEW, "meta-llama/Llama-3.3-70B-Instruct")
    one, two = ({item.model for item in fits("RTX 4090", count=count, models=models)} for count in (1, 2))
    assert one <= two
    short = {item.model for item in fits("RTX 4090", context_tokens=1024, models=models)}
    assert one <= short


def test_a_mac_has_llama_cpp_alone():
    found = fits("Apple M4 Max", models=FEW)
    assert {item.engine for item in found} == {"llama-server"}
    assert set(BOTH) == {item.engine for item in fits("H100 SXM", models=FEW)}


def test_one_session_may_be_as_long_as_several_together():
    # llama-server reserves every slot's context, so that one slot could have what several share.
    for item in fits("RTX 4090", models=FEW[1:2], engines=("llama-server",)):
        assert item.sessions > 1
        assert item.longest_context_tokens >= item.sessions * item.scenario.max_model_len


def test_ollama_and_sglang_can_be_asked_for():
    found = fits("RTX 4090", models=FEW[:1], engines=("ollama", "sglang"))
    assert {item.engine: item.weight_dtype for item in found} == {"ollama": "gguf_q8_0", "sglang": "bf16"}


def test_a_wrong_name_says_the_nearest():
    with pytest.raises(InvalidInput, match="RTX 4090"):
        fits("RTX 4099")


def test_the_text_has_a_line_for_each_row():
    found = fits("RTX 4090", models=FEW)
    lines = fits_text(found).splitlines()
    assert len(lines) == len(found) + 2
    assert all("?v=" in line for line in lines[1:-1])
