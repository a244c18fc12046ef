"""The memory page's figures with their formulas and this plan's values. No streamlit."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from planner.answer import Plan, fit_on_rank, run_on_rank
from planner.charts import GROUP_TITLES
from planner.dashboard.plan_tables import Table, table
from planner.inputs import KvReservation
from planner.memory import Formula, MemoryPlan, printed_note
from planner.model import ModelShape, TensorGroup
from planner.units import GIB, KIB, MIB, counted, format_number

ORDER = (
    *("total", "budget", "weights", "activation", "non_torch", "cuda_graphs", "occupied", "states", "kv_pool", "free"),
    *("kv_used", "kv_held", "kv_bytes_per_token", "block_bytes", "kv_blocks", "kv_tokens", "blocks_per_sequence"),
    *("max_concurrency", "sequence_tokens", "typical_concurrency_paged", "typical_concurrency_reserved"),
    *("typical_concurrency_limit", "run_at_once", "longest_context", "offloaded"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A sum that must add up, in words, and whether it does."""

    text: str
    holds: bool


def pool_identity(memory: MemoryPlan) -> Identity | None:
    """Blocks × bytes per block = the pool, and blocks × block size = the tokens that the engine logs.

    With sliding windows, states or several groups of layers a token has no single size; full-length sequences then
    connect pool and tokens. None when no pool is left, or where the engine's own log says its size.
    """
    if {"kv_pool", "kv_tokens"} & {name for name, *_ in memory.estimated}:
        return None
    blocks, pool = memory.logged_kv_blocks, memory.kv_pool_bytes
    if blocks <= 0 or pool <= 0:
        return None
    product, tokens = blocks * memory.block_bytes, blocks * memory.block_size
    fits = product <= pool * (1 + 1e-9) and pool - product <= memory.block_bytes * (1 + 1e-9)
    text = (
        f"{blocks:,} blocks × {memory.block_bytes / MIB:,.4g} MiB = {product / GIB:,.3f} GiB, the pool of "
        f"{pool / GIB:,.3f} GiB{_rest(max(0.0, pool - product))}. "
    )
    if memory.num_kv_blocks < blocks:
        text += "One block stays empty (the engine's null block). "
    if abs(tokens * memory.kv_bytes_per_token - product) < 1e-6 * product and tokens == memory.kv_tokens:
        return Identity(
            text=text + f"{blocks:,} blocks × {memory.block_size:,} = {tokens:,} tokens; {tokens:,} tokens × "
            f"{memory.kv_bytes_per_token / KIB:,.4g} KiB = {tokens * memory.kv_bytes_per_token / GIB:,.3f} GiB.",
            holds=fits,
        )
    whole = memory.max_concurrency * memory.max_model_len
    if abs(whole - memory.kv_tokens) <= 1 + 1e-9 * whole:
        text += (
            "With windows, states or several groups of layers a token has no single size: "
            f"{format_number(memory.max_concurrency, 5)} full-length sequences × {memory.max_model_len:,} = "
            f"{memory.kv_tokens:,} tokens, as the engine logs them."
        )
    else:
        text += f"A token has no single size here; the engine logs {memory.kv_tokens:,} tokens."
    return Identity(text=text, holds=fits)


def _rest(size: float) -> str:
    """What a pool has beyond its blocks; empty where that rounds to nothing."""
    said = f"{size / MIB:,.1f}"
    return "" if said == "0.0" else f" less {said} MiB, which is under one block"


def memory_formulas(plan: Plan) -> tuple[Formula, ...]:
    """Every figure of the memory page with its derivation, in page order."""
    memory = plan.memory
    found = {item.name: item for item in (*memory.formulas, *_gpu_formulas(plan), *_traffic_formulas(plan))}
    if not memory.occupied_bytes:
        found.pop("occupied", None)
    if memory.num_kv_blocks <= 0:
        kept = [name for name in found if "concurrency" not in name and name not in ("run_at_once", "block_bytes")]
        found = {name: found[name] for name in kept}
    known = [found[name] for name in ORDER if name in found]
    return (*known, *(item for name, item in found.items() if name not in ORDER))


def _gib(size: float) -> str:
    return f"{size / GIB:,.2f}"


def _gpu_formulas(plan: Plan) -> list[Formula]:
    m = plan.memory
    taken = [m.total_bytes, m.weights_bytes, m.activation_bytes, m.non_torch_bytes, m.cuda_graph_bytes]
    beside = [("states", m.state_bytes), ("others", m.occupied_bytes)]
    taken += [max(0.0, m.kv_pool_bytes)] + [size for _, size in beside if size]
    rows = [
        ("total", "what the driver reports", f"{plan.gpu.name}", m.total_bytes, plan.gpu.spec_source),
        ("occupied", "as entered", "before the engine starts", m.occupied_bytes, ""),
        (
            "free",
            "memory − weights − activation − non-torch − graphs − pool"
            + "".join(f" − {x}" for x, size in beside if size),
            " − ".join(map(_gib, taken)),
            m.free_bytes,
            "",
        ),
    ]
    result = plan.result
    if result is not None:
        pool, held, used = max(0.0, m.kv_pool_bytes), result.mean_kv_used_fraction, result.mean_kv_written_fraction
        source = "mean over the simulated peak, one replica"
        rows += [
            ("kv_used", "pool × mean share that holds tokens", f"{_gib(pool)} × {used:.2%}", pool * used, source),
            ("kv_held", "pool × mean share reserved by requests", f"{_gib(pool)} × {held:.2%}", pool * held, source),
        ]
    return [
        Formula(name=name, expression=text, substituted=values, value=size / GIB, unit="GiB", source=source)
        for name, text, values, size, source in rows
    ]


