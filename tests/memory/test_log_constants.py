"""Constants of start-up logs: each says which logs it is of, and a fit can put others in force."""

import pytest

from planner.memory import log_constants
from planner.memory.sizing import with_log_constants
from planner.tables import read_table
from planner.units import GIB
from tests.memory.cases import LLAMA, plan


def test_every_constant_states_the_logs_that_it_comes_from() -> None:
    rows = read_table(log_constants.FILE)
    assert all(row["source"] and float(row["value"]) > 0 <= float(row["without_logs"]) for row in rows)
    assert len({row["name"] for row in rows}) == len(rows)


def test_units_become_bytes() -> None:
    assert log_constants.constant("context_later") == 0.25 * GIB
    assert log_constants.constant("graphs_layer") == 20 * 2**20
    assert log_constants.constant("sampler_lean") == 15.0
    assert log_constants.values_without_logs()["sampler_lean"] == 14.0


def test_a_fit_plans_with_other_values_and_leaves_none_behind() -> None:
    before = plan(LLAMA)
    with with_log_constants({"context_later": 1.25 * GIB}):
        changed = plan(LLAMA)
    assert changed.non_torch_bytes - before.non_torch_bytes == pytest.approx(1.0 * GIB)
    assert before.kv_pool_bytes - changed.kv_pool_bytes == pytest.approx(1.0 * GIB)
    assert plan(LLAMA) == before


def test_an_unknown_constant_is_an_error() -> None:
    with pytest.raises(KeyError):
        log_constants.constant("no_such_constant")
