"""A plan as text for the terminal, and the rows that the printed report shares with it."""

from __future__ import annotations

import math

from planner.answer.outcome import Plan, Verdict, offered_rps, serving_replicas, target_label
from planner.scenario import TARGETS, to_query
from planner.service import Distribution, ServingMetrics
from planner.units import GIB, NOTHING, counted, format_duration, format_number, format_percent, format_usd


def figures(done: Plan) -> tuple[tuple[str, str, str], ...]:
    """The headline figures: name, value and what to compare it with."""
    scenario = done.scenario
    if done.metrics is None or done.cost is None or done.curve is None:
        return ()
    m, serving = done.metrics, serving_replicas(done)
    room = done.curve.slo_rate_rps * serving  # from one replica's curve; a fleet can differ
    known = room > 0 and scenario.is_open_loop  # users who wait queue less than the curve's Poisson arrivals
    return (
        (
            "GPUs",
            f"{done.num_gpus}",
            f"{counted(done.num_replicas, 'replica')} of {counted(scenario.parallelism.gpus_per_replica, 'GPU')}",
        ),
        *_latency_rows(done, m),
        (
            "Meet every target" if scenario.targets else "Finish",
            format_percent(m.slo_attainment),
            f"goodput {format_number(m.goodput_rps)} req/s",
        ),
        ("Simulated", counted(m.num_requests, "request"), _window(done, m)),
        (
            "Meets the targets up to" if scenario.targets else "Keeps up with",
            done.curve.slo_rate_in_words(serving) if known and (done.slo_met or room < offered_rps(done)) else "—",
            f"saturates at {done.curve.capacity_in_words(serving)} req/s",
        ),
        ("Per million tokens", format_usd(done.cost.usd_per_million_tokens), "prompt and output tokens alike"),
        ("Per month", format_usd(done.cost.usd_per_month), f"{format_usd(done.cost.usd_per_gpu_hour)} per GPU-hour"),
    )


def _latency_rows(done: Plan, m: ServingMetrics) -> list[tuple[str, str, str]]:
    """TTFT and TPOT, with or without a target, and what else has one."""
    s, shown = done.scenario, {"ttft_target_s", "tpot_target_s"} | {target.field for target in done.scenario.targets}
    rows = []
    for field, (name, _, latency) in TARGETS.items():
        if field in shown:
            seen, limit = getattr(m, latency), getattr(s, field)
            beside = "no target" if limit is None else f"target {format_duration(limit)}"
            name = "longest gap (ITL)" if name == "ITL" else name
            value = format_duration(seen.at(s.target_quantile))
            rows.append((f"p{s.target_quantile * 100:g} {name}", value, f"{beside}{_sampled(seen)}"))
    return rows


def _sampled(latency: Distribution) -> str:
    half = latency.target_half_width
    return f"; sampling ± {format_duration(half)} (95 %)" if half > NOTHING * latency.mean else ""


def _window(done: Plan, m: ServingMetrics) -> str:
    """Which requests the latencies are of."""
    if done.scenario.measured_requests == "all" or done.scenario.arrivals == "once":
        return "all of them count"
    if m.verdict == "overloaded":
        return "the queue keeps growing: figures are of this run, not of a steady state"
    steady = f"{m.num_counted:,} in the steady state count"
    return steady if m.is_settled else f"{steady}; near saturation a longer run would tell more"


TRACED = (
    "No link carries the trace. This one opens what was read off it (mean rate, spread of the gaps, lengths, reuse), "
    "so its figures differ a little:"
)


SURE_OF_A_BURST = (
    "The chance with other numbers of GPUs is not known for a burst: how long it waits depends on the requests that "
    "each replica gets, so plan it with that number of replicas"
)


