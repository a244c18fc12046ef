"""Reading published rows, scoring, and that simulated rows obey the arithmetic of their workload."""

import math

import numpy as np
import pandas as pd
import pytest

from planner import plan
from planner.accuracy.harness import acceptance_of, harness_settings, trtllm_bench_batch
from planner.accuracy.scoring import serving_class, serving_counts, serving_report
from planner.accuracy.serving import figures, predict, serve
from planner.accuracy.serving_rows import RowSkipped, read_run
from planner.errors import InvalidInput
from planner.inputs.traffic import ServiceLevel
from planner.service.metrics import measure
from planner.simulation.records import SimulationResult
from planner.workload.offered import draw

# Three rows in the form of the public sources that they cite in `url`.
CLOSED = {
    "id": "closed",
    "source": "aiconfigurator-silicon(inferencex-db)",
    "date": "2025-10-29",
    "engine": "vLLM",
    "engine_version": None,
    "model": "Llama-3.1-70B",
    "gpu": "B200-180GB",
    "n_gpus": 2,
    "tp": 2,
    "pp": 1,
    "ep": 1,
    "weight_dtype": "FP8",
    "kv_dtype": None,
    "isl": 1024,
    "osl": 1024,
    "arrival": "concurrency",
    "concurrency": 4,
    "notes": "harness RANDOM_RANGE_RATIO 0.8 (lengths uniform 0.8-1.0 x nominal), closed loop; gemm=fp8 attn_dp=1",
}
BURST = CLOSED | {
    "id": "burst",
    "source": "trtllm-perf-overview-v0.17",
    "engine": "TensorRT-LLM",
    "engine_version": "0.17",
    "model": "LLaMA-3.1-8B",
    "gpu": "H100-SXM-80GB",
    "n_gpus": 1,
    "tp": 1,
    "kv_dtype": "fp8",
    "isl": 128,
    "osl": 128,
    "arrival": "offline",
    "concurrency": None,
    "n_requests": 3000,
    "notes": "all requests queued at once",
}
STATIC = BURST | {"id": "static", "concurrency": 8, "n_requests": 8, "notes": "STATIC batching, one batch"}


def read(row):
    return read_run(row).scenario


def test_a_closed_loop_row_is_read():
    found = read(CLOSED)
    assert (found.model, found.gpu, found.engine) == ("meta-llama/Llama-3.1-70B-Instruct", "B200", "vllm")
    assert (found.tensor_parallel_size, found.num_replicas) == (2, 1)
    assert (found.arrivals, found.concurrent_users, found.num_requests) == ("closed", 4, 40)
    assert (found.weight_dtype, found.kv_cache_dtype) == ("fp8", "fp8")
    assert found.max_num_batched_tokens == 8192  # published by the benchmark's scripts
    assert (found.measured_requests, found.exact_output_limit) == ("all", True)
    # no version is stated: vLLM 0.11.0 was current on 29 October 2025 (0.11.1 came on 19 November)
    assert found.engine_version == "0.11.0"


def test_requests_are_drawn_within_the_published_range_and_mean():
    requests = draw(read(CLOSED).replace(num_requests=4000))
    assert requests.closed_loop_users == 4
    assert requests.prompt_tokens.min() >= 0.79 * 1024
    assert requests.prompt_tokens.max() <= 1024
    # uniform in 0.8 to 1.0 of 1,024: mean 921.6, standard error of 4,000 draws 59 / 63 = 0.9
    assert requests.prompt_tokens.mean() == pytest.approx(0.9 * 1024, abs=4)


def test_a_static_batch_is_a_burst_of_its_size():
    found = read(STATIC)
    assert (found.arrivals, found.num_requests) == ("once", 8)


def test_attention_data_parallelism_takes_the_place_of_tensor_parallelism():
    row = BURST | {
        "model": "Qwen3-235B-A22B",
        "n_gpus": 4,
        "tp": 1,
        "ep": 4,
        "notes": "attention-DP4+EP4 (doc label DEP4)",
    }
    found = read(row)
    assert (found.tensor_parallel_size, found.attention_data_parallel_size, found.expert_parallel) == (1, 4, True)


def test_harness_expressions_are_worked_out():
    row = {
        "source": "aiconfigurator-silicon(inferencex-db)",
        "model": "MiniMax-M2.5",
        "gpu": "B200-180GB",
        "weight_dtype": "FP8",
        "date": "2026-04-08",
    }
    assert harness_settings(row, "vllm", isl=8192, osl=1024, users=4)["max_num_batched_tokens"] == 16384


def test_a_script_that_depends_on_the_width_sets_it_so():
    # InferenceX dsr1_fp8_b200.sh: TP 8 leaves 18 % of the memory free, TP 4 needs 95 % of it for the weights alone
    row = CLOSED | {"engine": "SGLang", "engine_version": "0.5.9", "model": "DeepSeek-R1", "isl": 8192}
    wide, narrow = read(row | {"n_gpus": 8, "tp": 8}), read(row | {"n_gpus": 4, "tp": 4})
    assert (wide.gpu_memory_utilization, narrow.gpu_memory_utilization) == (0.82, 0.95)
    assert isinstance(serve(narrow.replace(num_requests=4, concurrent_users=4)), str) is False


