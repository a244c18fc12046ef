from concurrent.futures import ThreadPoolExecutor

import pytest

from planner import plan
from planner.answer.search.outcome import EVIDENCE, MEETS, Candidate
from planner.answer.search.recommend import ranked_rows, recommend, search_steps
from planner.errors import InvalidInput
from planner.scenario.scenario import Scenario
from tests.answer.cases import forget

from .spaces import FEW, SAMPLE, cheapest, every_plan, few_requests, random_gpus, random_scenario

SMALL = Scenario(num_requests=FEW)
GPUS = ("H100 SXM", "L40S")


@pytest.fixture(scope="module")
def found():
    return recommend(SMALL, gpus=GPUS, weight_dtypes=("auto",))


def figures(search):
    return [(row.scenario, row.status, row.key, row.ttft_s, row.tpot_s) for row in search.candidates]


def test_replicas_that_do_both_are_searched_where_the_plan_has_them_apart(found):
    apart = recommend(SMALL.replace(deployment="disaggregated"), gpus=GPUS, weight_dtypes=("auto",))
    assert figures(apart) == figures(found)


def test_rows_are_ranked_by_cost_and_none_is_dominated(found):
    assert found.best is found.candidates[0]
    keys = [row.key for row in found.candidates]
    assert keys == sorted(keys)
    for place, row in enumerate(found.candidates):
        cheaper = found.candidates[:place]
        is_first = row.evidence not in {other.evidence for other in cheaper}
        assert is_first or all(row.ttft_s < 0.95 * x.ttft_s or row.tpot_s < 0.95 * x.tpot_s for x in cheaper)


def test_every_row_is_what_its_plan_says(found):
    for row in found.candidates:
        done = plan(row.scenario)
        assert (done.num_gpus, done.num_replicas, done.slo_met) == (row.num_gpus, row.num_replicas, row.status == MEETS)
        assert (done.cost.usd_per_month, done.cost.usd_per_million_tokens) == (
            row.usd_per_month,
            row.usd_per_million_tokens,
        )
        level = row.scenario.service_level
        assert (done.metrics.ttft_s.at(level.quantile), done.metrics.tpot_s.at(level.quantile)) == (
            row.ttft_s,
            row.tpot_s,
        )
        assert done.slo_probability == row.probability


def test_every_candidate_is_accounted_for(found):
    outs = found.rejected_by_memory + found.rejected_when_idle + found.over_the_limit + found.pruned_by_bound
    assert outs <= found.candidates_considered <= outs + found.candidates_simulated


@pytest.mark.parametrize("arrivals", ["", "closed"])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_never_prune_the_cheapest_of_all_of_a_vendor_or_of_an_evidence(seed, arrivals):
    # Deployments of a small space are planned whole; the search, which plans a few, must find no dearer winners.
    scenario, gpus = random_scenario(seed).replace(kv_cache_dtype="fp8"), random_gpus(seed)
    scenario = scenario.replace(arrivals=arrivals or scenario.arrivals)
    best = cheapest(every_plan(scenario, gpus, ("auto",), budget=few_requests, sample=SAMPLE))
    own = cheapest(recommend(scenario, gpus=gpus, weight_dtypes=("auto",), budget=few_requests).candidates)
    assert own.keys() >= best.keys()
    for group, key in best.items():
        assert own[group] <= key  # below it where the sample misses the winner, or a setting does better still


@pytest.mark.parametrize(
    "changes",
    [
        {"arrivals": "closed", "concurrent_users": 200},
        {"arrivals": "once", "num_requests": 100},
        {"arrivals": "bursty", "burst_cv": 4.0},
        {"spare_replicas": 1},
    ],
)
def test_every_kind_of_traffic_is_searched_and_its_rows_are_their_plans(changes):
    search = recommend(SMALL.replace(**changes), gpus=("H100 SXM",), weight_dtypes=("auto",))
    assert search.best is not None
    for row in search.candidates[:2]:
        done = plan(row.scenario)
        assert (done.num_gpus, done.slo_met, done.cost.usd_per_month) == (row.num_gpus, True, row.usd_per_month)


def test_the_outcome_does_not_depend_on_the_executor(found, monkeypatch):
    forget(monkeypatch)
    with ThreadPoolExecutor(3) as executor:
        there = recommend(SMALL, gpus=GPUS, weight_dtypes=("auto",), executor=executor)
        assert figures(there) == figures(found)


def test_a_search_tells_what_it_knows_on_its_way_and_can_be_ended():
    steps = search_steps(SMALL, gpus=GPUS, budget=few_requests)
    first = next(steps)
    assert not first.finished
    assert first.candidates_considered > 0
    steps.close()
    *_, last = search_steps(SMALL, gpus=("L40S",), weight_dtypes=("auto",), budget=few_requests)
    assert last.finished


