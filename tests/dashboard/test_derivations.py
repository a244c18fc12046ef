"""Every figure of the memory page: its sum comes out, its formula is there, its parts add up."""

import dataclasses

import pytest

from planner.answer.planning import plan, size
from planner.dashboard.derivations import band_sentence, group_parameters, memory_formulas, pool_identity, weights_table
from planner.scenario.scenario import Scenario

ARCHITECTURES = [
    {},
    {"model": "Qwen/Qwen3-30B-A3B"},
    {"model": "deepseek-ai/DeepSeek-V3", "gpu": "H200 SXM", "tensor_parallel_size": 8},
    {"model": "google/gemma-3-27b-it", "max_model_len": 32_768},
    {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "tensor_parallel_size": 4},
    {"model": "nvidia/Nemotron-H-56B-Base-8K", "gpu": "H200 SXM"},
    {"model": "openai/gpt-oss-120b"},
    {"model": "Qwen/Qwen2.5-VL-7B-Instruct"},
    {"model": "openai/whisper-large-v3", "max_model_len": 448},
    {"engine": "sglang"},
    {"engine": "tgi", "output_limit_tokens": 512},
    {"engine": "ollama", "gpu": "RTX 4090"},
    {"engine": "vllm-0.19", "model": "google/gemma-3-27b-it"},
    {"tensor_parallel_size": 2, "pipeline_parallel_size": 2},
    {"shared_prefix_tokens": 512, "occupied_gib": 3.0, "kv_offload_gib": 40.0, "num_lora_adapters": 9},
]


@pytest.mark.parametrize("changes", ARCHITECTURES, ids=str)
def test_the_pool_adds_up_for_every_architecture(changes):
    memory = size(Scenario(num_requests=200, **changes)).memory
    found = pool_identity(memory)
    assert found.holds
    assert f"{memory.kv_tokens:,} tokens" in found.text


def test_a_pool_that_does_not_add_up_is_told():
    memory = size(Scenario(num_requests=200)).memory
    assert not pool_identity(dataclasses.replace(memory, kv_pool_bytes=memory.kv_pool_bytes * 1.01)).holds
    assert not pool_identity(dataclasses.replace(memory, block_bytes=memory.block_bytes * 1.01)).holds
    assert pool_identity(dataclasses.replace(memory, kv_pool_bytes=-1.0, logged_kv_blocks=0)) is None


@pytest.mark.parametrize("changes", [{}, {"gpu": "RTX 4090", "model": "meta-llama/Llama-3.3-70B-Instruct"}], ids=str)
def test_every_number_of_the_page_has_a_formula(changes):
    done = plan(Scenario(num_requests=200, **changes))
    names = {item.name for item in memory_formulas(done)}
    parts = {"total", "budget", "weights", "activation", "non_torch", "cuda_graphs", "kv_pool", "free"}
    assert parts <= names
    assert {"kv_bytes_per_token", "kv_blocks", "kv_tokens", "longest_context", "sequence_tokens"} <= names
    if done.fits:
        assert {"kv_used", "kv_held", "max_concurrency", "run_at_once", "block_bytes"} <= names
        assert {"typical_concurrency_paged", "typical_concurrency_reserved", "blocks_per_sequence"} <= names
    for item in memory_formulas(done):
        assert item.expression
        assert item.substituted


@pytest.mark.parametrize("changes", ARCHITECTURES[:9], ids=str)
def test_tensor_groups_add_up_to_the_published_count(changes):
    model = Scenario(**changes).model_shape
    counts = group_parameters(model)
    draft = counts.get("mtp", 0)
    assert sum(counts.values()) - draft == pytest.approx(model.published_parameters, rel=1e-3) or (
        sum(counts.values()) == pytest.approx(model.published_parameters, rel=1e-3)
    )


def test_weights_table_by_hand():
    # Llama-3.1-8B in bf16: MLP 32 × 3 × 4,096 × 14,336 = 5,637,144,576 parameters × 2 bytes = 10.5 GiB.
    rows = {row["Tensor group"]: tuple(row.values()) for row in weights_table(size(Scenario(num_requests=200)))}
    assert rows["MLP"][1:] == ("5,637,144,576", "10.500\u00a0GiB", "16")
    assert rows["All"][1] == "8,030,261,248"


def test_the_band_is_in_the_figures_own_units():
    memory = size(Scenario(num_requests=200)).memory
    said = band_sentence(memory)
    for word in ("GiB", "tokens", "full length"):
        assert word in said


def test_a_range_whose_ends_read_the_same_is_one_figure():
    memory = size(Scenario(num_requests=200)).memory
    exact = dataclasses.replace(memory, kv_pool_low_bytes=memory.kv_pool_bytes, kv_pool_high_bytes=memory.kv_pool_bytes)
    assert " to " not in band_sentence(exact)
    assert " to " in band_sentence(memory)


# Each sum is worked out anew from the values that are written under it.
@pytest.mark.parametrize(
    "changes", [{}, {"occupied_gib": 3.0, "shared_prefix_tokens": 512}, {"engine": "sglang"}], ids=str
)
def test_substituted_values_come_to_the_figure(changes):
    done = plan(Scenario(num_requests=200, **changes))
    memory, found = done.memory, {item.name: item for item in memory_formulas(done)}
    assert found["total"].value == pytest.approx(memory.total_bytes / 2**30)
    assert found["block_bytes"].value == pytest.approx(memory.block_bytes / 2**20)
    assert found["blocks_per_sequence"].value == memory.blocks_per_sequence
    total, *taken = (float(part.replace(",", "")) for part in found["free"].substituted.split(" − "))
    assert total - sum(taken) == pytest.approx(found["free"].value, abs=0.05)
    assert found["free"].value == pytest.approx(memory.free_bytes / 2**30)
    prompt, output = (
        float(x.replace(",", "")) for x in found["sequence_tokens"].substituted.split(" ÷ ")[0].split(" + ")
    )
    assert prompt + output / 2 == pytest.approx(found["sequence_tokens"].value, abs=0.1)
    for name in ("kv_used", "kv_held"):
        pool, share = found[name].substituted.split(" × ")
        by_hand = float(pool.replace(",", "")) * float(share.rstrip("%")) / 100
        assert by_hand == pytest.approx(found[name].value, abs=0.02)
    assert 0 < found["kv_used"].value <= found["kv_held"].value * (1 + 1e-9)
