"""Quantisation of weights and KV cache: bits per element, and what stays in 16 bits.

A scheme applies to the large matrices. Embedding, head, norms, router and vision tower stay in 16 bits, unless the
scheme covers the whole file (GGUF) or the checkpoint says otherwise. Data: catalog/quantization.csv and, by family,
quantization_groups.csv.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from planner.errors import InvalidInput
from planner.model.shape import Linear, ModelShape, TensorGroup
from planner.tables import read_table

#: bits per cached element; q8_0 and q4_0 with the scales of GGML blocks, nvfp4 with one e4m3 scale per 16 elements
KV_BITS: dict[str, float] = {
    "bf16": 16.0,
    "fp16": 16.0,
    "fp32": 32.0,
    "fp8": 8.0,
    "fp8_e4m3": 8.0,
    "fp8_e5m2": 8.0,
    "fp8_ds_mla": 8.0,
    "int8": 8.0,
    "nvfp4": 4.5,
    "q8_0": 8.5,
    "q4_0": 4.5,
}
NATIVE_BITS = {"bf16": 16.0, "fp16": 16.0, "fp32": 32.0}
#: other names of a scheme in engines and model cards
ALIASES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "w8a8": "int8",
    "w4a16": "int4_g128",
    "int4": "int4_g128",
    "awq": "awq_int4",
    "gptq": "gptq_int4",
    "fp4": "nvfp4",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationScheme:
    """One way to store weights. `bits_per_weight` includes scales and zero points."""

    name: str
    label: str
    bits_per_weight: float
    kept_groups: frozenset[str]
    covers_all: bool  # embedding and head too, as GGUF files do
    is_weight_only: bool  # multiplies in 16 bits by design
    source: str

    @property
    def is_native(self) -> bool:
        """Whether it quantises nothing."""
        return self.name in NATIVE_BITS

    @property
    def in_words(self) -> str:
        """As people say it within a sentence: fp8 and its like need no other words."""
        return self.label if "_" in self.name else self.name


@lru_cache(maxsize=1)
def _family_bits() -> dict[tuple[str, str], dict[str, float]]:
    """Bits by (scheme, model_type) and group, where a family's checkpoints differ from the scheme's rule."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in read_table("catalog/quantization_groups.csv"):
        found.setdefault((row["scheme"], row["model_type"]), {})[row["group"]] = float(row["bits"])
    return found


@lru_cache(maxsize=1)
def _schemes() -> dict[str, QuantizationScheme]:
    return {
        row["name"]: QuantizationScheme(
            name=row["name"],
            label=row["label"],
            bits_per_weight=float(row["bits_per_weight"]),
            kept_groups=frozenset(filter(None, row["kept_groups"].split("|"))),
            covers_all=row["covers_all"] == "yes",
            is_weight_only=row["weight_only"] == "yes",
            source=row["source"],
        )
        for row in read_table("catalog/quantization.csv")
    }


def weight_dtype_names() -> tuple[str, ...]:
    """Names that `weight_dtype` accepts: "auto" (as the checkpoint is published) and every scheme."""
    return ("auto", *_schemes())


def kv_dtype_names() -> tuple[str, ...]:
    """Names that `kv_cache_dtype` accepts."""
    return ("auto", *KV_BITS)


def scheme(name: str) -> QuantizationScheme:
    """Look up a scheme.

    Parameters
    ----------
    name : str
        A name from catalog/quantization.csv, or an alias such as w4a16.

    Returns
    -------
    QuantizationScheme
        Bits per weight, and the groups that it leaves in 16 bits.

    Raises
    ------
    InvalidInput
        When there is no such scheme.
    """
    key = name.lower() if isinstance(name, str) else ""
    found = _schemes().get(ALIASES.get(key, key))
    if found is None:
        raise InvalidInput("weight_dtype", name, "one of " + ", ".join(weight_dtype_names()))
    return found


def resolve_scheme(model: ModelShape, weight_dtype: str) -> QuantizationScheme:
    """Scheme of the weights; "auto" is the checkpoint's own, or 16-bit where it has none.

    With "auto" a checkpoint in fp32 is loaded in bf16, as engines do.
    """
    if weight_dtype != "auto":
        return scheme(weight_dtype)
    return scheme(model.quantization or ("fp16" if model.native_dtype == "fp16" else "bf16"))


