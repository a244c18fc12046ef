"""Calls that the office's processes do."""

import time

import pytest

from planner.jobs.executor import OfficeExecutor
from planner.jobs.office import Office, TooLong

PATIENCE_S = 240.0


def test_calls_run_in_the_offices_processes():
    office = Office(num_workers=2)
    executor = OfficeExecutor(office, background=False)
    try:
        assert [future.result(PATIENCE_S) for future in [executor.submit(divmod, 7, n) for n in (2, 3)]] == [
            (3, 1),
            (2, 1),
        ]
        assert isinstance(executor.submit(divmod, 1, 0).exception(PATIENCE_S), RuntimeError)
    finally:
        executor.shutdown()
        office.close()


def test_calls_that_have_not_begun_can_be_cancelled():
    office = Office(num_workers=2)
    executor = OfficeExecutor(office, background=False)
    try:
        futures = [executor.submit(time.sleep, 0.5) for _ in range(20)]
        executor.shutdown(cancel_futures=True)
        assert all(future.cancelled() or future.exception(PATIENCE_S) is None for future in futures)
        assert sum(future.cancelled() for future in futures) >= 10
    finally:
        office.close()


def test_calls_after_the_time_of_all_are_refused():
    office = Office(num_workers=2)
    executor = OfficeExecutor(office, background=False, limit_s=-1.0)
    try:
        with pytest.raises(TooLong):
            executor.submit(divmod, 7, 2)
    finally:
        executor.shutdown()
        office.close()
