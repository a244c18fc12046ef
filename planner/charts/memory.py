"""Memory of one GPU: its parts, the requests that it holds, and the weights by tensor group."""

from __future__ import annotations

import itertools
from typing import Any

from planner.charts.style import COLOUR, HATCH, ROWS, Chart, bars, figure, fill, label, layout, line_at
from planner.inputs import KvReservation
from planner.memory import (
    OOM_CAPTURE,
    OOM_HOST,
    OOM_SAMPLER,
    PARTLY_ON_CPU,
    REFUSED_DIVISION,
    REFUSED_FREE_MEMORY,
    REFUSED_PRECISION,
    REFUSED_STATE_CACHE,
    REFUSED_STATES,
    REFUSED_STEP,
    MemoryPlan,
)
from planner.units import GIB, format_number, format_percent

LEAST_GIB = 0.005  # of a part that gets a row: less reads 0.00
GROUP_TITLES = {
    "embedding": "Embedding",
    "ngram": "N-gram tables",
    "lm_head": "Output head",
    "attention": "Attention",
    "indexer": "Indexer of sparse attention",
    "hyper_connection": "Hyper-connections",
    "mlp": "MLP",
    "expert": "Experts",
    "shared_expert": "Shared experts",
    "router": "Routers",
    "state": "State layers",
    "norm": "Norms",
    "vision": "Vision or audio encoder",
    "mtp": "Draft (MTP) layers",
    "lora": "LoRA slots",
    "draft": "Draft model",
    "rope_cache": "Rotary tables",
}


def parts(
    memory: MemoryPlan, held_fraction: float | None = None, written_fraction: float | None = None
) -> list[tuple[str, str, float]]:
    """The parts of the GPU's memory as (meaning, title, bytes), weights first.

    They add up to its memory, or to more where the engine runs short.

    Parameters
    ----------
    memory : MemoryPlan
        The GPU after start-up.
    held_fraction, written_fraction : float, optional
        Mean shares of the KV pool that requests reserve and that hold tokens, at the peak. Without them the pool is one
        part.
    """
    pool = max(0.0, memory.kv_pool_bytes)
    found = [("weights", "Weights", memory.weights_bytes)]
    if held_fraction is None or written_fraction is None:
        found.append(("kv_used", "KV cache", pool))
    else:
        written = min(written_fraction, held_fraction, 1.0) * pool
        held = min(held_fraction, 1.0) * pool
        found += [
            ("kv_used", "KV used at peak", written),
            ("kv_reserved", "KV reserved, empty", held - written),
            ("kv_unused", "KV free at peak", pool - held),
        ]
    found += [
        ("states", "States", memory.state_bytes),
        ("activations", "Activations", memory.activation_bytes),
        ("cuda_graphs", "CUDA graphs", memory.cuda_graph_bytes),
        ("runtime", "Runtime", memory.non_torch_bytes),
        ("occupied", "Other processes", memory.occupied_bytes),
        ("free", "Free", max(0.0, memory.free_bytes)),
    ]
    return found


def memory_finding(memory: MemoryPlan, held_fraction: float | None = None) -> str:
    """The finding of the memory bar, in a sentence."""
    if not memory.starts:
        return _refused_finding(memory)
    if memory.is_short:
        return f"A full step needs {-memory.free_bytes / GIB:.1f} GiB more than the GPU has"
    weights, pool = memory.weights_bytes / memory.total_bytes, memory.kv_pool_bytes / memory.total_bytes
    if held_fraction is not None and held_fraction > 0.9 and memory.free_bytes > memory.kv_pool_bytes:
        return f"The KV cache is full at the peak, while {memory.free_bytes / GIB:.1f} GiB of the GPU stay free"
    if held_fraction is not None and held_fraction > 0.9:
        return "The KV cache is full at the peak: memory limits this GPU"
    if weights > pool:
        return f"Weights take {format_percent(weights)} of the GPU, the KV cache {format_percent(pool)}"
    return f"The KV cache gets {format_percent(pool)} of the GPU, weights take {format_percent(weights)}"


