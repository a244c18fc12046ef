"""What follows from a plan: replicas that serve, sequences at once."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from planner import plan
from planner.answer.outcome import (
    Reached,
    fit_on_rank,
    offered_rps,
    reached,
    run_at_once,
    run_on_rank,
    serving_replicas,
    typical_step,
)
from planner.answer.planning import replica_of, size
from planner.catalog.engines import get_engine
from planner.inputs.hardware import Parallelism
from planner.memory.sizing import plan_memory
from tests.answer.cases import SMALL, planned


def test_spare_replicas_serve_where_the_user_fixes_the_number():
    done = plan(SMALL.replace(num_replicas=3, spare_replicas=2))
    assert serving_replicas(done) == 3
    assert "Failure reserve" not in {link.reason for link in done.chain}
    spared = plan(SMALL.replace(spare_replicas=2))
    assert serving_replicas(spared) == spared.num_replicas - 2 == spared.replicas_for_slo


def test_attention_ranks_share_a_replica():
    moe = SMALL.replace(model="Qwen/Qwen3-30B-A3B", expert_parallel=True)
    two = size(moe.replace(attention_data_parallel_size=2))
    assert two.memory == plan_memory(
        moe.model_shape,
        moe.gpu_spec,
        get_engine("vllm"),
        Parallelism(expert_parallel=True, attention_data_parallel_size=2),
        max_model_len=moe.max_model_len,
        mean_sequence_tokens=two.mean_prompt_tokens + two.mean_output_tokens / 2,
    )
    # The scheduler deals requests to both ranks: twice the blocks and slots of one, on two GPUs.
    limits = replica_of(two).limits
    assert limits.num_kv_blocks == 2 * two.memory.num_kv_blocks
    assert limits.max_num_seqs == 2 * two.memory.max_num_seqs
    assert two.scenario.parallelism.gpus_per_replica == 2
    assert run_at_once(two) == 2 * min(two.memory.typical_concurrency_paged, two.memory.max_num_seqs)
    done = plan(moe.replace(attention_data_parallel_size=2))
    assert done.num_gpus == 2 * done.num_replicas


def test_a_rate_is_offered_and_a_closed_loop_reaches_one():
    assert offered_rps(planned()) == SMALL.peak_rate_rps
    assert offered_rps(size(SMALL.replace(arrivals="closed"))) == SMALL.peak_rate_rps  # nothing simulated yet
    done = planned(arrivals="closed")
    assert offered_rps(done) == done.metrics.requests_per_s


# TensorRT-LLM without max utilisation reserves prompt and answer limit: ⌈(1,000 + 500) ÷ 32⌉ = 47 blocks of 32.
def test_reserving_the_answer_limit_by_hand():
    done = size(SMALL.replace(engine="tensorrt-llm", lengths="constant", prompt_mean_tokens=1000.0,
                              output_mean_tokens=100.0, output_limit_tokens=500))  # fmt: skip
    block = done.memory.block_size
    assert fit_on_rank(done) == pytest.approx(done.memory.num_kv_blocks / math.ceil(1500 / block))


@pytest.mark.parametrize(
    ("engine", "fits"),
    [("vllm", "typical_concurrency_paged"), ("orca", "typical_concurrency_reserved")],
)
def test_sequences_at_once_by_reservation(engine, fits):
    done = size(SMALL.replace(engine=engine))
    assert fit_on_rank(done) == getattr(done.memory, fits)
    assert run_on_rank(done) == min(fit_on_rank(done), done.memory.max_num_seqs)


def test_one_at_a_time_runs_one():
    assert run_on_rank(size(SMALL.replace(engine="one-at-a-time"))) == 1


def test_at_least_one_replica_serves():
    assert serving_replicas(size(SMALL.replace(spare_replicas=5))) == 1


def test_targets_stand_beside_what_the_plan_makes_of_them():
    done = planned(itl_target_s=0.2, e2e_target_s=20.0)
    rows = {row.name: row for row in reached(done.scenario, done.metrics)}
    assert {name: row.limit_s for name, row in rows.items()} == {"TTFT": 1.0, "TPOT": 0.05, "ITL": 0.2, "E2E": 20.0}
    assert rows["TTFT"].figure_s == done.metrics.ttft_s.p95
    assert rows["ITL"].figure_s == done.metrics.max_itl_s.p95
    row = Reached(field="ttft_target_s", name="TTFT", figure_s=1.5, limit_s=2.0)
    assert (row.margin, row.is_missed) == (0.25, False)
    assert Reached(field="ttft_target_s", name="TTFT", figure_s=2.5, limit_s=2.0).is_missed


def test_a_target_that_is_off_fails_nobody():
    # A TPOT of half a millisecond no GPU of the catalog reaches; who asks for TTFT alone must not be held to it.
    assert not planned(tpot_target_s=0.0005).slo_met
    only = planned(tpot_target_s=None)
    assert only.slo_met
    assert only.num_gpus <= planned().num_gpus
    assert "(target 1 s)" in only.headline
    assert only.headline.count("target") == 1


def test_without_targets_throughput_alone_sizes_the_plan():
    done = planned(ttft_target_s=None, tpot_target_s=None, users=6000)
    assert done.slo_met
    assert done.num_replicas == math.ceil(done.scenario.peak_rate_rps / (0.97 * done.curve.capacity_rps))
    assert "no latency target is set" in done.headline
    # the chance that a replica is not so slow that what arrives exceeds what it finishes
    slower = done.scenario.peak_rate_rps / (done.curve.capacity_rps * done.num_replicas)
    assert done.slo_probability == 1 - done.bands["throughput"].probability_below(1.0, slower)


@pytest.mark.parametrize("field", ["itl_target_s", "e2e_target_s"])
def test_gaps_and_end_to_end_times_can_be_targets(field):
    tight = planned(ttft_target_s=None, tpot_target_s=None, **{field: 0.001})
    loose = planned(ttft_target_s=None, tpot_target_s=None, **{field: 60.0})
    assert (tight.slo_met, tight.replicas_for_slo, loose.slo_met) == (False, None, True)


def test_a_typical_step_by_hand():
    made = SimpleNamespace(
        pools=None,
        result=SimpleNamespace(replica=np.array([0, 1, 1, 0]), mean_running=21.0),
        engine=SimpleNamespace(max_num_batched_tokens=512),
        mean_prompt_tokens=1000.4,
        mean_output_tokens=300.0,
    )
    # 21 sequences on two replicas; what 512 tokens leave beside ten of them; half of the answer is written
    assert typical_step(made) == {"running": 10, "context_tokens": 1150, "chunk_tokens": 502}
    made.result = None
    assert typical_step(made)["running"] == 1


# TensorRT-LLM takes a prompt in one step where nobody says otherwise: models of 1,048,576 tokens passed the limit of a
# step's tokens, and the answer was an error.
def test_a_prompt_of_a_million_tokens_in_one_step() -> None:
    done = size(SMALL.replace(model="deepseek-ai/DeepSeek-V4-Flash", gpu="B200", tensor_parallel_size=4,
                              engine="tensorrt-llm", max_model_len=1_048_576))  # fmt: skip
    assert done.memory.weights_bytes > 0
