"""The part of a step that depends on its token count alone: matrices, experts, collectives and states."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Floats
from planner.model import Layer, Linear, Mixer, MixerKind, Shard, TensorGroup, weight_bits
from planner.step_time import kernels
from planner.step_time.awq import awq_parts
from planner.step_time.kernel_rules import kernel_constant
from planner.step_time.kernels import Parts
from planner.step_time.overheads import overhead
from planner.step_time.profile import NVLINK_GB_S, device_of, peak_flops
from planner.step_time.rank_share import RankShare, weight_kernel
from planner.units import MIB

# For what no kernel table has measured.
#: work of the busiest expert-parallel rank over the mean: upper end of AIConfigurator's power-law workloads, 1.1 to 1.5
EXPERT_IMBALANCE = 1.5
BENCHMARK_IMBALANCE = 0.5  # in AIConfigurator's kernel tables the busiest of R ranks has R**0.5 times the mean
#: latency of an all-gather or reduce-scatter between attention ranks: NCCL on 8 × H100 (AIConfigurator: 15.6 µs)
EXCHANGE_FIXED_S = 15e-6
EXCHANGE_FRACTION = 0.75  # share of a PCIe link's one-way bandwidth that they reach; estimate
#: the same for NVLink: an all-reduce of 16 MB by NCCL on 8 × H100 takes 136 µs, 0.48 of 450 GB/s
#: (github.com/ByteDance-Seed/Triton-distributed/issues/57)
EXCHANGE_FRACTION_NVLINK = 0.5
STATE_KERNELS = 4  # small ones of a state layer: convolution, gates, delta rule, gated norm (vLLM models/qwen3_next)
STATE_FRACTION = 0.6  # share of bandwidth that the update of a state reaches; estimate
SAMPLING_S = 25e-6  # the sampler's kernels; estimate
LOGITS_FRACTION = 0.5  # share of bandwidth at which fp32 logits are read twice; estimate
NORM_KERNELS = 3  # small ones of a norm over all heads: squares, their sum, scaling (vLLM MiniMaxText01RMSNormTP)
HOP_FIXED_S = 10e-6  # sending activations to the next pipeline stage; estimate
HOP_FRACTION = 0.8  # share of the link's one-way bandwidth; estimate
#: architectures on which MXFP4 matrices meet activations in MXFP4, at the rate of 4 bits: AITER's kernels for MI350X
#: and MI355X (github.com/vllm-project/vllm/pull/25135)
MULTIPLIES_MXFP4 = ("CDNA4",)
FUSED_QUANTISATION = ("fp8", "nvfp4")  # TensorRT-LLM quantises these activations in the norm or activation before
#: largest message that an all-reduce fused with its norm takes, by SM generation and ranks [MiB]
#: (vLLM compilation/passes/fusion/allreduce_rms_fusion.py: FI_ALLREDUCE_FUSION_MAX_SIZE_MB)
FUSED_MIB = {"Hopper": {2: 64.0, 4: 2.0, 8: 0.5}, "Blackwell": {2: 64.0, 4: 32.0, 8: 1.0}}
FUSED_NORMS = 2  # a layer: behind attention and behind its matrices or experts
TOKEN_TERMS = (
    "weights_read",
    "gemm_compute",
    "expert_compute",
    "elementwise_and_launch",
    "collectives",
    "state_update",
    "pipeline_hops",
)


def _gemm_parts(d: RankShare, tokens: Floats, out: Floats, inner: Floats, bits: float) -> Parts:
    """Products of matrices whose weights have the same type; one matrix per entry of the first axis."""
    dtype = weight_kernel(d.model, d.weight_dtype, bits)
    if d.runs_plain_awq and bits < 16:
        return awq_parts(
            d.profile.parameters("gemm", "int4")[0],
            d.profile.parameters("gemm", "bf16")[0],
            device_of(d.gpu),
            tokens[None, :],
            out[:, None],
            inner[:, None],
            bits,
            d.engine.family,
        )
    # Outside the experts, MXFP4 and similar 4-bit weights are dequantised in the kernel, as INT4 weights are.
    asked = dtype if dtype != "mxfp4" else "nvfp4" if d.gpu.architecture in MULTIPLIES_MXFP4 else "int4"
    dtype = peak_flops(d.gpu, asked)[1]
    parameters, _ = d.profile.parameters("gemm", dtype)
    return kernels.gemm_parts(
        parameters,
        device_of(d.gpu, "int8" if d.profile.multiplies_int8 and bits < 16 else asked),
        tokens[None, :],
        out[:, None],
        inner[:, None],
        bits,
        fused_quantisation=not d.kernels_only and d.engine.family == "trtllm" and dtype in FUSED_QUANTISATION,
    )


def _local(d: RankShare, layer: Layer, shard: Shard, out: float, inner: float) -> tuple[float, float]:
    if shard in (Shard.COLUMN, Shard.VOCAB):
        return out / d.tp, inner
    if shard is Shard.ROW:
        return out, inner / d.tp
    if shard is Shard.KV_COLUMN:
        heads = max(1, layer.mixer.num_kv_heads)
        return out * max(1, heads // d.tp) / heads, inner
    return out, inner


def linear_parts(d: RankShare, layer: Layer, tokens: Floats, *, shared_expert: bool = False) -> list[Parts]:
    """Matrices of a layer other than its experts, or those of its shared expert alone.

    Projections of the same input run as one product.
    """
    calls: dict[float, dict[tuple[str, float], float]] = {}
    for linear in layer.linears:
        if linear.group is TensorGroup.EXPERT or _of_shared_expert(linear) is not shared_expert:
            continue
        bits = weight_bits(d.model, d.weight_dtype, linear.group, linear.quantizable)
        out, inner = _local(d, layer, linear.shard, float(linear.out_features), float(linear.in_features))
        side = "out" if linear.shard is Shard.ROW else "in"
        same = calls.setdefault(bits, {})
        key = (f"{linear.group.value}/{side}", inner)
        same[key] = same.get(key, 0.0) + out * linear.count
    return [
        _gemm_parts(d, tokens, np.array(list(same.values())), np.array([inner for _, inner in same]), bits)
        for bits, same in calls.items()
    ]


def _of_shared_expert(linear: Linear) -> bool:
    """Whether a matrix is the shared expert's own: those that narrow the input of the routed ones are not."""
    return linear.group is TensorGroup.SHARED_EXPERT and linear.shard is not Shard.REPLICATED


