"""Step-time tables: the kernels of a replica, added up over layers and token counts."""

from __future__ import annotations

import math

import numpy as np

from planner.arrays import Floats
from planner.inputs import Batching
from planner.memory import captured_sizes
from planner.model import MixerKind, TensorGroup, weight_bits
from planner.step_time.attention import attention_fields
from planner.step_time.drafting import drafting_line_s
from planner.step_time.layers import expert_kernel, head_s, token_terms_s
from planner.step_time.overheads import overhead
from planner.step_time.profile import evidence_of, peak_flops
from planner.step_time.rank_share import RankShare, weight_kernel
from planner.step_time.scaling import scaled_table
from planner.step_time.step_table import StepTimeTable

MAX_DECODES = 4096
LEAST_EXACT_TOKENS = 512  # decode batches up to here are computed one by one, larger ones between a few sizes


def graph_size(tokens: Floats, captured: tuple[int, ...]) -> Floats:
    """Decode batch padded to the next captured CUDA graph; beyond the largest one, as it is. [tokens]"""
    if not captured:
        return tokens
    sizes = np.array(captured, dtype=np.float64)
    return np.where(tokens <= sizes[-1], sizes[np.minimum(np.searchsorted(sizes, tokens), len(sizes) - 1)], tokens)


def prompt_grid(max_tokens: int) -> Floats:
    """Token counts at which a prompt step is computed; in between it is interpolated."""
    tail = np.geomspace(256, max(257, max_tokens), 64)
    return np.unique(np.concatenate([[1], np.arange(4, 64, 4), np.arange(64, 257, 16), tail]).astype(int)).astype(
        np.float64
    )


def prompt_launch_s(d: RankShare, tokens: Floats, captured: tuple[int, ...]) -> Floats:
    """Time to launch the kernels of a step with prompt tokens, a lower bound of the step. [s]

    Layers of latents, recurrent states or experts consist of more kernels; an engine that does not compile its layers
    launches each of them. A short convolution is one between two products, as attention is (sglang/srt/models/
    lfm2_moe.py: Lfm2MoeShortConv.forward). vLLM V1 runs prompts up to its largest captured size in piecewise graphs and
    launches only attention one by one.

    Parameters
    ----------
    d : RankShare
        The replica.
    tokens : array
        Tokens of the step.
    captured : tuple of int
        Captured graph sizes; empty without graphs.
    """
    name, version, generation = d.engine.family, d.engine.version, d.gpu.architecture.removesuffix(" Ultra")
    usual = overhead(name, version, "prompt_launch_us_per_layer", generation)
    graphed = overhead(name, version, "prompt_graph_us_per_layer") if captured else math.nan
    total = np.zeros_like(tokens)
    for layer, count in d.layers:
        latent, sparse = layer.mixer.kind is MixerKind.MLA, layer.mixer.indexer_top_k > 0
        kinds = ("sparse_latent_", "latent_", "state_", "expert_")
        runs = (latent and sparse, latent, layer.mixer.state_elements > 0, layer.experts is not None)
        found = [
            overhead(name, version, f"prompt_launch_us_per_{kind}layer", generation)
            for kind, has in zip(kinds, runs, strict=True)
            if has
        ]
        each = np.full_like(tokens, next((value for value in found if not math.isnan(value)), usual))
        if not math.isnan(graphed):
            each = np.where(tokens <= captured[-1], np.minimum(each, graphed), each)
        total += count * each
    return total * 1e-6


def server_us_per_token(d: RankShare) -> float:
    """Serial work of the server for each streamed token; Dynamo's takes no longer than the engine's own. [µs]"""
    own = overhead(d.engine.family, d.engine.version, "api_us_per_token")
    return min(own, overhead("", "", "dynamo_us_per_token")) if d.engine.behind_dynamo else own


def scheduler_held_s(d: RankShare, launch_s: float) -> float:
    """Time for which preparing and launching a step with prompt tokens holds the engine's scheduler. [s]

    The schedulers of SGLang and TensorRT-LLM launch the kernels themselves, as vLLM's does on one GPU
    (`vllm/v1/executor/uniproc_executor.py`); on several GPUs its workers do (`multiproc_executor.py`).

    Parameters
    ----------
    d : RankShare
        The replica.
    launch_s : float
        `prompt_launch_s` of a large step.
    """
    name, version = d.engine.family, d.engine.version
    if name == "vllm" and d.parallelism.tensor_parallel_size > 1:
        return 0.0
    return launch_s + overhead(name, version, "prompt_step_us") * 1e-6


