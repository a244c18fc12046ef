"""Sentences and tables of the pages, made from a Plan's numbers. No streamlit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.answer import (
    BAND_OF,
    Band,
    Plan,
    Verdict,
    fit_on_rank,
    meeting,
    offered_rps,
    reached,
    run_on_rank,
    serving_replicas,
)
from planner.catalog import price_offers
from planner.charts import Line, bar_svg, blocks_svg, line_svg
from planner.cost import CostPlan, offer_of
from planner.dashboard.markdown import escaped
from planner.scenario import TARGETS
from planner.service import Distribution, LoadPoint, ServingMetrics
from planner.units import GIB, SECONDS_PER_HOUR, counted, format_duration, format_number, format_percent, format_usd

PAGES = Path(__file__).parent / "pages"


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


def gpus(number: float) -> str:
    """A number of GPUs in words."""
    if math.isinf(number):
        return "no number of GPUs is enough"
    return counted(number, "GPU")


def _percentile(plan: Plan) -> str:
    return f"p{plan.scenario.target_quantile * 100:g}"


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
    """GPUs of one kind that make it 90 % sure, where the plan has fewer and is about the traffic as entered."""
    found = plan.verdict
    if found is None or found.state == "sure" or plan.taken is not None or plan.pools is not None:
        return None
    enough = next((item.num_gpus for item in found.sure if item.share == 0.9), None)
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


def _name(target: str) -> str:
    return "longest gap" if target == "ITL" else target  # the target is on each request's longest, not on all gaps


def _latency_tile(plan: Plan, field: str) -> Tile:
    name, _, latency = TARGETS[field]
    s, metrics, curve, limit = plan.scenario, plan.metrics, plan.curve, getattr(plan.scenario, field)
    assert metrics is not None
    assert curve is not None
    q, seen, error = _percentile(plan), getattr(metrics, latency), plan.bands[BAND_OF[name]]
    target = "no target" if limit is None else f"≤ {format_duration(limit)}"
    return Tile(
        label=f"{q} {_name(name)}",
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
    """The headline figures: GPUs, TTFT, TPOT and what else has a target, load, price; dashes where nothing starts."""
    q, metrics, cost, curve = _percentile(plan), plan.metrics, plan.cost, plan.curve
    if metrics is None or cost is None or curve is None:
        names = ("GPUs", f"{q} TTFT", f"{q} TPOT", "Busy at peak", "USD / M tokens")
        return tuple(
            Tile(label=name, value="—", beside="does not start", help="Known once the engine starts.") for name in names
        )
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
            beside=f"of {format_number(curve.capacity_rps * serving_replicas(plan))} req/s",
            help="The peak as a share of the rate at which the fleet saturates: more of it leaves less for bursts.",
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
    if not math.isfinite(half):
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
    return offered_rps(plan) / (plan.curve.capacity_rps * serving_replicas(plan))


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


def percentiles(plan: Plan) -> str:
    """Headline percentiles and totals in one line."""
    m, cost = plan.metrics, plan.cost
    assert m is not None
    assert cost is not None
    first = " / ".join(format_duration(v) for v in (m.ttft_s.p50, m.ttft_s.p95, m.ttft_s.p99))
    each = " / ".join(format_duration(v) for v in (m.tpot_s.p50, m.tpot_s.p95, m.tpot_s.p99))
    return (
        f"p50 / p95 / p99: TTFT {first}, TPOT {each} · goodput {format_number(m.goodput_rps)} req/s · "
        f"{counted(plan.num_replicas, 'replica')} · {format_usd(cost.usd_per_month)} a month"
    )


def memory_sentence(plan: Plan) -> str:
    """The first sentence of the memory page."""
    m = plan.memory
    if not m.starts:
        return plan.headline
    held, running = fit_on_rank(plan), run_on_rank(plan)
    ranks = plan.scenario.attention_data_parallel_size
    where = f"each of the {ranks} attention ranks" if ranks > 1 else "each replica"
    limited = f"; max_num_seqs lets {format_number(running)} run at once" if running < 0.995 * held else ""
    return (
        f"{m.kv_tokens:,} tokens of KV cache on {where}: room for {counted(m.max_concurrency, 'sequence')} "
        f"of {m.max_model_len:,} tokens, or {counted(held, 'sequence')} of this traffic{limited}"
    )


def latency_sentence(plan: Plan) -> str:
    """The first sentence of the latency page."""
    m, s = plan.metrics, plan.scenario
    assert m is not None
    q = _percentile(plan)
    rows = [
        f"{q} {_name(row.name)} {format_duration(row.figure_s)} (target {format_duration(row.limit_s)})"
        for row in reached(s, m)
    ] or [
        f"{q} {name} {format_duration(seen.at(s.target_quantile))}"
        for name, seen in (("TTFT", m.ttft_s), ("TPOT", m.tpot_s))
    ]
    return f"{', '.join(rows)}; {meeting(plan)}"


Table = list[dict[str, str]]


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """Rows under a header, with markdown characters escaped and short figures kept on one line."""
    clean = [[escaped(cell) for cell in row] for row in rows]
    short = [[cell.replace(" ", "\u00a0") if len(cell) < 18 else cell for cell in row] for row in clean]
    return [dict(zip(header, row, strict=True)) for row in short]


def latency_table(plan: Plan) -> Table:
    """Percentiles of every latency at the operating point."""
    m = plan.metrics
    assert m is not None
    named = (
        ("Time to first token", m.ttft_s),
        ("Time per output token", m.tpot_s),
        ("Inter-token latency", m.itl_s),
        ("End-to-end time", m.e2e_s),
    )
    rows = [(name, *(format_duration(value) for value in (d.mean, d.p50, d.p90, d.p95, d.p99))) for name, d in named]
    return table(("At the peak", "mean", "p50", "p90", "p95", "p99"), rows)


def policy_sentence(plan: Plan) -> str:
    """The first sentence of the batching lab."""
    worst, best = plan.policies[0], plan.policies[-1]
    if worst.capacity_tokens_per_s <= 0 or best.capacity_tokens_per_s <= 0:
        return "The same requests under four batching policies"
    ratio = best.capacity_tokens_per_s / worst.capacity_tokens_per_s
    if 0.95 < ratio < 1.05:
        return "All policies have the same throughput here, on the same GPU and requests"
    static = next((p for p in plan.policies if p.name == "static"), worst)
    against = best.capacity_tokens_per_s / static.capacity_tokens_per_s if static.capacity_tokens_per_s else math.inf
    return (
        f"{best.title}: {format_number(ratio, 2)}× the throughput of one at a time and {format_number(against, 2)}× "
        "that of static batches, on the same GPU and requests"
    )


def policy_table(plan: Plan) -> Table:
    """Throughput, concurrency, KV cache, latency and cost of each policy."""
    rows = []
    for item in plan.policies:
        r, m = item.result, item.metrics
        rows.append(
            (
                item.title,
                format_number(item.capacity_tokens_per_s),
                format_number(r.mean_running),
                f"{format_percent(r.mean_kv_written_fraction)} / {format_percent(r.mean_kv_used_fraction)}",
                format_duration(m.e2e_s.p50),
                format_duration(m.e2e_s.p95),
                format_number(item.usd_per_million_tokens_at_capacity),
            )
        )
    header = (
        "Policy",
        "Tokens/s",
        "Running at once",
        "KV used / reserved",
        "p50 end to end",
        "p95 end to end",
        "USD / M tokens",
    )
    return table(header, rows)


def cost_sentence(plan: Plan) -> str:
    """The first sentence of the cost page."""
    c = plan.cost
    if c is None:
        return plan.headline
    said = (
        f"{gpus(plan.num_gpus)}, {format_usd(c.usd_per_month)} a month, "
        f"{format_usd(c.usd_per_million_tokens)} per million tokens"
    )
    if c.api_usd_per_month is None:
        return said
    verdict = "a hosted API is cheaper" if c.api_is_cheaper else "a hosted API costs more"
    about = "about " if c.api_is_estimate else ""
    return f"{said}; {verdict} ({about}{format_usd(c.api_usd_per_month)} a month)"


def cost_table(plan: Plan) -> Table:
    """The bill of own GPUs beside a hosted API."""
    c = plan.cost
    assert c is not None

    def usd(amount: float | None) -> str:
        return "—" if amount is None else format_usd(amount)

    per_request = c.api_usd_per_request
    rows = [
        ("USD per GPU-hour", format_usd(c.usd_per_gpu_hour), "—"),
        ("USD per month", format_usd(c.usd_per_month), usd(c.api_usd_per_month)),
        ("USD per 1,000 requests", format_usd(c.usd_per_thousand_requests), usd(per_request and per_request * 1000)),
    ]
    if c.usd_per_user_month is not None:
        users = c.usd_per_month / c.usd_per_user_month
        api = None if c.api_usd_per_month is None else c.api_usd_per_month / users
        rows.append(("USD per user and month", format_usd(c.usd_per_user_month), usd(api)))
    rows.append(("Requests per month", format_number(c.requests_per_month), break_even_in_short(c)))
    if c.gpu_joules_per_token is not None and c.kwh_per_month is not None:
        energy = f"{format_number(c.gpu_joules_per_token)} J per token, {format_number(c.kwh_per_month)} kWh a month"
        rows.append(("Energy (estimate: TDP × load)", energy, "—"))
    return table(("", "Own GPUs", "Hosted API"), rows)


def break_even_in_short(cost: CostPlan) -> str:
    """The volume at which own GPUs begin to cost less than the API, in a few words."""
    if cost.break_even is None:
        return "—"
    first, always = cost.break_even.first_requests_per_month, cost.break_even.always_requests_per_month
    if first is None or always is None:
        return "cheaper at every volume"
    return f"cheaper below {format_number(first)}" + (
        f", and in parts up to {format_number(always)}" * (always > first)
    )


def not_compared(plan: Plan) -> str:
    """Why there is no comparison with a hosted API."""
    c = plan.cost
    assert c is not None
    if c.api_usd_per_request is None:
        return "No hosted price is known for a model of this size: enter one under Prices to compare"
    if not c.requests_per_month:
        return "No request finishes, so there is nothing to compare with a hosted API"
    return "These GPUs meet the targets at no volume, so there is no break-even with a hosted API"


def load_table(plan: Plan) -> Table:
    """Prices per million tokens of each kind and per request, at three loads, beside the API's."""
    c = plan.cost
    assert c is not None
    rows = [
        (
            f"{item.load[0].upper()}{item.load[1:]}",
            f"{format_number(item.requests_per_s)} req/s",
            format_usd(item.usd_per_million_tokens),
            format_usd(item.usd_per_million_input_tokens),
            format_usd(item.usd_per_million_output_tokens),
            format_usd(item.usd_per_request),
        )
        for item in c.prices
        if item.requests_per_s > 0
    ]
    if c.api_usd_per_request is not None and c.api_usd_per_mtok_input is not None:
        read, written = c.api_usd_per_mtok_input, c.api_usd_per_mtok_output
        assert written is not None
        cached = c.api_usd_per_mtok_cached_input
        shown = format_usd(read) + (f" ({format_usd(cached)} cached)" if cached is not None else "")
        blended = format_usd(c.api_usd_per_million_tokens or 0.0)
        name = "Hosted API (estimate)" if c.api_is_estimate else "Hosted API"
        rows.append((name, "any", blended, shown, format_usd(written), format_usd(c.api_usd_per_request)))
    header = ("Price", "Load", "Per M tokens", "Per M input tokens", "Per M output tokens", "Per request")
    return table(header, rows)