def shared_expert_parts(
    d: RankShare, layer: Layer, tokens: Floats, routed: Parts, prompt: NDArray[np.bool_] | bool
) -> list[Parts]:
    """What a layer's shared expert adds to the time of its routed ones.

    On a stream of its own it runs while they do. The two then take as long as the slower one alone, but no less than
    the work of both: what hides is the time in which a kernel waits (launch, routing, synchronisation).

    Parameters
    ----------
    d : RankShare
        The replica.
    layer : Layer
        One with experts.
    tokens : array
        Tokens of an attention rank.
    routed : Parts
        Time of the routed experts.
    prompt : array or bool
        Whether the step holds prompt tokens, which run on one stream.

    Returns
    -------
    list of Parts
        Seconds by type of weights; empty without a shared expert.
    """
    own = linear_parts(d, layer, tokens, shared_expert=True)
    most = 0.0 if d.kernels_only else overhead(d.engine.family, d.engine.version, "shared_expert_stream_tokens")
    if not own or not most or d.gpu.vendor != "NVIDIA":
        return own
    alone = np.sum([part.total.sum(axis=0) for part in own], axis=0)
    waits = routed.fixed + np.sum([part.fixed.sum(axis=0) for part in own], axis=0)
    together = np.maximum(np.maximum(alone, routed.total), routed.total + alone - waits)
    share = np.where(np.asarray(prompt) | (tokens > most), 1.0, (together - routed.total) / alone)
    return [part.times(share) for part in own]


def expert_kernel(d: RankShare) -> str:
    """Type of the kernels that multiply the experts."""
    return peak_flops(d.gpu, _expert_format(d))[1]


def _expert_format(d: RankShare) -> str:
    four_bits = d.expert_weights == "mxfp4" and d.gpu.architecture in MULTIPLIES_MXFP4
    return "nvfp4" if four_bits else d.expert_weights


def expert_parts(d: RankShare, layer: Layer, tokens: Floats) -> Parts:
    """Grouped products of a layer's experts, for the tokens of all attention ranks."""
    assert layer.experts is not None
    ranks = d.tp * d.attention_ranks
    spread = d.parallelism.expert_parallel and ranks > 1
    size = sum(x.in_features * x.out_features for x in layer.linears if x.group is TensorGroup.EXPERT)
    bits = weight_bits(d.model, d.weight_dtype, TensorGroup.EXPERT)
    parameters, _ = d.profile.parameters("experts", expert_kernel(d))
    inner = layer.experts.intermediate_size
    hidden = next((x.in_features for x in layer.linears if x.group is TensorGroup.EXPERT), d.model.hidden_size)
    return kernels.expert_parts(
        parameters,
        device_of(d.gpu, _expert_format(d)),
        tokens * d.attention_ranks,
        hidden=hidden,
        intermediate=inner if spread else inner / ranks,
        num_experts=layer.experts.num_experts,
        top_k=layer.experts.experts_per_token,
        bits=bits,
        resident=1 / ranks if spread else 1.0,
        imbalance=(ranks**BENCHMARK_IMBALANCE if d.kernels_only else EXPERT_IMBALANCE) if spread else 1.0,
        matrices=size / (hidden * inner),
        aligned_rows=1
        if d.kernels_only or d.moe_backend != "deep_gemm"
        else int(kernel_constant(d.engine.family, "deep_gemm", "aligned_rows")),
        vector_tokens=int(kernel_constant("llamacpp", "vector_product", "max_tokens"))
        if d.engine.family == "llamacpp"
        else 0,
    )


