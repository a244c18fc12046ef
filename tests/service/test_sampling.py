"""What stands for a large fleet: shares of prefix groups and bursts, by counting and against drawn arrivals."""

import numpy as np
import pytest

from planner import Scenario
from planner.service.sampling import MAX_SIMULATED_REPLICAS, cv_of_share, sample_of

AFFINE = Scenario(router="prefix_affinity", shared_prefix_tokens=500)


@pytest.mark.parametrize("replicas", [2, MAX_SIMULATED_REPLICAS])
def test_a_small_fleet_is_simulated_whole(replicas):
    assert sample_of(Scenario(), replicas) == (replicas, replicas, 1.0, Scenario())


def test_a_large_fleet_keeps_its_load_per_replica():
    shown, busy, share, traffic = sample_of(Scenario(router="random"), 1000)
    assert (shown, busy, share) == (32, 1000, 0.032)
    assert traffic == Scenario(router="random")  # Poisson arrivals stay Poisson


@pytest.mark.parametrize("router", ["round_robin", "random"])
@pytest.mark.parametrize("spread", [0.5, 1.0, 4.0])
def test_a_replica_sees_the_same_gaps_in_the_sample_as_in_the_fleet(router, spread):
    # Deal 400,000 Gamma gaps to 64 replicas, and gaps as burst as the sample's to 16: gaps of one replica vary alike.
    rng, count = np.random.default_rng(3), 400_000

    def of_one(cv, replicas):
        arrivals = np.cumsum(rng.gamma(1 / cv**2, size=count))
        places = np.arange(count) % replicas if router == "round_robin" else rng.integers(0, replicas, count)
        gaps = np.diff(arrivals[places == 0])
        return gaps.std() / gaps.mean()

    whole = Scenario(arrivals="bursty", burst_cv=spread, router=router)
    assert of_one(cv_of_share(whole, 16 / 64), 16) == pytest.approx(of_one(spread, 64), rel=0.05)


@pytest.mark.parametrize(
    ("groups", "replicas", "busy", "shown", "shown_groups"),
    [
        (60, 50, 50, 30, 36),  # ten replicas have two groups and 40 have one: six and 24
        (100, 33, 33, 32, 97),  # one replica has four and 32 have three: one is shown
        (20, 50, 20, 20, 20),  # 30 replicas get nothing
        (1, 50, 1, 1, 1),
    ],
)
def test_prefix_groups_are_as_uneven_as_in_the_fleet(groups, replicas, busy, shown, shown_groups):
    found = sample_of(AFFINE.replace(num_prefix_groups=groups), replicas)
    assert (found.shown, found.busy, found.traffic.num_prefix_groups) == (shown, busy, shown_groups)
    assert found.share == pytest.approx(shown_groups / groups)
