"""Figures of a run, and that simulated rows obey the arithmetic of their workload."""

import math

import numpy as np
import pandas as pd
import pytest

from planner import plan
from planner.accuracy.serving import figures, predict
from planner.accuracy.serving_rows import read_run
from planner.inputs.traffic import ServiceLevel
from planner.service.metrics import measure
from planner.simulation.records import SimulationResult
from tests.accuracy.published_rows import BURST, CLOSED, POISSON, STATIC


def _result(first, finish, output):
    n = len(first)
    whole = np.array(output, dtype=np.int64)
    zeros = np.zeros(n, dtype=np.int64)
    return SimulationResult(
        arrival_s=np.zeros(n),
        first_token_s=np.array(first, dtype=float),
        finish_s=np.array(finish, dtype=float),
        prompt_tokens=np.full(n, 10, dtype=np.int64),
        output_tokens=whole,
        status=np.zeros(n, dtype=np.int8),
        num_preemptions=zeros,
        max_itl_s=np.zeros(n),
        replica=zeros,
        duration_s=max(finish),
        num_steps=1,
        busy_s=1.0,
        mean_running=1.0,
        mean_waiting=0.0,
        mean_kv_used_fraction=0.0,
        mean_kv_written_fraction=0.0,
        peak_running=n,
        prefill_tokens_computed=0,
        prefix_tokens_hit=0,
        decode_tokens=int(whole.sum()),
    )


def test_figures_are_those_of_the_benchmark_clients():
    # two requests: first tokens at 1 s and 2 s, ends at 3 s and 4 s, 11 and 21 tokens
    metrics = measure(_result([1, 2], [3, 4], [11, 21]), ServiceLevel(window="all"))
    found = figures(read_run(STATIC), metrics)
    assert found["pred_output_tok_s_total"] == pytest.approx(32 / 4)
    assert found["pred_total_tok_s"] == pytest.approx((32 + 20) / 4)
    assert found["pred_ttft_ms_mean"] == pytest.approx(1500)
    assert found["pred_tpot_ms_mean"] == pytest.approx(1e3 * (2 / 10 + 2 / 20) / 2)
    assert found["pred_e2e_s_mean"] == pytest.approx(3.5)


def test_decode_speed_alone_leaves_the_prompt_out():
    # llama-bench tg: one stream that takes 150 ms a token on average makes 1 / 0.15 tokens a second
    metrics = measure(_result([1, 2], [3, 4], [11, 21]), ServiceLevel(window="all"))
    row = CLOSED | {"concurrency": 1, "notes": "eval rate, pure decode, prefill excluded"}
    run = read_run(row)
    assert run.scenario.prompt_mean_tokens == 1
    assert figures(run, metrics)["pred_output_tok_s_total"] == pytest.approx(1 / 0.15)


def test_simulated_rows_obey_their_workload():
    frame = pd.DataFrame([CLOSED, BURST, STATIC, CLOSED | {"id": "none", "model": "Grok-9"}])
    predicted, skipped = predict(frame)
    assert set(skipped) == {3}
    lines = predicted.set_index("id").drop(index="none")
    assert np.isfinite(lines.to_numpy(dtype=float)).all()
    closed = lines.loc["closed"]
    # Little's law in a closed loop: users = request rate × time in system, but for the drain at the end
    in_flight = closed.pred_req_s * closed.pred_e2e_s_mean
    assert 3.4 < in_flight <= 4.0 + 1e-9
    # a decode step cannot be faster than reading the FP8 weights of half the model at full bandwidth
    assert closed.pred_tpot_ms_mean > 1e3 * 70e9 / 2 / 7.7e12
    assert math.isclose(
        lines.loc["burst"].pred_total_tok_s, 2 * lines.loc["burst"].pred_output_tok_s_total, rel_tol=1e-6
    )


ENGINES = {
    "vLLM": {"model": "Llama-3.1-8B", "gpu": "H100-SXM-80GB", "weight_dtype": "BF16", "notes": ""},
    "SGLang": {"model": "Qwen3-30B-A3B", "gpu": "H100-SXM-80GB", "weight_dtype": "BF16", "notes": ""},
    "TensorRT-LLM": {"model": "Llama-3.1-8B", "gpu": "B200-180GB", "weight_dtype": "FP8", "notes": ""},
    "llama.cpp": {"model": "Llama-3.1-8B", "gpu": "RTX 4090", "weight_dtype": "Q4_K_M", "kv_dtype": None, "notes": ""},
    "TGI": {"model": "Llama-3.1-8B", "gpu": "A100-SXM-80GB", "weight_dtype": "FP16", "notes": ""},
    "MLC LLM": {"model": "Llama-2-7B", "gpu": "RTX 4090", "weight_dtype": "FP16", "notes": "", "isl": 128, "osl": 64},
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["closed", "burst", "static", "poisson", "two replicas"])
def test_a_measured_row_and_a_users_plan_give_the_same_figures(engine, kind):
    """What `validate` predicts of a row is what `plan()` says to a user who enters the row, bit for bit."""
    base = {"closed": CLOSED, "burst": BURST | {"n_requests": 200}, "static": STATIC, "poisson": POISSON,
            "two replicas": CLOSED | {"n_gpus": 2}}[kind]  # fmt: skip
    row = base | {"n_gpus": 1, "tp": 1} | ENGINES[engine] | {"engine": engine}
    row |= {"n_gpus": 2} if kind == "two replicas" else {}
    row |= {"notes": "STATIC batching, one batch"} if kind == "static" else {}
    run = read_run(row)
    answer = plan(run.scenario)
    assert answer.metrics is not None
    own = predict(pd.DataFrame([row]))[0].iloc[0].to_dict()
    for name, value in figures(run, answer.metrics).items():
        assert own[name] == value or (math.isnan(own[name]) and math.isnan(value)), name
