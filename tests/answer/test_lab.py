"""The plan's requests step by step."""

import numpy as np
import pytest

from planner.answer.lab import BURST_REQUESTS, OWN_ENGINE, trace_steps
from planner.answer.outcome import serving_replicas
from planner.errors import Infeasible
from planner.scenario.scenario import Scenario
from planner.service.policies import LAB_POLICIES
from tests.answer.cases import planned


@pytest.mark.parametrize("policy", LAB_POLICIES)
def test_the_steps_are_those_behind_the_plans_own_figures(policy):
    done = planned()
    outcome = next(item for item in done.policies if item.name == policy)
    trace = trace_steps(done.scenario, serving_replicas(done), policy, start="first", num_steps=10**6)
    assert len(trace) == outcome.result.num_steps
    assert len(trace.preemptions) == outcome.result.num_preemptions.sum()
    line = outcome.result.timeline
    sampled = np.searchsorted(trace.end_s, line.time_s)
    np.testing.assert_array_equal(trace.end_s[sampled], line.time_s)
    np.testing.assert_array_equal(trace.running[sampled], line.running)
    np.testing.assert_array_equal(trace.kv_blocks_used[sampled], line.kv_blocks_used)


def test_the_plans_own_engine_and_the_window():
    done = planned()
    trace = trace_steps(done.scenario, 1, OWN_ENGINE, num_steps=50)
    assert len(trace) == 50 and trace.before > 0
    assert trace.num_blocks == done.memory.num_kv_blocks


def test_a_burst_on_a_small_pool_preempts():
    done = planned()
    trace = trace_steps(done.scenario, 1, "paged", start="preemption", num_steps=300, tight=True)
    assert trace.num_blocks < done.memory.num_kv_blocks
    assert trace.preemptions
    assert trace.waiting.max() < BURST_REQUESTS
    assert trace.kv_blocks_used.max() <= trace.num_blocks


def test_an_engine_that_does_not_start_has_no_steps():
    with pytest.raises(Infeasible):
        trace_steps(Scenario(model="meta-llama/Llama-3.3-70B-Instruct"), 1, "paged")
