"""Break-even of a fleet that grows by whole replicas, against a plain scan of volumes."""

import numpy as np
import pytest

from planner.cost.break_even import OwnSteps, break_even, cost_map
from planner.errors import InvalidInput


def scan(own, api, most):
    """First volume, and that from which on, own GPUs cost no more, by looking at every volume."""
    volumes = np.arange(1, 4 * most + 1) / 4
    together = own.requests_per_replica_month * sum(own.kinds)
    serving = sum(np.maximum(1, np.ceil(np.round(volumes * count / together, 9))) for count in own.kinds)
    bill = (serving + own.spare_replicas) * own.usd_per_replica_month + own.fixed_usd_per_month
    cheaper = bill <= api * volumes + 1e-9
    dear = np.flatnonzero(~cheaper)
    return volumes[np.flatnonzero(cheaper)[0]], volumes[dear[-1] + 1]


@pytest.mark.parametrize("kinds", [(1,), (1, 1), (1, 3), (2, 3), (4, 6)])
@pytest.mark.parametrize("spare", [0, 1, 3])
@pytest.mark.parametrize("fixed", [0.0, 70.0])
@pytest.mark.parametrize("cost", [10.0, 33.0, 90.0])
def test_break_even_is_that_of_a_scan(cost, fixed, spare, kinds):
    own = OwnSteps(
        usd_per_replica_month=cost,
        requests_per_replica_month=100.0,
        spare_replicas=spare,
        fixed_usd_per_month=fixed,
        kinds=kinds,
    )
    found = break_even(own, 1.0)
    first, always = scan(own, 1.0, 10_000)
    assert found.first_requests_per_month == pytest.approx(first, abs=1)
    assert found.always_requests_per_month == pytest.approx(always, abs=1)
    assert found.replicas == own.replicas(np.array([found.first_requests_per_month]))[0]


def test_by_hand():
    # 60 USD for 100 requests against 1 USD each: 60 of 100; the second replica costs 120, paid off at 120 of 200,
    # and from three on (180 at 180 of 201 to 300) each is cheaper from its first request.
    found = break_even(OwnSteps(usd_per_replica_month=60.0, requests_per_replica_month=100.0), 1.0)
    assert (found.first_requests_per_month, found.always_requests_per_month, found.replicas) == (60.0, 120.0, 1)


def test_prefill_and_decode_apart_by_hand():
    # One prefill and two decode replicas serve 300 requests a month together: decode doubles at 150. At 40 USD each and
    # 1 USD a request: 80 USD up to 150, 120 up to 300, then five (a second of prefill, a third of decode), 200 up
    # to 450. The API is dearer from 80 requests on, and always.
    own = OwnSteps(usd_per_replica_month=40.0, requests_per_replica_month=100.0, kinds=(1, 2))
    assert own.ends() == (150.0, 300.0)
    assert own.replicas(np.array([0.0, 150.0, 150.1, 300.0, 300.1, 450.1])).tolist() == [2, 2, 3, 3, 5, 6]
    found = break_even(own, 1.0)
    assert (found.first_requests_per_month, found.always_requests_per_month, found.replicas) == (80.0, 80.0, 2)
    # At 70 USD: 140 up to 150, 210 up to 300, 350 up to 450, 420 up to 600, 560 up to 750: cheaper from 140, dearer
    # again after each step until 350 is paid off at 350, and the sixth, 560, at 560 of 600 to 750 is from its start.
    dear = OwnSteps(usd_per_replica_month=70.0, requests_per_replica_month=100.0, kinds=(1, 2))
    found = break_even(dear, 1.0)
    assert (found.first_requests_per_month, found.always_requests_per_month, found.replicas) == (140.0, 350.0, 2)


def test_the_api_can_stay_cheaper_at_every_volume():
    own = OwnSteps(usd_per_replica_month=100.0, requests_per_replica_month=100.0)
    assert break_even(own, 1.0).first_requests_per_month is None
    assert break_even(own, 0.0).always_requests_per_month is None
    assert break_even(own, 1.001).first_requests_per_month is not None


def test_free_gpus_are_cheaper_from_the_first_request():
    own = OwnSteps(usd_per_replica_month=0.0, requests_per_replica_month=100.0)
    assert break_even(own, 1.0).first_requests_per_month == 0.0
    paid = OwnSteps(usd_per_replica_month=0.0, requests_per_replica_month=100.0, fixed_usd_per_month=250.0)
    assert break_even(paid, 1.0).always_requests_per_month == 250.0
    assert break_even(paid, 1.0).replicas == 3


def test_the_fleet_grows_with_the_volume():
    own = OwnSteps(usd_per_replica_month=5.0, requests_per_replica_month=100.0, spare_replicas=1)
    assert own.replicas(np.array([0.0, 1.0, 100.0, 100.1, 250.0])).tolist() == [2, 2, 2, 3, 4]
    assert own.usd_per_month(np.array([250.0])).tolist() == [20.0]


def test_the_map_by_hand():
    # Half used, a replica serves 50 of its 100: three for 150 requests at 20 USD; full, two.
    own = OwnSteps(usd_per_replica_month=20.0, requests_per_replica_month=50.0, mean_over_peak=0.5)
    found = cost_map(own, 1.0, np.array([100.0, 150.0]), np.array([0.5, 1.0]))
    np.testing.assert_allclose(found.own_over_api, [[40 / 100, 60 / 150], [20 / 100, 40 / 150]])


@pytest.mark.parametrize("changes", [{"usd_per_replica_month": -1.0}, {"requests_per_replica_month": 0.0}])
def test_bad_steps_are_named(changes):
    with pytest.raises(InvalidInput, match=next(iter(changes))):
        OwnSteps(**{"usd_per_replica_month": 1.0, "requests_per_replica_month": 1.0, **changes})
