"""What the pages show of a plan's simulation, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from planner import Scenario, plan
from planner.dashboard import results
from planner.dashboard.results import MISTAKES, latency_samples, timeline_finding, use_of_fleet
from planner.jobs.office import OFFICE
from planner.simulation.records import ABANDONED, FINISHED
from tests.answer.cases import planned

SMALL = Scenario(num_requests=400)


def test_scenarios_that_differ_in_prices_share_one_simulation():
    free = SMALL.replace(usd_per_gpu_hour=0.0, growth_per_month=0.2, title="Free")
    first = results.plan_for(SMALL)
    computed = OFFICE.num_computed
    again = results.plan_for(free)
    assert OFFICE.num_computed == computed
    assert again.result is first.result
    assert (again.cost.usd_per_month, again.scenario.title) == (0.0, "Free")
    assert first.cost.usd_per_month > 0


def test_replicas_kept_for_failures_are_not_counted_as_throughput():
    done, spared = plan(SMALL), plan(SMALL.replace(spare_replicas=2))
    assert spared.num_replicas == done.num_replicas + 2
    assert use_of_fleet(spared).capacity_tokens_per_s == pytest.approx(use_of_fleet(done).capacity_tokens_per_s)
    assert use_of_fleet(spared).mean_fraction == pytest.approx(use_of_fleet(done).mean_fraction)


def test_latencies_of_finished_requests_by_hand():
    result = SimpleNamespace(
        status=np.array([FINISHED, ABANDONED, FINISHED]),
        arrival_s=np.array([0.0, 0.0, 10.0]),
        first_token_s=np.array([1.5, 2.0, 10.5]),
        finish_s=np.array([3.5, np.nan, 10.5]),
        output_tokens=np.array([5, 9, 1]),
        max_itl_s=np.zeros(3),
    )
    found = latency_samples(result)
    assert found["ttft_s"].tolist() == [1.5, 0.5]
    assert found["tpot_s"].tolist() == [2.0 / 4]  # one token has no time between tokens


def test_the_highest_peak_is_named():
    def policy(title, running):
        line = SimpleNamespace(
            time_s=np.arange(len(running)), running=np.array(running), kv_blocks_used=np.array(running)
        )
        return SimpleNamespace(title=title, result=SimpleNamespace(timeline=line))

    two = (policy("Static", [1, 4, 2]), policy("Paged", [1, 9, 7]))
    assert timeline_finding(two, "running") == "Highest peak: 9 sequences at once, with paged"
    silent = SimpleNamespace(title="x", result=SimpleNamespace(timeline=None))
    assert "9" not in timeline_finding((silent,), "running")


def test_a_fleet_that_serves_nothing_has_no_use():
    assert use_of_fleet(planned(lengths="constant", prompt_mean_tokens=9000.0)) is None
    assert use_of_fleet(planned(model="meta-llama/Llama-3.3-70B-Instruct")) is None


def test_every_mistake_of_the_article_is_a_finding_that_can_be_made():
    found = planned(max_num_seqs=1, users=10).findings
    assert "one_at_a_time" in {finding.kind for finding in found} & set(MISTAKES)
    assert len(MISTAKES) == 5  # the article lists five
