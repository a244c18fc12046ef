"""Formulas of activations, runtime memory and CUDA graphs, in symbols and with a plan's values."""

from __future__ import annotations

from planner.memory.cuda_graphs import graph_terms
from planner.memory.demand import Demand
from planner.memory.ranks import activation_of, sparse_workspace_of
from planner.memory.reserved import PHYSICAL_BATCH_TOKENS
from planner.memory.runtime import non_torch_terms, profiled_images
from planner.memory.verdict import Verdict
from planner.units import GIB


def _gib(value: float) -> str:
    return f"{value / GIB:,.3f}"


def activation_text(demand: Demand, verdict: Verdict) -> tuple[str, str]:
    """Formula of the activation peak, and the same with values. [GiB]"""
    resolved, stage, model = verdict.resolved, verdict.rank.stage, demand.model
    if resolved.edition.family == "llamacpp":
        batch = min(PHYSICAL_BATCH_TOKENS, resolved.max_num_batched_tokens)
        return "batch × (4 B × vocabulary + 24 B × hidden size)", (
            f"{batch:,} × (4 B × {model.vocab_size:,} + 24 B × {model.hidden_size:,})"
        )
    terms = activation_of(demand, resolved, stage)
    sparse = sparse_workspace_of(demand, resolved, stage, terms)
    symbols = "max(forward pass of max_num_batched_tokens, sampler over max_num_seqs rows"
    values = f"max({_gib(terms.forward)} of {resolved.max_num_batched_tokens:,} tokens, {_gib(terms.sampler)}"
    if terms.bytes_per_logit:
        values += (
            f" of {resolved.max_num_seqs:,} × {model.vocab_size:,} × {terms.bytes_per_logit:g} B and hidden states"
        )
    symbols, values = f"{symbols})", f"{values})"
    if terms.kept + sparse:
        symbols, values = f"{symbols} + workspaces", f"{values} + {_gib(terms.kept + sparse)}"
    if terms.encoder:
        items = f"{profiled_images(model, resolved, demand.max_model_len):,} × the largest image or video"
        symbols, values = f"max({symbols}, encoder)", f"max({values}, {_gib(terms.encoder + sparse)} of {items})"
    return symbols, values


def non_torch_text(demand: Demand, verdict: Verdict) -> tuple[str, str]:
    """Formula of the memory outside the framework's allocator, and the same with values. [GiB]"""
    if verdict.resolved.edition.family == "llamacpp":
        return "margin that Ollama keeps free", _gib(verdict.rank.non_torch_bytes)
    base, collectives = non_torch_terms(verdict.resolved, demand.parallelism, demand.gpu)
    others = verdict.rank.non_torch_bytes - base - collectives
    symbols, values = "context and libraries + collective buffers", f"{_gib(base)} + {_gib(collectives)}"
    if others > 0.5:  # bytes: vLLM before v0.9 counts other processes as its own
        named = "page cache" if verdict.rank.page_cache_bytes else "other processes"
        symbols, values = f"{symbols} + {named}", f"{values} + {_gib(others)}"
    return symbols, values


def graphs_text(demand: Demand, verdict: Verdict) -> tuple[str, str]:
    """Formula of the captured CUDA graphs, and the same with values. [GiB]"""
    layers, resolved = verdict.rank.stage.layers, verdict.resolved
    terms = graph_terms(demand.model, layers, demand.gpu, demand.engine, demand.parallelism, resolved)
    if terms is None:
        return "no CUDA graphs", "0"
    if terms.transient and terms.total == terms.transient:
        return "prefill workspace of a recurrent layer, which this release counts as graphs", _gib(terms.transient)
    return "base + (pool + per layer × layers + experts) × captured sizes ÷ sizes up to 512", (
        f"{_gib(terms.base)} + ({_gib(terms.common)} + {terms.per_layer / GIB:.5f} × {terms.num_layers} + "
        f"{_gib(terms.experts)}) × {terms.sizes} ÷ {terms.sizes_to_512}"
    )
