"""The plan: targets met with the fewest replicas, parts that add up, laws of its figures."""

import dataclasses
import itertools

import pytest

from planner import Scenario, plan
from planner.answer.planning import replica_of, size
from planner.catalog.engines import get_engine
from planner.catalog.models import get_model
from planner.memory.sizing import plan_memory
from planner.scenario import SCALES, fingerprint
from planner.scenario.fields import ROUTERS
from planner.service.capacity import capacity_rps
from planner.service.fleet import run_fleet
from planner.units import GIB
from planner.workload.offered import draw
from tests.answer.cases import SMALL, planned


@pytest.fixture(scope="module")
def default():
    return plan(SMALL)


def test_the_same_scenario_gives_the_same_plan(default):
    again = plan(SMALL)
    assert again.headline == default.headline
    assert again.metrics == default.metrics


def test_the_plan_meets_its_targets_with_the_fewest_replicas():
    busy = SMALL.replace(users=3000)
    done = planned(users=3000)
    assert done.slo_met
    assert done.metrics.slo_attainment >= busy.target_quantile
    assert done.num_replicas > 1
    fewer = run_fleet(busy, replica_of(done), draw(busy), done.num_replicas - 1).metrics
    assert fewer.slo_attainment < busy.target_quantile


def test_memory_parts_fill_the_gpu(default):
    memory = default.memory
    parts = (
        memory.weights_bytes
        + memory.kv_pool_bytes
        + memory.activation_bytes
        + memory.cuda_graph_bytes
        + memory.non_torch_bytes
        + memory.free_bytes
    )
    assert parts == pytest.approx(memory.total_bytes)
    # Llama-3.1-8B in bf16: 8,030,261,248 × 2 bytes.
    assert memory.weights_bytes / GIB == pytest.approx(14.96, abs=0.1)


def test_more_traffic_never_needs_fewer_gpus():
    gpus = [plan(SMALL.replace(users=users)).num_gpus for users in (200, 2000, 8000)]
    assert gpus == sorted(gpus)
    assert gpus[-1] > gpus[0]


def test_the_load_curve_rises(default):
    ttft = [point.metrics.ttft_s.p95 for point in default.curve.points]
    assert ttft[-1] > ttft[0]
    assert 0 < default.curve.slo_rate_rps <= default.curve.capacity_rps * 1.1


def test_the_bill_is_price_times_gpus_times_hours(default):
    cost = default.cost
    assert cost.usd_per_month == pytest.approx(cost.usd_per_gpu_hour * default.num_gpus * SMALL.hours_per_month)


def test_policies_serve_identical_requests_and_paging_wins(default):
    by_name = {item.name: item for item in default.policies}
    assert list(by_name) == ["one-at-a-time", "static", "reserve-max", "paged"]
    first = default.policies[0].result.output_tokens
    assert all((item.result.output_tokens == first).all() for item in default.policies)
    order = [by_name[name].capacity_rps for name in ("one-at-a-time", "static", "reserve-max", "paged")]
    assert order == sorted(order)


def test_a_model_that_does_not_fit_is_still_a_plan():
    done = plan(SMALL.replace(model="meta-llama/Llama-3.3-70B-Instruct"))
    assert not done.fits
    assert done.metrics is None
    assert "does not start" in done.headline
    assert done.memory.remedies


def test_unreachable_targets_are_said():
    done = plan(SMALL.replace(tpot_target_s=0.0005))
    assert done.fits
    assert not done.slo_met
    assert "cannot meet the targets" in done.headline


def test_spare_replicas_are_bought_on_top(default):
    assert plan(SMALL.replace(spare_replicas=2)).num_replicas == default.num_replicas + 2


@pytest.mark.parametrize("arrivals", ["poisson", "bursty", "once", "closed"])
def test_every_arrival_pattern_plans(arrivals):
    done = plan(SMALL.replace(arrivals=arrivals))
    assert done.metrics.num_requests > 0
    assert done.headline


def test_a_trace_is_replayed_with_its_own_rate():
    requests = draw(SMALL)
    traced = dataclasses.replace(requests, arrival_s=requests.arrival_s * 3)
    done = plan(SMALL, requests=traced)
    span = traced.arrival_s[-1] - traced.arrival_s[0]
    assert done.scenario.peak_rate_rps == pytest.approx(len(traced) / span)


