"""Results of other planners, beside ours."""

import json

import pytest

from planner.errors import InvalidInput, PlannerError
from planner.reading import calibrate, overlay, overlay_text, read
from planner.reading.peers import AICONFIGURATOR, LLM_D, peer_figures, peer_runs, peer_scenario
from planner.scenario.scenario import Scenario

#: ColumnsAgg of aiconfigurator_core/sdk/common.py, and the column that the pick of the best adds
COLUMNS = (
    *("model", "isl", "osl", "prefix", "concurrency", "request_rate", "bs", "global_bs", "ttft", "tpot"),
    *("request_latency", "encoder_latency", "encoder_memory", "seq/s", "seq/s/gpu", "tokens/s", "tokens/s/gpu"),
    *("tokens/s/user", "num_total_gpus", "tp", "pp", "dp", "moe_tp", "moe_ep", "cp", "parallel", "gemm", "kvcache"),
    *("fmha", "moe", "comm", "memory", "balance_score", "num_ctx_reqs", "num_gen_reqs", "num_tokens", "ctx_tokens"),
    *("gen_tokens", "backend", "version", "system", "power_w", "tokens/s/gpu_cluster"),
)
BEST = {
    "model": "Qwen/Qwen3-32B",
    "isl": 4000,
    "osl": 500,
    "prefix": 0,
    "concurrency": 16,
    "ttft": 800.5,
    "tpot": 20.25,
    "request_latency": 10_905.25,
    "seq/s": 1.5,
    "tokens/s": 750.0,
    "num_total_gpus": 2,
    "tp": 2,
    "pp": 1,
    "dp": 1,
    "moe_tp": 1,
    "moe_ep": 1,
    "gemm": "fp8",
    "kvcache": "fp8",
    "backend": "vllm",
    "version": "0.12.0",
    "system": "h200_sxm",
}
#: DeploymentRecommendation of llm-d Planner, as its own tests have it, without what no plan needs
RECOMMENDED = {
    "model_id": "meta-llama/Llama-3.1-70B-Instruct",
    "model_name": "Llama 3.1 70B",
    "gpu_config": {"gpu_type": "NVIDIA-H100", "gpu_count": 8, "tensor_parallel": 4, "replicas": 2},
    "predicted_ttft_p95_ms": 140,
    "predicted_itl_p95_ms": 50,
    "predicted_e2e_p95_ms": 1200,
    "predicted_throughput_qps": 12.0,
    "cost_per_month_usd": 2872.32,
    "meets_slo": True,
    "traffic_profile": {"prompt_tokens": 512, "output_tokens": 256, "expected_qps": 3.0},
}


def csv_of(*rows, columns=COLUMNS):
    return "\n".join([",".join(columns), *(",".join(str(row.get(name, "")) for name in columns) for row in rows)])


def test_a_row_of_aiconfigurator_is_a_deployment_with_waiting_clients():
    reading = read(csv_of(BEST, BEST | {"tp": 4, "num_total_gpus": 4}))
    made = reading.scenario
    assert reading.kind == AICONFIGURATOR
    assert (made.model, made.gpu, made.engine) == ("Qwen/Qwen3-32B", "H200 SXM", "vllm")
    assert (made.tensor_parallel_size, made.num_replicas, made.weight_dtype) == (2, 1, "fp8")
    assert made.kv_cache_dtype == "fp8"
    assert (made.arrivals, made.concurrent_users) == ("closed", 16)
    assert (made.prompt_mean_tokens, made.output_mean_tokens) == (4000, 500)
    assert reading.not_understood[-1].text == "2 runs"
    told = {item.name: (item.value, item.unit) for item in reading.understood}
    assert told["e2e_s_mean"] == (pytest.approx(10.90525), "s")
    assert told["output_tok_s_total"] == (750.0, "tokens/s")


def test_its_figures_stand_beside_ours_and_nothing_is_blamed():
    found = overlay(read(csv_of(BEST)))
    assert found.predicted_by == "AIConfigurator"
    assert found.reasons == ()
    ours = peer_figures(read(csv_of(BEST)).scenario)
    rows = {row.name: (row.measured, row.predicted) for row in found.rows}
    assert set(rows) == {"ttft_ms_mean", "tpot_ms_mean", "e2e_s_mean", "output_tok_s_total", "req_s"}
    assert rows["tpot_ms_mean"] == (20.25, ours["tpot_ms_mean"])
    text = overlay_text(found)
    assert "AIConfigurator" in text
    assert "measured" not in text


def test_attention_data_parallelism_and_experts_are_taken_over():
    wide = {"model": "deepseek-ai/DeepSeek-V3", "tp": 1, "dp": 8, "moe_ep": 8, "num_total_gpus": 8, "gemm": "fp8_block"}
    made = read(csv_of(BEST | wide)).scenario
    assert (made.tensor_parallel_size, made.attention_data_parallel_size, made.expert_parallel) == (1, 8, True)
    assert made.num_replicas == 1


