"""Tables of the pages, made from a Plan's numbers. No streamlit."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer import Plan, offered_rps, serving_replicas
from planner.cost import CostPlan
from planner.dashboard.headlines import percentile
from planner.dashboard.markdown import escaped
from planner.dashboard.tiles import busy_share
from planner.units import counted, format_duration, format_number, format_percent, format_usd

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
    tokens, full = c.tokens_per_request, curve.capacity_in_words()
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
                f"{percentile(plan)} over the simulated requests after warm-up",
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
