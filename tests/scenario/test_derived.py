"""What the inputs amount to."""

import pytest

from planner.errors import InvalidInput
from planner.inputs.traffic import ArrivalKind, LengthKind
from planner.scenario.derived import MOST_RPS
from planner.scenario.scenario import Scenario


def test_slots_that_llama_server_is_told_have_contexts_of_their_own() -> None:
    shared = Scenario(engine="llama-server").engine_settings
    told = Scenario(engine="llama-server", max_num_seqs=8).engine_settings
    assert (shared.kv_unified, shared.max_num_seqs) == (True, 4)
    assert (told.kv_unified, told.max_num_seqs, told.kv_reservation) == (False, 8, "reserve_max")


def test_demand_can_be_stated_three_ways():
    users = Scenario(users=1200, requests_per_user_hour=60, peak_factor=1)
    rate = Scenario(demand="rate", rate_rps=20.0, peak_factor=1)
    daily = Scenario(demand="daily", requests_per_day=20 * 86400.0, peak_factor=1)
    assert users.peak_rate_rps == pytest.approx(rate.peak_rate_rps) == pytest.approx(daily.peak_rate_rps)


def test_hand_entered_shape_counts_its_parameters():
    # The default hand shape is Llama-3.1-8B's: 8,030,261,248 parameters as published.
    assert Scenario(model="custom").model_shape.num_parameters == 8_030_261_248


def test_advanced_settings_reach_the_engine():
    engine = Scenario(
        chunked_prefill="off",
        async_scheduling="off",
        long_prefill_token_threshold=512,
        block_size=32,
        max_state_slots=40,
        mamba_full_memory_ratio=0.5,
        kv_offload_gib=10.0,
        patience_s=3.0,
        num_lora_adapters=20,
        max_loras=4,
        max_lora_rank=64,
    ).engine_settings
    assert not engine.enable_chunked_prefill
    assert not engine.async_scheduling
    assert (engine.max_state_slots, engine.mamba_full_memory_ratio) == (40, 0.5)
    assert Scenario().engine_settings.mamba_full_memory_ratio == 0.9  # SGLang's default
    assert (engine.long_prefill_token_threshold, engine.block_size, engine.kv_offload_gib) == (512, 32, 10.0)
    assert (engine.patience_s, engine.max_loras, engine.max_lora_rank) == (3.0, 4, 64)
    assert Scenario(output_limit_tokens=77).traffic.output_limit_tokens == 77
    assert Scenario().engine_settings.max_loras == 0
    # Slots where the user says nothing: vLLM max_loras 1, SGLang max_loras_per_batch 8.
    assert Scenario(num_lora_adapters=20).engine_settings.max_loras == 1
    assert Scenario(num_lora_adapters=20, engine="sglang").engine_settings.max_loras == 8


def test_a_draft_model_counts_only_where_tokens_are_drafted():
    draft = "meta-llama/Llama-3.2-1B-Instruct"
    assert Scenario(draft_model=draft).draft_shape is None
    assert Scenario(draft_model=draft, num_speculative_tokens=3).draft_shape.name == draft


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("users", {"users": 100_000_000, "requests_per_user_hour": 1000.0}),
        ("requests_per_day", {"demand": "daily", "requests_per_day": 1e11}),
    ],
)
def test_a_rate_that_nobody_serves_names_the_input_that_makes_it(field, changes):
    with pytest.raises(InvalidInput, match="1,000,000 req/s") as caught:
        _ = Scenario(**changes).traffic
    assert caught.value.field == field


def test_a_gpu_by_hand_is_the_gpu() -> None:
    made = Scenario(gpu="custom", gpu_memory_gib=48.0, gpu_bandwidth_gb_s=864.0, gpu_bf16_tflops=362.0,
                    usd_per_gpu_hour=0.8).gpu_spec  # fmt: skip
    assert (made.memory_gib, made.memory_bandwidth_gb_s, made.bf16_tflops) == (48.0, 864.0, 362.0)
    assert made.memory_gb == pytest.approx(51.54, abs=0.01)  # 48 × 2³⁰ ÷ 10⁹
    assert made.fp8_tflops is None  # 0 = none


def test_split_and_targets_are_those_of_the_form() -> None:
    made = Scenario(
        model="Qwen/Qwen3-30B-A3B",
        tensor_parallel_size=2,
        pipeline_parallel_size=3,
        expert_parallel=True,
        attention_data_parallel_size=2,
        ttft_target_s=0.7,
        tpot_target_s=0.03,
        target_quantile=0.9,
    )
    assert made.parallelism.gpus_per_replica == 12
    assert made.parallelism.expert_parallel
    level = made.service_level
    assert (level.ttft_s, level.tpot_s, level.quantile) == (0.7, 0.03, 0.9)