def elementwise_s(d: RankShare, layer: Layer, tokens: Floats) -> Floats:
    """Norms, residuals and activation of a layer; a norm that runs inside an all-reduce costs no kernel. [s]"""
    wide = sum(
        (x.out_features + x.out_features / 2) / d.tp
        for x in layer.linears
        if x.name == "gate_up_proj" and x.group in (TensorGroup.MLP, TensorGroup.SHARED_EXPERT)
    )
    elements = tokens * (8 * d.model.hidden_size + wide)
    whole = kernels.elementwise_s(device_of(d.gpu), elements, 3 if wide else 2)
    return whole - FUSED_NORMS * kernels.ELEMENTWISE_FIXED_S * fuses_norms(d, tokens)


def fuses_norms(d: RankShare, tokens: Floats) -> NDArray[np.bool_]:
    """Whether the engine's all-reduce also normalises, at each number of tokens: small messages on Hopper and newer."""
    generation = d.gpu.architecture.removesuffix(" Ultra")
    limit = FUSED_MIB.get(generation, {}).get(d.tp, 0.0) if d.gpu.link_gb_s >= NVLINK_GB_S else 0.0
    on = not d.kernels_only and overhead(d.engine.family, d.engine.version, "fuses_norms", generation) > 0
    return np.asarray(on & (tokens * d.model.hidden_size * 2 <= limit * MIB))


def collectives_s(d: RankShare, layer: Layer, tokens: Floats) -> Floats:
    """All-reduces of tensor parallelism, and the exchange of tokens between attention ranks. [s]"""
    hidden, ranks = d.model.hidden_size, d.attention_ranks
    total = np.zeros_like(tokens)
    if d.tp > 1:
        calls = (
            2 if layer.experts or any(x.shard is Shard.ROW and x.group is TensorGroup.MLP for x in layer.linears) else 1
        )
        total = total + calls * kernels.collective_s(*d.profile.all_reduce(d.tp), tokens * hidden * 2)
    if ranks > 1 and layer.experts is not None:
        fraction = EXCHANGE_FRACTION_NVLINK if d.gpu.link_gb_s >= NVLINK_GB_S else EXCHANGE_FRACTION
        rate = fraction * d.gpu.link_gb_s * 1e9 / 2
        moved = tokens * ranks * hidden * 4 * (ranks - 1) / ranks
        total = total + 2 * EXCHANGE_FIXED_S + moved / rate
    return total


def adapters_s(d: RankShare, layer: Layer, tokens: Floats, prompt: NDArray[np.bool_] | bool) -> Floats:
    """Time of a layer's LoRA products. [s]

    Each decoded token reads the factors of its own adapter, rank × (in + out) of each matrix; a prompt reads them once.
    Two small kernels per matrix run either way.
    """
    matrices = [x for x in layer.linears if x.count == 1 and x.quantizable]
    widths = sum(sum(_local(d, layer, x.shard, float(x.out_features), float(x.in_features))) for x in matrices)
    fraction = overhead(d.engine.family, d.engine.version, "lora_bandwidth_fraction")
    reads = np.where(prompt, 1.0, tokens) * 2 * d.engine.max_lora_rank * widths
    return 2 * len(matrices) * kernels.ELEMENTWISE_FIXED_S + reads / (fraction * d.bandwidth)


def state_s(d: RankShare, mixer: Mixer, tokens: Floats, prompt: NDArray[np.bool_] | bool) -> Floats:
    """Recurrent update of a state layer: each sequence's state is read and written once. [s]

    A prompt updates its state once per chunk of 64 tokens.
    """
    updates = np.where(prompt, np.ceil(tokens / 64), tokens)
    size = 2 * mixer.state_elements * mixer.state_element_bytes / d.tp
    return STATE_KERNELS * kernels.ELEMENTWISE_FIXED_S + updates * size / (STATE_FRACTION * d.bandwidth)


