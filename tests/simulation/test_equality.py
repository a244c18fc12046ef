"""The compiled loop against the plain one, bit for bit, and the laws that every run obeys."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.simulation.machine import simulate
from planner.simulation.records import ABANDONED, FINISHED, REJECTED
from tests.simulation.cases import random_case
from tests.simulation.reference import Reference

STATUS = {"finished": 0, "rejected": 1, "unfinished": 2, "abandoned": 3}


def assert_equal(seed: int, *, pressure: bool) -> int:
    requests, engine, limits, table = random_case(seed, pressure=pressure)
    plain = Reference(requests, engine, limits, table).run()
    fast = simulate(requests, engine, limits, table, timeline=seed % 7 == 0)
    ours = plain.sequences
    first = [s.token_times[0] if s.token_times else math.nan for s in ours]
    span, pool = max(max(plain.clock, plain.server_free) - ours[0].arrival, 1e-300), max(1, limits.num_kv_blocks)
    pairs = {
        "status": (fast.status, [STATUS[s.status] for s in ours]),
        "preemptions": (fast.num_preemptions, [s.preempted for s in ours]),
        "admitted": (fast.admitted_s, [s.admitted for s in ours]),
        "first token": (fast.first_token_s, first),
        "finish": (fast.finish_s, [s.finish for s in ours]),
        "longest gap": (fast.max_itl_s, [s.max_gap for s in ours]),
        "steps": (
            [fast.num_steps, fast.prefill_tokens_computed, fast.prefix_tokens_hit, fast.decode_tokens],
            [plain.steps, plain.prefill_tokens, plain.hit_tokens, plain.decode_tokens],
        ),
        "busy": ([fast.busy_s, *fast.term_s.values()], [plain.busy, *plain.terms]),
        "means": (
            [fast.mean_running, fast.mean_waiting, fast.mean_kv_used_fraction, fast.mean_kv_written_fraction],
            [
                plain.running_area / span,
                plain.waiting_area / span,
                plain.used_area / span / pool,
                plain.written_area / span / (pool * limits.block_size),
            ],
        ),
        "blocked": (list(fast.blocked_s.values()), list(plain.blocked.values())),
        "peak and gaps": (
            [fast.peak_running, *fast.itl_parts.sum(axis=1)],
            [plain.peak, *np.bincount([part for part, _ in plain.gaps], minlength=20)],
        ),
    }
    for what, (left, right) in pairs.items():
        np.testing.assert_array_equal(np.asarray(left, float), np.asarray(right, float), f"{what}, case {seed}")
    return sum(s.preempted for s in ours)


@pytest.mark.parametrize("block", range(8))
def test_fast_and_plain_agree_bit_for_bit(block):
    for seed in range(400 * block, 400 * (block + 1)):
        assert_equal(seed, pressure=False)


@pytest.mark.parametrize("block", range(2))
def test_they_agree_under_memory_pressure(block):
    preempted = sum(assert_equal(seed, pressure=True) for seed in range(700 * block, 700 * (block + 1)))
    assert preempted > 700  # the cases do exercise preemption and retraction


@settings(max_examples=100)
@given(st.integers(min_value=10_000, max_value=1_000_000), st.booleans())
def test_every_run_obeys_the_laws(seed, pressure):
    requests, engine, limits, table = random_case(seed, pressure=pressure)
    result = simulate(requests, engine, limits, table)
    again = simulate(requests, engine, limits, table)
    np.testing.assert_array_equal(result.finish_s, again.finish_s)
    done = result.status == FINISHED
    assert not (result.status == 2).any()  # every request ends exactly once
    assert np.isfinite(result.finish_s[done]).all()
    assert np.isnan(result.finish_s[~done]).all()
    assert (result.arrival_s[done] <= result.admitted_s[done]).all()
    assert (result.admitted_s[done] < result.first_token_s[done]).all()
    assert (result.first_token_s[done] <= result.finish_s[done]).all()
    assert result.peak_running <= limits.max_num_seqs
    assert 0 <= result.mean_kv_written_fraction <= result.mean_kv_used_fraction + 1e-12 <= 1 + 1e-9
    too_long = requests.prompt_tokens + requests.output_tokens > limits.max_model_len
    assert (result.status[too_long] == REJECTED).all()
    assert sum(result.term_s.values()) == pytest.approx(result.busy_s)
    # output tokens: one per completed prompt, the others from decode steps (speculation may overshoot)
    if engine.num_speculative_tokens == 0:
        resumed = int(result.num_preemptions.sum())
        expected = int(requests.output_tokens[done].sum() - done.sum())
        cut_short = int(requests.output_tokens[result.status == ABANDONED].sum())
        assert expected - resumed <= result.decode_tokens <= expected + cut_short
    if engine.timeout_s is not None:
        assert (result.finish_s - result.arrival_s <= engine.timeout_s)[done].all()
    if engine.patience_s is not None:
        assert (result.first_token_s - result.arrival_s <= engine.patience_s)[done].all()
    if requests.adapter is not None and engine.max_loras == 0:
        assert not done[requests.adapter >= 0].any()
