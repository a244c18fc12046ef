"""Queueing theory as the judge: tolerances come from the spread of batch means, 20 batches each.

A half-width covers the truth 95 times of 100; twice that is allowed, plus the error of whole steps.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.inputs.engine import Batching, EngineSettings, KvReservation
from planner.inputs.limits import Limits
from planner.inputs.traffic import Arrivals, Lengths, ServiceLevel, Traffic
from planner.service.metrics import measure
from planner.simulation.machine import simulate
from planner.simulation.records import ABANDONED, FINISHED, REJECTED, SimulationResult
from planner.step_time.step_table import StepTimeTable
from planner.workload.drawing import draw_requests
from planner.workload.requests import Requests
from tests.simulation.cases import make

N = 100_000
STEP_S = 0.005  # a service of 200 steps takes 1 s


def served(
    rate: float,
    kind: str,
    slots: int,
    *,
    mean_steps: int = 200,
    step_s: float = STEP_S,
    n: int = N,
    seed: int = 3,
    prompt: int = 1,
    blocks: int = 10**9,
    longest: int = 1 << 22,
    **more,
) -> tuple[Requests, SimulationResult]:
    traffic = Traffic(
        arrivals=Arrivals(rate_rps=rate),
        prompt_tokens=Lengths(kind="constant", mean=prompt),
        output_tokens=Lengths(kind=kind, mean=mean_steps),
    )
    requests = draw_requests(traffic, n, seed)
    table = StepTimeTable(decode_s=np.full(9, step_s), mixed_s=np.full(9, step_s), head_s=np.zeros(9))
    engine = EngineSettings(family="generic", kv_reservation=KvReservation.OUTPUT_LIMIT, **more)
    requests = make(
        requests.arrival_s,
        requests.prompt_tokens,
        requests.output_tokens,
        limit=requests.output_tokens,
    )
    limits = Limits(
        max_num_seqs=slots, max_num_batched_tokens=10**6, max_model_len=longest, num_kv_blocks=blocks, block_size=16
    )
    return requests, simulate(requests, engine, limits, table, stop_on_overload=False)


def mean_wait(result: SimulationResult) -> tuple[float, float]:
    wait = measure(result, ServiceLevel()).wait_s
    return wait.mean, 2 * wait.mean_half_width


def erlang_c(servers: int, load: float) -> float:
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_m_d_1(rho):
    # Wq = rho / (2 mu (1 - rho)), one step of 1 s per request
    _, result = served(rho, "constant", 1, mean_steps=1, step_s=1.0)
    mean, tolerance = mean_wait(result)
    assert mean == pytest.approx(rho / (2 * (1 - rho)), abs=tolerance)


def test_m_m_1():
    # Wq = rho / (mu - lambda)
    rho = 0.7
    _, result = served(rho, "exponential", 1)
    mean, tolerance = mean_wait(result)
    assert mean == pytest.approx(rho / (1 - rho), abs=tolerance + STEP_S)
    # response time is exponential: its p95 is ln 20 / (mu - lambda)
    e2e = measure(result, ServiceLevel()).e2e_s
    assert e2e.p95 == pytest.approx(math.log(20) / (1 - rho), abs=2 * e2e.p95_half_width + STEP_S)


def test_m_g_1_pollaczek_khinchine():
    # Wq = lambda E[S^2] / (2 (1 - rho)) with the moments of lognormal services
    rho = 0.6
    requests, result = served(rho, "lognormal", 1)
    service = requests.output_tokens * STEP_S
    load = rho * service.mean()
    expected = rho * (service**2).mean() / (2 * (1 - load))
    mean, tolerance = mean_wait(result)
    assert mean == pytest.approx(expected, abs=tolerance + STEP_S)


@pytest.mark.parametrize(("servers", "load", "chance"), [(2, 1.8, 0.8526), (12, 9.0, 0.2660)])
def test_m_m_c_erlang_c(servers, load, chance):
    assert erlang_c(servers, load) == pytest.approx(chance, abs=1e-4)
    _, result = served(load, "exponential", servers)
    mean, tolerance = mean_wait(result)
    # a request starts at the next step: half a step later than in continuous time
    assert mean == pytest.approx(chance / (servers - load), abs=tolerance + STEP_S)


def test_erlang_b_without_a_queue():
    load, servers = 6.0, 8
    _, result = served(load, "exponential", servers, max_queued_requests=0)
    terms = [load**k / math.factorial(k) for k in range(servers + 1)]
    expected = terms[-1] / sum(terms)
    rejected = (result.status == REJECTED).astype(float)
    batches = rejected[: N // 20 * 20].reshape(20, -1).mean(axis=1)
    tolerance = 2 * 2.093 * batches.std(ddof=1) / math.sqrt(20)
    assert rejected.mean() == pytest.approx(expected, abs=tolerance + load * STEP_S * expected)


@pytest.mark.parametrize("rho", [0.8, 1.3])
def test_m_m_1_with_clients_who_leave(rho):
    # Patience T for the start of service. The wait that an arrival faces has mass p0 at 0 and density
    # lambda p0 exp((lambda - mu) x) up to T; beyond it nobody joins: lambda p0 exp((lambda - mu) T - mu (x - T)).
    # Who faces more than T leaves. mu = 1, T = 2.
    patience = 2.0
    decay = math.exp((rho - 1) * patience)
    p0 = 1 / (1 + rho / (1 - rho) * (1 - decay) + rho * decay)
    expected = p0 * rho * decay
    _, result = served(rho, "exponential", 1, patience_s=patience + STEP_S)  # the first token takes a step more
    gone = (result.status == ABANDONED).astype(float)
    batches = gone.reshape(20, -1).mean(axis=1)
    tolerance = 2 * 2.093 * batches.std(ddof=1) / math.sqrt(20)
    assert gone.mean() == pytest.approx(expected, abs=tolerance + STEP_S)


def test_m_g_infinity_and_littles_law():
    # Constant step time and room for all: the number in service has mean lambda E[S]
    rate = 20.0
    requests, result = served(rate, "lognormal", 4096)
    steps = requests.output_tokens * STEP_S
    span = result.arrival_s[-1]
    # half a step passes before the first; Little on this very run, up to its unfinished edges
    expected = (steps.sum()) / result.duration_s
    assert result.mean_running == pytest.approx(expected, rel=1e-9)
    spread = 4 * math.sqrt(rate * (steps**2).mean() / span)  # of a Poisson sum over the span
    assert result.mean_running == pytest.approx(rate * steps.mean(), abs=spread)


def test_littles_law_on_queue_and_running():
    _, result = served(3.2, "exponential", 4)
    done = result.status == FINISHED
    queue = (result.admitted_s - result.arrival_s)[done].sum() / result.duration_s
    running = (result.finish_s - result.admitted_s)[done].sum() / result.duration_s
    assert result.mean_waiting == pytest.approx(queue, rel=1e-9)
    assert result.mean_running == pytest.approx(running, rel=1e-9)


def test_kv_memory_bounds_the_rate():
    # Little on memory: rate <= M / (step x tokens held over a request's life); reached but for rounding.
    pool, prompt, output, n = 4096, 32, 32, 4000
    requests = make([0.0] * n, [prompt] * n, [output] * n)
    limits = Limits(
        max_num_seqs=10_000, max_num_batched_tokens=10**6, max_model_len=64, num_kv_blocks=pool, block_size=1
    )
    held = output * prompt + output * (output - 1) / 2
    bound = pool / held
    for reservation, share in ((KvReservation.PAGED, 0.75), (KvReservation.OUTPUT_LIMIT, 0.7)):
        engine = EngineSettings(family="generic", kv_reservation=reservation)
        result = simulate(requests, engine, limits, StepTimeTable.unit(64))
        assert share * bound <= n / result.duration_s <= bound
        assert result.binding == "kv cache"


def test_littles_law_on_kv_tokens():
    # Mean tokens in the cache = rate x mean over requests of tokens held x time. A request of p tokens in and m out
    # holds p + k tokens in its step k, from 0 to m - 1. Room for all, constant steps.
    rate, prompt = 20.0, 30
    requests, result = served(rate, "lognormal", 4096, prompt=prompt, blocks=10**6, n=40_000)
    out = requests.output_tokens
    held = STEP_S * (out * prompt + out * (out - 1) / 2)
    tokens = result.mean_kv_written_fraction * 10**6 * 16
    assert tokens == pytest.approx(held.sum() / result.duration_s, rel=1e-9)  # on this very run
    spread = 4 * math.sqrt(rate * (held**2).mean() / result.arrival_s[-1])  # of a Poisson sum over the span
    assert tokens == pytest.approx(rate * held.mean(), abs=spread)


@pytest.mark.parametrize(("load", "verdict"), [(0.9, "stable"), (1.1, "overloaded")])
def test_the_kv_stability_condition(load, verdict):
    # rate x tokens reserved x time held < pool. 32 + 32 tokens for 32 steps, a pool of 64 such requests. The queue
    # of 40,000 requests grows by 10 % of what arrives above, and by nothing beyond chance below.
    pool, prompt, output = 64 * 64, 32, 32
    rate = load * pool / ((prompt + output) * output * STEP_S)
    _, result = served(
        rate, "constant", 10_000, prompt=prompt, mean_steps=output, blocks=pool // 16, n=40_000, longest=64
    )
    assert result.verdict == verdict
    assert result.binding == ("kv cache" if load > 1 else result.binding)
    if load > 1:
        assert result.capacity_rps == pytest.approx(rate / load, rel=0.01)


def test_batch_bound():
    # A step of a + b B seconds makes B tokens: never more than B / (a + b B) per second, nearly that when full.
    fixed, each, slots, n = 0.01, 0.001, 16, 1600
    times = fixed + each * np.arange(slots + 1)
    table = StepTimeTable(decode_s=times, mixed_s=times, head_s=np.zeros(slots + 1))
    requests = make([0.0] * n, [1] * n, [100] * n)
    limits = Limits(
        max_num_seqs=slots, max_num_batched_tokens=10**6, max_model_len=200, num_kv_blocks=10**6, block_size=16
    )
    result = simulate(requests, EngineSettings(family="generic"), limits, table)
    assert result.duration_s == pytest.approx(n * 100 / slots * (fixed + each * slots), rel=1e-9)


def test_static_never_beats_continuous_and_one_at_a_time_is_last():
    rng = np.random.default_rng(5)
    output = np.minimum(1000, rng.geometric(0.01, 400)).tolist()
    requests = make([0.0] * 400, [10] * 400, output)
    limits = Limits(
        max_num_seqs=8, max_num_batched_tokens=8192, max_model_len=2000, num_kv_blocks=8 * 125, block_size=16
    )
    ends = {}
    for batching in Batching:
        engine = EngineSettings(family="generic", batching=batching, kv_reservation=KvReservation.MODEL_LIMIT)
        ends[batching] = simulate(requests, engine, limits, StepTimeTable.unit(64)).duration_s
    assert ends[Batching.CONTINUOUS] < ends[Batching.STATIC] < ends[Batching.SINGLE]


def test_overload_is_named_with_the_capacity():
    _, result = served(1.5, "exponential", 1, n=20_000)
    assert result.verdict == "overloaded"
    assert result.capacity_rps == pytest.approx(1.0, rel=0.05)
    assert "capacity is about" in result.message
    _, gone = served(3.0, "exponential", 1, n=20_000, patience_s=2.0)
    assert "of clients leave" in gone.message
    _, calm = served(0.6, "exponential", 1, n=20_000)
    assert calm.verdict == "stable"


def test_a_hopeless_run_stops_early():
    traffic = Traffic(
        arrivals=Arrivals(rate_rps=100.0),
        prompt_tokens=Lengths(kind="constant", mean=1),
        output_tokens=Lengths(kind="constant", mean=100),
    )
    requests = draw_requests(traffic, 200_000, 1)
    limits = Limits(max_num_seqs=1, max_num_batched_tokens=2048, max_model_len=200, num_kv_blocks=100, block_size=16)
    result = simulate(requests, EngineSettings(family="generic"), limits, StepTimeTable.unit(8))
    assert result.verdict == "overloaded"
    assert (result.status == 2).sum() > 150_000
    assert result.capacity_rps == pytest.approx(0.01, rel=0.1)