def kept_groups(model: ModelShape, weight_dtype: str) -> frozenset[str]:
    """TensorGroup values that stay in the 16-bit type."""
    chosen = resolve_scheme(model, weight_dtype)
    own = frozenset(model.unquantized_groups) if chosen.name == model.quantization else frozenset()
    return chosen.kept_groups | own


def weight_bits(model: ModelShape, weight_dtype: str, group: TensorGroup, quantizable: bool = True) -> float:
    """Bits per weight of a matrix of this group.

    Parameters
    ----------
    model : ModelShape
        Says what "auto" is, and which groups its checkpoint leaves in 16 bits.
    weight_dtype : str
        "auto" or a scheme.
    group : TensorGroup
        Group of the matrix.
    quantizable : bool
        False for matrices that schemes skip (router, small projections).

    Returns
    -------
    float
        Bits, scales included.
    """
    chosen = resolve_scheme(model, weight_dtype)
    if chosen.is_native:
        return chosen.bits_per_weight
    special = _family_bits().get((chosen.name, model.model_type), {})
    own = dict(model.group_bits) if chosen.name == model.quantization else {}
    if group.value in own:
        return own[group.value]
    said = chosen.name == model.quantization and group.value in model.unquantized_groups
    if group.value in special and not said:
        return special[group.value]
    if group is TensorGroup.NGRAM:  # unless stated otherwise, a table is stored as embeddings are
        group = TensorGroup.EMBEDDING
    if not quantizable or group.value in kept_groups(model, weight_dtype):
        return 16.0
    return chosen.bits_per_weight


def linear_bytes(model: ModelShape, weight_dtype: str, linear: Linear) -> float:
    """Bytes of all `count` matrices, with biases in 16 bits. [bytes]"""
    bits = weight_bits(model, weight_dtype, linear.group, linear.quantizable)
    biases = linear.count * linear.out_features if linear.bias else 0
    return (linear.num_parameters - biases) * bits / 8 + biases * max(2.0, bits / 8 if bits > 16 else 2.0)


@lru_cache(maxsize=4096)
def _bytes_by_group(model: ModelShape, weight_dtype: str) -> dict[TensorGroup, float]:
    chosen = resolve_scheme(model, weight_dtype)
    native = chosen.bits_per_weight / 8 if chosen.is_native else 2.0
    sizes = dict.fromkeys(TensorGroup, 0.0)
    for layer, count in model.layer_counts():
        for linear in layer.linears:
            sizes[linear.group] += count * linear_bytes(model, weight_dtype, linear)
        sizes[TensorGroup.NORM] += count * layer.norm_parameters * native
    sizes[TensorGroup.NORM] += model.final_norm_parameters * native
    for group, parameters in (
        (TensorGroup.EMBEDDING, model.embedding_parameters - model.ngram_parameters),
        (TensorGroup.NGRAM, model.ngram_parameters),
        (TensorGroup.LM_HEAD, model.lm_head_parameters),
        (TensorGroup.VISION, model.vision_parameters),
    ):
        sizes[group] += parameters * weight_bits(model, weight_dtype, group) / 8
    return sizes


def weight_bytes_by_group(model: ModelShape, weight_dtype: str = "auto") -> dict[TensorGroup, float]:
    """Bytes of the whole model's weights by tensor group, without draft (MTP) layers.

    Parameters
    ----------
    model : ModelShape
        The model.
    weight_dtype : str
        "auto" (the checkpoint's own scheme, or its 16-bit type) or a scheme name.

    Returns
    -------
    dict of TensorGroup to float
        Every group, zero where the model has none. [bytes]

    Raises
    ------
    InvalidInput
        When there is no such scheme.
    """
    return dict(_bytes_by_group(model, weight_dtype))


def kv_bits(kv_cache_dtype: str, weight_dtype: str = "auto") -> float:
    """Bits per cached element.

    Parameters
    ----------
    kv_cache_dtype : str
        "auto" is 16-bit, or fp32 when the model runs in fp32.
    weight_dtype : str
        fp32 makes "auto" fp32.

    Returns
    -------
    float
        Bits, scales included.

    Raises
    ------
    InvalidInput
        When the name is not known.
    """
    if kv_cache_dtype == "auto":
        return 32.0 if weight_dtype == "fp32" else 16.0
    name = {"bfloat16": "bf16", "float16": "fp16", "f16": "fp16", "float32": "fp32"}.get(kv_cache_dtype, kv_cache_dtype)
    if name not in KV_BITS:
        raise InvalidInput("kv_cache_dtype", kv_cache_dtype, "one of " + ", ".join(kv_dtype_names()))
    return KV_BITS[name]
