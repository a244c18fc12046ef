"""The verdict: whether the targets hold, by how much, how sure that is, and what would make it surer."""

from __future__ import annotations

import math

import numpy as np

from planner.answer.confidence import BAND_OF, bearable_rps, chance_with, own_runs, slo_probability
from planner.answer.load_test import measurement
from planner.answer.outcome import Plan, Reached, Sure, Verdict, offered_rps, reached, serving_replicas, target_label
from planner.answer.wording import idle_miss, load_in_words, lost_in_words, meeting, told_apart
from planner.arrays import Floats
from planner.step_time import KERNELS_MEASURED, SAME_ARCHITECTURE
from planner.units import counted, format_duration, format_number, format_percent

#: the scale of IPCC's guidance on uncertainty (Mastrandrea et al. 2010): very likely from 90 %, likely from 66 %
SURE, LIKELY = 0.9, 0.66
SHARES = (0.5, 0.9, 0.95)
MOST_TIMES = 32  # the replicas tried for a share, as a multiple of the plan's
LEAST_LOAD, LOAD_STEP = 0.05, 0.01  # of the plan's load, where it is asked at which one is sure


def probability(done: Plan) -> float:
    """Chance that the plan as simulated holds every target and keeps up, given our error; NaN where none is known."""
    if done.metrics is None or done.curve is None:
        return math.nan
    if done.scenario.targets or not done.scenario.is_open_loop:
        return slo_probability(done.scenario, done.bands, done.metrics, done.curve, serving_replicas(done))
    return _keeps_up(done, serving_replicas(done))


def _keeps_up(done: Plan, replicas: float) -> float:
    """Chance that so many replicas answer enough of what arrives, where no latency is asked for."""
    assert done.curve is not None
    assert done.metrics is not None
    most = bearable_rps(done.scenario, done.curve, done.metrics, serving_replicas(done)) * replicas
    if most <= 0:
        return math.nan
    return 1 - done.bands["throughput"].probability_below(1.0, done.scenario.peak_rate_rps / most)


def chance(done: Plan, replicas: float) -> float:
    """The chance that every target holds with another number of replicas, from the load curve of one.

    Parameters
    ----------
    done : Plan
        A plan whose fleet was simulated. At its own number the curve is scaled to what the fleet's simulation found.
    replicas : float
        Replicas that share the load.

    Returns
    -------
    float
        NaN for a burst, whose waits no load curve shows, and where no error is known.
    """
    scenario, curve, metrics = done.scenario, done.curve, done.metrics
    if metrics is None or curve is None or not curve.points or scenario.arrivals == "once":
        return math.nan
    if scenario.is_open_loop and not scenario.targets:
        return _keeps_up(done, replicas)
    numbers = np.array([replicas])
    rates, found = _rates(done, numbers), []
    for row in reached(scenario, metrics):
        figures = np.array(
            [
                other.figure_s
                for point in curve.points
                for other in reached(scenario, point.metrics)
                if other.name == row.name
            ]
        )
        scale = _scale(done, row, figures)
        predicted = float(_interpolated(done, rates, figures)[0]) * (scale if math.isfinite(scale) else 1.0)
        found.append(done.bands[BAND_OF[row.name]].probability_below(predicted, row.limit_s))
    if scenario.is_open_loop:
        found.append(chance_with(scenario, done.bands, curve, metrics, serving_replicas(done), replicas))
    known = [value for value in found if not math.isnan(value)]
    return min(known) if known else math.nan


def _scale(done: Plan, row: Reached, figures: Floats) -> float:
    """What the fleet's simulation found ÷ what the curve says, at the number of replicas that hold the targets."""
    if done.slo_met:
        own = np.array([float(serving_replicas(done))])
        return float(row.figure_s / _interpolated(done, _rates(done, own), figures)[0])
    if done.replicas_for_slo is None:
        return 1.0
    enough = np.array([float(done.replicas_for_slo)])  # simulated to hold: the figure is at most the limit there
    return min(1.0, float(row.limit_s / _interpolated(done, _rates(done, enough), figures)[0]))


def _rates(done: Plan, replicas: Floats) -> Floats:
    """Requests per second that each of so many replicas gets. [req/s]"""
    scenario, curve = done.scenario, done.curve
    assert curve is not None
    if scenario.is_open_loop:
        shared: Floats = scenario.peak_rate_rps / replicas
        return shared
    rates = np.array([point.rate_rps for point in curve.points])
    users = rates * (np.array([point.metrics.e2e_s.mean for point in curve.points]) + scenario.think_time_s)
    order = np.maximum.accumulate(users)
    each = scenario.concurrent_users / replicas
    # Beyond the curve a closed loop saturates: its latency grows with its users.
    beyond = np.maximum(1.0, each / order[-1])
    found: Floats = np.interp(each, order, rates) * beyond
    return found


def _interpolated(done: Plan, rates: Floats, figures: Floats) -> Floats:
    """A latency at these rates of one replica; beyond the curve it grows in proportion. [s]"""
    assert done.curve is not None
    own = np.array([point.rate_rps for point in done.curve.points])
    finite = np.isfinite(figures)
    if not finite.any():
        return np.full(len(rates), math.nan)
    beyond = np.maximum(1.0, rates / own[-1])
    found: Floats = np.interp(rates, own[finite], figures[finite]) * beyond
    return found


