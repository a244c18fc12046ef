"""The memory bar and its companions: parts add up, labels say what the numbers say."""

import dataclasses
import itertools

import pytest

from planner import charts
from planner.answer.planning import size
from planner.charts.memory import GROUP_TITLES, concurrency, memory_finding, parts, weights_by_group
from planner.inputs.engine import KvReservation
from planner.inputs.hardware import Parallelism
from planner.memory.sizing import plan_memory
from planner.model.shape import TensorGroup
from planner.scenario.scenario import Scenario
from planner.units import GIB


def memory_of(scenario):
    return plan_memory(
        scenario.model_shape,
        scenario.gpu_spec,
        scenario.engine_settings,
        Parallelism(),
        max_model_len=scenario.max_model_len,
    )


def test_parts_of_the_memory_bar_add_up_to_the_gpu():
    memory = memory_of(Scenario())
    for held, written in ((None, None), (0.5, 0.2), (1.0, 1.0), (0.3, 0.6)):
        total = sum(size for _, _, size in parts(memory, held, written))
        assert total == pytest.approx(memory.total_bytes)


def test_memory_bar_draws_each_part_in_gib():
    memory = memory_of(Scenario())
    (bars,) = charts.memory_bar(memory).figure["data"]
    drawn = dict(zip(bars["y"], bars["x"], strict=True))
    assert drawn["Weights"] == pytest.approx(memory.weights_bytes / GIB)
    assert drawn["KV cache"] == pytest.approx(memory.kv_pool_bytes / GIB)


def test_each_part_begins_where_the_one_before_ends():
    (bars,) = charts.memory_bar(memory_of(Scenario())).figure["data"]
    places = list(zip(bars["base"], bars["x"], strict=True))
    for (begin, size_gib), (following, _) in itertools.pairwise(places):
        assert following == pytest.approx(begin + size_gib)
    assert bars["base"][0] == 0


def test_no_figure_of_the_memory_bar_lies_on_the_budget_line():
    chart = charts.memory_bar(memory_of(Scenario()), 0.05, 0.049).figure
    (bars,) = chart["data"]
    figures = {note["y"]: note for note in chart["layout"]["annotations"] if note["y"] in bars["y"]}
    assert set(figures) == set(bars["y"])
    assert all(note["xref"] == "paper" and note["x"] == 1 and note["xshift"] > 0 for note in figures.values())


def test_a_full_cache_beside_free_memory_is_not_the_gpus_limit():
    # llama-server holds the slots that were asked for, however much of the GPU is left.
    memory = size(Scenario(num_requests=50, engine="llama.cpp", weight_dtype="gguf_q4_k_m")).memory
    assert memory.free_bytes > memory.kv_pool_bytes
    assert "stay free" in memory_finding(memory, 1.0)
    assert "limits this GPU" in memory_finding(memory_of(Scenario()), 1.0)


def test_a_model_too_large_still_gets_its_bar():
    chart = charts.memory_bar(memory_of(Scenario(model="deepseek-ai/DeepSeek-V3")))
    assert "GiB short" in chart.title
    assert chart.figure["data"]


def test_the_memory_bar_says_what_the_budget_line_is():
    def label(engine, **more):
        memory = size(Scenario(num_requests=50, engine=engine, **more)).memory
        return charts.memory_bar(memory), memory

    chart, memory = label("sglang")
    assert f"weights and KV up to {memory.budget_bytes / GIB:.1f}" in str(chart.figure)
    chart, memory = label("vllm")
    assert f"engine's budget {memory.budget_bytes / GIB:.1f}" in str(chart.figure)
    chart, memory = label("tgi", model="meta-llama/Llama-3.1-70B-Instruct", gpu="H200 SXM")
    assert memory.is_short
    assert chart.title == f"A full step needs {-memory.free_bytes / GIB:.1f} GiB more than the GPU has"


def test_every_group_of_weights_has_a_title():
    assert {group.value for group in TensorGroup} <= set(GROUP_TITLES)


def test_weights_are_drawn_largest_last_and_sum_to_the_whole():
    memory = memory_of(Scenario())
    drawn = weights_by_group(memory).figure["data"][0]
    assert list(drawn["x"]) == sorted(drawn["x"])
    assert sum(drawn["x"]) == pytest.approx(memory.weights_bytes / GIB)
    # Llama 3.1 8B: 5.64 of 8.03 billion parameters are in the MLP: 70 %.
    assert weights_by_group(memory).title == "MLP: 70 % of the weights"


def test_shares_of_the_pool_stay_within_it():
    memory = memory_of(Scenario())
    for held, written in ((0.4, 0.9), (1.5, 1.2), (0.0, 0.0)):
        sizes = {kind: size for kind, _, size in parts(memory, held, written)}
        assert min(sizes.values()) >= 0
        pool = sizes["kv_used"] + sizes["kv_reserved"] + sizes["kv_unused"]
        assert pool == pytest.approx(memory.kv_pool_bytes)


def test_the_finding_names_the_larger_part():
    memory = memory_of(Scenario())  # 15 GiB of weights, more than 50 GiB of cache
    assert memory_finding(memory).startswith("The KV cache gets")
    full = memory_finding(memory, held_fraction=0.95)
    assert "full" in full
    heavy = dataclasses.replace(memory, weights_bytes=memory.kv_pool_bytes, kv_pool_bytes=memory.weights_bytes)
    assert memory_finding(heavy).startswith("Weights take")


def test_sequences_at_once_with_and_without_paging():
    memory = memory_of(Scenario())
    drawn = concurrency(memory).figure["data"][0]
    assert list(drawn["x"]) == [
        memory.max_concurrency,
        memory.typical_concurrency_reserved,
        memory.typical_concurrency_paged,
    ]
    limited = concurrency(memory, KvReservation.OUTPUT_LIMIT, own=7.0).figure["data"][0]
    assert 7.0 in limited["x"] and len(limited["x"]) == 4
    assert concurrency(dataclasses.replace(memory, num_kv_blocks=0)) is None