def test_capacity_is_below_the_token_bound():
    # With a queue that never empties, output tokens per second cannot exceed max_num_seqs per fastest step.
    sized = size(SMALL)
    replica = replica_of(sized)
    requests = draw(SMALL)
    top = capacity_rps(replica, requests)
    fastest = float(sized.step_time.decode_s[1])
    assert top * requests.output_tokens.mean() < sized.memory.max_num_seqs / fastest


def test_a_large_fleet_serves_the_whole_rate():
    # Beyond 16 replicas a part is simulated; what it serves must be scaled back to the whole.
    done = plan(SMALL.replace(users=30_000, num_requests=3000))
    assert done.num_replicas > 16
    assert done.metrics.requests_per_s == pytest.approx(done.scenario.peak_rate_rps, rel=0.1)


def test_bursts_are_shared_by_a_fleet():
    bursty = SMALL.replace(arrivals="bursty", burst_cv=8.0, users=1500)
    done = plan(bursty)
    assert done.slo_met
    assert done.num_replicas > 1
    assert not plan(bursty.replace(num_replicas=done.num_replicas - 1)).slo_met


@pytest.mark.parametrize("users", [500, 4000, 30_000])
def test_no_two_figures_contradict_each_other(users):
    done = plan(SMALL.replace(users=users, gpu="L40S"))
    assert done.slo_met
    per_replica = done.curve.slo_rate_rps
    peak = done.scenario.peak_rate_rps
    assert peak <= per_replica * done.num_replicas * (1 + 1e-9)
    if done.num_replicas > 1:
        assert per_replica * (done.num_replicas - 1) < peak
    assert done.num_gpus == done.num_replicas * done.scenario.parallelism.gpus_per_replica
    assert done.chain[-1].gpus == done.num_gpus


def test_a_gpu_without_measurements_says_so():
    # The L4 has no kernel table: its efficiency is inherited, and the plan must not hide that.
    def told(gpu):
        notes = [item.text for item in plan(SMALL.replace(users=20, gpu=gpu)).findings if item.kind == "estimate"]
        return any("no kernel measurement" in text.lower() for text in notes)

    assert not told("H100 SXM")
    assert told("L4")


LLAMA_1B = "meta-llama/Llama-3.2-1B-Instruct"


@pytest.mark.parametrize(
    ("changes", "given", "engine"),
    [
        (
            {"draft_model": LLAMA_1B, "num_speculative_tokens": 3},
            {"draft_model": get_model(LLAMA_1B)},
            {"num_speculative_tokens": 3},
        ),
        ({"occupied_gib": 30.0}, {"occupied_bytes": 30 * GIB}, {}),
        (
            {"num_lora_adapters": 40, "max_loras": 8, "max_lora_rank": 32},
            {},
            {"max_loras": 8, "max_lora_rank": 32},
        ),
        ({"kv_offload_gib": 20.0}, {}, {"kv_offload_gib": 20.0}),
        ({"block_size": 64}, {}, {"block_size": 64}),
    ],
)
def test_advanced_settings_change_the_memory_as_the_sizing_says(changes, given, engine):
    sized = size(SMALL.replace(**changes))
    prompt, output = sized.mean_prompt_tokens, sized.mean_output_tokens
    expected = plan_memory(
        SMALL.model_shape,
        SMALL.gpu_spec,
        dataclasses.replace(get_engine("vllm"), **engine),
        SMALL.parallelism,
        max_model_len=SMALL.max_model_len,
        mean_sequence_tokens=prompt + output / 2,
        **given,
    )
    assert sized.memory == expected
    assert sized.memory != size(SMALL).memory


def test_a_common_prompt_is_held_once():
    # 1,000 prompt tokens of which 512 = 32 blocks of 16 are common, 200 output tokens of which half are held on
    # average: a sequence holds ⌈1,100 ÷ 16⌉ = 69 blocks, 37 of its own.
    constant = {"lengths": "constant", "prompt_mean_tokens": 1000.0, "output_mean_tokens": 200.0}
    alone = size(SMALL.replace(**constant)).memory
    common = size(SMALL.replace(**constant, shared_prefix_tokens=512)).memory
    assert alone.typical_concurrency_paged == pytest.approx(alone.num_kv_blocks / 69)
    assert common.typical_concurrency_paged == pytest.approx((common.num_kv_blocks - 32) / 37)
    apart = size(SMALL.replace(**constant, shared_prefix_tokens=512, enable_prefix_caching=False)).memory
    assert apart.typical_concurrency_paged == alone.typical_concurrency_paged


