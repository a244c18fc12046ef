"""AWQ's own kernels, which vLLM and SGLang run where Marlin's are not there or turned off (`--quantization awq`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.arrays import Floats
from planner.step_time import kernels
from planner.step_time.kernels import Device, GemmParameters, Parts

#: from so many tokens on vLLM writes the weights out in 16 bits and multiplies those (vLLM
#: model_executor/layers/quantization/awq.py); SGLang does so always (sglang/srt/layers/quantization/awq.py)
LEAST_DEQUANTISED_TOKENS = {"vllm": 256, "sglang": 1}
#: how much longer writing them out takes with an engine's kernel: 18,944 × 37,888 weights in 3,465 µs with vLLM's and
#: 897 with SGLang's (github.com/sgl-project/sglang/pull/4104)
DEQUANTISING_TIMES = {"vllm": 3465 / 897, "sglang": 1.0}
TILE_ROWS = 16  # below, vLLM's awq_gemm unpacks every weight again for so many tokens (csrc gemm_kernels.cu, m16nXk32)
SPLITS = 8  # and adds up so many partial products (split_k_iters)
#: share of the 16-bit peak at which it multiplies these tiles: Mistral-7B on A100 takes 100 prompts of 1,024 tokens and
#: 64 of output in 100 / 3.28 s (github.com/vllm-project/vllm/pull/2566, before the change), 280 µs a token; the partial
#: products are 27 of them, which leaves 55 of 312 TFLOP/s
TILE_FRACTION = 0.177


def awq_parts(
    p: GemmParameters, plain: GemmParameters, device: Device, m: Floats, n: Floats, k: Floats, bits: float, family: str
) -> Parts:
    """Time of an (m × k) by (k × n) product with AWQ's kernels.

    Parameters
    ----------
    p, plain : GemmParameters
        Of INT4 weights, whose bytes the fused kernel reads, and of 16-bit ones.
    device : Device
        Rates of the GPU for 16-bit products.
    m, n, k : array
        Tokens, output and input features of this rank.
    bits : float
        Bits per stored weight.
    family : str
        vllm or sglang.

    Returns
    -------
    Parts
        Seconds.
    """
    split = m >= LEAST_DEQUANTISED_TOKENS[family]
    apart = _dequantised(plain, device, m, n, k, bits, DEQUANTISING_TIMES[family])
    fused = _fused(p, device, m, n, k, bits)
    names = ("fixed", "weights", "compute", "activations")
    return Parts(**{name: np.where(split, getattr(apart, name), getattr(fused, name)) for name in names})


def _dequantised(
    plain: GemmParameters, device: Device, m: Floats, n: Floats, k: Floats, bits: float, times: float
) -> Parts:
    """A kernel that reads packed weights and writes 16 bits of each, and the 16-bit product."""
    product = kernels.gemm_parts(plain, device, m, n, k, 16)
    write = times * n * k * (bits / 8 + 2) / (kernels.ELEMENTWISE_FRACTION * device.bandwidth)
    return replace(product, fixed=product.fixed + kernels.ELEMENTWISE_FIXED_S, weights=product.weights + write)


def _fused(p: GemmParameters, device: Device, m: Floats, n: Floats, k: Floats, bits: float) -> Parts:
    """The product of whole tiles of tokens, and the sum of its partial products in a kernel of its own."""
    read = n * k * bits / 8 / (p.bandwidth * device.bandwidth)
    rows = np.ceil(m / TILE_ROWS) * TILE_ROWS
    multiply = 2 * rows * n * k / (TILE_FRACTION * device.peak)
    partial = 2 * SPLITS * 2 * m * n / (kernels.ELEMENTWISE_FRACTION * device.bandwidth)
    fixed = p.fixed_us + 1e6 * kernels.ELEMENTWISE_FIXED_S
    activations = (2 * m * n + 2 * m * k) / (p.activation * device.bandwidth) + partial
    return kernels.bounded(fixed, read, multiply, activations, 4)