@pytest.mark.parametrize(
    ("arrivals", "is_open"), [("poisson", True), ("bursty", True), ("once", False), ("closed", False)]
)
def test_traffic_of_each_kind_of_arrival(arrivals: str, is_open: bool) -> None:
    made = Scenario(arrivals=arrivals, burst_cv=3.0, concurrent_users=9, think_time_s=2.0)
    assert made.is_open_loop is is_open
    drawn = made.traffic.arrivals
    assert drawn.kind is ArrivalKind(arrivals)
    assert drawn.cv == (3.0 if arrivals == "bursty" else 1.0)
    assert (drawn.users, drawn.think_time_s) == (9, 2.0)


def test_lengths_of_a_trace_or_by_mean_and_spread() -> None:
    trace = Scenario(lengths="trace").traffic.prompt_tokens
    assert trace.kind is LengthKind.QUANTILES
    assert trace.mean == pytest.approx(sum(trace.quantiles) / 1001)
    hand = Scenario(lengths="normal", output_mean_tokens=300.0, output_spread=0.5).traffic.output_tokens
    assert (hand.kind, hand.mean, hand.spread) == (LengthKind.NORMAL, 300.0, 0.5)


def test_where_arrivals_have_no_rate_none_is_refused() -> None:
    crowd = Scenario(arrivals="closed", users=100_000_000, requests_per_user_hour=1000.0)
    assert crowd.peak_rate_rps > MOST_RPS
    assert crowd.traffic.arrivals.rate_rps == MOST_RPS


NAME = "Qwen/Qwen3.8-Flash-Next"


@pytest.mark.parametrize(("choice", "expected"), [("auto", None), ("gpu", True), ("host", False)])
def test_the_scenario_says_where_tables_stand(choice: str, expected: bool | None) -> None:
    assert Scenario(model=NAME, ngram_tables=choice).engine_settings.ngram_on_gpu is expected


# SGLang chooses chunk and graphs by the memory that it sees: a MIG slice of 40 GB is not of the class of its board.
def test_a_part_of_a_gpu_counts_by_its_own_memory() -> None:
    part = Scenario(gpu="H100 SXM", gpu_total_gib=40.0).gpu_spec
    assert part.memory_gib == 40
    assert part.memory_gb == pytest.approx(40, rel=0.01)
    assert part.name == "H100 SXM"


@pytest.mark.parametrize(
    ("changes", "load", "field", "value"),
    [
        # 2 req/s at the peak of twice the mean, each user 36 requests an hour: 2 ÷ 2 ÷ (36 ÷ 3,600) = 100 users
        ({"requests_per_user_hour": 36.0}, 2.0, "users", 100),
        ({"requests_per_user_hour": 36.0}, 2.019, "users", 100),  # whole users, rounded down
        ({"demand": "daily"}, 2.0, "requests_per_day", 86_400.0),
        ({"demand": "rate"}, 2.0, "rate_rps", 2.0),
        ({"demand": "rate"}, 1_000_020.0, "rate_rps", 1_000_000.0),  # what a scenario may state at most
        ({"arrivals": "closed"}, 17.9, "concurrent_users", 17),
        ({"arrivals": "once"}, 250.0, "num_requests", 250),
    ],
)
def test_a_load_is_told_as_the_traffic_is(changes, load, field, value):
    there = Scenario(**changes).at_load(load)
    assert getattr(there, field) == value
    assert there.replace(**{field: getattr(Scenario(**changes), field)}) == Scenario(**changes)


@pytest.mark.parametrize(
    ("question", "replicas", "asks", "fixed"),
    [
        ("need", None, "need", None),
        ("need", 3, "will", 3),  # links that were written before there were questions
        ("will", None, "will", 1),
        ("take", None, "take", 1),
        ("take", 4, "take", 4),
    ],
)
def test_a_number_of_replicas_makes_it_the_question_whether_they_do(question, replicas, asks, fixed):
    scenario = Scenario(question=question, num_replicas=replicas)
    assert (scenario.asks, scenario.fixed_replicas) == (asks, fixed)


def test_the_safety_margin_tightens_what_the_plan_is_held_to_and_not_the_targets():
    scenario = Scenario(safety_margin=0.2, tpot_target_s=None, e2e_target_s=10.0)
    level = scenario.service_level
    assert (level.ttft_s, level.tpot_s, level.itl_s, level.e2e_s) == (0.8, None, None, 8.0)
    assert [target.limit_s for target in scenario.targets] == [1.0, 10.0]