#: ColumnsDisagg of the same file, without what no plan needs
APART = {name: BEST[name] for name in ("model", "isl", "osl", "prefix", "ttft", "tpot", "request_latency")} | {
    **{"concurrency": 32, "seq/s": 3.0, "tokens/s": 1500.0, "num_total_gpus": 6, "(p)workers": 1, "(d)workers": 2},
    **{f"({side}){name}": value for side in "pd" for name, value in (("tp", 2), ("pp", 1), ("dp", 1), ("moe_ep", 1))},
    **{f"({side}){name}": BEST[name] for side in "pd" for name in ("system", "backend", "version", "gemm", "kvcache")},
}


def test_workers_for_prompts_and_for_answers_are_a_disaggregated_plan():
    uneven = APART | {"(d)tp": 4, "num_total_gpus": 10}
    reading = read(csv_of(uneven, APART, columns=tuple(APART)))
    made = reading.scenario
    assert reading.kind == AICONFIGURATOR
    assert (made.deployment, made.prefill_replicas, made.decode_replicas) == ("disaggregated", 1, 2)
    assert (made.gpu, made.engine, made.tensor_parallel_size, made.weight_dtype) == ("H200 SXM", "vllm", 2, "fp8")
    assert (made.demand, made.rate_rps) == ("rate", 3.0)
    assert {item.line for item in reading.understood} == {3}
    found = overlay(reading)
    assert {row.name for row in found.rows} == {
        *("ttft_ms_mean", "tpot_ms_mean", "e2e_s_mean", "output_tok_s_total", "req_s")
    }


def test_workers_of_two_splits_are_said_to_be_no_plan():
    with pytest.raises(PlannerError, match="tp 2 for prefill, tp 4 for decode"):
        read(csv_of(APART | {"(d)tp": 4}, columns=tuple(APART)))


@pytest.mark.parametrize("row", [BEST, APART], ids=["aggregated", "disaggregated"])
def test_rows_as_json_are_those_of_the_table(row):
    said, listed = read(json.dumps([row])), read(csv_of(row, columns=tuple(row)))
    assert said.scenario == listed.scenario
    assert said.runs[0].columns == listed.runs[0].columns


@pytest.mark.parametrize(
    "body",
    [
        RECOMMENDED,
        {"balanced": [RECOMMENDED, RECOMMENDED], "lowest_cost": [RECOMMENDED], "total_configs_evaluated": 3},
        {
            "balanced": [{name: value for name, value in RECOMMENDED.items() if name != "traffic_profile"}],
            "specification": {"traffic_profile": RECOMMENDED["traffic_profile"]},
        },
    ],
    ids=["one", "ranked", "with its specification"],
)
def test_a_recommendation_of_llm_d_is_a_fleet_at_its_rate(body):
    [run] = peer_runs(json.dumps(body, indent=2))
    made = peer_scenario(run, Scenario())
    assert run.tool == LLM_D
    assert (made.gpu, made.engine) == ("H100 SXM", "vllm")
    assert (made.tensor_parallel_size, made.num_replicas) == (4, 2)
    assert (made.demand, made.rate_rps) == ("rate", 3.0)
    assert (made.prompt_mean_tokens, made.output_mean_tokens) == (512, 256)
    assert run.columns["e2e_s_p95"] == pytest.approx(1.2)


def test_percentiles_of_llm_d_stand_beside_our_percentiles():
    found = overlay(read(json.dumps(RECOMMENDED)))
    assert {row.name for row in found.rows} == {"ttft_ms_p95", "itl_ms_p95", "e2e_s_p95"}
    assert found.predicted_by == "llm-d Planner"


def test_a_prediction_is_no_measurement_to_calibrate_to():
    with pytest.raises(InvalidInput):
        calibrate(read(csv_of(BEST)))


def test_a_model_that_no_catalog_has_is_said():
    reading = read(csv_of(BEST | {"model": "nobody/no-such-model"}))
    assert reading.scenario is None
    assert "nobody/no-such-model" in reading.problem
    with pytest.raises(PlannerError):
        peer_scenario(peer_runs(csv_of(BEST | {"model": "nobody/no-such-model"}))[0], Scenario())


@pytest.mark.parametrize(
    "text",
    [
        '{"gpu_config": ',
        '[{"gpu_config": {}}]',
        '{"gpu_config": null, "balanced": null}',
        '{"balanced": ["x"], "gpu_config": {"gpu_type": []}}',
        '{"balanced": 5, "gpu_config": "x", "traffic_profile": 3}',
        '{"specification": ' * 400 + '{"gpu_config": {}}' + "}" * 400,
        "model,isl,osl\n1,2,3",
        csv_of(BEST | {"tp": "many"}),
        csv_of(BEST) + "\n" + "9" * 200_000,
        json.dumps(RECOMMENDED | {"gpu_config": {"gpu_type": "NVIDIA-H100", "gpu_count": 10**400}}),
        csv_of(),
        json.dumps([APART])[:-1],
        json.dumps([3, "ttft", {"ttft": 1}]),
        csv_of(APART | {"(p)workers": "", "(d)workers": ""}, columns=tuple(APART)),
    ],
)
def test_what_is_no_result_of_a_planner_is_left_to_others(text):
    assert peer_runs(text) == ()