def test_several_common_prompts_are_each_held_once():
    # As above with 10 prompts asked for equally often: n sequences hold 37 n blocks of their own and, of the 10
    # prompts of 32 blocks, the 10 × (1 − 0.9ⁿ) that at least one of them uses; with hundreds of sequences, all 10.
    constant = {"lengths": "constant", "prompt_mean_tokens": 1000.0, "output_mean_tokens": 200.0}
    memory = size(SMALL.replace(**constant, shared_prefix_tokens=512, num_prefix_groups=10)).memory
    assert memory.typical_concurrency_paged == pytest.approx((memory.num_kv_blocks - 10 * 32) / 37, rel=1e-6)
    # With as many prompts as there could be sequences, hardly any two share: 69 blocks each, less a little.
    many = size(SMALL.replace(**constant, shared_prefix_tokens=512, num_prefix_groups=100_000)).memory
    apart = size(SMALL.replace(**constant)).memory
    assert many.typical_concurrency_paged == pytest.approx(apart.typical_concurrency_paged, rel=0.02)


def test_lora_requests_share_the_slots():
    few = plan(SMALL.replace(num_replicas=1, num_lora_adapters=50, max_loras=1))
    enough = plan(SMALL.replace(num_replicas=1, num_lora_adapters=50, max_loras=50))
    none = plan(SMALL.replace(num_replicas=1))
    assert few.metrics.ttft_s.p95 > 2 * enough.metrics.ttft_s.p95
    assert enough.metrics.ttft_s.p95 == pytest.approx(none.metrics.ttft_s.p95, rel=0.2)
    assert enough.metrics.lost_fraction == pytest.approx(none.metrics.lost_fraction, abs=0.01)
    # The batching lab serves the same requests: its presets know no LoRA, yet turn none away.
    for item in enough.policies:
        assert item.metrics.lost_fraction == pytest.approx(none.metrics.lost_fraction, abs=0.01)


def test_a_client_timeout_cuts_long_answers():
    done = plan(SMALL.replace(num_replicas=1, timeout_s=2.0))
    assert done.metrics.num_abandoned > 0
    assert done.metrics.e2e_s.p99 <= 2.0 + 1e-6


def test_memory_of_other_processes_is_not_free():
    free, shared = size(SMALL).memory, size(SMALL.replace(occupied_gib=3.0)).memory
    assert free.free_bytes - shared.free_bytes == pytest.approx(3 * GIB)


def test_an_answer_limit_cuts_the_answers():
    done = size(SMALL.replace(lengths="constant", output_mean_tokens=300.0, output_limit_tokens=64))
    assert done.mean_output_tokens == 64


def test_impatient_clients_leave():
    done = plan(SMALL.replace(num_replicas=1, users=12_000, patience_s=0.5))
    assert done.metrics.num_abandoned > 0
    assert "abandoned" in {finding.kind for finding in done.findings}


@pytest.mark.parametrize("router", ROUTERS)
def test_every_router_serves_the_whole_rate(router):
    done = plan(SMALL.replace(users=4000, gpu="L40S", router=router))
    assert done.num_replicas > 1
    assert done.metrics.requests_per_s == pytest.approx(done.scenario.peak_rate_rps, rel=0.15)


def test_requests_that_the_context_turns_away_are_not_averaged():
    # Whisper's decoder holds 448 tokens: no running sequence is longer, whatever the traffic sends.
    sized = size(SMALL.replace(model="openai/whisper-large-v3", max_model_len=448))
    assert sized.mean_prompt_tokens + sized.mean_output_tokens / 2 <= 448


def test_a_fixed_fleet_beyond_its_capacity_does_not_keep_up():
    done = plan(SMALL.replace(demand="rate", rate_rps=500.0, num_replicas=5, ttft_target_s=100.0, tpot_target_s=1.0))
    assert 5 * done.curve.capacity_rps < 500
    assert not done.slo_met
    assert "cannot keep up" in done.headline


def test_a_router_that_deals_unevenly_is_named():
    # one common prefix: prefix affinity sends every request to the same replica, however many there are
    done = plan(Scenario(router="prefix_affinity", shared_prefix_tokens=500, demand="rate", rate_rps=60.0))
    assert not done.slo_met
    assert any("prefix affinity" in reason for reason in done.reasons)


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"engine": "sglang", "model": "Qwen/Qwen3-32B", "tensor_parallel_size": 2, "users": 800},
        {
            "model": "meta-llama/Llama-3.3-70B-Instruct",
            "weight_dtype": "fp8",
            "tensor_parallel_size": 8,
            "arrivals": "closed",
            "concurrent_users": 300,
            "num_replicas": 1,
        },
    ],
)
def test_more_simulated_requests_move_no_figure_beyond_its_interval(inputs):
    # A run is prolonged until its intervals can be believed, however few requests were asked for.
    runs = [plan(Scenario(**inputs, num_requests=count)).metrics for count in (1000, 2000, 5000)]
    for latency in ("ttft_s", "tpot_s"):
        seen = [getattr(run, latency) for run in runs]
        for few, many in itertools.combinations(seen, 2):
            assert abs(few.p95 - many.p95) < few.p95_half_width + many.p95_half_width


