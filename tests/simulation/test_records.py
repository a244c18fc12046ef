"""What a record says of each way in which a request can end."""

import dataclasses

import numpy as np
import pytest

from planner.catalog.engines import get_engine
from planner.simulation import machine
from planner.simulation.machine import simulate
from planner.simulation.records import ABANDONED, FINISHED, REJECTED, UNFINISHED, SimulationResult, Timeline
from tests.simulation.cases import UNIT, limits, make


def test_each_request_ends_in_one_way():
    # One slot and 3 s of patience: A runs 0-5, B leaves at 4, C is longer than the context.
    engine = dataclasses.replace(get_engine("vllm"), patience_s=3.0)
    result = simulate(make([0, 0, 0], [1, 1, 900], [5, 1, 200]), engine, limits(seqs=1), UNIT)
    assert result.status.tolist() == [FINISHED, ABANDONED, REJECTED]
    assert len({FINISHED, ABANDONED, REJECTED, UNFINISHED}) == 4
    # Times are NaN where they never came.
    np.testing.assert_array_equal(result.first_token_s, [1, np.nan, np.nan])
    np.testing.assert_array_equal(result.finish_s, [5, np.nan, np.nan])
    np.testing.assert_array_equal(result.admitted_s, [0, np.nan, np.nan])
    assert result.max_itl_s.tolist() == [1, 0, 0]


def test_a_run_that_was_cut_leaves_requests_unfinished(monkeypatch):
    monkeypatch.setattr(machine, "STOP_QUEUE_REQUESTS", 50)
    n = 2000
    requests = make([0.1 * k for k in range(n)], [1] * n, [2] * n)
    result = simulate(requests, get_engine("vllm"), limits(seqs=4), UNIT)
    assert set(result.status.tolist()) == {FINISHED, UNFINISHED}
    assert result.verdict == "overloaded"
    assert np.isnan(result.finish_s[result.status == UNFINISHED]).all()
    assert result.capacity_rps == pytest.approx(2.0, rel=0.02)  # four slots, two steps each


def test_averages_are_over_time():
    # A and B run 0-2, C waits from 0.5 to 2, A and C run 2-3, A alone until 4.
    requests = make([0, 0, 0.5], [1, 1, 1], [4, 2, 1])
    engine = dataclasses.replace(get_engine("vllm"), async_scheduling=False)
    result = simulate(requests, engine, limits(seqs=2, blocks=10), UNIT)
    assert result.mean_running == pytest.approx((2 + 2 + 2 + 1) / 4)
    assert result.mean_waiting == pytest.approx(1.5 / 4)
    # At 0-1 A and B hold 1 + 1, at 1-2 2 + 2, at 2-3 A 3 and C 1, at 3-4 A 4.
    assert result.mean_kv_used_fraction == pytest.approx((2 + 4 + 4 + 4) / 4 / 10)
    assert sum(result.term_s.values()) == result.busy_s == 4.0
    assert sum(result.blocked_s.values()) == 1.0  # during the one step at whose start C waited


def test_written_is_what_reserved_memory_holds():
    # 30 blocks are held throughout; of them 2, 3 and 4 tokens are written.
    result = simulate(make([0], [2], [3], limit=[28]), get_engine("tensorrt-llm"), limits(blocks=100), UNIT)
    assert result.mean_kv_used_fraction == pytest.approx(0.30)
    assert result.mean_kv_written_fraction == pytest.approx((2 + 3 + 4) / 3 / 100)


def test_a_sample_of_the_timeline_is_taken_after_each_step():
    requests = make([0, 0, 0], [2, 2, 2], [3, 2, 1])
    timeline = simulate(requests, get_engine("vllm"), limits(seqs=2, blocks=50), UNIT, timeline=True).timeline
    columns = {field.name: getattr(timeline, field.name).tolist() for field in dataclasses.fields(Timeline)}
    # 0-1: the prompts of A and B, C waits | 1-2: they decode, B ends | 2-3: A decodes, C's prompt
    assert columns == {
        "time_s": [1, 2, 3],
        "running": [2, 2, 2],
        "waiting": [1, 1, 0],
        "step_tokens": [4, 2, 3],
        "kv_blocks_used": [4, 6, 6],
        "kv_tokens_written": [4, 6, 6],
        "preemptions": [0, 0, 0],
    }


def test_a_result_cannot_be_changed():
    result = simulate(make([0], [1], [1]), get_engine("vllm"), limits(), UNIT)
    assert isinstance(result, SimulationResult)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.verdict = "overloaded"
