"""What users and owners see: latencies, throughput, goodput and utilisation of a simulated service.

Definitions: TTFT arrival → first token, queueing included. TPOT (E2E − TTFT) ÷ (output − 1), one per
request with more than one token. ITL the gap between two emissions of one request, pooled over all
of them (with speculation an emission holds several tokens). E2E arrival → last token. Wait arrival → first taken up
by the engine. Percentiles interpolate linearly over requests that finished after warm-up; rejected,
abandoned and unfinished requests count as missing the service level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Bytes, Floats
from planner.errors import require_number
from planner.inputs import ServiceLevel
from planner.service.steady import Window, mean_error, quantile_error, steady_window, values_at
from planner.simulation import ABANDONED, FINISHED, REJECTED, UNFINISHED, SimulationResult

CORRELATION_TIMES = 300  # lengths of correlation that a run must cover before its intervals hold
Mask = NDArray[np.bool_]
_GRID = np.concatenate([np.arange(100) / 100, 0.99 + np.arange(1, 11) / 1000])  # every 1 %, the last one by 0.1 %


@lru_cache(maxsize=256)
def _at(quantiles: tuple[float, ...], quantile: float) -> float:
    # One verdict asks a thousand times for the same figures of the same few loads.
    return float(np.interp(quantile, _GRID, quantiles))


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Percentiles and mean of one latency. NaN when nothing was observed. All in seconds.

    `*_half_width` are half-widths of 95 % confidence intervals that respect autocorrelation
    (`planner.service.steady`); NaN below 100 observations. `correlation` is how many observations are worth one.
    `quantiles` runs from 0 to 99 % in steps of 1 %, then to 100 % in steps of 0.1 %.
    """

    p50: float
    p90: float
    p95: float
    p99: float
    mean: float
    max: float = math.nan
    count: int = 0
    mean_half_width: float = math.nan
    p95_half_width: float = math.nan
    target_half_width: float = math.nan  # at the quantile of the service level
    correlation: float = math.nan
    quantiles: tuple[float, ...] = ()

    def at(self, quantile: float) -> float:
        """The value at any quantile from 0 to 1. [s]"""
        require_number("quantile", quantile, at_least=0, at_most=1)
        if not self.quantiles:
            return math.nan
        return _at(self.quantiles, quantile)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMetrics:
    """What a service did. Latencies in seconds, rates per second of simulated time.

    `slo_attainment` is the share of requests after warm-up that met every target. Utilisations are
    fractions of time-averaged capacity: `slots_utilization` sequences, `kv_used_utilization` blocks
    held, `kv_written_utilization` the room in blocks that holds tokens, `busy_utilization` time in steps.
    """

    ttft_s: Distribution
    tpot_s: Distribution
    itl_s: Distribution
    max_itl_s: Distribution
    e2e_s: Distribution
    wait_s: Distribution
    output_tokens_per_s: float
    total_tokens_per_s: float
    requests_per_s: float
    goodput_rps: float
    slo_attainment: float
    slo_attainment_half_width: float
    slots_utilization: float
    kv_used_utilization: float
    kv_written_utilization: float
    busy_utilization: float
    num_requests: int
    num_finished: int
    num_rejected: int
    num_abandoned: int
    num_unfinished: int
    num_preemptions: int
    prefix_hit_fraction: float
    duration_s: float
    verdict: str
    binding: str
    message: str = ""
    num_counted: int = 0  # requests that the latencies and the attainment are of

    @property
    def is_settled(self) -> bool:
        """Whether the run is so long that its intervals can be believed.

        An interval holds the truth 93 to 97 times in 100 once a run is 300 times as long as its requests are
        correlated; shorter runs near saturation claim too much (`tests/benchmarks/bench_intervals.py`).
        """
        longest = max((x.correlation for x in (self.ttft_s, self.tpot_s) if not math.isnan(x.correlation)), default=0.0)
        return self.num_counted >= CORRELATION_TIMES * longest

    @property
    def lost_fraction(self) -> float:
        """Share of the requests that are rejected or abandoned."""
        return (self.num_rejected + self.num_abandoned) / max(1, self.num_requests)


class Latencies(NamedTuple):
    """Latencies of single requests, one entry each. [s]"""

    ttft_s: Floats
    tpot_s: Floats  # NaN where the answer is one token
    e2e_s: Floats
    max_itl_s: Floats  # longest gap between two tokens


def latencies(result: SimulationResult, which: Mask) -> Latencies:
    """TTFT, TPOT, E2E and longest gap of the requests marked in `which`, as defined above."""
    arrival, output = result.arrival_s[which], result.output_tokens[which]
    ttft, e2e = result.first_token_s[which] - arrival, result.finish_s[which] - arrival
    tpot = np.divide(e2e - ttft, output - 1, out=np.full(len(ttft), np.nan), where=output > 1)
    return Latencies(ttft, tpot, e2e, result.max_itl_s[which])