def test_prefill_and_decode_apart_are_a_whole_plan():
    done = planned(deployment="disaggregated", demand="rate", rate_rps=60.0)
    pools = done.pools
    assert done.slo_met
    assert done.num_gpus == done.num_replicas == pools.num_prefill + pools.num_decode
    assert done.curve.capacity_rps * done.num_replicas == pytest.approx(pools.capacity_rps)
    assert done.cost.usd_per_month == pytest.approx(done.cost.usd_per_gpu_hour * done.num_gpus * SMALL.hours_per_month)
    assert f"{pools.num_prefill} prefill + {pools.num_decode} decode replica" in done.headline
    assert max(link.gpus for link in done.chain) == done.num_gpus
    assert any("travels" in finding.text for finding in done.findings)
    # Llama-3.1-8B caches 2 × 8 heads × 128 × 2 bytes in each of 32 layers: 131,072 bytes a token, at 50 GB/s.
    expected = done.mean_prompt_tokens * 131_072 / 50e9 + 1e-3
    assert pools.mean_transfer_s == pytest.approx(expected, rel=0.1)


def test_a_decode_pool_sees_no_prompts():
    together, apart = planned(num_replicas=2), planned(deployment="disaggregated")
    assert apart.num_replicas == 2
    assert apart.metrics.tpot_s.p95 < together.metrics.tpot_s.p95


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "meta-llama/Llama-3.3-70B-Instruct"},
        {"model": "Qwen/Qwen3-32B", "gpu": "L40S", "max_model_len": 32768},
        {"model": "Qwen/Qwen3-32B", "max_model_len": 40960},
        {"gpu": "T4", "max_model_len": 32768},
        {"model": "deepseek-ai/DeepSeek-V3", "tensor_parallel_size": 8},
        {"model": "Qwen/Qwen3-32B", "tensor_parallel_size": 3},
    ],
)
def test_every_remedy_with_its_changes_starts(changes):
    scenario = Scenario(num_requests=50, **changes)
    sized = size(scenario)
    assert not sized.fits
    assert sized.memory.remedies
    for remedy in sized.memory.remedies:
        cured = size(scenario.replace(**remedy.changes), explain=False)
        assert cured.fits, remedy


def test_a_calibrated_plan_takes_as_long_as_was_measured():
    base = Scenario(num_requests=200, arrivals="closed", concurrent_users=1, question="will")
    twice = base.replace(
        calibration_runs=3,
        calibration_of=fingerprint(base),
        **dict.fromkeys(SCALES.values(), 2.0),
    )
    before, after = plan(base, with_policies=False), plan(twice, with_policies=False)
    # everything takes twice as long, so the service does
    assert after.metrics.tpot_s.p50 == pytest.approx(2 * before.metrics.tpot_s.p50, rel=1e-6)
    assert after.metrics.ttft_s.p50 == pytest.approx(2 * before.metrics.ttft_s.p50, rel=1e-6)
    assert "calibrated to your 3 measurements" in after.verdict.evidence


def test_prefill_and_decode_apart_say_the_most_that_they_take_and_hold_it():
    asked = SMALL.replace(deployment="disaggregated", question="take", prefill_replicas=3, decode_replicas=2)
    done = plan(asked)
    assert (done.pools.num_prefill, done.pools.num_decode, done.num_gpus) == (3, 2, 5)
    assert done.headline.startswith("5 × H100 SXM (3 prefill + 2 decode replicas) take at most")
    assert done.slo_met
    # The same replicas hold a little less, and miss at a quarter more.
    given = asked.replace(question="will")
    assert plan(given.at_load(0.95 * done.taken.load)).slo_met
    assert not plan(given.at_load(1.25 * done.taken.load)).slo_met
    assert max(link.gpus for link in done.chain) == 5
    alone = done.taken.longest_prompt_tokens
    assert plan(asked.replace(ttft_target_s=0.5)).taken.longest_prompt_tokens < alone