def test_gpus_that_cost_nothing_come_first():
    # H100 at 0 USD a GPU-hour, which the user has entered for it; L40S at its published price.
    free = SMALL.replace(usd_per_gpu_hour=0.0)
    search = recommend(free, gpus=GPUS, weight_dtypes=("auto",), budget=few_requests)
    assert (search.best.scenario.gpu, search.best.usd_per_month) == ("H100 SXM", 0.0)


def test_the_best_names_one_price_its_kind_and_its_date(found):
    best = found.best
    assert best.price_source.split(" (")[0] in found.summary
    assert "on demand, 2026-" in found.summary
    spot = recommend(SMALL.replace(price_kind="spot"), gpus=("RTX 5090",), weight_dtypes=("nvfp4",))
    assert spot.best.usd_per_gpu_hour == 0.67  # Akash, the only marketplace price but RunPod's 0.69


def test_restrictions_hold_for_every_row():
    busy = SMALL.replace(rate_rps=40.0, demand="rate")
    one = recommend(busy.replace(one_node=True, most_gpus=4), gpus=GPUS, weight_dtypes=("auto",), budget=few_requests)
    assert one.best is not None
    assert all(row.num_gpus <= 4 for row in one.candidates)
    mine = recommend(busy.replace(my_gpus="L40S:1"), weight_dtypes=("auto",), budget=few_requests)
    assert mine.best is None
    assert mine.over_the_limit > 0
    assert "No deployment" in mine.summary
    # Not even those that come closest to targets that nobody meets may be more than the user allows.
    none = recommend(
        busy.replace(ttft_target_s=0.001, rate_rps=400.0, most_gpus=2),
        gpus=("H100 SXM",),
        weight_dtypes=("auto",),
        budget=few_requests,
    )
    assert none.best is None
    assert all(row.num_gpus <= 2 for row in none.candidates)
    outs = none.rejected_by_memory + none.rejected_when_idle + none.over_the_limit + none.pruned_by_bound
    assert outs <= none.candidates_considered <= outs + none.candidates_simulated


def test_a_model_too_large_for_every_candidate_says_so():
    # 640 GiB of weights; 8 × 4 T4 have 480.
    search = recommend(SMALL.replace(model="deepseek-ai/DeepSeek-V3"), gpus=("T4",), weight_dtypes=("auto",))
    assert search.best is None
    assert "No deployment" in search.summary
    assert search.rejected_by_memory == search.candidates_considered > 0


def test_where_nothing_meets_the_targets_the_closest_is_shown():
    hard = SMALL.replace(tpot_target_s=0.001)
    search = recommend(hard, gpus=("L40S",), weight_dtypes=("auto",), budget=few_requests)
    assert search.best is None
    assert search.candidates
    assert all(row.status == "misses targets" for row in search.candidates)
    assert "comes closest" in search.summary


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"gpu_vendor": "Huawei"}, "price_kind"),
        ({"price_kind": "owned"}, "my_gpus"),
        ({"my_gpus": "L4", "measured_only": True}, "measured_only"),
        ({"my_gpus": "MI300X", "gpu_vendor": "NVIDIA"}, "gpu_vendor"),
    ],
)
def test_restrictions_that_leave_nothing_name_the_one_to_loosen(changes, field):
    with pytest.raises(InvalidInput) as told:
        recommend(SMALL.replace(**changes))
    assert told.value.field == field


def row(usd, ttft, gpu="H100 SXM", evidence=EVIDENCE[0], **more):
    return Candidate(
        scenario=SMALL.replace(gpu=gpu),
        status=MEETS,
        num_gpus=1,
        usd_per_month=usd,
        ttft_s=ttft,
        tpot_s=0.02,
        evidence=evidence,
        **more,
    )


def test_of_rows_that_cost_the_same_the_surest_is_the_best():
    fast, sure = row(100.0, 0.3, probability=0.66), row(100.0, 0.5, probability=0.79)
    assert ranked_rows([fast, sure]) == (sure, fast)


def test_of_rows_alike_the_cheapest_stays_and_the_first_of_each_evidence():
    cheap, alike, faster = row(100.0, 0.5), row(110.0, 0.49), row(120.0, 0.3)
    slow_amd, unmeasured = row(500.0, 0.9, "MI300X", EVIDENCE[1]), row(600.0, 0.9, "L4", EVIDENCE[2])
    assert ranked_rows([unmeasured, slow_amd, alike, faster, cheap]) == (cheap, faster, slow_amd, unmeasured)
