"""Lower bounds on the replicas of a candidate, from cheap to dear, and why a candidate is out.

Each bound is never more than the replicas that the candidate's own plan buys, so a candidate whose bound costs more
than the best plan found can be dropped unseen. The functions run in worker processes: they take and return small
values, a chunk of candidates at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from planner.answer.planning import memory_of, replica_of, size
from planner.answer.search.space import Changes, scenario_of
from planner.arrays import Floats
from planner.errors import PlannerError
from planner.inputs import Traffic
from planner.memory import REFUSED_STATES
from planner.model import resolve_scheme
from planner.scenario import Scenario
from planner.service import (
    PLAIN_MISS,
    STEADY_SHARE,
    Replica,
    attainment,
    capacity,
    least_pools,
    measure,
    more_of,
    pool_rates,
    replicas_needed,
    serve_apart,
    serve_share,
    steady_requests,
    try_fleet,
)
from planner.workload import Requests, as_open_loop, draw_requests

Budget = Callable[[Scenario], int]  # most requests that a plan of this scenario simulates for one figure
DOES_NOT_START, MISSES_WHEN_IDLE, CONTRADICTS = "does not start", "misses when idle", "contradicts"
#: kernels fitted on RTX PRO 6000 reach up to 1.32 times the data sheet's rate
FASTEST_OF_DATA_SHEET = 1.4
PLAIN_ERRORS = 2.0  # half-widths
#: a plan counts its capacity over some thousand requests, whose mean work is that of all of the kind within so much
COUNTED = 1.05
REACHED_OF_ARITHMETIC = 0.25  # of the arithmetic rate, about what a replica reaches within its targets
GUESSED_ANSWER_S = 8.0  # of waiting clients
MOST_EXPECTED = 10**6
NARROWER_THAN_16 = 12.0  # bits per weight
NO_LIMIT = 10**9  # tokens
NOTHING_FITS = "no request of this traffic fits on a replica"
SHARE_STEPS = 5  # tries of how many users one replica serves
#: sequences that users set instead, where a hybrid model's states do not fit the default
FEWER_SEQUENCES = (512, 256, 128, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What is known of one candidate: its changes, why it is out ("" = it is not), and the least replicas.

    `expected` is about how many it takes: what is tried first, and no bound. `level` says how dear both were: 1 memory
    and arithmetic, 2 step times and the capacity of a replica, 3 a fleet that costs as much as the best was simulated
    and holds the targets. `table_replicas` is the least by step times alone. The idle latencies are those of requests
    that have a replica to themselves, `fleet_ttft_s` that of the fleet. [s]
    """

    changes: Changes
    out: str = ""
    reason: str = ""
    replicas: int = 1
    expected: int = 1
    level: int = 1
    table_replicas: int = 1
    idle_ttft_s: float = math.nan
    idle_tpot_s: float = math.nan
    idle_attainment: float = math.nan
    fleet_ttft_s: float = math.nan


@lru_cache(maxsize=8)
def _drawn(traffic: Traffic, num_requests: int, seed: int, max_model_len: int) -> Requests:
    return draw_requests(traffic, num_requests, seed, max_model_len=max_model_len)


@lru_cache(maxsize=8)
def _traffic(base: Scenario) -> Traffic:
    return base.traffic


def _requests(base: Scenario, scenario: Scenario) -> Requests:
    """A candidate's requests, drawn once for all candidates: none of them changes the traffic."""
    return _drawn(_traffic(base), scenario.num_requests, scenario.seed, scenario.max_model_len)


def within(scenario: Scenario, budget: Budget) -> tuple[Scenario, int]:
    """The scenario with the requests that its plan simulates, and the most for one figure."""
    most = budget(scenario)
    count = min(scenario.num_requests, most)
    return (scenario if count == scenario.num_requests else scenario.replace(num_requests=count)), most


def by_memory(base: Scenario, chunk: Sequence[Changes], budget: Budget) -> list[Bound]:
    """Whether each candidate starts, and the replicas that arithmetic alone asks for."""
    return [_by_memory(base, changes, budget) for changes in chunk]


def _by_memory(base: Scenario, changes: Changes, budget: Budget) -> Bound:
    built = scenario_of(base, changes)
    if built is None:
        return Bound(changes=changes, out=CONTRADICTS)
    scenario = within(built, budget)[0]
    try:
        requests = _requests(base, scenario)
        memory = memory_of(scenario, requests, explain=False)
        if memory.outcome == REFUSED_STATES and scenario.max_num_seqs is None:
            for fewer in FEWER_SEQUENCES:
                changes, scenario = changes | {"max_num_seqs": fewer}, scenario.replace(max_num_seqs=fewer)
                memory = memory_of(scenario, requests, explain=False)
                if memory.starts:
                    break
    except PlannerError as error:
        return Bound(changes=changes, out=DOES_NOT_START, reason=str(error))
    if not memory.starts:
        return Bound(changes=changes, out=DOES_NOT_START, reason=memory.refusal)
    most_rps = arithmetic_rps(scenario, least_work(scenario, requests, memory.kv_tokens or NO_LIMIT))
    expected = _expected(scenario, REACHED_OF_ARITHMETIC * most_rps)
    fewest = 2 if scenario.is_disaggregated else 1  # a replica of each kind
    least = max(fewest, _least(scenario, most_rps))
    return Bound(changes=changes, replicas=least, expected=max(fewest, expected))


