"""Formulas with a plan's values, and the smallest changes that make an engine start."""

from __future__ import annotations

import dataclasses
import math

from planner.inputs import EngineSettings
from planner.memory.demand import Demand
from planner.memory.log_constants import constant
from planner.memory.memory_plan import Formula, Remedy
from planner.memory.overheads_text import activation_text, graphs_text, non_torch_text
from planner.memory.precision import native_schemes
from planner.memory.ranks import reserved_contexts
from planner.memory.runtime import visible_memory_bytes
from planner.memory.verdict import (
    OOM_CAPTURE,
    OOM_HOST,
    OOM_SAMPLER,
    REFUSED_DIVISION,
    REFUSED_FREE_MEMORY,
    REFUSED_PRECISION,
    REFUSED_STEP,
    Verdict,
    largest_that_fits,
    shorter_context,
    start_verdict,
)
from planner.model import scheme, with_media
from planner.units import GIB, MIB, counted, format_number

NARROWER = ("fp8", "int4_g128")
GGUF = ("gguf_q8_0", "gguf_q4_k_m")
HIGHEST_UTILIZATION = 0.97
FEWER_SEQUENCES = (512, 256, 128, 64, 48, 32, 24, 16, 12, 8, 4, 2, 1)
CONTEXT_STEP = 1024
LEAST_BATCHED_TOKENS = 512
BUDGET_SOURCE = "vLLM gpu_worker.py: budget = share × device memory"
BUDGET_SOURCES = {
    "vllm": BUDGET_SOURCE,
    "sglang": "SGLang server_args.py and model_runner.py: mem_fraction_static",
    "trtllm": "TensorRT-LLM: free_gpu_memory_fraction of what is free after loading",
    "tgi": "TGI flash_causal_lm.py: a share of what is free after warm-up",
    "llamacpp": "llama.cpp reserves all contexts at start",
    "generic": BUDGET_SOURCE,
}
STATES_SOURCE = "SGLang handle_max_mamba_cache: slots as set, or memory by mamba_full_memory_ratio"
CACHE_SOURCE = "vLLM kv_cache_utils.py and kv_cache_interface.py"


def formulas(demand: Demand, verdict: Verdict, kv_tokens: int) -> tuple[Formula, ...]:
    """Derive every figure of the plan.

    Parameters
    ----------
    demand : Demand
        The deployment.
    verdict : Verdict
        Its figures.
    kv_tokens : int
        KV cache size in the engine's log. [tokens]

    Returns
    -------
    tuple of Formula
        weights, budget, activation, non_torch, cuda_graphs, states, kv_pool; bytes per token, blocks, tokens,
        concurrency.
    """
    return (*_memory_formulas(demand, verdict), *_capacity_formulas(verdict, kv_tokens))


def _gib(value: float) -> str:
    return f"{value / GIB:,.2f}"


def _memory_formulas(demand: Demand, verdict: Verdict) -> tuple[Formula, ...]:
    rank, resolved = verdict.rank, verdict.resolved
    parts = " + ".join(f"{group} {_gib(size)}" for group, size in rank.stage.weights_by_group if size > 0.005 * GIB)
    total, share = visible_memory_bytes(demand.gpu), resolved.gpu_memory_utilization
    family = resolved.edition.family
    symbols, values = _pool_terms(demand, verdict)
    rows = (
        ("weights", "Σ parameters × bits ÷ 8, each at its share per GPU", parts, rank.weights_bytes, "tensor groups"),
        ("budget", *_budget_terms(demand, share, total), rank.budget_bytes, BUDGET_SOURCES[family]),
        ("activation", *activation_text(demand, verdict), rank.activation_bytes, "published start-up logs, ± 5 %"),
        ("non_torch", *non_torch_text(demand, verdict), rank.non_torch_bytes, "published start-up logs, ± 0.1 GiB"),
        ("cuda_graphs", *graphs_text(demand, verdict), rank.cuda_graph_bytes, "published start-up logs, ± 20 %"),
        *_state_rows(verdict),
        ("kv_pool", symbols, values, rank.pool_bytes, BUDGET_SOURCES[family]),
    )
    return tuple(
        Formula(name=name, expression=expression, substituted=text or "0", value=value / GIB, unit="GiB", source=source)
        for name, expression, text, value, source in rows
    )


