"""The words and tables of the pages, made from a Plan's numbers. No streamlit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.answer import Band, Change, Plan, Search, fit_on_rank, offered_rps, run_on_rank, serving_replicas
from planner.charts import in_sentence
from planner.dashboard.markdown import escaped
from planner.service import LoadPoint
from planner.step_time import StepWork
from planner.units import GIB, counted, format_duration, format_number, format_percent, format_usd

PAGES = Path(__file__).parent / "pages"
COMMON_GPUS = ("H100 SXM", "H200 SXM", "B200", "A100 SXM 80GB", "L40S", "L4", "MI300X", "RTX 4090")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One headline figure: value, what stands beside it, what it means, its course over load."""

    label: str
    value: str
    beside: str
    help: str
    line: tuple[float, ...] = ()


def gpus(number: float) -> str:
    """A number of GPUs in words."""
    if math.isinf(number):
        return "no number of GPUs would do"
    return counted(number, "GPU")


def _percentile(plan: Plan) -> str:
    return f"p{plan.scenario.target_quantile * 100:g}"


def _line(plan: Plan, read: object, points: tuple[LoadPoint, ...]) -> tuple[float, ...]:
    values = tuple(float(read(point)) for point in points)  # type: ignore[operator]
    return values if values and all(math.isfinite(value) for value in values) else ()


def tiles(plan: Plan) -> tuple[Tile, ...]:
    """The five headline figures; dashes where the engine does not start."""
    q, metrics, cost, curve = _percentile(plan), plan.metrics, plan.cost, plan.curve
    if metrics is None or cost is None or curve is None:
        names = ("GPUs", f"{q} TTFT", f"{q} TPOT", "Busy at peak", "USD / M tokens")
        return tuple(Tile(label=name, value="—", beside="does not start", help="") for name in names)
    s, points = plan.scenario, curve.points
    ttft_band, tpot_band = plan.bands["ttft"], plan.bands["tpot"]
    slo = curve.slo_rate_rps
    per_replica = s.parallelism.gpus_per_replica
    need = (
        tuple(float(max(1, math.ceil(s.peak_rate_rps * k / 4 / slo)) * per_replica) for k in range(1, 9))
        if slo > 0 and s.is_open_loop
        else ()
    )
    low, high = price_band(plan)
    replicas = f"{counted(plan.num_replicas, 'replica')} × {per_replica}"
    return (
        Tile(
            label="GPUs",
            value=f"{plan.num_gpus:,}",
            beside=replicas,
            help="GPUs that the plan buys. The line: GPUs from a quarter to twice the peak.",
            line=need,
        ),
        Tile(
            label=f"{q} TTFT",
            value=format_duration(metrics.ttft_s.at(s.target_quantile)),
            beside=f"{band_text(ttft_band)}≤ {format_duration(s.ttft_target_s)}",
            help=f"Time to first token, queueing included, of {q} of the requests at the peak, beside its target. "
            f"{band_meaning(ttft_band)} "
            "The line: over load.",
            line=_line(plan, lambda p: p.metrics.ttft_s.at(s.target_quantile), points[:-2]),
        ),
        Tile(
            label=f"{q} TPOT",
            value=format_duration(metrics.tpot_s.at(s.target_quantile)),
            beside=f"{band_text(tpot_band)}≤ {format_duration(s.tpot_target_s)}",
            help=f"Time per output token after the first, per request, beside its target. {band_meaning(tpot_band)} "
            "The line: over load.",
            line=_line(plan, lambda p: p.metrics.tpot_s.at(s.target_quantile), points[:-2]),
        ),
        Tile(
            label="Busy at peak",
            value=format_percent(busy_share(plan)),
            beside=f"of {format_number(curve.capacity_rps * serving_replicas(plan))} req/s",
            help="Share of the full throughput that the peak uses. The line: goodput over load.",
            line=_line(plan, lambda p: p.metrics.goodput_rps, points),
        ),
        Tile(
            label="USD / M tokens",
            value=format_usd(cost.usd_per_million_tokens).removesuffix(" USD"),
            beside=f"{low} … {high}" if low else f"{format_usd(cost.usd_per_month)} a month",
            help="The month's bill divided by its tokens, prompt and output alike, at the mean rate. The range is the "
            "lowest and highest hourly GPU price. The line: over load.",
            line=_line(plan, lambda p: cost.usd_per_hour / serving_replicas(plan) / max(p.rate_rps, 1e-9), points[1:]),
        ),
    )


def band_text(band: Band) -> str:
    """The band beside a figure; empty where nothing was measured."""
    return f"± {format_percent(band.median_fraction)}, " if math.isfinite(band.median_fraction) else ""


def band_meaning(band: Band) -> str:
    """What the band rests on, in a sentence."""
    if not math.isfinite(band.median_fraction):
        return "Nothing of this class was measured: an estimate of unknown error."
    return (
        f"The band: half of {band.rows:,} published results ({band.basis}) lie within "
        f"{format_percent(band.median_fraction)}, nine of ten within {format_percent(band.p90_fraction)}."
    )