def _least(scenario: Scenario, most_rps: float) -> int:
    """Replicas that carry the peak when each finishes at most so much; a plan loads none beyond 97 % of it."""
    if not scenario.is_open_loop or not math.isfinite(most_rps):
        return 1
    return replicas_needed(scenario.peak_rate_rps, STEADY_SHARE * most_rps) or 1


def _expected(scenario: Scenario, capacity_rps: float) -> int:
    """About how many replicas of this capacity it takes; waiting clients ask for no rate, so theirs is guessed."""
    if scenario.is_open_loop:
        rate = scenario.peak_rate_rps
    elif scenario.arrivals == "closed":
        rate = scenario.concurrent_users / (scenario.think_time_s + GUESSED_ANSWER_S)
    else:
        rate = scenario.num_requests / GUESSED_ANSWER_S
    return max(1, math.ceil(min(rate / capacity_rps, MOST_EXPECTED))) if capacity_rps > 0 else MOST_EXPECTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Tokens that an offered request makes the engine compute at least, on average; those that it rejects make none.

    `prompt` leaves out what all prompts share, `context` is the sum of the contexts that its output tokens attend to.
    """

    prompt: float
    output: float
    context: float


def least_work(scenario: Scenario, requests: Requests, most_tokens: int) -> Work:
    """The least work of a request on an engine that takes prompts of fewer than so many tokens."""
    taken = requests.prompt_tokens < min(scenario.max_model_len, most_tokens)
    prompt, output = np.where(taken, requests.prompt_tokens, 0), np.where(taken, requests.output_tokens, 0)
    shared = np.minimum(requests.prefix_tokens, prompt) if scenario.engine_settings.enable_prefix_caching else 0
    return Work(
        prompt=float((prompt - shared).mean()),
        output=float(output.mean()),
        context=float((output * (prompt + output / 2)).mean()),
    )


def arithmetic_rps(scenario: Scenario, work: Work) -> float:
    """Requests per second that no replica exceeds: its GPUs' rate ÷ operations of a request. [req/s]

    Two operations per active parameter and token, embedding and head left out, at the fastest rate that the weights'
    format can be multiplied in. Drafted tokens come on top.
    """
    model, gpu = scenario.model_shape, scenario.gpu_spec
    bits = resolve_scheme(model, scenario.weight_dtype).bits_per_weight
    rates = [gpu.bf16_tflops, gpu.fp16_tflops or 0.0]
    rates += [gpu.fp8_tflops or 0.0, gpu.int8_tops or 0.0] if bits < NARROWER_THAN_16 else []
    rates += [gpu.fp4_tflops or 0.0] if bits < NARROWER_THAN_16 else []  # experts may be narrower than the rest
    parameters = model.num_active_parameters - model.embedding_parameters - model.lm_head_parameters
    operations = (
        2.0 * max(parameters, 0) * (work.prompt + max(0.0, work.output - 1)) / (1 + scenario.num_speculative_tokens)
    )
    # A machine that was measured faster than predicted may exceed its data sheet by the same factor.
    scales = scenario.step_scales
    operations *= min(1.0, scales.weights, scales.sequences, scales.prefill)
    per_second = max(rates) * 1e12 * FASTEST_OF_DATA_SHEET * scenario.parallelism.gpus_per_replica
    return per_second / operations if operations > 0 else math.inf


def table_rps(replica: Replica, work: Work) -> float:
    """Requests per second that no plan's capacity exceeds with these step times. [req/s]

    Every token pays at least its share of the cheapest full step, and every output token the attention to its context.
    Steps with drafted tokens make more tokens than they have sequences, so they are given no bound.
    """
    table = replica.step_time
    if replica.engine.num_speculative_tokens:
        return math.inf
    mixed = _cheapest(table.mixed_s)
    seconds = mixed * work.prompt + min(_cheapest(table.decode_s), mixed) * max(0.0, work.output - 1)
    seconds += table.attention_per_kv_token_s * max(0.0, work.context - work.prompt)
    return COUNTED / seconds if seconds > 0 else math.inf


def _cheapest(step_s: Floats) -> float:
    """Least time of a token over the sizes of a step, also beyond the table's end, where its slope goes on. [s]"""
    sizes = np.arange(1, len(step_s))
    if not len(sizes):
        return 0.0
    half = len(step_s) // 2
    slope = float(step_s[-1] - step_s[half]) / max(1, len(step_s) - 1 - half)
    return max(0.0, min(float((step_s[1:] / sizes).min()), slope if slope > 0 else math.inf))