def _traffic_formulas(plan: Plan) -> list[Formula]:
    m, prompt, output = plan.memory, plan.mean_prompt_tokens, plan.mean_output_tokens
    rows = [
        ("block_bytes", "bytes of one block on one GPU", f"{m.block_bytes:,.0f} B", m.block_bytes / MIB, "MiB"),
        (
            "blocks_per_sequence",
            "blocks for max_model_len tokens, with windows, states and a prompt in prefill",
            f"{m.max_model_len:,} tokens in blocks of {m.block_size:,}",
            m.blocks_per_sequence,
            "blocks",
        ),
        (
            "sequence_tokens",
            "mean prompt + mean answer ÷ 2",
            f"{prompt:,.1f} + {output:,.1f} ÷ 2",
            prompt + output / 2,
            "tokens",
        ),
        (
            "run_at_once",
            "sequences that fit in the pool, at most max_num_seqs",
            f"min({format_number(fit_on_rank(plan), 5)}, {m.max_num_seqs:,})",
            run_on_rank(plan),
            "sequences",
        ),
        (
            "longest_context",
            "longest max_model_len that passes the start-up check",
            f"{m.logged_kv_blocks:,} blocks, by bisection",
            m.longest_context_tokens,
            "tokens",
        ),
    ]
    if plan.engine.kv_reservation is KvReservation.OUTPUT_LIMIT:
        limit = plan.scenario.output_limit_tokens
        sets = f"{prompt:,.0f} + {limit:,}" if limit else f"{m.max_model_len:,} (clients send no answer limit)"
        rows.append(
            (
                "typical_concurrency_limit",
                "blocks ÷ blocks of prompt + answer limit",
                f"{m.num_kv_blocks:,} ÷ blocks of {sets} tokens",
                fit_on_rank(plan),
                "sequences",
            )
        )
    if plan.engine.kv_offload_gib:
        each = f"{plan.engine.kv_offload_gib:,.4g} GiB ÷ {plan.scenario.parallelism.gpus_per_replica}"
        rows.append(
            (
                "offloaded",
                "CPU memory ÷ GPUs ÷ bytes per token",
                f"{each} ÷ {m.kv_bytes_per_token:,.0f} B",
                m.offloaded_kv_tokens,
                "tokens",
            )
        )
    return [
        Formula(name=name, expression=text, substituted=values, value=float(value), unit=unit, source="")
        for name, text, values, value, unit in rows
    ]


def band_sentence(memory: MemoryPlan) -> str:
    """Our error on weights, KV pool and tokens, in their own units; what the engine's own log says has none."""
    if memory.estimated:
        return printed_note(memory.estimated)
    weights, pool = memory.weights_bytes, max(0.0, memory.kv_pool_bytes)
    said = f"weights {_gib(weights)} ± {_gib(memory.weights_error * weights)} GiB"
    if pool:
        low, high = memory.kv_pool_low_bytes / pool, memory.kv_pool_high_bytes / pool
        ends = _either(_gib(low * pool), _gib(high * pool))
        tokens = _either(format_number(low * memory.kv_tokens), format_number(high * memory.kv_tokens))
        whole = _either(format_number(low * memory.max_concurrency, 2), format_number(high * memory.max_concurrency, 2))
        said += f", KV pool {ends} GiB, so {tokens} tokens and {whole} sequences of full length"
    return f"Our error: {said}. Of the published start-up logs, 9 in 10 are within these bands."


def _either(low: str, high: str) -> str:
    """A range in words; one figure where both ends read the same."""
    return low if low == high else f"{low} to {high}"


def group_parameters(model: ModelShape) -> dict[str, int]:
    """Parameters of the whole model by tensor group; they add up to the published count."""
    counts: dict[str, int] = defaultdict(int)
    for layer, number in model.layer_counts():
        for linear in layer.linears:
            counts[linear.group.value] += number * linear.num_parameters
        counts[TensorGroup.NORM.value] += number * layer.norm_parameters
    counts[TensorGroup.NORM.value] += model.final_norm_parameters
    counts[TensorGroup.EMBEDDING.value] += model.embedding_parameters - model.ngram_parameters
    counts[TensorGroup.NGRAM.value] += model.ngram_parameters
    counts[TensorGroup.LM_HEAD.value] += model.lm_head_parameters
    counts[TensorGroup.VISION.value] += model.vision_parameters
    counts[TensorGroup.MTP.value] += model.mtp_parameters
    return {name: count for name, count in counts.items() if count}


def weights_table(plan: Plan) -> Table:
    """Weights by tensor group: parameters of the model, and bytes on one GPU."""
    counts, gpus = group_parameters(plan.model), plan.scenario.parallelism.gpus_per_replica
    rows = []
    for name, size in sorted(plan.memory.weights_by_group, key=lambda row: -row[1]):
        count = counts.get(name)
        rows.append(
            (
                GROUP_TITLES.get(name, name),
                f"{count:,}" if count else "—",
                f"{size / GIB:,.3f} GiB",
                f"{8 * size * gpus / count:,.3g}" if count else "—",
            )
        )
    total = plan.memory.weights_bytes
    everything = sum(count for name, count in counts.items() if name in dict(plan.memory.weights_by_group))
    rows.append(("All", f"{everything:,}", f"{total / GIB:,.3f} GiB", f"{8 * total * gpus / max(1, everything):,.3g}"))
    return table(
        ("Tensor group", "Parameters", "On each GPU", f"Bits per parameter, over {counted(gpus, 'GPU')}"), rows
    )
