"""The charts of the printed report, drawn as plain SVG so that the page needs nothing else."""

from __future__ import annotations

import math
from html import escape

from planner.answer.outcome import Plan, offered_rps, serving_replicas
from planner.units import GIB, format_duration, format_number

WIDTH = 340
INK, MUTED, RULE = "#1b1d22", "#4c515c", "#c9ced6"
#: the page's own colours of these parts, see planner/charts/style.py
PARTS = (
    ("weights_bytes", "Weights", "#5b6fd8"),
    ("kv_pool_bytes", "KV cache", "#2e9e6b"),
    ("state_bytes", "States", "#1f7a8c"),
    ("activation_bytes", "Activations", "#b98500"),
    ("cuda_graph_bytes", "CUDA graphs", "#8a5a3c"),
    ("non_torch_bytes", "Runtime", "#8a76b5"),
    ("occupied_bytes", "Other processes", "#5d6470"),
    ("free_bytes", "Free", "#87908c"),
)
P95, TARGET, HERE = "#c2488f", "#e5484d", "#e05a0c"


def _svg(height: float, body: str, label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(label)}" font-family="inherit" font-size="10.5" fill="{INK}">{body}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start", fill: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'


def _rows(rows: list[tuple[str, float, float, str, str]], top: float, mark: float | None, label: str) -> str:
    """Named bars: name, begin, length, words, colour; all on an axis that ends at `top`."""
    left, room = 92.0, WIDTH - 92.0 - 62
    body = ""
    for k, (name, begin, length, words, colour) in enumerate(rows):
        y = 4 + 19 * k
        x, wide = left + begin / top * room, max(0.8, length / top * room)
        body += _text(left - 6, y + 10.5, name, "end", MUTED)
        body += f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="14" rx="2" fill="{colour}"/>'
        body += _text(x + wide + 4, y + 10.5, words)
    height = 8 + 19 * len(rows)
    if mark is not None:
        x = left + mark / top * room
        body += (
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 4}" stroke="{HERE}" stroke-width="1.5" '
            'stroke-dasharray="4 3"/>'
        )
    return _svg(height, body, label)


def memory_chart(done: Plan) -> str:
    """What fills one GPU, each part beginning where the one above it ends."""
    memory, rows, begin = done.memory, [], 0.0
    for name, title, colour in PARTS:
        gib = max(0.0, float(getattr(memory, name))) / GIB
        if gib >= 0.005:
            rows.append((title, begin, gib, f"{gib:.1f} GiB", colour))
            begin += gib
    total = memory.total_bytes / GIB
    return _rows(rows, max(begin, total), None, f"Memory of one GPU of {total:.1f} GiB")


def chain_chart(done: Plan) -> str:
    """GPUs that each reason alone would need, and the number bought."""
    finite = [link.gpus for link in done.chain if math.isfinite(link.gpus)]
    top = float(max([*finite, done.num_gpus, 1]))
    rows = [
        (
            link.reason,
            0.0,
            link.gpus if math.isfinite(link.gpus) else 0.6 * top,
            format_number(link.gpus) if math.isfinite(link.gpus) else "no number is enough",
            HERE if link.gpus >= done.num_gpus else "#7d8796",
        )
        for link in done.chain
    ]
    return _rows(rows, top, float(done.num_gpus), "GPUs that each reason alone would need")


def load_chart(done: Plan) -> str:
    """The 95th percentile of TTFT against load, with the target and the planned load; empty without a curve."""
    curve = done.curve
    if curve is None or not curve.points:
        return ""
    replicas, target = serving_replicas(done), done.scenario.ttft_target_s
    points = [(point.rate_rps * replicas, point.metrics.ttft_s.p95) for point in curve.points]
    points = [(x, y) for x, y in points if math.isfinite(y) and y > 0]
    if len(points) < 2:
        return ""
    known = [y for _, y in points] + ([target] if target else [])
    low, high = math.log10(min(known)) - 0.1, math.log10(max(known)) + 0.1
    right = 1.02 * max(points[-1][0], offered_rps(done))
    left, top, room, tall = 46.0, 16.0, WIDTH - 46.0 - 12, 104.0

    def at(x: float, y: float) -> tuple[float, float]:
        return left + x / right * room, top + tall * (1 - (math.log10(y) - low) / (high - low))

    body = ""
    for power in range(math.ceil(low), math.floor(high) + 1):
        _, y = at(0, 10.0**power)
        body += f'<line x1="{left}" x2="{left + room}" y1="{y:.1f}" y2="{y:.1f}" stroke="{RULE}"/>'
        body += _text(left - 5, y + 3.5, format_duration(10.0**power), "end", MUTED)
    path = " ".join(f"{'ML'[k > 0]}{x:.1f} {y:.1f}" for k, (x, y) in enumerate(at(*point) for point in points))
    if target:
        _, y = at(0, target)
        body += f'<path d="M{left} {y:.1f}h{room}" stroke="{TARGET}" stroke-width="1.5" stroke-dasharray="5 4"/>'
        body += _text(left + 4, y - 4, f"target {format_duration(target)}")
    body += f'<path d="{path}" fill="none" stroke="{P95}" stroke-width="2"/>'
    here, _ = at(offered_rps(done), 1.0)
    body += f'<path d="M{here:.1f} {top}v{tall}" stroke="{HERE}" stroke-width="1.5"/>'
    side = "end" if here > left + room / 2 else "start"
    planned = f"planned: {format_number(offered_rps(done))} req/s"
    body += _text(here + (-4 if side == "end" else 4), top - 5, planned, side)
    body += f'<line x1="{left}" x2="{left + room}" y1="{top + tall}" y2="{top + tall}" stroke="{MUTED}"/>'
    body += _text(left, top + tall + 13, "0", "start", MUTED)
    body += _text(left + room, top + tall + 13, f"{format_number(right)} requests per second", "end", MUTED)
    return _svg(top + tall + 20, body, "95th percentile of the time to first token against load")