def owned_table(plan: Plan) -> Table:
    """The hour of an owned GPU by what it pays for; empty where the GPUs are rented."""
    c, s = plan.cost, plan.scenario
    if c is None or c.owned is None:
        return []
    bought = f"{format_usd(s.gpu_purchase_usd or 0.0)} over {format_number(s.depreciation_years)} years"
    power = f"{format_number(plan.gpu.tdp_w or 0.0)} W × load × {s.server_power_factor:g} × PUE {s.pue:g}"
    rows = [
        ("Depreciation", bought, format_usd(c.owned.depreciation_usd)),
        ("Power", f"{power} at {format_usd(s.power_usd_per_kwh)} per kWh", format_usd(c.owned.power_usd)),
        ("People", f"{format_usd(s.people_usd_per_month)} a month for all", format_usd(c.owned.people_usd)),
        ("One GPU-hour", "", format_usd(c.owned.usd_per_hour)),
    ]
    return table(("An owned GPU", "From", "USD per hour"), rows)


def step_table(plan: Plan, context_tokens: int) -> Table:
    """Decode step time and token rate by batch size."""
    step = plan.step_time
    assert step is not None
    rows = []
    for batch in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        if batch > (plan.engine.max_num_seqs or 0):
            break
        seconds = step.step_s(step.decode_work(batch, context_tokens))
        rows.append((counted(batch, "sequence"), format_duration(seconds), f"{format_number(batch / seconds)} tok/s"))
    return table((f"Decode at {context_tokens:,} tokens each", "Step", "Output"), rows)


