"""Weights as each engine holds them: stages, copies, adapters, drafts."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.shards import pipeline_stages, stage_sizes
from planner.memory.sizing import plan_memory
from planner.units import GIB, MIB
from tests.memory.cases import LLAMA, LLAMA70, llamacpp, plan


@pytest.mark.parametrize(
    ("layers", "stages", "sizes"), [(32, 4, (8, 8, 8, 8)), (30, 4, (7, 8, 8, 7)), (61, 2, (31, 30))]
)
def test_uneven_stages_are_dealt_as_the_engine_does(layers: int, stages: int, sizes: tuple[int, ...]) -> None:
    assert stage_sizes(layers, stages) == sizes


# Example: 41.9 M parameters of rank 16 over all linears of an 8B are 84 MB per slot.
def test_lora_slots_are_allocated() -> None:
    with_slots = plan(LLAMA, max_loras=1, max_lora_rank=16)
    assert with_slots.weights_bytes - plan(LLAMA).weights_bytes == pytest.approx(84e6, rel=0.07)


def test_draft_layers_are_loaded_only_when_drafting() -> None:
    plain = plan("Qwen/Qwen3.5-27B", max_num_seqs=64)
    drafting = plan("Qwen/Qwen3.5-27B", max_num_seqs=64, num_speculative_tokens=1)
    assert drafting.weights_bytes - plain.weights_bytes == pytest.approx(2 * 424_699_392)


# An 8B, rank 16, all linears: 41.9 M parameters are 84 MB a slot; per layer Σ (in + out) = 81,920.
def test_lora_slot_of_the_worked_example() -> None:
    plain, slots = plan(LLAMA), plan(LLAMA, max_loras=3, max_lora_rank=16)
    assert slots.weights_bytes - plain.weights_bytes == pytest.approx(3 * 2 * 16 * 32 * 81_920)
    assert dict(slots.weights_by_group)["lora"] == 3 * 83_886_080


def test_lora_halves_are_divided_on_the_divided_side_only() -> None:
    made = plan(LLAMA, tp=2, max_loras=1, max_lora_rank=16)
    columns = (4096 + 4096 / 2) + 2 * (4096 + 1024 / 2) + 2 * (4096 + 14_336 / 2)
    rows = (4096 / 2 + 4096) + (14_336 / 2 + 4096)
    assert dict(made.weights_by_group)["lora"] == 2 * 16 * 32 * (columns + rows)


# vLLM 0.19.0 log: Llama-3.1-8B on four GPUs holds 3.77 GiB and 32,768 B per token on each.
def test_draft_model_brings_weights_and_cache() -> None:
    plain, drafted = plan(LLAMA70, tp=4), plan(LLAMA70, tp=4, draft=LLAMA, num_speculative_tokens=5)
    assert (drafted.weights_bytes - plain.weights_bytes) / GIB == pytest.approx(3.77, rel=0.01)
    assert drafted.kv_bytes_per_token - plain.kv_bytes_per_token == 32_768
    verifying = 12 * 1024 * 128_256  # rejection_sampler.py: 12 bytes more per logit of 1,024 sequences
    draft = dict(drafted.weights_by_group)["draft"]
    assert drafted.kv_pool_bytes == pytest.approx(plain.kv_pool_bytes - draft - verifying)


# llama.cpp, Llama-3-8B Q4_K_M: 4,403 MiB on the GPU; the input embedding of 282 MiB stays on the CPU.
def test_llamacpp_leaves_the_embedding_on_the_cpu() -> None:
    made = llamacpp("meta-llama/Meta-Llama-3-8B", weights="gguf_q4_k_m", length=2048)
    assert made.weights_bytes / MIB == pytest.approx(4403, rel=0.01)


# "Model loading took": 15.627 GiB (v0.9.0 and v0.10.1), 7.16 (v0.7.4), 34.43 on each of four GPUs (v0.8.3); vLLM keeps
# rotary tables of four times the 128,000 positions.
@pytest.mark.parametrize(("model", "tp", "gib"), [("7B", 1, 15.627), ("3B", 1, 7.16), ("72B", 4, 34.43)])
def test_weights_of_multimodal_positions(model: str, tp: int, gib: float) -> None:
    shape = get_model(f"Qwen/Qwen2.5-VL-{model}-Instruct")
    assert shape.rope_cache_elements == 4 * 128_000 * 128
    made = plan_memory(shape, get_gpu("H200 SXM"), EngineSettings(version="0.9.0"),
                       Parallelism(tensor_parallel_size=tp), max_model_len=8192)  # fmt: skip
    assert made.weights_bytes / GIB == pytest.approx(gib, rel=0.007)


# Twelve tables of 78 × 131,072 + 1, 3, 5 … 23 rows and 256 columns; each rank holds its rows (vLLM NgramEmbedding).
def test_ngram_tables_of_longcat_flash_lite_are_divided() -> None:
    model = get_model("meituan-longcat/LongCat-Flash-Lite")
    rows = sum(78 * 131_072 + 2 * index + 1 for index in range(12))
    assert model.ngram_parameters == rows * 256
    one, eight = (pipeline_stages(model, "auto", Parallelism(tensor_parallel_size=tp), False)[0] for tp in (1, 8))
    held = dict(one.weights_by_group)["ngram"] - dict(eight.weights_by_group)["ngram"]
    assert held == pytest.approx(2 * rows * 256 * 7 / 8)
    assert model.num_active_parameters < 5e9
