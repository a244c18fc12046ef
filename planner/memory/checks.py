"""Parallelism that does not divide the model, refused in the engine's own words."""

from __future__ import annotations

from functools import lru_cache

from planner.inputs import Parallelism
from planner.model import MixerKind, ModelShape, TensorGroup, resolve_scheme

FP8_BLOCK = 128


@lru_cache(maxsize=4096)
def division_error(model: ModelShape, parallelism: Parallelism, weight_dtype: str, family: str) -> str:
    """Say why the engine refuses this parallelism, "" when it does not.

    Parameters
    ----------
    model : ModelShape
        Heads, layers and expert widths.
    parallelism : Parallelism
        What divides them.
    weight_dtype : str
        Block-quantised matrices divide by whole blocks only.
    family : str
        llama.cpp splits by layers and refuses none of this.

    Returns
    -------
    str
        The engine's message.
    """
    if family == "llamacpp":
        return ""
    tp, pp, dcp = (
        parallelism.tensor_parallel_size,
        parallelism.pipeline_parallel_size,
        parallelism.decode_context_parallel_size,
    )
    if pp > model.num_layers:
        return f"Pipeline parallel size ({pp}) must not exceed the number of layers ({model.num_layers})."
    latent = False
    for layer in model.layer_kinds:
        mixer = layer.mixer
        if mixer.kind is MixerKind.NONE:
            continue
        if mixer.num_heads % tp:
            return (
                f"Total number of attention heads ({mixer.num_heads}) must be divisible by tensor parallel size ({tp})."
            )
        latent |= mixer.kind is MixerKind.MLA
        if mixer.kind not in (MixerKind.MLA, MixerKind.STATE):
            small, large = sorted((mixer.num_kv_heads, tp))
            if large % small:
                return (
                    f"Number of KV heads ({mixer.num_kv_heads}) and tensor parallel size ({tp}) must divide each other."
                )
            if dcp > 1 and tp // mixer.num_kv_heads < dcp:
                return (
                    f"tensor parallel size {tp} must be greater than total num kv heads {mixer.num_kv_heads} "
                    f"times decode context parallel size {dcp}."
                )
    if dcp > 1 and tp % dcp:
        return f"tp_size={tp} must be divisible by dcp_size={dcp}."
    return _expert_error(model, parallelism, weight_dtype)


def _expert_error(model: ModelShape, parallelism: Parallelism, weight_dtype: str) -> str:
    ranks = parallelism.tensor_parallel_size * parallelism.attention_data_parallel_size
    if parallelism.expert_parallel or ranks == 1:
        return ""
    blocks = resolve_scheme(model, weight_dtype).name == "fp8_block"
    for layer in model.layer_kinds:
        if layer.experts is None:
            continue
        if not any(x.group is TensorGroup.EXPERT for x in layer.linears):
            continue
        width = layer.experts.intermediate_size
        if width % ranks:
            return f"Expert intermediate size ({width}) must be divisible by tensor parallel size ({ranks})."
        if blocks and width // ranks % FP8_BLOCK:
            return (
                f"The output_size of gate's and up's weight = {width // ranks} is not divisible by "
                f"weight quantization block_n = {FP8_BLOCK}."
            )
    return ""