def memory_rows(done: Plan) -> tuple[tuple[str, str], ...]:
    """Memory of one GPU by part, in GiB."""
    memory = done.memory
    parts = (
        ("Weights", memory.weights_bytes),
        ("KV cache", max(0.0, memory.kv_pool_bytes)),
        ("States", memory.state_bytes),
        ("Activations", memory.activation_bytes),
        ("CUDA graphs", memory.cuda_graph_bytes),
        ("Runtime", memory.non_torch_bytes),
        ("Other processes", memory.occupied_bytes),
        ("Short of a full step" if memory.is_short else "Free", abs(memory.free_bytes)),
        ("Total", memory.total_bytes),
    )
    return tuple(
        (name, f"{size / GIB:.2f} GiB") for name, size in parts if size or name not in ("States", "Other processes")
    )


def policy_rows(done: Plan) -> tuple[tuple[str, ...], ...]:
    """The batching policies on the same requests, header first."""
    rows: list[tuple[str, ...]] = [
        (
            "Policy",
            "Full throughput",
            "Running at once",
            "KV used / reserved",
            "p50 end to end",
            "p95 end to end",
            "USD / M tokens at full load",
        )
    ]
    for item in done.policies:
        m = item.metrics
        rows.append(
            (
                item.title,
                f"{format_number(item.capacity_tokens_per_s)} tok/s",
                counted(item.result.mean_running, "sequence"),
                f"{format_percent(item.result.mean_kv_written_fraction)} / "
                f"{format_percent(item.result.mean_kv_used_fraction)}",
                format_duration(m.e2e_s.p50),
                format_duration(m.e2e_s.p95),
                format_usd(item.usd_per_million_tokens_at_capacity),
            )
        )
    return tuple(rows)


def plan_text(done: Plan) -> str:
    """A plan as text for the terminal."""
    lines = [done.headline, ""]
    if done.verdict is not None:
        lines += _verdict_lines(done.verdict)
    lines += [f"  {name:26} {value:>14}   {beside}" for name, value, beside in figures(done)]
    lines += ["", f"Memory per GPU ({done.gpu.name})"]
    lines += [f"  {name:26} {value:>14}" for name, value in memory_rows(done)]
    if done.chain:
        lines += ["", "Why this many GPUs"]
        lines += [f"  {link.reason:26} {format_number(link.gpus):>14}   {link.detail}" for link in done.chain]
    if done.policies:
        lines += ["", "The same requests under each policy"]
        rows = policy_rows(done)
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines += ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    lines += ["", *([] if done.fits else ["What would make it start"]), *(f"- {reason}" for reason in done.reasons)]
    lines += [f"{'!' if finding.severity == 'warning' else '-'} {finding.text}" for finding in done.findings]
    lines += ["", *([TRACED] if done.is_traced else []), f"Link: ?{to_query(done.scenario)}"]
    return "\n".join(lines)


def _verdict_lines(found: Verdict) -> list[str]:
    """The verdict, the GPUs at each chance, and the measurement that would narrow it most."""
    said = f"{found.text[0].upper()}{found.text[1:]}."
    return [
        said,
        *([f"{told}."] if (told := sure_line(found)) else []),
        f"Measure {target_label(found.narrows)}: {found.measurement}",
        "",
    ]


def sure_line(found: Verdict) -> str:
    """The GPUs at each chance that the targets hold, or why none are told, without a full stop; "" if none is known."""
    if not found.sure:
        return "" if math.isnan(found.probability) else SURE_OF_A_BURST
    most = {item.num_gpus: item.share for item in found.sure if item.num_gpus is not None}  # shares rise
    told = ", ".join(f"at least {format_percent(share)} with {counted(gpus, 'GPU')}" for gpus, share in most.items())
    never = [item for item in found.sure if item.num_gpus is None]
    rest = f"no number of replicas reaches {format_percent(never[0].share)}" if never else ""
    alone = {0: "they keep up", 1: "the target holds"}.get(len(found.targets), "each target holds")
    joint = "that all hold at once can be less likely" if len(found.targets) > 1 else ""
    return f"Chance that {alone}: {'; '.join(part for part in (told, rest, joint) if part)}"
