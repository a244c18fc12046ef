"""AWQ's own kernels, which vLLM and SGLang run where Marlin's are not there or turned off (`--quantization awq`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.arrays import Floats
from planner.step_time import kernels
from planner.step_time.kernel_rules import kernel_constant
from planner.step_time.kernels import Device, GemmParameters, Parts


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
    least = kernel_constant(family, "awq", "least_dequantised_tokens")
    apart = _dequantised(plain, device, m, n, k, bits, kernel_constant(family, "awq", "dequantising_times"))
    if least <= 1:
        return apart
    split, fused = m >= least, _fused(p, device, m, n, k, bits, family)
    names = ("fixed", "weights", "compute", "activations")
    return Parts(**{name: np.where(split, getattr(apart, name), getattr(fused, name)) for name in names})


def _dequantised(
    plain: GemmParameters, device: Device, m: Floats, n: Floats, k: Floats, bits: float, times: float
) -> Parts:
    """A kernel that reads packed weights and writes 16 bits of each, and the 16-bit product."""
    product = kernels.gemm_parts(plain, device, m, n, k, 16)
    write = times * n * k * (bits / 8 + 2) / (kernels.ELEMENTWISE_FRACTION * device.bandwidth)
    return replace(product, fixed=product.fixed + kernels.ELEMENTWISE_FIXED_S, weights=product.weights + write)


def _fused(p: GemmParameters, device: Device, m: Floats, n: Floats, k: Floats, bits: float, family: str) -> Parts:
    """The product of whole tiles of tokens, and the sum of its partial products in a kernel of its own."""
    read = n * k * bits / 8 / (p.bandwidth * device.bandwidth)
    tile, fraction, splits = (
        kernel_constant(family, "awq", name) for name in ("tile_rows", "tile_fraction", "partial_products")
    )
    multiply = 2 * np.ceil(m / tile) * tile * n * k / (fraction * device.peak)
    partial = 2 * splits * 2 * m * n / (kernels.ELEMENTWISE_FRACTION * device.bandwidth)
    fixed = p.fixed_us + 1e6 * kernels.ELEMENTWISE_FIXED_S
    activations = (2 * m * n + 2 * m * k) / (p.activation * device.bandwidth) + partial
    return kernels.bounded(fixed, read, multiply, activations, 4)