def slo_attainment(result: SimulationResult, service_level: ServiceLevel) -> float:
    """Share of the requests after warm-up that met every target: what `measure` says, without its other figures."""
    keep = _kept(result, service_level)[1]
    good = _good(latencies(result, keep & (result.status == FINISHED)), service_level)
    return float(good.sum()) / max(1, int(keep.sum()))


def attainment(result: SimulationResult, service_level: ServiceLevel) -> tuple[float, float]:
    """`slo_attainment`, and the half-width of its 95 % interval, NaN below 100 requests."""
    counted = _counted(result, service_level)
    share = float(counted.good.sum()) / max(1, int(counted.keep.sum()))
    return share, _share_half_width(counted.keep, counted.done, counted.good)


def met_targets(result: SimulationResult, service_level: ServiceLevel) -> Mask:
    """Which requests of a run met every target; those that did not finish did not."""
    met = result.status == FINISHED
    met[met] = _good(latencies(result, met), service_level)
    return met


def _kept(result: SimulationResult, service_level: ServiceLevel) -> tuple[Window, Mask]:
    """Requests that count, and where they begin and end."""
    n = len(result.arrival_s)
    window = Window(0, n) if service_level.window == "all" else steady_window(result)
    keep = np.zeros(n, dtype=bool)
    keep[window.first : window.last] = True
    return window, keep


def measure(result: SimulationResult, service_level: ServiceLevel) -> ServingMetrics:
    """Summarise a simulation.

    Parameters
    ----------
    result : SimulationResult
        Records of one replica or a service.
    service_level : ServiceLevel
        Targets that a good request meets, all of them, and which requests count: those of the steady state,
        or all. Gaps between tokens count from the next twentieth of the requests on.

    Returns
    -------
    ServingMetrics
        Throughputs count the completions between the end of warm-up and the last arrival, where
        that span holds at least 100 of them; else, and where all requests count, all over the whole run.
    """
    n = len(result.arrival_s)
    counted = _counted(result, service_level)
    keep, done, seen, good = counted.keep, counted.done, counted.seen, counted.good
    arrival = result.arrival_s[done]
    wait = result.admitted_s[done] - arrival if result.admitted_s is not None else np.full(len(arrival), np.nan)
    kept = max(1, int(keep.sum()))
    prompt_tokens = result.prefix_tokens_hit + result.prefill_tokens_computed
    return ServingMetrics(
        ttft_s=distribution(seen.ttft_s, service_level.quantile),
        tpot_s=distribution(seen.tpot_s, service_level.quantile),
        itl_s=pooled(result.itl_gap_s, _gaps_after(result, counted.first)),
        max_itl_s=distribution(result.max_itl_s[done][result.output_tokens[done] > 1]),
        e2e_s=distribution(seen.e2e_s, service_level.quantile),
        wait_s=distribution(wait),
        slo_attainment=float(good.sum()) / kept,
        slo_attainment_half_width=_share_half_width(keep, done, good),
        num_counted=kept,
        num_requests=n,
        num_finished=_count(result.status, FINISHED),
        num_rejected=_count(result.status, REJECTED),
        num_abandoned=_count(result.status, ABANDONED),
        num_unfinished=_count(result.status, UNFINISHED),
        num_preemptions=int(result.num_preemptions.sum()),
        prefix_hit_fraction=result.prefix_tokens_hit / prompt_tokens if prompt_tokens else 0.0,
        duration_s=result.duration_s,
        verdict=result.verdict,
        binding=result.binding,
        message=result.message,
        **_rates_and_shares(result, service_level, counted),
    )


def rates_and_shares(result: SimulationResult, service_level: ServiceLevel) -> dict[str, float]:
    """Throughputs and utilisations by their names in `ServingMetrics`: what `measure` says, without its latencies."""
    return _rates_and_shares(result, service_level, _counted(result, service_level))


class _Counted(NamedTuple):
    """Requests that count, and what those that finished saw; the first of them by arrival."""

    keep: Mask
    done: Mask
    seen: Latencies
    good: Mask
    first: int


def _counted(result: SimulationResult, level: ServiceLevel) -> _Counted:
    window, keep = _kept(result, level)
    done = keep & (result.status == FINISHED)
    seen = latencies(result, done)
    return _Counted(keep, done, seen, _good(seen, level), window.first)


def _rates_and_shares(result: SimulationResult, level: ServiceLevel, counted: _Counted) -> dict[str, float]:
    first, n = counted.first, len(result.arrival_s)
    # users who move in step finish in bursts: whole rounds hold as many bursts as there is time for
    rounds = (n - 1 - first) % result.closed_loop_users if result.closed_loop_users else 0
    whole = level.window == "all"
    rates = _rates(result, counted.done, counted.keep, counted.good, first + rounds, whole=whole)
    replicas = int(result.replica.max()) + 1 if n else 1
    return rates | {
        "slots_utilization": result.mean_running / max(1, result.num_slots or result.peak_running * replicas),
        "kv_used_utilization": result.mean_kv_used_fraction,
        "kv_written_utilization": result.mean_kv_written_fraction,
        "busy_utilization": min(1.0, result.busy_s / max(result.duration_s, 1e-300) / replicas),
    }


