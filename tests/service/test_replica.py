"""One replica: a run by hand, blocks of windows, work on all cores."""

import dataclasses

import pytest

from planner.service.replica import in_parallel, with_windows
from tests.service.cases import requests_of, toy


def test_a_run_of_one_second_steps():
    # One after the other: an answer of k tokens takes k steps, its prompt riding in the first.
    requests = dataclasses.replace(requests_of([3, 5]), arrival_s=requests_of([3, 5]).arrival_s * 100)
    result = toy().run(requests)
    assert (result.first_token_s - requests.arrival_s).tolist() == [1, 1]
    assert (result.finish_s - requests.arrival_s).tolist() == [3, 5]
    assert result.timeline is None
    assert toy().run(requests, timeline=True).timeline is not None


@pytest.mark.parametrize(
    ("fixed", "replicas", "used", "written"),
    [
        (0, 1, 0.5, 0.1),  # no windows: as simulated
        (3, 1, 0.5, 0.1 + 2 * 3 / 100),
        (3, 2, 0.5, 0.1 + 2 / 2 * 3 / 100),
        (30, 1, 0.5, 0.5),  # no more is written than is held
    ],
)
def test_blocks_of_windows_count_as_written(fixed, replicas, used, written):
    limits = dataclasses.replace(toy().limits, num_kv_blocks=100, fixed_blocks_per_sequence=fixed)
    result = dataclasses.replace(
        toy().run(requests_of([3])), mean_running=2.0, mean_kv_used_fraction=used, mean_kv_written_fraction=0.1
    )
    assert with_windows(result, limits, num_replicas=replicas).mean_kv_written_fraction == pytest.approx(written)


def test_results_come_in_the_order_of_the_items():
    assert in_parallel(lambda x: x * x, range(50)) == [x * x for x in range(50)]
    with pytest.raises(ZeroDivisionError):
        in_parallel(lambda x: 1 // x, [1, 0])