def build_table(d: RankShare, max_tokens: int) -> StepTimeTable:
    """Add up the kernels of a replica into the table that the simulator reads.

    Parameters
    ----------
    d : RankShare
        The replica.
    max_tokens : int
        Most tokens of one step.

    Returns
    -------
    StepTimeTable
        Seconds.
    """
    name, version, stages = d.engine.family, d.engine.version, d.parallelism.pipeline_parallel_size
    attention = attention_fields(d)
    fixed = attention.pop("fixed")
    # Drafting happens in every step that decodes and grows with the sequences, as decode attention does.
    draft_base, draft_slope = drafting_line_s(d)
    attention["attention_base_s"] += draft_base
    attention["attention_floor_s"] += draft_base
    attention["attention_per_sequence_s"] += draft_slope
    captured = captured_sizes(d.engine, d.gpu, d.parallelism)
    exact = min(MAX_DECODES, max((LEAST_EXACT_TOKENS, *captured)))
    sizes = np.unique(graph_size(np.arange(1, min(max_tokens, exact) + 1, dtype=np.float64), captured))
    if max_tokens > exact:
        sizes = np.unique(np.concatenate([sizes, np.geomspace(exact + 1, min(max_tokens, MAX_DECODES), 24).round()]))
    grid = prompt_grid(max_tokens)
    prompt = np.arange(len(sizes) + len(grid)) >= len(sizes)
    both = np.sum(list(token_terms_s(d, np.concatenate([sizes, grid]), prompt=prompt).values()), axis=0)
    heads = head_s(d, sizes)
    at_sizes = np.maximum.accumulate(both[: len(sizes)] + heads)
    decodes = np.arange(min(max_tokens, MAX_DECODES) + 1, dtype=np.float64)
    decode = np.where(decodes > 0, np.interp(graph_size(decodes, captured), sizes, at_sizes), 0.0)
    mixed = np.maximum.accumulate(both[len(sizes) :] + fixed)
    host: dict[str, float] = {}
    if not d.kernels_only:
        launches = prompt_launch_s(d, grid, captured)
        mixed = np.maximum(mixed, launches) + overhead(name, version, "prompt_step_us") * 1e-6
        if not d.engine.cuda_graphs:
            eager = overhead(name, version, "eager_launch_us_per_layer") * 1e-6 * d.model.num_layers / stages
            decode = np.where(decodes > 0, np.maximum(decode, eager), 0.0)
        elif captured and overhead(name, version, "leaves_graphs"):
            beyond = np.ceil(decodes / d.attention_ranks) > captured[-1]
            decode = np.where(beyond, np.maximum(decode, prompt_launch_s(d, decodes, captured)), decode)
        # A static batch is one tensor to its loop (transformers generation/utils.py): no host work per sequence.
        scheduled = d.engine.batching is not Batching.STATIC
        host = {
            "launch_s": scheduler_held_s(d, float(launches[-1])),
            "host_s": overhead(name, version, "host_us") * 1e-6,
            "host_per_sequence_s": scheduled * overhead(name, version, "host_us_per_sequence") * 1e-6,
            "host_overlaps": bool(overhead(name, version, "overlaps")),
        }
        if not d.engine.offline:
            host |= {
                "request_overhead_s": overhead(name, version, "request_overhead_ms") * 1e-3,
                "server_per_request_s": overhead(name, version, "api_ms_per_request") * 1e-3,
                "server_per_prompt_token_s": overhead(name, version, "tokenise_us_per_token") * 1e-6,
                "server_per_token_s": server_us_per_token(d) * 1e-6,
            }
            host["host_per_sequence_s"] += overhead(name, version, "stream_us_per_sequence") * 1e-6
    tokens = np.arange(max_tokens + 1, dtype=np.float64)
    table = StepTimeTable(
        decode_s=decode,
        mixed_s=np.where(tokens > 0, np.interp(tokens, grid, mixed), 0.0),
        head_s=np.interp(decodes, np.concatenate([[0.0], sizes]), np.concatenate([[0.0], heads])),
        pipeline_stages=stages,
        relative_error=relative_error(d),
        notes=_notes(d),
        **host,  # type: ignore[arg-type]
        **attention,  # type: ignore[arg-type]
    )
    return scaled_table(table, d.scales)


def relative_error(d: RankShare) -> float:
    """Median error of these step times: residuals of the kernels, plus the error of an inherited profile."""
    bits = weight_bits(d.model, d.weight_dtype, TensorGroup.MLP)
    _, dense = d.profile.parameters("gemm", peak_flops(d.gpu, weight_kernel(d.model, d.weight_dtype, bits))[1])
    error = dense * 0.7  # errors of a layer's four products are independent and partly cancel
    if d.model.is_moe:
        error = max(error, d.profile.parameters("experts", expert_kernel(d))[1])
    return error + d.profile.inherited_error


def _notes(d: RankShare) -> tuple[str, ...]:
    return (evidence_of(d.gpu),)