@pytest.mark.parametrize("change", [{"model": "Grok-9"}, {"gpu": "Cerebras"}, {"isl": None}, {"notes": "beam 4"}])
def test_a_row_that_cannot_be_planned_is_skipped_with_a_reason(change):
    with pytest.raises((RowSkipped, InvalidInput), match=r"\w+"):
        read_run(CLOSED | change)


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


def test_scoring_by_hand():
    frame = pd.DataFrame(
        [
            {"id": i, "source": "s", "engine": "vLLM", "gpu": "g", "model": "Llama", "arrival": "concurrency",
             "notes": note, "tpot_ms_mean": 10.0}
            for i, note in (("a", ""), ("b", ""), ("c", ""), ("d", "SPECULATIVE DECODING ON"))
        ]
    )  # fmt: skip
    predicted = pd.DataFrame({"id": ["a", "b", "d"], "pred_tpot_ms_mean": [11.0, 9.8, 99.0]})
    assert serving_class(frame).unique().tolist() == ["dense"]
    assert serving_counts(frame, "tpot_ms_mean").tolist() == [True, True, True, False]
    (line,) = [x for x in serving_report(frame, predicted) if x.group == "class"]
    assert (line.rows, line.predicted) == (3, 2)
    assert line.signed_median_pct == pytest.approx(4.0)  # median of +10 % and −2 %
    assert line.median_pct == pytest.approx(6.0)
    assert line.p90_pct == pytest.approx(2 + 0.9 * 8)


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


def test_lengths_that_a_row_leaves_out_are_those_of_its_dataset():
    # MLPerf inference rules: 24,576 samples of OpenOrca, 294.45 tokens per sample, at most 1,024 in and out
    found = read(BURST | {"isl": None, "osl": None, "n_requests": None, "notes": "OpenOrca, Offline"})
    assert found.num_requests == 24576
    assert (found.max_prompt_tokens, found.output_limit_tokens) == (1024, 1024)
    requests = draw(found)
    assert requests.output_tokens.mean() == pytest.approx(294.45, rel=0.02)  # standard error 0.6 %
    assert requests.output_tokens.max() == 1024
    own = draw(read(BURST | {"isl": None, "osl": 100, "notes": "Open-Orca"}).replace(num_requests=24576))
    assert own.output_tokens.mean() == pytest.approx(100, rel=0.03)


def test_without_lengths_and_dataset_a_row_is_skipped():
    with pytest.raises(InvalidInput, match="prompt and an output length"):
        read_run(BURST | {"isl": None, "notes": ""})


def test_an_open_loop_without_a_rate_is_the_most_that_is_served():
    assert read(BURST | {"arrival": "poisson", "request_rate_rps": None}).arrivals == "once"


def test_the_batch_of_a_throughput_run_is_the_one_its_tool_sets():
    # The tool's log for Llama-3.1-8B in FP8 on one H100 at 128/128 shows max_batch_size 4096, max_num_tokens 8192.
    found = read(BURST)
    assert (found.max_num_seqs, found.max_num_batched_tokens) == (4096, 8192)
    # 70B in 16 bits on two A100: by hand (171.8 − 141.1) GB × 0.95 ÷ (4,096 × 327,680 B) = 21 requests, at least 64
    row = BURST | {"model": "LLaMA-3.1-70B", "gpu": "A100-SXM-80GB", "tp": 2, "n_gpus": 2, "isl": 2048, "osl": 2048}
    assert trtllm_bench_batch(read(row | {"weight_dtype": "FP16", "kv_dtype": "fp16"})) == (64, 2048)


def test_acceptance_follows_from_the_tokens_gained_per_step():
    assert acceptance_of(1, 1.7) == pytest.approx(0.7)
    chance = acceptance_of(3, 2.8)
    assert 1 + chance + chance**2 + chance**3 == pytest.approx(2.8)


def test_kernels_of_the_experts_are_chosen_by_flag():
    row = CLOSED | {"engine": "SGLang", "model": "Qwen3-235B-A22B", "source": "sgl-cookbook", "tp": 8, "n_gpus": 8}
    assert read(row).moe_runner_backend == "auto"
    flagged = read(row | {"notes": "serve: --moe-runner-backend flashinfer_trtllm"})
    assert flagged.moe_runner_backend == "flashinfer_trtllm"


POISSON = CLOSED | {
    "id": "poisson",
    "arrival": "poisson",
    "request_rate_rps": 2.0,
    "concurrency": None,
    "n_requests": 200,
}
ENGINES = {
    "vLLM": {"model": "Llama-3.1-8B", "gpu": "H100-SXM-80GB", "weight_dtype": "BF16", "notes": ""},
    "SGLang": {"model": "Qwen3-30B-A3B", "gpu": "H100-SXM-80GB", "weight_dtype": "BF16", "notes": ""},
    "TensorRT-LLM": {"model": "Llama-3.1-8B", "gpu": "B200-180GB", "weight_dtype": "FP8", "notes": ""},
    "llama.cpp": {"model": "Llama-3.1-8B", "gpu": "RTX 4090", "weight_dtype": "Q4_K_M", "notes": ""},
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
