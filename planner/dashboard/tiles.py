"""The first screen's verdict, badges and tiles, made from a Plan's numbers. No streamlit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.answer import BAND_OF, SURE, Band, Plan, Verdict, offered_rps, serving_replicas, target_label
from planner.catalog import price_offers
from planner.charts import Line, bar_svg, blocks_svg, line_svg
from planner.cost import CostPlan, offer_of
from planner.dashboard.headlines import percentile
from planner.dashboard.markdown import escaped
from planner.scenario import TARGETS
from planner.service import Distribution, LoadPoint, ServingMetrics
from planner.units import (
    GIB,
    NOTHING,
    SECONDS_PER_HOUR,
    counted,
    format_duration,
    format_number,
    format_percent,
    format_usd,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One headline figure: value, what to compare it with, what it means, and what its drawing shows."""

    label: str
    value: str
    beside: str
    help: str
    line: Line | None = None
    share: float | None = None
    blocks: tuple[int, int] | None = None  # replicas, and GPUs of each


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """One verdict: whether it is good, and in words why."""

    good: bool
    text: str


def badges(plan: Plan) -> tuple[Badge, ...]:
    """The verdicts on memory and price; that on the targets is a sentence of its own."""
    memory, cost = plan.memory, plan.cost
    misses = plan.verdict is not None and plan.verdict.state == "miss"
    pool = memory.kv_pool_bytes / GIB
    fits = f"fits: {pool:,.1f} GiB of KV cache per GPU"
    found = [Badge(good=True, text=fits)] if plan.fits else [Badge(good=False, text=_does_not_start(pool))]
    if cost is not None and cost.api_usd_per_month is not None:
        about = "about " if cost.api_is_estimate else ""
        own, api = format_usd(cost.usd_per_month), f"{about}{format_usd(cost.api_usd_per_month)}"
        text = f"a hosted API is cheaper: {api} a month, these GPUs {own}"
        if not cost.api_is_cheaper:
            text = f"cheaper than a hosted API: {own} a month, API {api}"
            if misses:
                text = f"less than a hosted API ({own} a month, API {api}), but it misses the targets"
        found.append(Badge(good=not cost.api_is_cheaper and not misses, text=text))
    return tuple(found)


#: how the page shows a verdict: colour, icon, word
STATES = {
    "sure": ("green", "check_circle", "Sure"),
    "likely": ("blue", "thumb_up", "Likely"),
    "unsure": ("orange", "help", "Unsure"),
    "miss": ("red", "cancel", "Misses"),
}


def verdict_line(found: Verdict) -> str:
    """The verdict on the targets in markdown: its state as a badge, and the sentence."""
    colour, icon, word = STATES[found.state]
    said = found.text.removeprefix("misses ") if found.state == "miss" else found.text  # the badge says it
    text = escaped(f"{said[0].upper()}{said[1:]}.").replace(" %", "\u00a0%")
    return f":{colour}-badge[:material/{icon}: {word}] {text}"


def badge_line(found: Sequence[Badge]) -> str:
    """The verdicts on memory and price in markdown, green or red, each in words."""
    return " ".join(
        f":{'green' if item.good else 'red'}-badge[:material/{'check' if item.good else 'close'}: "
        f"{escaped(item.text).replace(' %', chr(160) + '%')}]"
        for item in found
    )


def surer_gpus(plan: Plan) -> int | None:
    """GPUs of this kind that make the plan sure, where it has fewer and is about the traffic as entered."""
    found = plan.verdict
    if found is None or found.state == "sure" or plan.taken is not None or plan.pools is not None:
        return None
    enough = next((item.num_gpus for item in found.sure if item.share == SURE), None)
    return enough if enough is not None and enough > plan.num_gpus else None


def _does_not_start(pool_gib: float) -> str:
    return f"does not start: {-pool_gib:,.1f} GiB short" if pool_gib < 0 else "does not start"


_USUAL = ("ttft_target_s", "tpot_target_s")  # shown with or without a target
_MEANING = {
    "TTFT": "Time to first token, queueing included",
    "TPOT": "Time per output token after the first, one figure per request",
    "ITL": "Longest gap between two tokens of a request",
    "E2E": "Time from arrival to the last token",
}