def _refused_finding(memory: MemoryPlan) -> str:
    need = memory.weights_bytes + memory.activation_bytes + memory.non_torch_bytes
    need += memory.state_bytes + max(0.0, memory.kv_pool_bytes)
    if memory.outcome == PARTLY_ON_CPU:
        return f"Needs {need / GIB:.1f} GiB, the GPU has {memory.budget_bytes / GIB:.1f} GiB: the rest runs on the CPU"
    if memory.outcome == REFUSED_STATES:
        return (
            f"The memory left holds {memory.logged_kv_blocks:,} states, max_num_seqs allows {memory.max_num_seqs:,} "
            "sequences"
        )
    if memory.outcome == REFUSED_FREE_MEMORY:
        return f"Other processes hold {memory.occupied_bytes / GIB:.1f} GiB that the engine asks for"
    if memory.outcome == OOM_CAPTURE:
        return f"Weights and KV cache leave no room for {memory.cuda_graph_bytes / GIB:.1f} GiB of CUDA graphs"
    if memory.outcome == OOM_HOST:
        return memory.refusal.rstrip(".")
    if memory.outcome == OOM_SAMPLER:
        return f"No room is left to warm up the sampler for {memory.max_num_seqs:,} sequences"
    if memory.outcome == REFUSED_STATE_CACHE:
        return "The memory left does not hold one request's state"
    if memory.outcome == REFUSED_STEP:
        return f"max_num_batched_tokens {memory.max_num_batched_tokens:,} is too small for one whole image"
    if memory.outcome == REFUSED_DIVISION:
        return "The model does not divide over these GPUs: the engine refuses to start"
    if memory.outcome == REFUSED_PRECISION:
        return "The engine has no kernels for these weights or this KV cache on this GPU: it refuses to start"
    if memory.kv_pool_bytes < 0:
        taken = "Weights and states" if memory.state_bytes else "Weights and runtime"
        return f"{taken} leave the KV cache {format_number(-memory.kv_pool_bytes / GIB)} GiB short"
    return (
        f"The KV cache holds {memory.held_length_tokens:,} tokens, a full-length sequence needs "
        f"{memory.max_model_len:,}"
    )


def memory_bar(
    memory: MemoryPlan,
    held_fraction: float | None = None,
    written_fraction: float | None = None,
    *,
    gpu: str = "GPU",
    height: int = 300,
) -> Chart:
    """The GPU's memory in GiB, a row for each part, each beginning where the one above it ends."""
    every = parts(memory, held_fraction, written_fraction)
    rows = [(kind, title, size / GIB) for kind, title, size in every if size / GIB >= LEAST_GIB]
    total = memory.total_bytes / GIB
    ends = list(itertools.accumulate((gib for *_, gib in rows), initial=0.0))
    limit = memory.budget_bytes / GIB
    right = max(total, ends[-1])
    shape = layout(
        x="GiB",
        height=max(height, 90 + 26 * len(rows)),
        margin={"r": 44},
        yaxis=ROWS,
        xaxis={"range": [0, right]},
        showlegend=False,
        shapes=[line_at("x", limit, COLOUR["target"])],
        annotations=[
            label(
                f"engine's budget {limit:.1f}" if memory.activations_in_budget else f"weights and KV up to {limit:.1f}",
                limit,
                1.02,
                COLOUR["target"],
                yref="paper",
                xanchor="right" if limit > 0.4 * right else "left",
            ),
            *(
                label(written_gib(gib), 1.0, title, xref="paper", yanchor="middle", xanchor="right", xshift=40)
                for _, title, gib in rows
            ),
        ],
    )
    told = ", ".join(f"{title} {gib:.1f} GiB" for _, title, gib in rows)
    return Chart(
        title=memory_finding(memory, held_fraction),
        subtitle=f"{gpu}, {total:.1f} GiB: what fills it after start-up",
        figure=figure([_part_bars(rows, ends[:-1], total)], shape),
        alt=f"Memory of one GPU of {total:.1f} GiB: {told}",
    )


def written_gib(gib: float) -> str:
    """A part's size as the chart writes it."""
    return f"{gib:.1f}" if gib >= 0.05 else f"{gib:.2f}"


def _part_bars(rows: list[tuple[str, str, float]], begins_gib: list[float], total_gib: float) -> dict[str, Any]:
    """The parts' bars, each where the one before ends; their figures stand beside the chart, clear of its lines."""
    kinds = [kind for kind, *_ in rows]
    return {
        "type": "bar",
        "orientation": "h",
        "y": [title for _, title, _ in rows],
        "x": [gib for *_, gib in rows],
        "base": begins_gib,
        "width": 0.82,
        "marker": fill(*kinds, pattern={**HATCH, "shape": ["/" if kind == "kv_reserved" else "" for kind in kinds]}),
        "text": [f"{title}: {gib:.2f} GiB ({100 * gib / total_gib:.1f} %)" for _, title, gib in rows],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
    }


