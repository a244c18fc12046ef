"""Workloads: requests drawn from a traffic description, and recorded ones, as arrays.

Each random quantity has its own child stream of one seed and is drawn in unit form (uniform, standard normal,
standard exponential); parameters only stretch it. Two deployments or two rates with the same seed therefore see the
same requests, and a difference between them is not chance.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from planner.arrays import Floats, Ints
from planner.errors import InvalidInput, require_int, require_number
from planner.inputs import ArrivalKind, Arrivals, LengthKind, Lengths, Traffic
from planner.workload.requests import Requests
from planner.workload.traces import read_trace as read_trace

NO_LIMIT_TOKENS = 10_000_000  # no max_tokens sent: the model's limit ends the answer
_STREAMS = ("arrivals", "prompts", "outputs", "groups", "think")


def draw_requests(traffic: Traffic, num_requests: int, seed: int, *, max_model_len: int | None = None) -> Requests:
    """Draw requests from a traffic description.

    Parameters
    ----------
    traffic : Traffic
        Arrivals, lengths, shared prefixes, output limit.
    num_requests : int
        Number of requests, at least 1.
    seed : int
        The same seed gives the same requests; another rate only rescales their arrival times.
    max_model_len : int, optional
        Context limit, where the engine ends an answer. Prompts stay as drawn; the engine rejects those that do not
        fit. [tokens]

    Returns
    -------
    Requests
        Sorted by arrival.
    """
    require_int("num_requests", num_requests, at_most=100_000_000)
    require_int("seed", seed, at_least=0)
    children = np.random.SeedSequence(seed).spawn(len(_STREAMS))
    streams = {name: np.random.default_rng(child) for name, child in zip(_STREAMS, children, strict=True)}
    prompts = draw_lengths(traffic.prompt_tokens, num_requests, streams["prompts"])
    outputs = draw_lengths(traffic.output_tokens, num_requests, streams["outputs"])
    limit = np.full(num_requests, traffic.output_limit_tokens or NO_LIMIT_TOKENS, dtype=np.int64)
    if traffic.exact_output_limit:
        limit = np.minimum(limit, outputs)
    if max_model_len is not None:
        limit = np.minimum(limit, np.maximum(1, max_model_len - prompts))
    group = np.full(num_requests, -1, dtype=np.int64)
    prefix = np.zeros(num_requests, dtype=np.int64)
    if traffic.shared_prefix_tokens:
        group = streams["groups"].integers(0, traffic.num_prefix_groups, num_requests)
        prefix = np.minimum(traffic.shared_prefix_tokens, prompts)
    arrivals = traffic.arrivals
    closed = arrivals.kind == ArrivalKind.CLOSED
    return Requests(
        arrival_s=draw_arrivals(arrivals, num_requests, streams["arrivals"]),
        prompt_tokens=prompts,
        output_tokens=np.minimum(outputs, limit),
        output_limit_tokens=limit,
        prefix_group=group,
        prefix_tokens=prefix,
        closed_loop_users=arrivals.users if closed else 0,
        think_time_s=arrivals.think_time_s if closed else 0.0,
        rate_rps=None if closed or arrivals.kind == ArrivalKind.ONCE else arrivals.rate_rps,
        adapter=draw_adapters(traffic, num_requests, seed),
    )


def draw_adapters(traffic: Traffic, count: int, seed: int) -> Ints | None:
    """The LoRA adapter of each request, drawn by Zipf's law.

    Parameters
    ----------
    traffic : Traffic
        Number of adapters and exponent of their popularity.
    count : int
        How many requests.
    seed : int
        Seed of a separate stream, so that adapters do not change the other draws.

    Returns
    -------
    array of int or None
        Adapter numbers from 0, the most popular; None without adapters.
    """
    if not traffic.num_lora_adapters:
        return None
    rng = np.random.default_rng(np.random.SeedSequence([seed, 3]))
    weight = np.arange(1, traffic.num_lora_adapters + 1) ** -float(traffic.lora_popularity)
    share = np.cumsum(weight) / weight.sum()
    return np.minimum(np.searchsorted(share, rng.random(count), side="right"), traffic.num_lora_adapters - 1)


def draw_lengths(lengths: Lengths, count: int, rng: np.random.Generator) -> Ints:
    """Token counts drawn from a distribution, rounded and clipped to its bounds.

    Parameters
    ----------
    lengths : Lengths
        Mean and spread of the distribution before clipping. [tokens]
    count : int
        How many.
    rng : numpy.random.Generator
        Used once per length, whatever the parameters.
    """
    kind, mean, spread = lengths.kind, lengths.mean, lengths.spread
    if kind == LengthKind.CONSTANT:
        values = np.full(count, mean)
    elif kind == LengthKind.NORMAL:
        values = mean * (1 + spread * rng.standard_normal(count))
    elif kind == LengthKind.LOGNORMAL:
        sigma = math.sqrt(math.log1p(spread**2))
        values = mean * np.exp(sigma * rng.standard_normal(count) - sigma**2 / 2)
    elif kind == LengthKind.UNIFORM:
        values = mean * (1 + spread * (2 * rng.random(count) - 1))
    elif kind == LengthKind.EXPONENTIAL:
        values = mean * rng.standard_exponential(count)
    else:
        values = np.interp(rng.random(count), np.linspace(0, 1, len(lengths.quantiles)), lengths.quantiles)
    return np.clip(np.rint(values), lengths.minimum, lengths.maximum).astype(np.int64)


def draw_arrivals(arrivals: Arrivals, count: int, rng: np.random.Generator) -> Floats:
    """Arrival times drawn at the mean rate. [s]

    POISSON and BURSTY are renewal processes (exponential and Gamma gaps); ON_OFF and DIURNAL are Poisson processes
    with a varying rate (inversion of the cumulative rate).

    Parameters
    ----------
    arrivals : Arrivals
        Kind and rate.
    count : int
        How many.
    rng : numpy.random.Generator
        Used once per arrival.
    """
    if arrivals.kind in (ArrivalKind.ONCE, ArrivalKind.CLOSED):
        return np.zeros(count)
    if arrivals.kind == ArrivalKind.BURSTY:
        shape = 1 / arrivals.cv**2
        gaps = rng.standard_gamma(shape, count) / shape
    else:
        gaps = rng.standard_exponential(count)
    expected = np.cumsum(gaps)
    if arrivals.kind == ArrivalKind.ON_OFF:
        on_s = expected / arrivals.rate_rps * arrivals.on_fraction
        burst_s = arrivals.on_fraction * arrivals.period_s
        whole = np.floor(on_s / burst_s)
        return whole * arrivals.period_s + (on_s - whole * burst_s)
    if arrivals.kind == ArrivalKind.DIURNAL:
        return _along_the_week(expected / arrivals.rate_rps, arrivals)
    return expected / arrivals.rate_rps


def _along_the_week(mean_time_s: Floats, arrivals: Arrivals) -> Floats:
    """Arrival times whose rate follows a raised cosine over seven days, the last two scaled by the weekend factor.

    The cosine's power is chosen so that peak ÷ mean = peak_factor; the weekly mean stays. [s]
    """
    phase = np.linspace(0, 1, 1025)
    shape = 0.5 - 0.5 * np.cos(2 * np.pi * phase)
    low, high = 0.0, 1e5
    for _ in range(200):
        power = (low + high) / 2
        if 1 / np.mean(shape[1:] ** power) < arrivals.peak_factor:
            low = power
        else:
            high = power
    day = shape**low
    growth = np.concatenate([weight * (day[1:] + day[:-1]) for weight in (1.0,) * 5 + (arrivals.weekend_factor,) * 2])
    done = np.concatenate([[0.0], np.cumsum(growth)])
    week_s = 7 * arrivals.period_s
    whole = np.floor(mean_time_s / week_s)
    share = mean_time_s / week_s - whole
    return (whole + np.interp(share, done / done[-1], np.linspace(0, 1, len(done)))) * week_s


def with_rate(requests: Requests, rate_rps: float) -> Requests:
    """The same requests at another mean rate: only arrival times are rescaled.

    Parameters
    ----------
    requests : Requests
        An open loop. Bursts and days stretch with the rest.
    rate_rps : float
        New mean rate. [requests/s]

    Returns
    -------
    Requests
        Request by request the same as the original.
    """
    require_number("rate_rps", rate_rps, above=0)
    if requests.closed_loop_users:
        raise InvalidInput("arrivals", "closed", "an open loop (poisson or bursty); a closed loop has no rate to set")
    old = offered_rate_rps(requests)
    if not math.isfinite(old):
        raise InvalidInput("arrivals", "once", "requests spread over time; a burst has no rate to set")
    return dataclasses.replace(requests, arrival_s=requests.arrival_s * (old / rate_rps), rate_rps=float(rate_rps))


def offered_rate_rps(requests: Requests) -> float:
    """Mean rate of an open workload: the nominal one, else requests ÷ span; inf when all arrive at once. [req/s]"""
    if requests.rate_rps is not None:
        return requests.rate_rps
    span = float(requests.arrival_s[-1] - requests.arrival_s[0]) if len(requests) > 1 else 0.0
    return (len(requests) - 1) / span if span > 0 else math.inf