def _line(
    plan: Plan,
    name: str,
    read: Callable[[LoadPoint], float],
    points: tuple[LoadPoint, ...],
    words: Callable[[float], str],
    now: float,
) -> Line | None:
    """A figure of the service against its rate, marked at the plan's; None where the curve is too short."""
    x = tuple(point.rate_rps * serving_replicas(plan) for point in points)
    y = tuple(float(read(point)) for point in points)
    if len(x) < 2 or not all(math.isfinite(value) for value in y):
        return None
    rate = plan.scenario.peak_rate_rps if plan.scenario.is_open_loop else math.nan
    last = f"{words(y[-1])} at {format_number(x[-1])} req/s"
    about = f"{name} against load: {words(y[0])} at {format_number(x[0])} req/s, {last}"
    here = (rate, now) if math.isfinite(rate) and x[0] <= rate <= x[-1] and math.isfinite(now) else None
    return Line(x=x, y=y, ends=(words(y[0]), words(y[-1])), about=about, here=here)


def _need(plan: Plan) -> Line | None:
    """GPUs against the peak, from a quarter of it to twice."""
    s, curve = plan.scenario, plan.curve
    if curve is None or curve.slo_rate_rps <= 0 or not s.is_open_loop:
        return None
    each, x = s.parallelism.gpus_per_replica, tuple(k / 4 for k in range(1, 9))
    y = tuple(float(max(1, math.ceil(s.peak_rate_rps * times / curve.slo_rate_rps)) * each) for times in x)
    about = f"GPUs needed: {y[0]:,.0f} at a quarter of the peak, {y[-1]:,.0f} at twice the peak"
    return Line(x=x, y=y, ends=(f"{y[0]:,.0f}", f"{y[-1]:,.0f}"), about=about, here=(1.0, y[3]))


def _latency_tile(plan: Plan, field: str) -> Tile:
    name, _, latency = TARGETS[field]
    s, metrics, curve, limit = plan.scenario, plan.metrics, plan.curve, getattr(plan.scenario, field)
    assert metrics is not None
    assert curve is not None
    q, seen, error = percentile(plan), getattr(metrics, latency), plan.bands[BAND_OF[name]]
    target = "no target" if limit is None else f"≤ {format_duration(limit)}"
    return Tile(
        label=f"{q} {target_label(name)}",
        value=format_duration(seen.at(s.target_quantile)),
        beside=f"{target}{band_text(error)}",
        help=f"{_MEANING[name]}: {q} over the requests at the peak"
        f"{'' if limit is None else ', with its target (≤)'}. {interval_text(metrics, seen)}{band_meaning(error)} "
        f"The line: {name} against load.",
        line=_line(
            plan,
            f"{q} {name}",
            lambda p: float(getattr(p.metrics, latency).at(s.target_quantile)),
            curve.points[:-2],
            format_duration,
            seen.at(s.target_quantile),
        ),
    )


def tiles(plan: Plan) -> tuple[Tile, ...]:
    """The headline figures: GPUs, TTFT, TPOT and what else has a target, load, price; none where nothing starts."""
    metrics, cost, curve = plan.metrics, plan.cost, plan.curve
    if metrics is None or cost is None or curve is None:
        return ()
    s, points = plan.scenario, curve.points
    per_replica = s.parallelism.gpus_per_replica
    low, high = price_band(plan)
    replicas = counted(plan.num_replicas, "replica") + (f" × {per_replica}" if per_replica > 1 else "")
    need = _need(plan)
    if plan.pools is not None:
        replicas = f"{plan.pools.num_prefill:,} + {plan.pools.num_decode:,} replicas"
    return (
        Tile(
            label="GPUs",
            value=f"{plan.num_gpus:,}",
            beside=replicas,
            help="GPUs that the plan buys: replicas (prefill + decode where they are apart) × GPUs of one replica. The "
            + (
                "blocks: one for each GPU."
                if need is None
                else "line: GPUs needed from a quarter of the peak to twice."
            ),
            line=need,
            blocks=(plan.num_replicas, per_replica) if need is None else None,
        ),
        *(_latency_tile(plan, field) for field in TARGETS if field in _USUAL or getattr(s, field) is not None),
        Tile(
            label="Busy at peak",
            value=format_percent(busy_share(plan)),
            beside=f"of {curve.capacity_in_words(serving_replicas(plan))}/s",
            help="The peak as a share of the requests per second at which the fleet saturates (± sampling, 95 %): "
            "more of it leaves less for bursts.",
            share=busy_share(plan),
        ),
        Tile(
            label="USD / M tokens",
            value=format_usd(cost.usd_per_million_tokens).removesuffix(" USD"),
            beside=f"{low} to {high}" if low else f"{format_usd(cost.usd_per_month).removesuffix(' USD')} a month",
            help="The month's bill ÷ the month's tokens, prompt and output alike. The range covers the lowest and "
            "highest published GPU price of this kind. The line: price against load.",
            line=_line(
                plan,
                "USD per million tokens",
                lambda p: _usd_per_million_tokens(plan, cost, p.rate_rps),
                points[1:],
                lambda usd: format_usd(usd).removesuffix(" USD"),
                _usd_per_million_tokens(plan, cost, s.peak_rate_rps / serving_replicas(plan))
                if s.is_open_loop
                else math.nan,
            ),
        ),
    )


