"""Formulas that come to their figures, and remedies that work."""

import dataclasses
import math

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.memory.demand import Demand
from planner.memory.explain import FEWER_SEQUENCES, formulas, remedies
from planner.memory.memory_plan import MemoryPlan
from planner.memory.sizing import plan_memory
from planner.memory.verdict import start_verdict
from planner.model.shape import with_media
from planner.units import GIB
from tests.memory.cases import GEMMA27, LLAMA, QWEN27, plan


@pytest.mark.parametrize("model", [LLAMA, GEMMA27, "Qwen/Qwen3.5-27B", "deepseek-ai/DeepSeek-V2-Lite"])
def test_figures_of_a_plan_agree_with_one_another(model: str) -> None:
    made = plan(model, max_num_seqs=64)
    values = {formula.name: formula.value for formula in made.formulas}
    parts = made.budget_bytes - made.weights_bytes - made.activation_bytes - made.non_torch_bytes
    assert made.kv_pool_bytes == pytest.approx(parts)
    assert math.fsum(size for _, size in made.weights_by_group) == pytest.approx(made.weights_bytes)
    assert values["weights"] * GIB == pytest.approx(made.weights_bytes)
    assert values["kv_tokens"] == made.kv_tokens
    assert values["kv_blocks"] == made.num_kv_blocks + 1  # one block is the null block
    assert made.free_bytes > -0.01 * GIB


def test_remedies_join_fewer_bits_and_more_gpus():
    # 70.6 × 10⁹ parameters: 16 bits on 8 × 24 GB, 8 bits on 4, about 4 bits on 2; no single change does on fewer.
    memory = plan_memory(
        get_model("meta-llama/Llama-3.3-70B-Instruct"),
        get_gpu("RTX 4090"),
        EngineSettings(),
        Parallelism(),
        max_model_len=8192,
    )
    assert memory.remedies == (
        "tensor_parallel_size 8",
        "weights in fp8 with tensor_parallel_size 4",
        "weights in INT4 W4A16 group 128 with tensor_parallel_size 2",
    )


@pytest.mark.parametrize("family", ["vllm", "sglang", "trtllm", "tgi", "llamacpp"])
def test_the_budget_holds_what_it_says(family: str) -> None:
    made = plan(LLAMA, family=family, version="1.2" if family == "trtllm" else "0.19.0")
    pool = made.budget_bytes - made.weights_bytes
    if made.activations_in_budget:
        pool -= made.activation_bytes + made.non_torch_bytes
    assert made.kv_pool_bytes <= pool * (1 + 1e-9)
    assert made.activations_in_budget == (family != "sglang")
    text = next(formula for formula in made.formulas if formula.name == "budget")
    assert text.value * GIB == pytest.approx(made.budget_bytes)
    product = eval(text.substituted.replace("×", "*").replace("−", "-"))
    assert product == pytest.approx(text.value, abs=0.02)


def test_smaller_steps_and_one_at_a_time_are_offered_where_windows_are_too_large() -> None:
    made = plan("google/gemma-4-31B-it", get_gpu("H200 SXM"), version="0.26.0", length=262_144,
                max_num_batched_tokens=32_768, gpu_memory_utilization=0.9)  # fmt: skip
    assert made.outcome == "refused_max_len_exceeds_kv"
    assert "max_num_batched_tokens 16,384" in made.remedies
    assert "async scheduling off" in made.remedies


# 48 requests that draft five tokens would keep 48 × 6 states of 150 MiB: more than an A100 has beside 51 GiB.
def test_fewer_requests_are_offered_where_drafting_keeps_their_states() -> None:
    engine = EngineSettings(family="sglang", name="sglang", version="0.5.17", num_speculative_tokens=5)
    made = plan_memory(get_model(QWEN27), get_gpu("A100 SXM 80GB"), engine, Parallelism(), max_model_len=32_768)
    assert made.outcome == "refused_no_cache_blocks"
    fewer = next(int(x.split()[-1]) for x in made.remedies if x.startswith("max_num_seqs"))
    less = dataclasses.replace(engine, max_num_seqs=fewer)
    again = plan_memory(get_model(QWEN27), get_gpu("A100 SXM 80GB"), less, Parallelism(), max_model_len=32_768)
    assert again.starts