def _state_rows(verdict: Verdict) -> tuple[tuple[str, str, str, float, str], ...]:
    states = verdict.rank.states
    if states is None:
        return ()
    symbols, values = "slots × state", f"{states.slots:,} × {states.slot_bytes / MIB:,.2f} MiB"
    if states.drafting_bytes:
        symbols, values = f"{symbols} + states of drafted tokens", f"{values} + {_gib(states.drafting_bytes)} GiB"
    return (("states", symbols, values, states.total_bytes, STATES_SOURCE),)


def _budget_terms(demand: Demand, share: float, total: float) -> tuple[str, str]:
    """The budget of the engine's family, in symbols and with values."""
    family, taken = demand.engine.family, demand.occupied_bytes
    others, held = (" − other processes", f" − {_gib(taken)}") if taken else ("", "")
    if family == "sglang":
        context = constant("sglang_context")
        return (
            f"static fraction × (device memory − context{others}), for weights and cache",
            f"{share:g} × ({_gib(total)} − {_gib(context)}{held})",
        )
    if family in ("trtllm", "tgi"):
        return "device memory", _gib(total)
    if family == "llamacpp":
        return f"device memory{others}", f"{_gib(total)}{held}"
    return "utilization × device memory", f"{share:g} × {_gib(total)}"


def _pool_terms(demand: Demand, verdict: Verdict) -> tuple[str, str]:
    """The KV pool of the engine's family, in symbols and with values."""
    rank, family = verdict.rank, verdict.resolved.edition.family
    parts = [rank.weights_bytes, rank.activation_bytes, rank.non_torch_bytes]
    if rank.is_capped:
        most, block = demand.engine.max_total_tokens or 0, rank.layout.block_bytes / rank.layout.main.block_tokens
        return "max_total_tokens × bytes per token", f"{most:,} × {block:,.0f} B"
    if family == "llamacpp":
        slots, length = reserved_contexts(demand.engine, verdict.resolved), demand.max_model_len
        every = verdict.resolved.max_num_seqs
        if demand.engine.kv_unified:
            return "one context for all slots, windows and states per slot", (
                f"{length:,} tokens for {counted(every, 'slot')}: {_gib(rank.pool_bytes)} GiB"
            )
        if abs(rank.pool_bytes - slots * length * rank.layout.bytes_per_token) < 1:
            return "slots × context × bytes per token", (
                f"{slots:,} × {length:,} × {rank.layout.bytes_per_token:,.0f} B"
            )
        return "Σ layers: slots × (context, or window, or state)", (
            f"{counted(slots, 'slot')} of {length:,} tokens, windows and states once: {_gib(rank.pool_bytes)} GiB"
        )
    if family in ("trtllm", "tgi"):
        share = verdict.resolved.gpu_memory_utilization
        return (
            "share × (memory − weights − activation − non-torch)",
            f"{rank.pool_bytes / max(1.0, rank.budget_bytes - sum(parts)):.3f} × ("
            + " − ".join(map(_gib, [rank.budget_bytes, *parts]))
            + f"), of {share:g}",
        )
    symbols = "budget − weights"
    if family == "sglang":
        parts = parts[:1]
    else:
        symbols += " − activation − non-torch"
    if rank.states is not None:
        parts.append(rank.states.total_bytes)
        symbols += " − states"
    if rank.graphs_in_budget:
        parts.append(rank.cuda_graph_bytes)
        symbols += " − graphs"
    return symbols, " − ".join(map(_gib, [rank.budget_bytes, *parts]))


