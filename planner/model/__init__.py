"""The shape of a model: its layers by kind, its weight matrices by group, and the bits per weight of each.

In: a Hugging Face config.json, or dimensions entered by hand. Out: a `ModelShape`, and bytes of its weights.
"""

from planner.model.config.build import model_from_config
from planner.model.config.vision import ESTIMATED_TOWER
from planner.model.from_user import custom_shape, shape_from_config
from planner.model.quantization import (
    kv_bits,
    kv_dtype_names,
    linear_bytes,
    resolve_scheme,
    scheme,
    weight_bits,
    weight_bytes_by_group,
    weight_dtype_names,
)
from planner.model.shape import (
    MEDIA,
    STATE_DTYPES,
    Layer,
    Linear,
    Mixer,
    MixerKind,
    ModelShape,
    Shard,
    TensorGroup,
    VisionTower,
    with_media,
    with_state_dtype,
)

__all__ = [
    "ESTIMATED_TOWER",
    "MEDIA",
    "STATE_DTYPES",
    "Layer",
    "Linear",
    "Mixer",
    "MixerKind",
    "ModelShape",
    "Shard",
    "TensorGroup",
    "VisionTower",
    "custom_shape",
    "kv_bits",
    "kv_dtype_names",
    "linear_bytes",
    "model_from_config",
    "resolve_scheme",
    "scheme",
    "shape_from_config",
    "weight_bits",
    "weight_bytes_by_group",
    "weight_dtype_names",
    "with_media",
    "with_state_dtype",
]