def weights_by_group(memory: MemoryPlan) -> Chart:
    """Weights by tensor group, largest first."""
    rows = sorted(((name, size) for name, size in memory.weights_by_group if size > 0), key=lambda row: row[1])
    names = [GROUP_TITLES.get(name, name) for name, _ in rows]
    sizes = [size / GIB for _, size in rows]
    largest, share = (names[-1], rows[-1][1] / memory.weights_bytes) if rows else ("—", 0.0)
    return Chart(
        title=f"{largest}: {format_percent(share)} of the weights",
        subtitle="Weights on each GPU by tensor group, GiB",
        figure=figure(
            [
                bars(
                    names,
                    sizes,
                    [f"{size:.2f}" if size >= 0.005 else "under 0.01" for size in sizes],
                    "%{x:.3f} GiB",
                    marker={"color": COLOUR["weights"]},
                )
            ],
            layout(x="GiB", height=max(180, 46 + 34 * len(rows)), showlegend=False, yaxis={"showgrid": False}),
        ),
        alt="Weights by tensor group: " + ", ".join(f"{n} {s:.2f} GiB" for n, s in zip(names, sizes, strict=True)),
    )


def concurrency(
    memory: MemoryPlan, reservation: KvReservation = KvReservation.PAGED, own: float | None = None
) -> Chart | None:
    """Sequences that fit at once: at full length, and of this traffic, reserved and paged.

    Parameters
    ----------
    memory : MemoryPlan
        The pool.
    reservation : KvReservation
        What this engine does; its bar is marked.
    own : float, optional
        Sequences that fit when each reserves prompt and answer limit, for engines that do so.

    Returns
    -------
    Chart or None
        None when nothing fits.
    """
    if memory.num_kv_blocks <= 0:
        return None
    rows = [
        ("At full<br>context", memory.max_concurrency, "neutral", None),
        ("Reserving<br>max_model_len", memory.typical_concurrency_reserved, "kv_reserved", "reserve_max"),
        ("Paged", memory.typical_concurrency_paged, "kv_used", "paged"),
    ]
    if reservation is KvReservation.OUTPUT_LIMIT and own is not None:
        rows.insert(2, ("Reserving the<br>answer limit", own, "kv_unused", "reserve_output"))
    names = [f"{name}<br>(this engine)" if kind == reservation.value else name for name, _, _, kind in rows]
    values = [value for _, value, _, _ in rows]
    ratio = memory.typical_concurrency_paged / max(memory.typical_concurrency_reserved, 1e-9)
    times = f"{format_number(ratio, 2)}× " if ratio > 1.05 else ""
    limit, longest = memory.max_num_seqs, max(values)
    lines, notes = _limit_line(limit, longest) if limit < 1.3 * longest else ([], [])
    return Chart(
        title=f"Paged KV cache holds {times}as many of these requests as reserving max_model_len",
        subtitle="Sequences that fit in one KV pool: of max_model_len each, and of this traffic",
        figure=figure(
            [
                bars(
                    names,
                    values,
                    [format_number(value) for value in values],
                    "%{x:.1f}",
                    marker=fill(*(colour for _, _, colour, _ in rows)),
                )
            ],
            layout(
                x="sequences at once",
                height=80 + 52 * len(rows),
                showlegend=False,
                margin={"t": 34},
                yaxis={"showgrid": False},
                xaxis={"range": [0, 1.15 * max(longest, limit if lines else 0.0)], "tickformat": ",d", "nticks": 4},
                shapes=lines,
                annotations=notes,
            ),
        ),
        alt="; ".join(f"{name.replace('<br>', ' ')}: {format_number(value)} sequences" for name, value, _, _ in rows),
    )


def _limit_line(max_num_seqs: int, longest: float) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The line at max_num_seqs and its name, on the side where there is room beside the longest bar."""
    colour, side = COLOUR["here"], "right" if max_num_seqs > 0.5 * longest else "left"
    name = label(f"max_num_seqs {max_num_seqs:,}", max_num_seqs, 1.0, colour, yref="paper", xanchor=side)
    return [line_at("x", max_num_seqs, colour, "dash")], [name]