def _capacity_formulas(verdict: Verdict, kv_tokens: int) -> tuple[Formula, ...]:
    rank, layout = verdict.rank, verdict.rank.layout
    rows = (
        (
            "kv_bytes_per_token",
            "Σ layers: KV heads per GPU × (key + value width) × bytes",
            f"{format_number(layout.bytes_per_token, 7)} B",
            layout.bytes_per_token,
            "B",
        ),
        (
            "kv_blocks",
            "⌊pool ÷ bytes per block⌋",
            f"⌊{_gib(rank.pool_bytes)} GiB ÷ {layout.block_bytes / MIB:,.3f} MiB⌋",
            verdict.num_blocks,
            "blocks",
        ),
        (
            "kv_tokens",
            "KV cache size in the engine's log",
            f"{verdict.num_blocks:,} blocks in {layout.num_groups} groups",
            kv_tokens,
            "tokens",
        ),
        (
            "max_concurrency",
            "blocks ÷ blocks per sequence of max_model_len",
            f"{verdict.num_blocks:,} ÷ {verdict.blocks_per_sequence:,}",
            verdict.max_concurrency,
            "sequences",
        ),
    )
    return tuple(
        Formula(name=name, expression=expression, substituted=text, value=value, unit=unit, source=CACHE_SOURCE)
        for name, expression, text, value, unit in rows
    )


def remedies(demand: Demand, verdict: Verdict) -> tuple[Remedy, ...]:
    """Smallest changes that make the engine start, in the order in which a user would try them.

    Each is checked with a start of its own. Empty when the engine starts.
    """
    if verdict.starts:
        return ()
    if verdict.outcome == REFUSED_PRECISION:
        return _precision_remedies(demand)
    found: list[Remedy] = []
    longest = shorter_context(demand, verdict) if verdict.outcome != REFUSED_DIVISION else 0
    if longest >= 256:
        shorter = longest // CONTEXT_STEP * CONTEXT_STEP or longest
        if shorter < demand.max_model_len and _starts(demand, max_model_len=shorter):
            found.append(Remedy(f"max_model_len {shorter:,}", max_model_len=shorter))
    if verdict.rank.layout.has_states and verdict.num_blocks > 0:
        seqs = min(verdict.num_blocks, verdict.resolved.max_num_seqs) // 8 * 8
        if seqs and seqs < verdict.resolved.max_num_seqs and _starts(demand, engine={"max_num_seqs": seqs}):
            found.insert(0, Remedy(f"max_num_seqs {seqs:,}", max_num_seqs=seqs))
    if verdict.outcome == REFUSED_STEP and _starts(
        demand, engine={"max_num_batched_tokens": demand.model.image_tokens}
    ):
        tokens = demand.model.image_tokens
        found.append(Remedy(f"max_num_batched_tokens {tokens:,}", max_num_batched_tokens=tokens))
    if verdict.outcome == OOM_HOST:
        return _host_remedies(demand)
    if demand.engine.max_state_slots is not None and _starts(demand, engine={"max_state_slots": None}):
        found.append(Remedy("as many states as memory allows", max_state_slots=None))
    if demand.engine.ngram_on_gpu and _starts(demand, engine={"ngram_on_gpu": False}):
        found.append(Remedy("n-gram tables in host memory", ngram_tables="host"))
    found += _media_remedies(demand)
    found += _fewer_drafting(demand, verdict) + _setting_remedies(demand, verdict) + _hardware_remedies(demand)
    return tuple(found[:6])


def _precision_remedies(demand: Demand) -> tuple[Remedy, ...]:
    """Weights, then a cache, for which the engine has kernels on this GPU."""
    names = native_schemes(demand.model, demand.engine, demand.gpu, demand.weight_dtype)
    found = [_weights_in(name) for name in names if _starts(demand, weight_dtype=name)]
    caches = ("q8_0", "auto") if demand.engine.family == "llamacpp" else ("auto",)
    found += [
        Remedy(f"kv_cache_dtype {name}", kv_cache_dtype=name) for name in caches if _starts(demand, kv_cache_dtype=name)
    ]
    return tuple(found[:3])


def _weights_in(dtype: str) -> Remedy:
    return Remedy(f"weights in {scheme(dtype).in_words}", weight_dtype=dtype)