def distribution(values: Floats, target: float = 0.95) -> Distribution:
    """Summarise observations in their order, which their correlation needs.

    Parameters
    ----------
    values : array
        Seconds; NaN are left out.
    target : float
        Quantile whose uncertainty is wanted beside that of the 95th percentile.

    Returns
    -------
    Distribution
        Percentiles by linear interpolation.
    """
    seen = values[np.isfinite(values)]
    if len(seen) == 0:
        nan = math.nan
        return Distribution(p50=nan, p90=nan, p95=nan, p99=nan, mean=nan)
    ordered = np.sort(seen)
    grid = values_at(ordered, _GRID)
    mean, upper = mean_error(seen), quantile_error(seen, 0.95, ordered)
    wanted = upper if target == 0.95 else quantile_error(seen, target, ordered)
    return Distribution(
        p50=float(grid[50]),
        p90=float(grid[90]),
        p95=float(grid[95]),
        p99=float(grid[99]),
        mean=float(seen.mean()),
        max=float(grid[-1]),
        count=len(seen),
        mean_half_width=mean.half_width,
        p95_half_width=upper.half_width,
        target_half_width=wanted.half_width,
        correlation=max(mean.correlation, upper.correlation),
        quantiles=tuple(grid.tolist()),
    )


def pooled(gap_s: Floats | None, count: Floats | None) -> Distribution:
    """Summarise a histogram of gaps, pooled over all emissions.

    Parameters
    ----------
    gap_s, count : array
        Middle of each bin [s] (bins are 1.6 % wide at most, so percentiles err by 0.8 %), and how
        many gaps fell into it.

    Returns
    -------
    Distribution
        No confidence intervals.
    """
    total = float(count.sum()) if count is not None else 0.0
    if gap_s is None or count is None or total == 0:
        return distribution(np.empty(0))
    filled = np.flatnonzero(count)
    share = np.cumsum(count[filled]) / total
    grid = gap_s[filled[np.minimum(np.searchsorted(share, _GRID - 1e-12), len(filled) - 1)]]
    return Distribution(
        p50=float(grid[50]),
        p90=float(grid[90]),
        p95=float(grid[95]),
        p99=float(grid[99]),
        mean=float((gap_s * count).sum() / total),
        max=float(grid[-1]),
        count=int(total),
        quantiles=tuple(grid.tolist()),
    )


def _gaps_after(result: SimulationResult, skip: int) -> Floats | None:
    """Gaps by bin once the requests after the first `skip` had begun to arrive."""
    if result.itl_parts is None or skip == 0:
        return result.itl_count
    parts = len(result.itl_parts)
    after: Floats = result.itl_parts[math.ceil(skip * parts / len(result.arrival_s)) :].sum(axis=0)
    return after if after.any() else result.itl_count


def _good(seen: Latencies, level: ServiceLevel) -> Mask:
    good = np.ones(len(seen.ttft_s), dtype=bool)
    if level.ttft_s is not None:
        good &= seen.ttft_s <= level.ttft_s
    if level.tpot_s is not None:
        good &= ~(seen.tpot_s > level.tpot_s)  # true for a single token, which has none
    if level.itl_s is not None:
        good &= ~(seen.max_itl_s > level.itl_s)
    if level.e2e_s is not None:
        good &= seen.e2e_s <= level.e2e_s
    return good


def _rates(
    result: SimulationResult, done: Mask, keep: Mask, good: Mask, skip: int, *, whole: bool = False
) -> dict[str, float]:
    # Between warm-up and the last arrival the service is in its steady state; what drains later is not.
    finish = result.finish_s
    ended = result.status == FINISHED
    begin, end = (float(result.arrival_s[skip]), float(result.arrival_s[-1])) if len(finish) else (0.0, 0.0)
    inside = ended & (finish > begin) & (finish <= end)
    if whole or inside.sum() < 100:
        begin, end = (float(result.arrival_s[0]) if len(finish) else 0.0), math.inf
        inside = ended
        last = float(np.nanmax(finish)) if ended.any() else begin
        span = last - begin
    else:
        span = end - begin
    if span <= 0:
        return dict.fromkeys(("output_tokens_per_s", "total_tokens_per_s", "requests_per_s", "goodput_rps"), 0.0)
    met = np.zeros(len(finish), dtype=bool)
    met[np.flatnonzero(done)] = good
    output = float(result.output_tokens[inside].sum())
    requests = float(inside.sum())
    good_share = float(met[keep & ended].mean()) if (keep & ended).any() else 0.0
    return {
        "output_tokens_per_s": output / span,
        "total_tokens_per_s": (output + float(result.prompt_tokens[inside].sum())) / span,
        "requests_per_s": requests / span,
        "goodput_rps": requests / span * good_share,
    }


def _share_half_width(keep: Mask, done: Mask, good: Mask) -> float:
    met = np.zeros(len(keep))
    met[np.flatnonzero(done)] = good
    return mean_error(met[keep]).half_width


def _count(status: Bytes, which: int) -> int:
    return int((status == which).sum())
