import pytest

from planner import plan
from planner.answer.search.changes import change_steps
from planner.scenario.scenario import Scenario
from tests.answer.cases import all_changes

SMALL = Scenario(num_requests=300)


@pytest.fixture(scope="module")
def changes():
    return {change.label: change for change in all_changes(SMALL.replace(users=3000))}


def test_each_change_is_a_plan_of_its_own(changes):
    assert {"weights in FP8", "50 % more traffic", "half the TTFT target", "twice the TPOT target"} <= changes.keys()
    base = plan(SMALL.replace(users=3000))
    for label in ("weights in FP8", "50 % more traffic"):
        done, change = plan(changes[label].scenario), changes[label]
        assert (done.num_gpus, done.slo_met, done.cost.usd_per_month) == (
            change.num_gpus,
            True,
            change.usd_per_month,
        )
        difference = done.num_gpus - base.num_gpus
        assert ("no change" in change.text) == (difference == 0)
        assert not difference or f"{abs(difference)} GPU" in change.text


def test_more_traffic_is_half_as_much_again(changes):
    assert changes["50 % more traffic"].scenario.users == 4500


def test_a_closed_loop_has_changes_too():
    found = {x.label: x for x in all_changes(SMALL.replace(arrivals="closed", concurrent_users=20))}
    assert found["50 % more traffic"].scenario.concurrent_users == 30
    assert found["50 % more traffic"].num_gpus is not None


def test_a_change_that_does_not_start_says_so():
    # 70 B parameters in 16 bits are 131 GiB: two H100 hold them, one does not.
    tight = SMALL.replace(model="meta-llama/Llama-3.1-70B-Instruct", tensor_parallel_size=2, max_model_len=2048)
    found = {change.label: change for change in all_changes(tight.replace(users=5))}
    assert found["half the tensor parallelism"].text == "does not start"


def test_steps_grow_by_one_change():
    steps = change_steps(SMALL)
    assert [len(next(steps)) for _ in range(2)] == [1, 2]
    steps.close()