def norm_exchange_s(d: RankShare, layer: Layer) -> float:
    """Norm of query and key over all heads, with a sum over tensor-parallel ranks. [s]

    vLLM fuses it since 0.22 (github.com/vllm-project/vllm/pull/43410), which is not modelled: its documentation
    (design/fusions, v0.21) calls that 2 to 3 % of a MiniMax-M2 request.
    """
    mixer = layer.mixer
    wide = (mixer.num_heads + mixer.num_kv_heads) * mixer.head_dim
    if not wide or layer.norm_parameters - 2 * d.model.hidden_size < wide:
        return 0.0
    return NORM_KERNELS * kernels.ELEMENTWISE_FIXED_S + (
        2 * float(d.profile.all_reduce(d.tp)[1][0]) if d.tp > 1 else 0.0
    )


def token_terms_s(
    d: RankShare,
    tokens: Floats,
    *,
    prompt: NDArray[np.bool_] | bool,
    layers: tuple[tuple[Layer, float], ...] | None = None,
) -> dict[str, Floats]:
    """Time of the slowest pipeline stage that depends on the token count alone, by term.

    Parameters
    ----------
    d : RankShare
        The replica.
    tokens : array
        Tokens of a step over all attention ranks, evenly distributed.
    prompt : array or bool
        Whether the step holds prompt tokens.
    layers : tuple, optional
        Layers and how many of each; those of the slowest pipeline stage by default.

    Returns
    -------
    dict of str to array
        Seconds by term.
    """
    mine = np.ceil(tokens / d.attention_ranks)
    terms = {name: np.zeros_like(tokens) for name in TOKEN_TERMS}

    def add(parts: Parts, count: float, compute: str) -> None:
        for name, value in (
            ("weights_read", parts.weights),
            (compute, parts.compute),
            ("elementwise_and_launch", parts.fixed + parts.activations),
        ):
            terms[name] += count * (value if value.ndim == 1 else value.sum(axis=0))

    name, version, generation = d.engine.family, d.engine.version, d.gpu.architecture.removesuffix(" Ultra")

    def in_prompts(parameter: str, usual: float = math.nan) -> Floats:
        # Tables time one kernel at a time; routing, skew and power limits of real prompts are in none of them.
        factor = 1.0 if d.kernels_only else overhead(name, version, parameter, generation)
        return np.where(prompt, usual if math.isnan(factor) else factor, 1.0)

    for layer, count in d.layers if layers is None else layers:
        matrices = linear_parts(d, layer, mine)
        if layer.experts is not None:
            parts = expert_parts(d, layer, mine)
            slower = in_prompts("prompt_expert_factor") * in_prompts(f"prompt_expert_{expert_kernel(d)}_times", 1.0)
            parts = replace(parts, compute=parts.compute * slower, activations=parts.activations * slower)
            add(parts, count, "expert_compute")
            matrices += shared_expert_parts(d, layer, mine, parts, prompt)
        for parts in matrices:
            add(replace(parts, compute=parts.compute * in_prompts("prompt_dense_factor")), count, "gemm_compute")
        terms["elementwise_and_launch"] += count * (elementwise_s(d, layer, mine) + norm_exchange_s(d, layer))
        if d.engine.max_loras:
            terms["elementwise_and_launch"] += count * adapters_s(d, layer, mine, prompt)
        terms["collectives"] += count * collectives_s(d, layer, mine)
        if layer.mixer.kind is MixerKind.STATE:
            terms["state_update"] += count * state_s(d, layer.mixer, mine, prompt)
    if d.tp > 1:  # the vocabulary-parallel embedding
        message = mine * d.model.hidden_size * 2
        terms["collectives"] += kernels.collective_s(*d.profile.all_reduce(d.tp), message)
    if d.parallelism.pipeline_parallel_size > 1:
        hop = HOP_FIXED_S + mine * d.model.hidden_size * 2 / (HOP_FRACTION * d.gpu.link_gb_s * 1e9 / 2)
        terms["pipeline_hops"] += hop
    return terms


def head_s(d: RankShare, rows: Floats) -> Floats:
    """Time of lm_head and sampling for `rows` sequences. [s]"""
    mine = np.maximum(np.ceil(rows / d.attention_ranks), 1.0)
    bits = weight_bits(d.model, d.weight_dtype, TensorGroup.LM_HEAD)
    rows_of_head = d.model.draft_vocab_size or d.model.vocab_size
    out, inner = np.array([rows_of_head / d.tp]), np.array([float(d.model.hidden_size)])
    seconds = _gemm_parts(d, mine, out, inner, bits).total[0]
    if not d.kernels_only:
        seconds = seconds + SAMPLING_S + mine * rows_of_head * 4 * 2 / (LOGITS_FRACTION * d.bandwidth)
    return np.where(rows > 0, seconds, 0.0)