def _rate_row(plan: Plan) -> tuple[str, str, str, str]:
    s, result = plan.scenario, f"{format_number(offered_rps(plan))} req/s"
    if not s.is_open_loop:
        return "Rate", "requests that finish", "requests finished ÷ simulated time", result
    peak = format_number(s.peak_factor)
    formula, values = {
        "users": (
            "users × requests per hour ÷ 3,600 × peak factor",
            f"{s.users:,} × {format_number(s.requests_per_user_hour)} ÷ 3,600 s × {peak}",
        ),
        "daily": (
            "requests per day ÷ 86,400 × peak factor",
            f"{format_number(s.requests_per_day)} ÷ 86,400 s × {peak}",
        ),
        "rate": ("as entered", format_number(s.rate_rps)),
    }[s.demand]
    return "Peak rate", formula, values, result


def _replicas_row(plan: Plan) -> tuple[str, str, str, str]:
    s, number = plan.scenario, f"{plan.num_replicas:,}"
    if s.fixed_replicas is not None:
        return "Replicas", "as entered", number, number
    spare = f" + {s.spare_replicas}" if s.spare_replicas else ""
    if not s.is_open_loop:
        formula = "fewest that meet the targets, each with its share of the users or requests, simulated"
        return "Replicas", formula + (" + spare" if spare else ""), f"{serving_replicas(plan)}{spare}", number
    slo = plan.curve.slo_rate_rps if plan.curve is not None else 0.0
    formula = "⌈peak rate ÷ highest rate that meets the targets⌉ + spare, confirmed by simulating the fleet"
    return "Replicas", formula, f"⌈{format_number(s.peak_rate_rps)} ÷ {format_number(slo)}⌉{spare}", number