def test_a_shorter_video_starts() -> None:
    model, gpu, engine = get_model("Qwen/Qwen2.5-VL-7B-Instruct"), get_gpu("RTX 4090"), EngineSettings(version="0.24.0")
    made = plan_memory(model, gpu, engine, Parallelism(), max_model_len=128_000)
    assert made.outcome == "refused_no_cache_blocks"
    assert any("video as large as 7 images" in note for note in made.notes)
    longest = made.longest_context_tokens
    assert plan_memory(model, gpu, engine, Parallelism(), max_model_len=longest).starts
    assert not plan_memory(model, gpu, engine, Parallelism(), max_model_len=longest + 16).starts
    images = with_media(model, "images")
    assert plan_memory(images, gpu, engine, Parallelism(), max_model_len=longest + 16).starts
    assert "images without video" in plan_memory(model, gpu, engine, Parallelism(), max_model_len=longest + 16).remedies


# Qwen3.5-9B in 16 bits on an L4: tower and largest image take 2.9 GiB, and without them the engine starts.
def test_text_alone_is_offered_where_it_starts() -> None:
    def sized(media: str) -> MemoryPlan:
        engine = EngineSettings(version="0.24.0", max_num_seqs=8, max_num_batched_tokens=2048)
        model = with_media(get_model("Qwen/Qwen3.5-9B"), media)
        return plan_memory(model, get_gpu("L4"), engine, Parallelism(), max_model_len=8192)

    whole, text = sized("auto"), sized("none")
    assert (whole.starts, text.starts) == (False, True)
    assert "text only, without the vision tower" in whole.remedies


def test_more_states_than_fit_are_taken_back() -> None:
    engine = EngineSettings(family="sglang", name="sglang", version="0.5.9", max_state_slots=2)
    made = plan_memory(get_model("Qwen/Qwen3.5-9B"), get_gpu("RTX 4090"), engine,
                       Parallelism(tensor_parallel_size=2), max_model_len=8192)  # fmt: skip
    assert "as many states as memory allows" in made.remedies


def demand(gpu: str, model: str = LLAMA, **changes: object) -> Demand:
    settings = {"model": get_model(model), "gpu": get_gpu(gpu), "engine": EngineSettings(version="0.19.0"),
                "parallelism": Parallelism(), "max_model_len": 8192} | changes  # fmt: skip
    return Demand(**settings)  # type: ignore[arg-type]


def test_an_engine_that_starts_needs_no_remedy() -> None:
    asked = demand("H100 SXM")
    assert remedies(asked, start_verdict(asked)) == ()


# Every remedy that names one setting is tried here, independently of how it was found.
@pytest.mark.parametrize(
    ("gpu", "model", "changes"),
    [
        ("RTX 4090", LLAMA, {"max_model_len": 131_072}),
        ("H100 SXM", "meta-llama/Llama-3.3-70B-Instruct", {}),
        ("L4", "Qwen/Qwen3-14B", {}),
        ("T4", LLAMA, {}),
    ],
)
def test_each_remedy_works(gpu: str, model: str, changes: dict[str, object]) -> None:
    asked = demand(gpu, model, **changes)
    found = remedies(asked, start_verdict(asked))
    assert found
    tried = 0
    for text in found:
        engine, own, split = {}, {}, {}
        for name, value in text.changes.items():
            if name in ("max_model_len", "weight_dtype", "kv_cache_dtype"):
                own[name] = value
            elif name in ("max_num_batched_tokens", "max_num_seqs", "gpu_memory_utilization"):
                engine[name] = value
            elif name.endswith("parallel_size"):
                split[name] = value
        again = dataclasses.replace(asked, **own, engine=dataclasses.replace(asked.engine, **engine),
                                    parallelism=dataclasses.replace(asked.parallelism, **split))  # fmt: skip
        if again != asked:
            tried += 1
            assert start_verdict(again, find_longest=False).starts, text
    assert tried


def test_fewer_sequences_are_tried_from_the_most() -> None:
    assert list(FEWER_SEQUENCES) == sorted(FEWER_SEQUENCES, reverse=True)
    assert FEWER_SEQUENCES[-1] == 1


@pytest.mark.parametrize("family", ["vllm", "sglang", "trtllm", "tgi", "llamacpp", "generic"])
def test_every_figure_has_a_formula_with_a_source(family: str) -> None:
    asked = demand("H100 SXM", engine=EngineSettings(family=family))
    made = formulas(asked, start_verdict(asked), 12_345)
    names = [item.name for item in made]
    assert len(set(names)) == len(names)
    assert {"weights", "budget", "activation", "non_torch", "cuda_graphs", "kv_pool"} <= set(names)
    assert next(item for item in made if item.name == "kv_tokens").value == 12_345
    assert all(item.expression and item.substituted and item.source for item in made)