def verdict(done: Plan) -> Verdict:
    """The verdict of a simulated plan."""
    scenario, metrics = done.scenario, done.metrics
    assert metrics is not None
    per_replica, serving = scenario.parallelism.gpus_per_replica, serving_replicas(done)
    following = next(count for count in range(serving + 1, serving + 3) if _worth(done, count) > serving)
    sure, more = probability(done), chance(done, _worth(done, following))
    state = "miss"
    if done.slo_met and not scenario.targets and not scenario.is_open_loop:
        state = "sure"  # clients wait for their answers, however long that takes
    elif done.slo_met:
        state = "sure" if sure >= SURE else "likely" if sure >= LIKELY else "unsure"
    found = Verdict(
        state=state,
        text="",
        targets=reached(scenario, metrics),
        probability=sure,
        next_gpus=(done.num_replicas + following - serving) * per_replica,
        next_probability=max(more, sure) if math.isfinite(more) and math.isfinite(sure) else math.nan,
        sure=tuple(Sure(share=share, num_gpus=_gpus_at(done, share, sure)) for share in SHARES)
        if math.isfinite(more)
        else (),
        holds_to=_holds_to(done),
        sure_to=_sure_to(done),
        evidence=evidence(done),
        narrows=_narrows(done),
        measurement=measurement(done),
    )
    return _said(done, found)


def _worth(done: Plan, replicas: int) -> float:
    """Replicas of the plan's mixture that bear as much as so many: prefill and decode bear the load together."""
    pools = done.pools
    if pools is None:
        return float(replicas)
    each = (min(n / pools.num_prefill, (replicas - n) / pools.num_decode) for n in range(1, max(2, replicas)))
    return max(each) * pools.num_serving