def derivations(plan: Plan) -> Table:
    """The headline figures with formulas and this plan's values."""
    c, m, curve, s = plan.cost, plan.metrics, plan.curve, plan.scenario
    if c is None or m is None or curve is None:
        return table(
            ("Figure", "Formula"),
            [("KV pool", "budget − weights − activations − runtime − graphs: see Memory")],
        )
    ranks = s.attention_data_parallel_size
    tokens, full = c.tokens_per_request, format_number(curve.capacity_rps)
    return table(
        ("Figure", "Formula", "With the values", "Result"),
        [
            _rate_row(plan),
            _replicas_row(plan),
            (
                "GPUs",
                "replicas × tensor × pipeline" + (" × attention data parallel" if ranks > 1 else " parallel"),
                f"{plan.num_replicas} × {s.tensor_parallel_size} × {s.pipeline_parallel_size}"
                + (f" × {ranks}" if ranks > 1 else ""),
                f"{plan.num_gpus}",
            ),
            (
                "TTFT, TPOT",
                f"{_percentile(plan)} over the simulated requests after warm-up",
                f"{m.num_requests:,} requests, seed {s.seed}",
                f"{format_duration(m.ttft_s.at(s.target_quantile))}, {format_duration(m.tpot_s.at(s.target_quantile))}",
            ),
            (
                "Busy at peak",
                "peak rate ÷ (rate at which a replica saturates × replicas)",
                f"{format_number(offered_rps(plan))} ÷ ({full} × {serving_replicas(plan)})",
                format_percent(busy_share(plan)),
            ),
            (
                "USD per month",
                "GPUs × price × hours",
                f"{c.num_gpus} × {format_number(c.usd_per_gpu_hour)} × {format_number(s.hours_per_month)}",
                format_usd(c.usd_per_month),
            ),
            (
                "USD per million tokens",
                "bill ÷ (requests × tokens per request) × 10⁶",
                f"{format_number(c.usd_per_month)} ÷ ({format_number(c.requests_per_month)} × {format_number(tokens)}) "
                "× 10⁶",
                format_usd(c.usd_per_million_tokens),
            ),
        ],
    )


def memory_gib(size: float) -> str:
    """Bytes as GiB with two decimals."""
    return f"{size / GIB:,.2f} GiB"
