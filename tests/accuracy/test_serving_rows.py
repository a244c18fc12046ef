"""Reading published rows, scoring, and that simulated rows obey the arithmetic of their workload."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from planner.accuracy.report import serving_class, serving_counts, serving_report
from planner.accuracy.serving import draw_case, measure_case, predict
from planner.accuracy.serving_deploy import acceptance_of, deployment_of, tuned_batch
from planner.accuracy.serving_rows import RowSkipped, harness_settings, read_case
from planner.simulation.records import SimulationResult

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


def test_a_closed_loop_row_is_read():
    case = read_case(CLOSED)
    assert (case.model, case.gpu, case.engine) == ("meta-llama/Llama-3.1-70B-Instruct", "B200", "vllm")
    assert (case.tensor_parallel_size, case.replicas, case.arrival, case.concurrency) == (2, 1, "closed", 4)
    assert (case.weight_dtype, case.kv_cache_dtype) == ("fp8", "fp8")
    assert (case.prompt_low, case.prompt_high) == (0.8, 1.0)
    assert case.max_num_batched_tokens == 8192  # published by the benchmark's scripts


def test_requests_are_drawn_within_the_published_range_and_mean():
    requests = draw_case(read_case(CLOSED))
    assert requests.closed_loop_users == 4
    assert requests.prompt_tokens.min() >= 0.79 * 1024
    assert requests.prompt_tokens.mean() == pytest.approx(0.9 * 1024, rel=0.005)


def test_a_static_batch_is_one_batch():
    case = read_case(STATIC)
    assert (case.arrival, case.concurrency, case.num_requests) == ("static", 8, 8)


def test_attention_data_parallelism_takes_the_place_of_tensor_parallelism():
    row = BURST | {
        "model": "Qwen3-235B-A22B",
        "n_gpus": 4,
        "tp": 1,
        "ep": 4,
        "notes": "attention-DP4+EP4 (doc label DEP4)",
    }
    case = read_case(row, is_moe=lambda name: True)
    assert (case.tensor_parallel_size, case.attention_data_parallel_size, case.expert_parallel) == (1, 4, True)


def test_harness_expressions_are_worked_out():
    row = CLOSED | {"model": "MiniMax-M2.5", "isl": 8192}
    assert harness_settings(row, "vllm")["max_num_batched_tokens"] == 16384


@pytest.mark.parametrize("change", [{"model": "Grok-9"}, {"gpu": "Cerebras"}, {"isl": None}])
def test_a_row_without_shape_gpu_or_lengths_is_skipped_with_a_reason(change):
    with pytest.raises(RowSkipped, match=r"\w+"):
        read_case(CLOSED | change)


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
    figures = measure_case(read_case(STATIC), _result([1, 2], [3, 4], [11, 21]))
    assert figures["pred_output_tok_s_total"] == pytest.approx(32 / 4)
    assert figures["pred_total_tok_s"] == pytest.approx((32 + 20) / 4)
    assert figures["pred_ttft_ms_mean"] == pytest.approx(1500)
    assert figures["pred_tpot_ms_mean"] == pytest.approx(1e3 * (2 / 10 + 2 / 20) / 2)
    assert figures["pred_e2e_s_mean"] == pytest.approx(3.5)


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
    case = read_case(BURST | {"isl": None, "osl": None, "n_requests": None, "notes": "OpenOrca, Offline"})
    assert (case.output_tokens, case.num_requests) == (294.45, 24576)
    assert case.output_high * case.output_tokens == pytest.approx(1024)
    assert case.prompt_high * case.prompt_tokens == pytest.approx(1024)
    own = read_case(BURST | {"isl": None, "osl": 100, "notes": "Open-Orca"})
    assert own.output_tokens == 100


def test_without_lengths_and_dataset_a_row_is_skipped():
    with pytest.raises(RowSkipped, match="prompt or output length"):
        read_case(BURST | {"isl": None, "notes": ""})


def test_gpus_without_a_published_width_run_the_replicas_that_serve_most():
    open_row = BURST | {"tp": None, "n_gpus": 4, "n_requests": 400}
    assert read_case(open_row).any_width
    rows = [open_row] + [open_row | {"id": f"tp{width}", "tp": width} for width in (1, 2, 4)]
    predicted = predict(pd.DataFrame(rows))[0].set_index("id")["pred_output_tok_s_total"]
    widths = predicted[["tp1", "tp2", "tp4"]]
    assert predicted["burst"] == pytest.approx(widths.max(), rel=0.0101)
    assert widths.max() > 1.05 * widths.min()


def test_beams_share_their_prompt_and_count_as_one_request():
    case = read_case(BURST | {"isl": 100, "osl": 20, "n_requests": 5, "notes": "beam 4"})
    requests = draw_case(case)
    assert case.beams == 4
    assert len(requests) == 20
    computed = requests.prompt_tokens - requests.kv_ready_tokens
    assert computed.tolist() == [100, 1, 1, 1] * 5
    rows = [BURST | {"notes": "beam 4"}, BURST | {"id": "one"}]
    predicted = predict(pd.DataFrame(rows))[0].set_index("id")
    row = predicted.loc["burst"]
    assert row["pred_output_tok_s_total"] == pytest.approx(row["pred_req_s"] * BURST["osl"])
    assert 1 < predicted.loc["one", "pred_req_s"] / row["pred_req_s"] < 4.5


def test_an_open_loop_without_a_rate_is_the_most_that_is_served():
    most = read_case(BURST | {"arrival": "poisson", "request_rate_rps": None})
    assert most.arrival == "burst"


def test_the_batch_of_a_throughput_run_is_the_one_its_tool_sets():
    # The tool's log for Llama-3.1-8B in FP8 on one H100 at 128/128 shows max_batch_size 4096, max_num_tokens 8192.
    case = read_case(BURST)
    assert case.tuned_batch
    assert tuned_batch(case) == (4096, 8192)
    # 70B in 16 bits on two A100: by hand (171.8 − 141.1) GB × 0.95 ÷ (4,096 × 327,680 B) = 21 requests, at least 64
    row = BURST | {"model": "LLaMA-3.1-70B", "gpu": "A100-SXM-80GB", "tp": 2, "n_gpus": 2, "isl": 2048, "osl": 2048}
    assert tuned_batch(read_case(row | {"weight_dtype": "FP16", "kv_dtype": "fp16"})) == (64, 2048)


def test_acceptance_follows_from_the_tokens_gained_per_step():
    assert acceptance_of(1, 1.7) == pytest.approx(0.7)
    chance = acceptance_of(3, 2.8)
    assert 1 + chance + chance**2 + chance**3 == pytest.approx(2.8)


def test_a_share_of_memory_that_holds_no_weights_was_larger():
    # DeepSeek-R1 in FP8 on four B200: 671 GB ÷ 4 = 156 GiB a GPU, beyond the harness's 0.82 of 178 GiB
    row = CLOSED | {"engine": "SGLang", "engine_version": "0.5.9", "model": "DeepSeek-R1", "n_gpus": 4, "tp": 4}
    found = deployment_of(read_case(row | {"isl": 8192, "concurrency": 8}, is_moe=lambda name: True), {})
    assert found.memory.starts
    assert found.memory.gpu_memory_utilization > 0.87


@pytest.mark.parametrize("arrival", ["closed", "static"])
@pytest.mark.parametrize("tuned", [False, True])
def test_no_run_takes_the_deployment_of_another_with_other_settings(arrival, tuned):
    # Whatever one field changes: a run after others is deployed as it is alone.
    base = dataclasses.replace(read_case(CLOSED), arrival=arrival, tuned_batch=tuned, year=2025.0, version=(0, 12))
    changes = {
        "year": 2023.0, "version": (0, 7), "engine": "sglang", "gpu": "H200 SXM",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "weight_dtype": "bf16", "kv_cache_dtype": "fp8", "tensor_parallel_size": 4, "pipeline_parallel_size": 2,
        "expert_parallel": True, "attention_data_parallel_size": 2, "concurrency": 900, "prompt_tokens": 2000.0,
        "output_tokens": 300.0, "prompt_high": 8.0, "prompt_low": -1.0, "output_high": 9.0, "max_num_seqs": 7,
        "max_num_batched_tokens": 9000, "gpu_memory_utilization": 0.05, "memory_share_stated": True,
        "max_model_len": 50_000, "moe_runner_backend": "flashinfer_trtllm", "tuned_batch": not tuned,
        "num_speculative_tokens": 3, "tokens_per_step": 2.0, "arrival": "burst", "rate_rps": 3.0, "beams": 4,
    }  # fmt: skip
    fields = [{name: value} for name, value in changes.items()]
    # a share of memory that holds no weights is raised unless the row states it; drafts and their acceptance differ
    fields += [{"gpu_memory_utilization": 0.05, "memory_share_stated": True}, {"num_speculative_tokens": 3,
               "tokens_per_step": 3.0}]  # fmt: skip
    cases = [base, *(dataclasses.replace(base, **changed) for changed in fields)]
    shared: dict = {}
    for case in [*cases, *reversed(cases)]:
        assert _deployed(case, shared) == _deployed(case, {})


def _deployed(case, cache):
    try:
        found = deployment_of(case, cache)
    except RowSkipped as reason:
        return str(reason)
    return found.engine, found.memory, found.limits


def test_kernels_of_the_experts_are_chosen_by_flag():
    row = CLOSED | {"engine": "SGLang", "model": "Qwen3-235B-A22B", "source": "sgl-cookbook", "tp": 8, "n_gpus": 8}
    assert read_case(row).moe_runner_backend == "auto"
    flagged = read_case(row | {"notes": "serve: --moe-runner-backend flashinfer_trtllm"})
    assert flagged.moe_runner_backend == "flashinfer_trtllm"