def _usd_per_million_tokens(plan: Plan, cost: CostPlan, rate_rps: float) -> float:
    """USD per million tokens if every replica served this rate in every hour."""
    tokens_per_hour = rate_rps * serving_replicas(plan) * SECONDS_PER_HOUR * cost.tokens_per_request
    return cost.usd_per_hour / tokens_per_hour * 1e6 if tokens_per_hour > 0 else math.nan


def drawing(tile: Tile) -> str:
    """The tile's line or bar as HTML; empty where it has none."""
    if tile.line is not None:
        return line_svg(tile.line)
    if tile.share is not None and math.isfinite(tile.share):
        return bar_svg(tile.share, f"{tile.label}: {tile.value} of the rate at which the fleet saturates")
    if tile.blocks is not None:
        return blocks_svg(*tile.blocks, f"{counted(tile.blocks[0], 'replica')} of {counted(tile.blocks[1], 'GPU')}")
    return ""


def interval_text(metrics: ServingMetrics, latency: Distribution) -> str:
    """How exactly the simulation knows a latency at the targets' quantile, in a sentence; empty where it does not."""
    half = latency.target_half_width
    if not half > NOTHING * latency.mean:
        return ""
    counted_requests = counted(metrics.num_counted, "simulated request")
    if not metrics.is_settled:
        return f"Over {counted_requests}; too few near saturation for an interval that holds. "
    return f"Sampling: ± {format_duration(half)} (95 %) over {counted_requests}. "


def band_text(band: Band) -> str:
    """Our measured error beside a figure; empty where nothing was measured."""
    if band.is_own and not band.median_fraction:
        return ", as printed"
    return f", ± {format_percent(band.median_fraction)}" if math.isfinite(band.median_fraction) else ""


def band_meaning(band: Band) -> str:
    """The measurements behind the band, in a sentence."""
    if not math.isfinite(band.median_fraction):
        return "No measurement of this class was published, so the error is unknown."
    if band.is_own and not band.median_fraction:
        return f"As {band.basis} says it."
    if band.is_own:
        low, high = band.range_of(1.0, 0.9)
        return f"Calibrated to {band.basis}: 90 % of the true figures are {low:.2f} to {high:.2f} times the prediction."
    rows = f"{band.rows:,} published results" + (f" from {counted(band.sources, 'source')}" if band.sources else "")
    if not band.ratios:
        return (
            f"Our error: half of {rows} ({band.basis}) are within {format_percent(band.median_fraction)} of the "
            f"prediction, 90 % within {format_percent(band.p90_fraction)}."
        )
    (low, high), (least, most) = band.range_of(1.0, 0.5), band.range_of(1.0, 0.9)
    bias = band.bias_fraction
    leaning = f", {format_percent(abs(bias))} {'above' if bias > 0 else 'below'} it at the median" if bias else ""
    return (
        f"Our error on sources left out of the fit: half of the true figures are {low:.2f} to {high:.2f} times the "
        f"prediction{leaning}, 90 % are {least:.2f} to {most:.2f} times ({rows}; {band.basis})."
    )


def busy_share(plan: Plan) -> float:
    """The peak rate as a share of the rate at which the fleet saturates."""
    if plan.curve is None or plan.metrics is None or plan.curve.capacity_rps <= 0:
        return math.nan
    share = offered_rps(plan) / (plan.curve.capacity_rps * serving_replicas(plan))
    return share if plan.scenario.is_open_loop else min(1.0, share)  # what clients who wait reach cannot be more


def price_band(plan: Plan) -> tuple[str, str]:
    """USD per million tokens at the lowest and highest known GPU price; empty where the user set the price."""
    cost, offer = plan.cost, offer_of(plan.scenario)
    if cost is None or offer is None or not cost.requests_per_month:
        return "", ""
    offers = price_offers(offer.gpu, offer.kind)
    if len(offers) < 2:
        return "", ""
    scale = cost.usd_per_million_tokens / cost.usd_per_gpu_hour
    return format_number(offers[0].usd_per_hour * scale, 2), format_number(offers[-1].usd_per_hour * scale, 2)
