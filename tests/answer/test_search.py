import pytest

from planner.answer.planning import plan
from planner.answer.search import bound, candidate_scenarios, evaluate, recommend, what_would_change
from planner.errors import InvalidInput
from planner.scenario.scenario import Scenario

SCENARIO = Scenario(num_requests=400)
GPUS = ("H100 SXM", "L40S", "A100 SXM 80GB")


@pytest.fixture(scope="module")
def found():
    return recommend(SCENARIO, gpus=GPUS)


def test_candidates_are_ranked_by_cost_among_those_that_meet_the_targets(found):
    good = [item.usd_per_month for item in found.candidates if item.status == "meets targets"]
    assert good
    assert good == sorted(good)
    assert found.best.usd_per_month == good[0]


def test_the_best_candidate_is_a_plan_that_meets_the_targets(found):
    done = plan(found.best.scenario.replace(num_requests=1000))
    assert done.slo_met
    assert abs(done.num_gpus - found.best.num_gpus) <= found.best.scenario.parallelism.gpus_per_replica


def test_what_leads_the_list_is_what_its_plan_says(found):
    leaders = [item for item in found.candidates[:5] if item.status == "meets targets"]
    assert leaders
    for item in leaders:
        done = plan(item.scenario)
        assert (done.num_gpus, done.slo_met) == (item.num_gpus, True)
        assert done.cost.usd_per_million_tokens == pytest.approx(item.usd_per_million_tokens, rel=1e-9)


def test_every_candidate_is_accounted_for(found):
    assert found.candidates_considered == len(found.candidates)
    assert found.candidates_simulated + found.rejected_by_memory + found.pruned_by_bound == found.candidates_considered


def test_the_bound_never_exceeds_the_simulated_cost():
    for scenario in candidate_scenarios(SCENARIO, gpus=("H100 SXM", "L40S"))[:6]:
        low = bound(scenario)
        if low.status == "":
            full = evaluate(low)
            if full.status == "meets targets":
                assert low.usd_per_month <= full.usd_per_month + 1e-9


def test_a_model_too_large_for_every_candidate_says_so():
    big = SCENARIO.replace(model="deepseek-ai/DeepSeek-V3")
    found = recommend(big, gpus=("L40S",))
    assert found.best is None
    assert "No deployment" in found.summary
    assert all(item.reason for item in found.candidates)


def test_changes_tell_what_they_do():
    changes = what_would_change(SCENARIO)
    assert {"fp8 weights", "50 % more traffic"} <= {change.label for change in changes}
    assert all(change.text for change in changes)


def test_hybrids_that_refuse_the_default_sequences_are_tried_with_fewer():
    # vLLM refuses Nemotron-H-56B on one H200 at 1,024 sequences: "exceeds available Mamba cache blocks".
    hybrid = SCENARIO.replace(
        model="nvidia/Nemotron-H-56B-Base-8K", gpu="H200 SXM", tensor_parallel_size=1, max_model_len=8192
    )
    assert not plan(hybrid).fits
    low = bound(hybrid)
    assert low.status == ""
    assert low.scenario.max_num_seqs < 1024


@pytest.mark.parametrize("arrivals", ["closed", "once"])
def test_without_a_rate_there_is_nothing_to_search(arrivals):
    with pytest.raises(InvalidInput, match="arrivals"):
        recommend(SCENARIO.replace(arrivals=arrivals))
    assert what_would_change(SCENARIO.replace(arrivals=arrivals)) == ()


@pytest.mark.parametrize("changes", [{"arrivals": "bursty", "burst_cv": 8.0, "users": 1500}, {"num_lora_adapters": 20}])
def test_changes_agree_with_the_plan_where_only_a_fleet_bears_the_load(changes):
    # A single replica misses the targets at any share of such traffic; the plan's fleet holds them, and so must they.
    scenario = SCENARIO.replace(**changes)
    done = plan(scenario)
    assert done.slo_met
    found = {change.label: change for change in what_would_change(scenario)}
    assert found["twice the TTFT target"].num_gpus is not None
    saved = [int(change.text.split()[1]) for change in found.values() if change.text.startswith("saves")]
    assert all(number < done.num_gpus + 2 for number in saved)
    assert recommend(scenario, gpus=("H100 SXM",), weight_dtypes=("auto",)).best is not None


def test_gpus_that_cost_nothing_come_first():
    found = recommend(SCENARIO.replace(usd_per_gpu_hour=0.0), gpus=("H100 SXM", "L40S"))
    assert found.best is not None
    assert (found.best.scenario.gpu, found.best.usd_per_month) == ("H100 SXM", 0.0)