def by_capacity(base: Scenario, chunk: Sequence[tuple[Bound, float]], budget: Budget) -> list[Bound]:
    """Least replicas of each candidate from its step times and the throughput of a saturated replica.

    Parameters
    ----------
    base : Scenario
        What the candidates change.
    chunk : sequence of (Bound, float)
        Candidates, and the replicas beyond which each is out anyway.
    budget : callable
        Most requests of a plan.
    """
    return [_by_capacity(base, item, most, budget) for item, most in chunk]


def _by_capacity(base: Scenario, item: Bound, most: float, budget: Budget) -> Bound:
    built = scenario_of(base, item.changes)
    assert built is not None
    scenario, most_requests = within(built, budget)
    requests = _requests(base, scenario)
    try:
        sized = size(scenario, requests, explain=False)
        replica = replica_of(sized)
    except PlannerError as error:
        return replace(item, out=DOES_NOT_START, reason=str(error))
    many = as_open_loop(steady_requests(scenario, requests, None, most_requests))
    work = least_work(scenario, many, sized.memory.kv_tokens or NO_LIMIT)
    least = max(item.replicas, _least(scenario, table_rps(replica, work)))
    item = replace(item, replicas=least, table_replicas=least, level=2)
    if least > most:
        return replace(item, level=1)
    level = scenario.service_level
    if not scenario.is_open_loop:
        item = _by_share(scenario, replica, requests, item, most)
        if item.replicas > most:
            return item
    alone = measure(serve_apart(replica, requests), level)
    item = replace(
        item,
        idle_ttft_s=alone.ttft_s.at(level.quantile),
        idle_tpot_s=alone.tpot_s.at(level.quantile),
        idle_attainment=alone.slo_attainment,
    )
    if alone.slo_attainment < level.quantile - PLAIN_MISS:
        return replace(item, out=MISSES_WHEN_IDLE)
    if not scenario.is_open_loop:
        return item if alone.num_finished else replace(item, out=DOES_NOT_START, reason=NOTHING_FITS)
    if scenario.is_disaggregated:  # its plan comes next: a fleet of one kind says nothing about two kinds
        return replace(_by_pools(scenario, replica, requests, item), level=3)
    top = capacity(replica, many, more_of(scenario)).rps
    if top <= 0:
        return replace(item, out=DOES_NOT_START, reason=NOTHING_FITS)
    return replace(item, replicas=max(least, _least(scenario, top)), expected=_expected(scenario, top))


def _by_pools(scenario: Scenario, replica: Replica, requests: Requests, item: Bound) -> Bound:
    """Fewest replicas of both kinds, with which the search of a plan begins and below which it never goes."""
    fewest = sum(least_pools(scenario.peak_rate_rps, *pool_rates(replica, requests)))
    return replace(item, replicas=max(item.replicas, fewest), expected=max(item.expected, fewest))


def _by_share(scenario: Scenario, replica: Replica, requests: Requests, item: Bound, most: float) -> Bound:
    """Least and expected replicas of waiting clients, from how many users, or requests of a burst, one serves.

    Where one replica plainly misses the targets with n of them, so does a fleet in which each has n or more. With a
    best plan to undercut, only the share of `most` replicas is tried, which tells whether the candidate is out.
    """
    total = requests.closed_loop_users or len(requests)
    level = scenario.service_level
    serves, fails, plain = 0, total + 1, total + 1  # the most that held, the fewest that missed, and plainly missed
    tried = max(1, total // int(most)) if most < total else 1 if math.isfinite(most) else total
    for _ in range(1 if math.isfinite(most) else SHARE_STEPS):
        share, half = attainment(serve_share(scenario, replica, requests, tried), level)
        if share >= level.quantile:
            serves = tried
        else:
            fails = tried
            plain = tried if level.quantile - share > _doubt(half) else plain
        if fails - serves <= 1 or serves == total:
            break
        tried = max(serves + 1, min(fails - 1, round(math.sqrt(max(1, serves) * fails))))
    least = max(item.replicas, total // plain + 1)
    served = max(1, serves, fails // 2 if not serves else 0)
    return replace(item, replicas=least, expected=max(least, math.ceil(total / served)))


def _doubt(half_width: float) -> float:
    """How far below the share asked for an attainment must be to count as a plain miss."""
    return max(PLAIN_ERRORS * half_width if math.isfinite(half_width) else PLAIN_MISS, PLAIN_MISS / 4)


def holds_with(base: Scenario, item: Bound, num_replicas: int, budget: Budget) -> Bound:
    """The candidate with as many replicas as the best plan's money buys: out where they plainly miss the targets."""
    built = scenario_of(base, item.changes)
    assert built is not None
    scenario, most_requests = within(built, budget)
    requests = _requests(base, scenario)
    replica = replica_of(size(scenario, requests, explain=False))
    level = scenario.service_level
    metrics = try_fleet(scenario, replica, requests, num_replicas, most_requests)
    if level.quantile - metrics.slo_attainment > _doubt(metrics.slo_attainment_half_width):
        return replace(item, level=3, replicas=num_replicas + 1)
    return replace(item, level=3, fleet_ttft_s=metrics.ttft_s.at(level.quantile))
