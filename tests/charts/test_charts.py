"""Charts say what the numbers say: parts add up, labels stand where the values are."""

import math

import numpy as np
import pytest

from planner import charts
from planner.answer.outcome import ChainLink
from planner.answer.planning import plan, size
from planner.charts.style import COLOUR, POLICY_COLOUR, time_ticks
from planner.cost.bill import cost_plan
from planner.inputs.hardware import Parallelism
from planner.memory.sizing import plan_memory
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


@pytest.fixture(scope="module")
def done():
    return plan(Scenario(num_requests=300))


def test_parts_of_the_memory_bar_add_up_to_the_gpu():
    memory = memory_of(Scenario())
    for held, written in ((None, None), (0.5, 0.2), (1.0, 1.0), (0.3, 0.6)):
        total = sum(size for _, _, size in charts.memory_parts(memory, held, written))
        assert total == pytest.approx(memory.total_bytes)


def test_memory_bar_draws_each_part_in_gib():
    memory = memory_of(Scenario())
    drawn = {trace["name"].rsplit(" ", 1)[0]: trace["x"][0] for trace in charts.memory_bar(memory).figure["data"]}
    assert drawn["Weights"] == pytest.approx(memory.weights_bytes / GIB)
    assert drawn["KV cache"] == pytest.approx(memory.kv_pool_bytes / GIB)


def test_a_model_too_large_still_gets_its_bar():
    chart = charts.memory_bar(memory_of(Scenario(model="deepseek-ai/DeepSeek-V3")))
    assert "GiB short" in chart.title
    assert chart.figure["data"]


def test_one_colour_per_meaning():
    colours = [colour for name, colour in COLOUR.items() if name not in ("own", "peer", "neutral", "free")]
    assert len(set(colours)) == len(colours)
    assert len(set(POLICY_COLOUR.values())) == 4


def test_load_chart_marks_rate_target_and_saturation(done):
    chart = charts.latency_against_load(done.curve, "ttft_s", num_replicas=2, rate_rps=5.0, target_s=1.0)
    shapes = chart.figure["layout"]["shapes"]
    assert any(shape.get("x0") == 5.0 for shape in shapes)
    assert any(shape.get("y0") == 1.0 and shape["yref"] == "y" for shape in shapes)
    shaded = next(shape for shape in shapes if shape["type"] == "rect")
    assert shaded["x0"] == pytest.approx(2 * done.curve.capacity_rps)
    p95 = next(trace for trace in chart.figure["data"] if trace["name"] == "p95")
    assert p95["y"][0] == pytest.approx(done.curve.points[0].metrics.ttft_s.p95)
    assert p95["x"][-1] == pytest.approx(2 * done.curve.points[-1].rate_rps)


def test_distribution_ends_at_all_requests():
    chart = charts.distribution(np.array([0.1, 0.2, 0.4, 0.8]), "ttft_s", 0.5)
    line = chart.figure["data"][0]
    assert line["y"][-1] == 1.0
    assert chart.title.startswith("75 %")  # three of four are within 0.5 s


def test_step_terms_add_up_to_the_step(done):
    chart = charts.step_terms(done.step_time, running=8, context_tokens=1000, chunk_tokens=512)
    from planner.step_time.step_table import PrefillChunk, StepWork

    work = StepWork(
        num_decodes=8, kv_tokens=8000, window_kv_tokens=8000, num_logit_rows=9, chunks=(PrefillChunk(num_tokens=512),)
    )
    drawn = sum(trace["x"][1] for trace in chart.figure["data"])
    assert drawn == pytest.approx(1000 * done.step_time.step_s(work))


def test_policy_charts_cover_the_four_policies(done):
    for make in (charts.policy_throughput, charts.policy_kv_use, charts.policy_waits, charts.policy_cost):
        assert len(make(done.policies).figure["data"][0]["y"]) == 4
    assert charts.policy_timeline(done.policies, "running", "t", "sequences") is not None


def test_bills_meet_at_the_break_even():
    from planner.cost.hosted_apis import ApiPrices

    api = ApiPrices(usd_per_mtok_input=1.0, usd_per_mtok_output=1.0, offers=(), source="test")
    cost = cost_plan(
        num_gpus=2,
        usd_per_gpu_hour=1.0,
        price_source="test",
        hours_per_month=730,
        mean_rate_rps=1.0,
        peak_rate_rps=2.0,
        mean_prompt_tokens=500,
        mean_output_tokens=500,
        api=api,
    )
    chart = charts.api_comparison(cost)
    own, hosted = chart.figure["data"]
    # 1,460 USD a month ÷ 0.001 USD per request = 1.46 million requests
    even = np.interp(1_460_000, hosted["x"], hosted["y"])
    assert even == pytest.approx(own["y"][0])


def test_chain_without_an_end_is_drawn():
    links = (ChainLink(reason="Weights", gpus=2.0, detail=""), ChainLink(reason="Targets", gpus=math.inf, detail=""))
    assert charts.gpu_chain(links, 2).figure["data"][0]["text"] == ["2", "∞"]


def test_time_ticks_cover_the_range_in_readable_units():
    ticks = time_ticks(0.02, 3.0)
    assert {"20 ms", "100 ms", "1 s"} <= set(ticks["ticktext"])
    assert min(ticks["tickvals"]) <= 0.02
    assert max(ticks["tickvals"]) >= 3.0


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
