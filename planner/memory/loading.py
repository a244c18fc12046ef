"""What loading needs beyond the weights: copies that vLLM makes of them once all are on the GPU."""

from __future__ import annotations

import math

from planner.inputs import Gpu, Parallelism
from planner.memory.edition import Edition
from planner.model import Layer, ModelShape, Shard, resolve_scheme, weight_bits

#: weight-only integers, which vLLM repacks for its Marlin kernels on NVIDIA GPUs
REPACKED = ("gptq_int8", "awq_int4", "gptq_int4", "int4_g128", "int4_g32")


def repacked_bytes(
    model: ModelShape,
    layers: tuple[tuple[Layer, int], ...],
    weight_dtype: str,
    gpu: Gpu,
    parallelism: Parallelism,
    edition: Edition,
) -> float:
    """Largest tensor that vLLM writes anew on one GPU after loading, while it still holds the old one.

    Modules are repacked one after the other, so that one copy is held at a time: of gate and up of all experts of a
    layer, or of the widest dense matrix.

    Parameters
    ----------
    model, layers, weight_dtype
        The model, the distinct layers of a stage and how many of each, and its scheme.
    gpu, parallelism, edition
        Whose kernels repack, and what divides the matrices.

    Returns
    -------
    float
        Bytes; 0 where nothing is repacked. Source: vLLM model_loader/utils.py `process_weights_after_loading` and
        _custom_ops.py `awq_marlin_moe_repack` and `gptq_marlin_moe_repack`, which allocate the whole result first.
    """
    scheme = resolve_scheme(model, weight_dtype).name
    if edition.family != "vllm" or gpu.vendor.upper() != "NVIDIA" or scheme not in REPACKED:
        return 0.0
    largest, ranks = 0.0, parallelism.tensor_parallel_size * parallelism.attention_data_parallel_size
    for layer, _ in layers:
        for linear in layer.linears:
            bits = weight_bits(model, weight_dtype, linear.group)
            if not linear.quantizable or bits > 9:
                continue
            size = linear.in_features * linear.out_features * bits / 8
            if linear.count > 1 and parallelism.expert_parallel:
                size *= math.ceil(linear.count / ranks)
            elif linear.count > 1:
                size *= linear.count / ranks
            elif linear.shard is not Shard.REPLICATED:
                size /= parallelism.tensor_parallel_size
            largest = max(largest, size)
    return largest