def busy_share(plan: Plan) -> float:
    """Served requests per second as a share of what the fleet finishes with a full queue."""
    if plan.curve is None or plan.metrics is None or plan.curve.capacity_rps <= 0:
        return math.nan
    return offered_rps(plan) / (plan.curve.capacity_rps * serving_replicas(plan))


def price_band(plan: Plan) -> tuple[str, str]:
    """USD per million tokens at the lowest and highest known GPU price; empty when the price is the user's own."""
    gpu, cost = plan.gpu, plan.cost
    low, high = gpu.usd_per_hour_low, gpu.usd_per_hour_high
    if cost is None or plan.scenario.usd_per_gpu_hour is not None or not low or not high or not cost.usd_per_gpu_hour:
        return "", ""
    if not cost.requests_per_month:
        return "", ""
    scale = cost.usd_per_million_tokens / cost.usd_per_gpu_hour
    return format_number(low * scale, 2), format_number(high * scale, 2)


def _sure(probability: float) -> str:
    return "over 99 %" if probability > 0.99 else "under 1 %" if probability < 0.01 else format_percent(probability)


def percentiles(plan: Plan) -> str:
    """All headline percentiles and totals in one line."""
    m, cost = plan.metrics, plan.cost
    assert m is not None
    assert cost is not None
    first = " / ".join(format_duration(v) for v in (m.ttft_s.p50, m.ttft_s.p95, m.ttft_s.p99))
    each = " / ".join(format_duration(v) for v in (m.tpot_s.p50, m.tpot_s.p95, m.tpot_s.p99))
    return (
        f"p50 / p95 / p99: first token {first}, per token {each} · goodput {format_number(m.goodput_rps)} req/s · "
        f"{counted(plan.num_replicas, 'replica')} · {format_usd(cost.usd_per_month)} a month"
        + (f" · {_sure(plan.slo_probability)} sure of both targets" if plan.slo_probability >= 0 else "")
    )


def change_lines(plan: Plan, changes: tuple[Change, ...]) -> list[str]:
    """Changes that alter the answer, one line each; the others together in one."""
    idle = [change.label for change in changes if change.text.endswith("no change")]
    lines = [f"{change.label}: {change.text}" for change in changes if change.label not in idle]
    return lines + ([f"No difference: {', '.join(idle)}"] if idle else [])


def memory_sentence(plan: Plan) -> str:
    """What the memory page says first."""
    m = plan.memory
    if not m.starts:
        return plan.headline
    held, running = fit_on_rank(plan), run_on_rank(plan)
    ranks = plan.scenario.attention_data_parallel_size
    where = f"each of the {ranks} attention ranks" if ranks > 1 else "each replica"
    limited = f"; the scheduler runs at most {format_number(running)}" if running < 0.995 * held else ""
    return (
        f"{m.kv_tokens:,} tokens of KV cache on {where}: room for {counted(m.max_concurrency, 'sequence')} "
        f"of {m.max_model_len:,} tokens, or {format_number(held)} of this traffic{limited}"
    )


def latency_sentence(plan: Plan) -> str:
    """What the latency page says first."""
    m, s = plan.metrics, plan.scenario
    assert m is not None
    q = _percentile(plan)
    return (
        f"{q} first token after {format_duration(m.ttft_s.at(s.target_quantile))} (target "
        f"{format_duration(s.ttft_target_s)}), {format_duration(m.tpot_s.at(s.target_quantile))} per token (target "
        f"{format_duration(s.tpot_target_s)}); {format_percent(m.slo_attainment)} of requests meet both"
    )


Table = list[dict[str, str]]


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """Rows under a header; markdown specials of the cells are escaped, short figures do not break."""
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
        ("Gap between tokens (ITL)", m.itl_s),
        ("End to end", m.e2e_s),
    )
    rows = [(name, *(format_duration(value) for value in (d.mean, d.p50, d.p90, d.p95, d.p99))) for name, d in named]
    return table(("At the peak", "mean", "p50", "p90", "p95", "p99"), rows)


def policy_sentence(plan: Plan) -> str:
    """What the batching lab says first."""
    worst, best = plan.policies[0], plan.policies[-1]
    if worst.capacity_tokens_per_s <= 0 or best.capacity_tokens_per_s <= 0:
        return "Identical requests under four policies"
    ratio = best.capacity_tokens_per_s / worst.capacity_tokens_per_s
    static = next((p for p in plan.policies if p.name == "static"), worst)
    against = best.capacity_tokens_per_s / static.capacity_tokens_per_s if static.capacity_tokens_per_s else math.inf
    return (
        f"The same requests on the same GPU: {in_sentence(best.title)} carries {format_number(ratio, 2)}× one at a "
        f"time and {format_number(against, 2)}× static batches"
    )


def policy_table(plan: Plan) -> Table:
    """Throughput, slots, cache, waits and cost of each policy."""
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
    header = ("Policy", "Tokens/s", "Slots busy", "KV used / held", "Median wait", "p95 wait", "USD / M tokens")
    return table(header, rows)