def _gpus_at(done: Plan, share: float, own: float) -> int | None:
    """Fewest GPUs, spares included, at which the chance reaches a share; None where no number of replicas does."""
    serving = serving_replicas(done)

    def enough(replicas: int) -> bool:
        worth = _worth(done, replicas)
        return worth > 0 and (own if replicas == serving else chance(done, worth)) >= share

    low, high = (0, serving) if enough(serving) else (serving, MOST_TIMES * serving + 32)
    if high > serving and not enough(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return (high + done.num_replicas - serving) * done.scenario.parallelism.gpus_per_replica


def _sure_to(done: Plan) -> str:
    """The load at which these GPUs hold the targets with a chance of 90 %, in words; empty where none is known."""
    scenario, serving = done.scenario, serving_replicas(done)
    if not done.slo_met or scenario.arrivals == "once":
        return ""
    if chance(done, serving) >= SURE:
        return load_in_words(scenario, scenario.peak_rate_rps if scenario.is_open_loop else scenario.concurrent_users)
    low, high = LEAST_LOAD, 1.0  # of this load: what each replica gets where they were so many more
    if not chance(done, serving / low) >= SURE:
        return ""
    while high - low > LOAD_STEP:
        middle = (low + high) / 2
        low, high = (middle, high) if chance(done, serving / middle) >= SURE else (low, middle)
    load = scenario.peak_rate_rps if scenario.is_open_loop else scenario.concurrent_users
    return load_in_words(scenario, load * low)


def evidence(done: Plan) -> str:
    """What the kernel times of this GPU rest on, in a few words."""
    return own_runs(done.scenario, done.bands) or {
        KERNELS_MEASURED: f"kernels measured on {done.gpu.name}",
        SAME_ARCHITECTURE: f"kernels measured on the architecture of {done.gpu.name}, not on it with these weights",
    }.get(done.bands["throughput"].evidence, f"no kernels measured on the architecture of {done.gpu.name}")


def _holds_to(done: Plan) -> str:
    """The load up to which these GPUs hold the targets, in words; empty where none is known."""
    scenario, curve, replicas = done.scenario, done.curve, serving_replicas(done)
    if done.taken is not None:
        return load_in_words(scenario, done.taken.load) if 0 < done.taken.load < math.inf else ""
    # The load curve has Poisson arrivals, which are worse than users who wait: it does not tell how many of them hold.
    if curve is None or not scenario.is_open_loop or not scenario.targets:
        return ""
    rate = curve.slo_rate_rps * replicas
    inside = rate >= scenario.peak_rate_rps if done.slo_met else rate < scenario.peak_rate_rps
    at_least = "at least " if curve.slo_rate_is_least else ""
    return f"{at_least}{load_in_words(scenario, rate)}" if rate > 0 and inside else ""


def _narrows(done: Plan) -> str:
    """The target that is most in doubt."""
    assert done.metrics is not None
    rows = reached(done.scenario, done.metrics)
    doubt = {row.name: done.bands[BAND_OF[row.name]].probability_below(row.figure_s, row.limit_s) for row in rows}
    known = {name: abs(chance - 0.5) for name, chance in doubt.items() if not math.isnan(chance)}
    return min(known, key=lambda name: known[name], default=rows[0].name if rows else "throughput")


def _said(done: Plan, found: Verdict) -> Verdict:
    told = _missed(done, found) if found.state == "miss" else _met(done, found)
    return Verdict(**{name: getattr(found, name) for name in Verdict.__slots__} | {"text": told})


def _met(done: Plan, found: Verdict) -> str:
    quantile, scenario = done.scenario.target_quantile, done.scenario
    told = " and ".join(
        f"{target_label(row.name)} p{quantile * 100:g} {format_duration(row.figure_s)} "
        f"(target {format_duration(row.limit_s)})"
        for row in found.targets
        if math.isfinite(row.figure_s)
    )
    room = min((row.margin for row in found.targets if math.isfinite(row.figure_s)), default=0.0)
    spare = f" with {format_percent(max(0.0, room))} to spare"
    opening = f"meets {told}{spare}" if told else f"keeps up with {load_in_words(scenario, offered_rps(done))}"
    if not told and not scenario.is_open_loop:
        opening = "serves every request; no latency target is set"
    assert done.metrics is not None
    lost = lost_in_words(done.metrics)
    if lost:
        opening += f"; {lost}, {format_percent(round(1 - quantile, 9))} may miss"
    nothing_to_miss = found.state == "sure" and math.isnan(found.probability)
    parts = [opening, found.evidence if nothing_to_miss else f"{sure_in_words(found.probability)}, {found.evidence}"]
    if done.taken is not None and found.state != "sure" and found.sure_to:
        parts.append(f"90 % sure up to {found.sure_to}")
    better = found.next_probability - found.probability
    if done.taken is None and found.state != "sure" and better >= 0.01:
        per_replica = scenario.parallelism.gpus_per_replica
        replicas = (found.next_gpus - done.num_gpus) // per_replica
        more = f"one more {'GPU' if per_replica == 1 else 'replica'}" if replicas == 1 else "one more of each kind"
        then = sure_in_words(found.next_probability).removesuffix(" sure")
        parts.append(f"{more}: {then}")
    return "; ".join(parts)


def _missed(done: Plan, found: Verdict) -> str:
    scenario = done.scenario
    missed, metrics, quantile = [row for row in found.targets if row.is_missed], done.metrics, scenario.target_quantile
    assert metrics is not None
    lost = lost_in_words(metrics) if metrics.lost_fraction > 1 - quantile else ""
    if done.taken is not None and done.taken.load == 0 and scenario.targets:
        opening = f"misses the targets at any load: {idle_miss(done)}"
    elif _overrun(done):
        assert done.curve is not None
        most = done.curve.capacity_in_words(serving_replicas(done))
        arrive = f"{format_number(scenario.peak_rate_rps)} req/s arrive, at most {most} finish"
        opening = f"cannot keep up: {arrive}"
    elif missed:
        rows = "; ".join(_against(row, quantile) for row in missed)
        opening = f"misses {rows} ({meeting(done)})"
    elif lost:
        opening = f"answers too few: {lost}, {format_percent(round(1 - quantile, 9))} may miss"
    else:
        asked = f"{format_percent(quantile)} are asked for"
        margin = (
            f" with the safety margin of {format_percent(scenario.safety_margin)}" if scenario.safety_margin else ""
        )
        misses = "misses the targets" if scenario.targets else "answers too few"
        opening = f"{misses}{margin}: {meeting(done)}, {asked}"
    return "; ".join([opening, *_where_it_holds(done, found)])


def _overrun(done: Plan) -> bool:
    most = done.curve.capacity_rps * serving_replicas(done) if done.curve is not None else 0.0
    return done.scenario.is_open_loop and 0 < most < done.scenario.peak_rate_rps


def _against(row: Reached, quantile: float) -> str:
    over = format_percent(-row.margin) if row.margin > -1 else f"{format_number(row.figure_s / row.limit_s, 2)} times"
    return (
        f"{target_label(row.name)} p{quantile * 100:g} {format_duration(row.figure_s)}, "
        f"target {format_duration(row.limit_s)}, {over} {'over' if row.margin > -1 else 'the target'}"
    )


def _where_it_holds(done: Plan, found: Verdict) -> list[str]:
    said = [f"these GPUs hold the targets up to {found.holds_to}"] if found.holds_to else []
    needed = done.replicas_for_slo
    if needed is not None and needed != serving_replicas(done):
        gpus = needed * done.scenario.parallelism.gpus_per_replica
        said.append(f"{counted(gpus, 'GPU')} {'holds' if gpus == 1 else 'hold'} this traffic")
    elif needed is None and done.taken is None and not done.scenario.fixes_pools:
        said.append(f"no number of replicas of this kind {'holds them' if done.scenario.targets else 'is enough'}")
    return [*said, found.evidence]


def sure_in_words(chance: float) -> str:
    """A chance as the page says it."""
    if math.isnan(chance):
        return "no published measurement tells how sure"
    if chance > 0.99:
        return "over 99 % sure"
    if chance < 0.01:
        return "under 1 % sure"
    above = next((share for share in SHARES if share > chance), 1.0)
    return f"{told_apart(chance, above)} sure"
