"""How long one kernel takes: a few physical parameters per kernel family, vectorised over calls.

Sizes are those of one rank. Parameters are shares of the GPU's data-sheet rates that a kernel reaches. Every formula is
monotone in the work and exact in its limits: without work the fixed time, bound by memory bytes ÷ bandwidth, bound by
compute FLOP ÷ peak.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from planner.arrays import Floats

#: token counts at which the compute efficiency of a GEMM is a parameter; between them it is log-linear
GEMM_TOKENS = np.array([64.0, 256.0, 1024.0, 8192.0])
#: rows and columns of the output tile that one SM computes at a time
TILE = 128.0
#: share of the peak at which a product of fewer tokens than one instruction takes multiplies a whole tile: DeepGEMM on
#: H20 takes 93 µs for 24576 × 7168 at 16 tokens, 64 rows at the peak 76 µs (github.com/vllm-project/vllm/issues/49932)
LEAST_TILE_FRACTION = 0.82
#: norms, activations and residuals: three small kernels per layer at this share of bandwidth
#: (AIConfigurator systems/*.yaml: mem_bw_empirical_scaling_factor, mem_empirical_constant_latency)
ELEMENTWISE_FIXED_S = 3e-6
ELEMENTWISE_FRACTION = 0.8
#: shape of the distribution of expert popularity, fitted to grouped products measured with power-law routing
#: (AIConfigurator)
ROUTING_EVENNESS = 0.7
#: how far the busiest of a few ranks is above the mean, in standard deviations; expected maximum of 2 to 8 normal
#: variables: 0.6 to 1.4
BUSIEST_RANK_DEVIATIONS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Rates of a GPU: bytes/s, FLOP/s of the type that multiplies, number of SMs, fewest rows that multiply at once."""

    bandwidth: float
    peak: float
    num_sms: int
    least_rows: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """Time of kernels by cause, in seconds."""

    fixed: Floats
    weights: Floats
    compute: Floats
    activations: Floats

    @property
    def total(self) -> Floats:
        """Sum of the parts. [s]"""
        return self.fixed + self.weights + self.compute + self.activations

    def times(self, share: Floats) -> Parts:
        """As much of each part."""
        return Parts(
            fixed=self.fixed * share,
            weights=self.weights * share,
            compute=self.compute * share,
            activations=self.activations * share,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmParameters:
    """Dense matrix product: shares of bandwidth and peak.

    A tile takes `serial_ns` per element of k, which bounds narrow matrices; `wave` is the share of a partly filled last
    wave that costs time.
    """

    fixed_us: float = 4.0
    bandwidth: float = 0.8
    serial_ns: float = 0.5
    activation: float = 1.5
    wave: float = 0.3
    compute_64: float = 0.45
    compute_256: float = 0.75
    compute_1024: float = 0.8
    compute_8192: float = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertParameters:
    """Grouped matrix products of a layer's experts, with routing and permutation.

    Each resident expert costs `expert_us` (offsets, sorting); each expert in use pads its tokens by `padding`.
    """

    fixed_us: float = 40.0
    bandwidth: float = 0.75
    activation: float = 0.8
    compute: float = 0.45
    padding: float = 24.0
    expert_us: float = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeAttentionParameters:
    """Attention of one new token per sequence over its cache, per layer.

    `bandwidth` is for query heads that share a KV head, `bandwidth_single` for query heads with a KV head each, where
    engines run another kernel.
    """

    floor_us: float = 12.0
    base_us: float = 11.0
    sequence_us: float = 0.02
    bandwidth: float = 0.9
    bandwidth_single: float = 0.85

    def reached(self, shared: Any) -> Any:
        """Fraction of bandwidth, by whether query heads share KV heads."""
        return np.where(shared, self.bandwidth, self.bandwidth_single)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillAttentionParameters:
    """Causal attention of prompts: MFU of long prompts, and a cost per token that dominates short ones.

    Each query-key pair also costs an exponential, equivalent to `softmax` FLOP, which matters for small heads.
    """

    fixed_us: float = 12.0
    compute: float = 0.8
    activation: float = 0.25
    softmax: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentDecodeParameters:
    """Multi-head latent attention of one new token per sequence, bound by the latent's bytes or the heads' FLOP."""

    floor_us: float = 12.0
    base_us: float = 14.0
    bandwidth: float = 0.85
    compute: float = 0.6
    activation: float = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentPrefillParameters:
    """Causal attention of prompts with expanded latents."""

    fixed_us: float = 15.0
    compute: float = 0.6
    activation: float = 0.4


PARAMETERS: dict[str, type] = {
    "latent_decode": LatentDecodeParameters,
    "latent_prefill": LatentPrefillParameters,
    "gemm": GemmParameters,
    "experts": ExpertParameters,
    "decode_attention": DecodeAttentionParameters,
    "prefill_attention": PrefillAttentionParameters,
}


def vector(parameters: Any) -> Floats:
    """Parameters as an array, in the order of their fields."""
    return np.array([getattr(parameters, item.name) for item in fields(parameters)], dtype=np.float64)


def bounded(fixed_us: float, memory: Floats, compute: Floats, activations: Floats, sharpness: int) -> Parts:
    """The larger of memory and compute, with a smooth transition, (memory^p + compute^p)^(1/p); and the rest."""
    a, b = memory**sharpness, compute**sharpness
    scale = (a + b) ** (1 / sharpness - 1)
    fixed = np.full_like(activations, fixed_us * 1e-6)
    return Parts(fixed=fixed, weights=a * scale, compute=b * scale, activations=activations)


def gemm_parts(
    p: GemmParameters, device: Device, m: Floats, n: Floats, k: Floats, bits: float, *, fused_quantisation: bool = False
) -> Parts:
    """Time of an (m × k) by (k × n) product with weights of `bits`.

    Weights are read once. Output tiles are distributed over the SMs in waves, each tile working through k in turn;
    fewer tokens than one instruction multiplies take the time of its rows. Activations are read and written, and once
    more where they are quantised.

    Parameters
    ----------
    p : GemmParameters
        Fitted to kernel measurements.
    device : Device
        Rates of the GPU.
    m, n, k : array or float
        Tokens, output and input features of this rank.
    bits : float
        Bits per weight, scales included.
    fused_quantisation : bool
        The previous kernel already writes quantised activations: this one reads one byte of each, and no kernel of its
        own reads 16 bits and writes 8.

    Returns
    -------
    Parts
        Seconds.
    """
    memory = n * k * bits / 8 / (p.bandwidth * device.bandwidth)
    memory = np.sqrt(np.sqrt(memory**4 + (k * p.serial_ns * 1e-9) ** 4))
    tiles = np.ceil(m / TILE) * np.ceil(n / TILE)
    waves = np.ceil(tiles / device.num_sms) * device.num_sms * TILE * TILE / (m * n)
    knots = np.log([p.compute_64, p.compute_256, p.compute_1024, p.compute_8192])
    reached = np.exp(np.interp(np.log(m), np.log(GEMM_TOKENS), knots))
    compute = 2 * m * n * k * np.minimum(waves, 64.0) ** p.wave / (reached * device.peak)
    compute = np.maximum(compute, 2 * device.least_rows * n * k / (LEAST_TILE_FRACTION * device.peak))
    read_bytes = 2 if bits >= 16 else 1 if fused_quantisation else 4
    activation = (2 * m * n + read_bytes * m * k) / (p.activation * device.bandwidth)
    return bounded(p.fixed_us, memory, compute, activation, 4)


def distinct_experts(num_experts: float, top_k: float, tokens: Floats, evenness: float = ROUTING_EVENNESS) -> Floats:
    """Expected number of experts that at least one of the tokens is routed to.

    With even routing: E·(1 − (1 − k/E)^T). With popularities from a Gamma distribution of shape a (`evenness`):
    E·(1 − (1 + λ/a)^−a) with λ = −T·ln(1 − k/E), which approaches the former for a → ∞. A single token uses k.
    """
    rate = -tokens * np.log1p(-np.minimum(top_k / num_experts, 1 - 1e-9))
    touched = num_experts * -np.expm1(-evenness * np.log1p(rate / evenness))
    return np.maximum(touched, np.minimum(top_k, top_k * tokens))


def expert_parts(
    p: ExpertParameters,
    device: Device,
    tokens: Floats,
    *,
    hidden: float,
    intermediate: float,
    num_experts: float,
    top_k: float,
    bits: float,
    resident: float = 1.0,
    imbalance: float = 1.0,
    matrices: float = 3.0,
    aligned_rows: int = 1,
    vector_tokens: int = 0,
) -> Parts:
    """Time of the experts of one layer on one rank.

    Parameters
    ----------
    p : ExpertParameters
        Fitted to kernel measurements.
    device : Device
        Rates of the GPU.
    tokens : array
        Routed tokens of all ranks that share the experts.
    hidden, intermediate : float
        Widths of an expert; `intermediate` is this rank's share.
    num_experts, top_k : float
        Experts of the layer, and how many of them a token visits.
    bits : float
        Bits per weight.
    resident : float
        Share of the experts that this rank holds (expert parallelism).
    imbalance : float
        Work of the busiest rank over the mean.
    matrices : float
        Matrices of hidden × intermediate per expert: 3 gated, 2 not.
    aligned_rows : int
        The engine lays out rows for every expert that the rank holds, in use or not, in multiples of so many.
    vector_tokens : int
        The engine multiplies up to so many tokens row by row, without tiles to fill.

    Returns
    -------
    Parts
        Seconds.
    """
    touched = distinct_experts(num_experts, top_k, tokens) * resident
    if resident < 1:
        # The step waits for the rank with most of the experts in use.
        touched = np.minimum(touched + BUSIEST_RANK_DEVIATIONS * np.sqrt(touched), num_experts * resident)
    pairs = tokens * top_k * resident * imbalance
    size = matrices * hidden * intermediate
    memory = touched * size * bits / 8 / (p.bandwidth * device.bandwidth)
    padding = np.where(tokens > vector_tokens, p.padding, 0.0)
    rows = np.maximum(pairs + touched * padding, pairs + (aligned_rows - 1) * num_experts * resident)
    compute = 2 * size * rows / (p.compute * device.peak)
    activation = 2 * pairs * (2 * hidden + matrices * intermediate) / (p.activation * device.bandwidth)
    return bounded(p.fixed_us + p.expert_us * num_experts * resident, memory, compute, activation, 3)


def decode_attention_s(
    p: DecodeAttentionParameters, device: Device, sequences: Floats, kv_bytes: Floats, shared: Any = True
) -> Floats:
    """Time of decode attention in one layer that reads `kv_bytes` of cache for `sequences` sequences. [s]

    `shared` says whether several query heads share each KV head.
    """
    read = kv_bytes / (p.reached(shared) * device.bandwidth)
    return np.maximum(p.floor_us * 1e-6, (p.base_us + p.sequence_us * sequences) * 1e-6 + read)


def latent_decode_s(
    p: LatentDecodeParameters,
    device: Device,
    sequences: Floats,
    kv_tokens: Floats,
    *,
    heads: Floats,
    latent: Floats,
    rope: Floats,
    element_bytes: float,
) -> Floats:
    """Time of latent decode attention in one layer.

    All heads share one latent: per cached token heads · 2 · (2 · latent + rope) FLOP, and (latent + rope) elements read
    once. Queries and outputs of all heads are read and written.

    Parameters
    ----------
    p : LatentDecodeParameters
        Fitted to kernel measurements.
    device : Device
        Rates of the GPU.
    sequences, kv_tokens : array
        Sequences, and cached tokens of all of them.
    heads, latent, rope : array
        Heads of this rank, rank of the latent, rotary dimension.
    element_bytes : float
        Bytes per cached element.

    Returns
    -------
    array
        Seconds.
    """
    read = (latent + rope) * element_bytes / (p.bandwidth * device.bandwidth)
    multiply = heads * 2 * (2 * latent + rope) / (p.compute * device.peak)
    exchange = 2 * heads * (2 * latent + rope) / (p.activation * device.bandwidth)
    body = p.base_us * 1e-6 + exchange * sequences + np.maximum(read, multiply) * kv_tokens
    return np.maximum(p.floor_us * 1e-6, body)


def prefill_attention_s(
    p: PrefillAttentionParameters | LatentPrefillParameters,
    device: Device,
    pairs: Floats,
    tokens: Floats,
    width: Floats,
    flop: Floats,
) -> Floats:
    """Time of causal attention in one layer.

    Parameters
    ----------
    p : PrefillAttentionParameters
        Fitted to kernel measurements.
    device : Device
        Rates of the GPU.
    pairs, tokens : array
        Query-key pairs and new tokens.
    width : array
        Elements of query, key, value and output per token.
    flop : array
        FLOP of one pair: heads · (2 · (key + value dimension) + softmax).

    Returns
    -------
    array
        Seconds.
    """
    compute = pairs * flop / (p.compute * device.peak)
    return p.fixed_us * 1e-6 + compute + 2 * tokens * width / (p.activation * device.bandwidth)


def elementwise_s(device: Device, elements: Floats, calls: float) -> Floats:
    """Time of `calls` small kernels that together move `elements` 16-bit elements. [s]"""
    return calls * ELEMENTWISE_FIXED_S + 2 * elements / (ELEMENTWISE_FRACTION * device.bandwidth)


def collective_s(sizes: Floats, seconds: Floats, message: Floats) -> Floats:
    """Time of a measured collective at any message size: log-linear between sizes, at the last rate beyond. [s]"""
    inside = np.exp(np.interp(np.log(np.maximum(message, 1.0)), np.log(sizes), np.log(seconds)))
    return np.where(message > sizes[-1], seconds[-1] * message / sizes[-1], inside)
