"""What an engine printed as it started, in place of the estimate; never averaged with it."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from planner.inputs import PrintedMemory
from planner.memory.defaults import Resolved
from planner.memory.edition import SIZE_IN_LOG
from planner.memory.kv_groups import KvLayout
from planner.memory.memory_plan import Formula
from planner.units import GIB

if TYPE_CHECKING:
    from planner.memory.ranks import Rank

#: parts of the memory in the order of `PrintedMemory`: name of the formula → words
PRINTED_PARTS = {
    "weights": "weights",
    "activation": "activations",
    "cuda_graphs": "CUDA graphs",
    "kv_pool": "KV cache",
    "kv_tokens": "KV cache tokens",
}
SOURCE = "your start-up log"


def as_printed(rank: Rank, printed: PrintedMemory, max_model_len: int, resolved: Resolved) -> Rank:
    """The rank with what its engine printed, and the estimate where the log is silent.

    Parameters
    ----------
    rank : Rank
        As estimated.
    printed : PrintedMemory
        Figures of the log.
    max_model_len : int
        Longest sequence. [tokens]
    resolved : Resolved
        The engine's limits and release.
    """
    blocks, pool = None, printed.kv_pool_bytes
    if printed.kv_tokens is not None and resolved.edition.family != "llamacpp":
        blocks = blocks_of_logged(printed.kv_tokens, rank.layout, max_model_len, resolved)
        pool = blocks * rank.layout.block_bytes if pool is None else pool
    weights = rank.weights_bytes if printed.weights_bytes is None else printed.weights_bytes
    scale = weights / rank.weights_bytes if rank.weights_bytes else 1.0
    sizes = tuple((group, size * scale) for group, size in rank.stage.weights_by_group)
    return dataclasses.replace(
        rank,
        stage=dataclasses.replace(rank.stage, weights_by_group=sizes),
        weights_bytes=weights,
        activation_bytes=rank.activation_bytes if printed.activation_bytes is None else printed.activation_bytes,
        cuda_graph_bytes=rank.cuda_graph_bytes if printed.cuda_graph_bytes is None else printed.cuda_graph_bytes,
        pool_bytes=rank.pool_bytes if pool is None else pool,
        printed_blocks=blocks,
    )


def logs_concurrency(resolved: Resolved) -> bool:
    """Whether the KV cache size in the log is concurrency × max_model_len: vLLM since v0.20.2."""
    edition = resolved.edition
    return edition.family == "vllm" and edition.release >= SIZE_IN_LOG and not edition.is_v0


def blocks_of_logged(tokens: int, layout: KvLayout, max_model_len: int, resolved: Resolved) -> int:
    """Blocks of a pool whose size the log gives in tokens: `logged_kv_tokens`, the other way round."""
    if logs_concurrency(resolved):
        counted = layout.counted_blocks(max_model_len, resolved.in_flight_tokens)
        return math.ceil(tokens * counted / max_model_len)
    smallest = min(group.block_tokens for group in layout.groups)
    return math.ceil(tokens / (smallest * layout.context_parallel)) * layout.num_groups


def printed_formulas(
    formulas: tuple[Formula, ...], replaced: tuple[tuple[str, float, float], ...]
) -> tuple[Formula, ...]:
    """The derivations of a plan, where a printed figure stands instead of a computed one with the estimate beside it.

    Parameters
    ----------
    formulas : tuple of Formula
        Of the plan.
    replaced : tuple
        (part, printed, estimated) in bytes and tokens.
    """
    told = {name: estimate for name, _, estimate in replaced}
    return tuple(
        dataclasses.replace(
            item,
            expression="as the engine printed it",
            substituted=f"estimate {told[item.name] / (GIB if item.unit == 'GiB' else 1):,.2f} {item.unit}",
            source=SOURCE,
        )
        if item.name in told
        else item
        for item in formulas
    )


def printed_note(replaced: tuple[tuple[str, float, float], ...]) -> str:
    """What the log says of each part, and how far the estimate lies from it, in a sentence; "" without any."""
    if not replaced:
        return ""
    return f"As your engine printed it, not estimated: {', '.join(_said(*row) for row in replaced)}."


def _said(name: str, printed: float, estimate: float) -> str:
    if name == "kv_tokens":
        return f"{PRINTED_PARTS[name]} {printed:,.0f} (estimate {estimate:,.0f})"
    return f"{PRINTED_PARTS[name]} {printed / GIB:,.2f} GiB (estimate {estimate / GIB:,.2f})"