def _host_remedies(demand: Demand) -> tuple[Remedy, ...]:
    """Less in host memory: offload less, or n-gram tables on the GPUs."""
    found: list[Remedy] = []
    if demand.engine.kv_offload_gib and _starts(demand, engine={"kv_offload_gib": 0.0}):
        found.append(Remedy("no KV offload", kv_offload_gib=0.0))
    if demand.model.ngram_parameters and _starts(demand, engine={"ngram_on_gpu": True}):
        found.append(Remedy("n-gram tables on the GPUs", ngram_tables="gpu"))
    return tuple(found)


def _media_remedies(demand: Demand) -> list[Remedy]:
    """Less media: images without video where that helps, else text only."""
    for media, words in (("images", "images without video"), ("none", "text only, without the vision tower")):
        model = with_media(demand.model, media)
        if model != demand.model and demand.engine.family == "vllm" and _starts(demand, model=model):
            return [Remedy(words, media=media)]
    return []


def _fewer_drafting(demand: Demand, verdict: Verdict) -> list[Remedy]:
    """Fewer running requests, where drafting keeps states for each of them (SGLang)."""
    states = verdict.rank.states
    if states is None or not states.drafting_bytes:
        return []
    fewer = (seqs for seqs in FEWER_SEQUENCES if seqs < verdict.resolved.max_num_seqs)
    most = next((seqs for seqs in fewer if _starts(demand, engine={"max_num_seqs": seqs})), None)
    return [Remedy(f"max_num_seqs {most}", max_num_seqs=most)] if most else []


def _utilization(share: float) -> Remedy:
    return Remedy(f"gpu_memory_utilization {share:g}", gpu_memory_utilization=share)


def _setting_remedies(demand: Demand, verdict: Verdict) -> list[Remedy]:
    found: list[Remedy] = []
    share = verdict.resolved.gpu_memory_utilization
    if demand.engine.family in ("vllm", "sglang") and share < HIGHEST_UTILIZATION:
        low, high = int(share * 100), int(HIGHEST_UTILIZATION * 100)
        if _starts(demand, engine={"gpu_memory_utilization": high / 100}):
            refused = largest_that_fits(
                lambda percent: not _starts(demand, engine={"gpu_memory_utilization": percent / 100}), low, high
            )
            found.append(_utilization((refused + 1) / 100))
    if verdict.outcome in (OOM_CAPTURE, OOM_SAMPLER):
        shares = (percent / 100 for percent in range(int(share * 100 - 0.5), 0, -1))
        highest = next((less for less in shares if _starts_with_share(demand, less)), None)
        found += [_utilization(highest)] if highest else []
    if verdict.outcome == REFUSED_FREE_MEMORY:
        total = visible_memory_bytes(demand.gpu)
        lower = math.floor((1 - demand.occupied_bytes / total) * 100) / 100
        if lower > 0 and _starts(demand, engine={"gpu_memory_utilization": lower}):
            found.append(_utilization(lower))
        return [Remedy(f"freeing the {demand.occupied_bytes / GIB:,.1f} GiB that other processes hold"), *found]
    if demand.kv_cache_dtype in ("auto", "bf16", "fp16"):
        narrow = "q8_0" if demand.engine.family == "llamacpp" else "fp8"
        if _starts(demand, kv_cache_dtype=narrow):
            found.append(Remedy(f"kv_cache_dtype {narrow}", kv_cache_dtype=narrow))
    batch = _batch_remedies(demand, verdict)
    found += batch
    if not batch and verdict.resolved.max_num_seqs > 64 and demand.engine.max_num_seqs is None:
        small: dict[str, object] = {"max_num_seqs": 64, "max_num_batched_tokens": 2048}
        if _starts(demand, engine=small):
            found.append(Remedy("max_num_seqs 64 and max_num_batched_tokens 2,048", **small))
    return found