def cost_sentence(plan: Plan) -> str:
    """What the cost page says first."""
    c = plan.cost
    if c is None:
        return plan.headline
    said = (
        f"{gpus(plan.num_gpus)}, {format_usd(c.usd_per_month)} a month, "
        f"{format_usd(c.usd_per_million_tokens)} per million tokens"
    )
    if c.api_usd_per_month is None or c.break_even_requests_per_month is None:
        return said
    verdict = "a hosted API is cheaper" if c.api_is_cheaper else "cheaper than a hosted API"
    return f"{said}; {verdict} ({format_usd(c.api_usd_per_month)} a month)"


def cost_table(plan: Plan) -> Table:
    """The bill, own GPUs beside the API."""
    c = plan.cost
    assert c is not None
    dash = "—"
    api_month = format_usd(c.api_usd_per_month) if c.api_usd_per_month is not None else dash
    api_token = format_usd(c.api_usd_per_million_tokens) if c.api_usd_per_million_tokens is not None else dash
    api_thousand = (
        format_usd(c.api_usd_per_month / c.requests_per_month * 1000) if c.api_usd_per_month is not None else dash
    )
    even = format_number(c.break_even_requests_per_month) if c.break_even_requests_per_month else dash
    return table(
        ("", "Own GPUs", "Hosted API"),
        [
            ("USD per GPU-hour", format_usd(c.usd_per_gpu_hour), dash),
            ("USD per month", format_usd(c.usd_per_month), api_month),
            ("USD per million tokens, mean use", format_usd(c.usd_per_million_tokens), api_token),
            ("USD per million tokens, always at peak", format_usd(c.usd_per_million_tokens_at_peak), api_token),
            ("USD per million output tokens", format_usd(c.usd_per_million_output_tokens), dash),
            ("USD per 1,000 requests", format_usd(c.usd_per_thousand_requests), api_thousand),
            ("Requests per month", format_number(c.requests_per_month), f"break-even {even}"),
        ],
    )


def step_table(plan: Plan, context_tokens: int) -> Table:
    """Decode step time and token rate by batch."""
    step = plan.step_time
    assert step is not None
    rows = []
    for batch in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        if batch > (plan.engine.max_num_seqs or 0):
            break
        work = StepWork(
            num_decodes=batch,
            kv_tokens=batch * context_tokens,
            window_kv_tokens=batch * min(context_tokens, step.window_tokens or context_tokens),
            num_logit_rows=batch,
        )
        seconds = step.step_s(work)
        rows.append((counted(batch, "sequence"), format_duration(seconds), f"{format_number(batch / seconds)} tok/s"))
    return table((f"Decode at {context_tokens:,} tokens each", "Step", "Output"), rows)


def _rate_row(plan: Plan) -> tuple[str, str, str, str]:
    s, result = plan.scenario, f"{format_number(offered_rps(plan))} req/s"
    if not s.is_open_loop:
        return "Rate", "what the clients get done", "requests finished ÷ simulated time", result
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
    if s.num_replicas is not None:
        return "Replicas", "as entered", number, number
    spare = f" + {s.spare_replicas}" if s.spare_replicas else ""
    if not s.is_open_loop:
        return "Replicas", "one, since there is no rate to hold" + (" + spare" if spare else ""), f"1{spare}", number
    slo = plan.curve.slo_rate_rps if plan.curve is not None else 0.0
    formula = "⌈peak rate ÷ highest rate that meets the targets⌉ + spare, then simulated"
    return "Replicas", formula, f"⌈{format_number(s.peak_rate_rps)} ÷ {format_number(slo)}⌉{spare}", number


def derivations(plan: Plan) -> Table:
    """The headline figures with their formulas and this plan's values."""
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
                f"{_percentile(plan)} over simulated requests after warm-up",
                f"{m.num_requests:,} requests, seed {s.seed}",
                f"{format_duration(m.ttft_s.at(s.target_quantile))}, {format_duration(m.tpot_s.at(s.target_quantile))}",
            ),
            (
                "Busy at peak",
                "peak rate ÷ (throughput with a full queue × replicas)",
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


def search_rows(found: Search) -> list[dict[str, object]]:
    """Candidates as rows of a table."""
    return [
        {
            "outcome": item.status,
            "GPU": item.scenario.gpu,
            "GPUs": item.num_gpus,
            "TP × PP": f"{item.scenario.tensor_parallel_size} × {item.scenario.pipeline_parallel_size}",
            "weights": item.scenario.weight_dtype,
            "USD a month": item.usd_per_month,
            "USD / M tokens": item.usd_per_million_tokens,
            "TTFT s": item.ttft_s,
            "TPOT ms": item.tpot_s * 1000 if item.tpot_s is not None else None,
            "req/s each": item.slo_rate_rps,
            "why": item.reason,
        }
        for item in found.candidates
    ]


def memory_gib(size: float) -> str:
    """Bytes as GiB with two decimals."""
    return f"{size / GIB:,.2f} GiB"
