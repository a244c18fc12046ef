"""Sentences of the pages, made from a Plan's numbers. No streamlit."""

from __future__ import annotations

import math
from pathlib import Path

from planner.answer import Plan, fit_on_rank, meeting, reached, run_on_rank, target_label
from planner.units import counted, format_duration, format_number, format_usd

PAGES = Path(__file__).parent / "pages"


def gpus(number: float) -> str:
    """A number of GPUs in words."""
    if math.isinf(number):
        return "no number of GPUs is enough"
    return counted(number, "GPU")


def percentile(plan: Plan) -> str:
    """The quantile of the targets, as in p95."""
    return f"p{plan.scenario.target_quantile * 100:g}"


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
    q = percentile(plan)
    rows = [
        f"{q} {target_label(row.name)} {format_duration(row.figure_s)} (target {format_duration(row.limit_s)})"
        for row in reached(s, m)
    ] or [
        f"{q} {name} {format_duration(seen.at(s.target_quantile))}"
        for name, seen in (("TTFT", m.ttft_s), ("TPOT", m.tpot_s))
    ]
    return f"{', '.join(rows)}; {meeting(plan)}"


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


def not_compared(plan: Plan) -> str:
    """Why there is no comparison with a hosted API."""
    c = plan.cost
    assert c is not None
    if c.api_usd_per_request is None:
        return "No hosted price is known for a model of this size: enter one under Prices to compare"
    if not c.requests_per_month:
        return "No request finishes, so there is nothing to compare with a hosted API"
    return "These GPUs meet the targets at no volume, so there is no break-even with a hosted API"