def _batch_remedies(demand: Demand, verdict: Verdict) -> list[Remedy]:
    """Fewer tokens in flight: smaller steps, or one step at a time where windows keep two (vLLM from 0.26 on)."""
    tokens, found = verdict.resolved.max_num_batched_tokens, list[Remedy]()
    if not demand.engine.enable_chunked_prefill or demand.engine.family not in ("vllm", "sglang"):
        return []
    halves = [tokens >> times for times in range(1, 5) if tokens >> times >= LEAST_BATCHED_TOKENS]
    fewer = next((less for less in halves if _starts(demand, engine={"max_num_batched_tokens": less})), None)
    if fewer is not None:
        found.append(Remedy(f"max_num_batched_tokens {fewer:,}", max_num_batched_tokens=fewer))
    overlaps = verdict.resolved.in_flight_tokens > tokens and demand.parallelism.pipeline_parallel_size == 1
    if overlaps and _starts(demand, engine={"async_scheduling": False}):
        found.append(Remedy("async scheduling off", async_scheduling="off"))
    return found


def _starts_with_share(demand: Demand, share: float) -> bool:
    return _starts(demand, engine={"gpu_memory_utilization": share})


def _hardware_remedies(demand: Demand) -> list[Remedy]:
    """Narrower weights, more GPUs, then both, where both together need fewer GPUs than the wider split alone."""
    found: list[Remedy] = []
    options = GGUF if demand.engine.family == "llamacpp" else NARROWER
    narrower = () if demand.model.quantization else tuple(x for x in options if x != demand.weight_dtype)
    for dtype in narrower:
        if _starts(demand, weight_dtype=dtype):
            found.append(_weights_in(dtype))
            break
    tp = demand.parallelism.tensor_parallel_size
    widths = [width for width in (2 * tp, 4 * tp, 8 * tp) if width <= demand.gpu.gpus_per_node]
    fewest = _narrowest(demand, widths)
    if fewest is not None:
        found.append(Remedy(f"tensor_parallel_size {fewest}", tensor_parallel_size=fewest))
    if not narrower or found[:1] == [_weights_in(narrower[0])]:
        return found or _other_split(demand)
    for dtype in narrower:
        both = _narrowest(dataclasses.replace(demand, weight_dtype=dtype), widths)
        if both is not None and (fewest is None or both < fewest):
            words = f"{_weights_in(dtype)} with tensor_parallel_size {both}"
            found.append(Remedy(words, weight_dtype=dtype, tensor_parallel_size=both))
            fewest = both
    return found or _other_split(demand)


def _narrowest(demand: Demand, widths: list[int]) -> int | None:
    for width in widths:
        parallelism = dataclasses.replace(demand.parallelism, tensor_parallel_size=width)
        if _starts(demand, parallelism=parallelism):
            return width
    return None


def _other_split(demand: Demand) -> list[Remedy]:
    # Nothing else helps: less tensor parallelism, where the engine refused the division, then more nodes.
    tensor, node = demand.parallelism.tensor_parallel_size, demand.gpu.gpus_per_node
    narrower = [(width, 1) for width in range(tensor - 1, 0, -1) if width & (width - 1) == 0]
    nodes = [(width, stages) for stages in (2, 3, 4, 6, 8, 12, 16) for width in (tensor, node) if width <= node]
    for width, stages in narrower + nodes:
        stages = max(stages, demand.parallelism.pipeline_parallel_size)
        parallelism = dataclasses.replace(demand.parallelism, tensor_parallel_size=width, pipeline_parallel_size=stages)
        if parallelism != demand.parallelism and _starts(demand, parallelism=parallelism):
            split = [f"tensor_parallel_size {width}"] if width != tensor else []
            if stages != demand.parallelism.pipeline_parallel_size:
                split.append(f"pipeline_parallel_size {stages}")
            words = " with ".join(split)
            return [Remedy(words, tensor_parallel_size=width, pipeline_parallel_size=stages)]
    return []


def _starts(demand: Demand, *, engine: dict[str, object] | None = None, **changes: object) -> bool:
    if engine is not None:
        settings: EngineSettings = dataclasses.replace(demand.engine, **engine)  # type: ignore[arg-type]
        changes["engine"] = settings
    return start_verdict(dataclasses.replace(demand, **changes), find_longest=False).starts  # type: ignore[arg-type]
