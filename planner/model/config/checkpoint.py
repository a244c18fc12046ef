"""Reads a checkpoint's quantization_config: the scheme, and the tensor groups that it leaves in 16 bits."""

from __future__ import annotations

import re
from typing import Any

from planner.errors import InvalidInput
from planner.model.config.fields import Fields
from planner.model.shape import TensorGroup

#: text in a module's name -> its group
GROUP_OF_MODULE: tuple[tuple[str, TensorGroup], ...] = (
    ("lm_head", TensorGroup.LM_HEAD),
    ("embed", TensorGroup.EMBEDDING),
    ("vision", TensorGroup.VISION),
    ("visual", TensorGroup.VISION),
    ("multi_modal", TensorGroup.VISION),
    ("shared_expert", TensorGroup.SHARED_EXPERT),
    ("share_expert", TensorGroup.SHARED_EXPERT),
    ("self_attn", TensorGroup.ATTENTION),
    ("attention", TensorGroup.ATTENTION),
    ("linear_attn", TensorGroup.STATE),
    ("mamba", TensorGroup.STATE),
    ("mtp", TensorGroup.MTP),
)


#: small parts of a module: ignoring these leaves the module quantised
SMALL_PART = re.compile(r"norm|conv1d|in_proj_(?:a|b|ba)\b|A_log|dt_bias|indexer|rotary|\.bias$", re.IGNORECASE)
#: a single matrix of attention; ignoring some of them leaves the others quantised
ATTENTION_PART = re.compile(r"self_attn\.(\w*_proj)")


def read_quantization(fields: Fields) -> tuple[str, tuple[str, ...]]:
    """Name the scheme of the checkpoint and the groups that it leaves in 16 bits.

    Parameters
    ----------
    fields : Fields
        The config.

    Returns
    -------
    tuple of str and tuple of str
        Scheme ("" = not quantised; names as in planner.model.quantization) and TensorGroup values.
    """
    section = fields.section("quantization_config")
    if not section:
        return "", ()
    method = section.get("quant_method") or section.get("quant_algo") or ""
    if not isinstance(method, str):
        raise InvalidInput("quant_method", method, "text, such as fp8, awq or compressed-tensors")
    if fields.text_value("expert_dtype") == "fp4":
        return "fp8_fp4_experts", ()
    scheme = _scheme(method.lower().replace("_", "-"), section, fields)
    kept = _kept_groups(section, fields)
    if scheme == "mxfp4":  # gpt-oss quantises its experts only, as does Kimi-K3, whose states are self_attn too
        kept |= {TensorGroup.ATTENTION}
    if TensorGroup.ATTENTION in kept and fields.has("linear_attn_config"):
        kept |= {TensorGroup.STATE}
    return scheme, tuple(sorted(group.value for group in kept))


def read_kv_cache(fields: Fields) -> str:
    """Name the type of KV cache that the checkpoint was calibrated for.

    Parameters
    ----------
    fields : Fields
        The config: `kv_cache_scheme` (compressed-tensors, ModelOpt) or `kv_cache_quant_algo` (ModelOpt), there or one
        level down under `quantization`.

    Returns
    -------
    str
        "fp8", or "" where the checkpoint asks for nothing, or for a type that engines ignore (then noted as estimated).
        Source: vLLM pull 29980, SGLang `configure_kv_cache_dtype`.
    """
    section = fields.section("quantization_config") or {}
    inner = section.get("quantization")
    for stated in (section, inner if isinstance(inner, dict) else {}):
        asked = stated.get("kv_cache_scheme") or stated.get("kv_cache_quant_algo")
        if isinstance(asked, dict):
            asked = f"{asked.get('type', '')}{asked.get('num_bits', '')}"
        if isinstance(asked, str) and asked:
            if asked.lower() in ("fp8", "float8"):
                return "fp8"
            fields.estimated.append(f"KV cache of {asked[:40]} in quantization_config: taken as 16 bit")
            return ""
    return ""


def _scheme(method: str, section: dict[str, Any], fields: Fields) -> str:
    bits = section.get("bits", section.get("w_bit", 4))
    group = section.get("group_size", section.get("q_group_size", 128))
    if method in ("fp8", "fbgemm-fp8"):
        return "fp8_block" if section.get("weight_block_size") else "fp8"
    if method in ("awq", "awq-marlin"):
        return "awq_int4" if group != 32 else "int4_g32"
    if method in ("gptq", "gptq-marlin", "auto-round", "autoround", "inc"):
        return {8: "gptq_int8", 4: "gptq_int4" if group != 32 else "int4_g32"}.get(bits, "gptq_int4")
    if method == "compressed-tensors":
        return _compressed_tensors(section, fields)
    if method in ("modelopt", "modelopt-fp4", "nvfp4"):
        return _modelopt(section, fields)
    simple = {"mxfp4": "mxfp4", "gguf": "gguf_q4_k_m", "quark": "fp8", "fp4": "nvfp4", "mxfp8": "mxfp8"}
    if method in ("bitsandbytes", "bnb"):
        return "bnb_int8" if section.get("load_in_8bit") else "bnb_nf4"
    if method in simple:
        return simple[method]
    raise InvalidInput(
        "quant_method", method, "fp8, awq, gptq, compressed-tensors, modelopt, mxfp4, bitsandbytes, auto-round or gguf"
    )


def _modelopt(section: dict[str, Any], fields: Fields) -> str:
    algo = str(section.get("quant_algo", "")).upper()
    if algo in ("", "MIXED_PRECISION"):
        fields.estimated.append("quantization_config: mixed precision taken as nvfp4")
        return "nvfp4"
    return "nvfp4" if "FP4" in algo else "int4_g128" if "INT4" in algo else "fp8"


def _compressed_tensors(section: dict[str, Any], fields: Fields) -> str:
    groups = section.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, dict) and groups else None
    weights = first.get("weights") if isinstance(first, dict) else None
    if not isinstance(weights, dict):
        fields.estimated.append("quantization_config: weights taken as fp8")
        return "fp8"
    bits, kind, strategy = weights.get("num_bits"), weights.get("type"), weights.get("strategy")
    if kind == "float" and bits == 4:
        return "mxfp4" if weights.get("group_size") == 32 else "nvfp4_linear"
    if kind == "float":
        return "fp8_block" if strategy == "block" else "fp8"
    if bits == 8:
        return "int8" if isinstance(first, dict) and first.get("input_activations") else "gptq_int8"
    if bits == 4:
        return "int4_g32" if weights.get("group_size") == 32 else "int4_g128"
    raise InvalidInput("num_bits", bits, "4 or 8")


def _kept_groups(section: dict[str, Any], fields: Fields) -> set[TensorGroup]:
    kept: set[TensorGroup] = set()
    parts: set[str] = set()
    for key in ("ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules"):
        names = section.get(key)
        if not isinstance(names, list) or len(names) > 100_000:
            continue
        for name in names:
            if not isinstance(name, str) or SMALL_PART.search(name):
                continue
            part = ATTENTION_PART.search(name)
            group = next((g for text, g in GROUP_OF_MODULE if text in name.lower()), None)
            if part is not None and group is TensorGroup.ATTENTION:
                parts.add(part[1])
            elif group is not None:
                kept.add(group)
            elif "mlp" in name and "gate_up" in name:  # the dense MLP named as a whole
                kept.add(TensorGroup.MLP)
    if "o_proj" in parts and any(part.startswith("q") for part in parts):
        kept.add(TensorGroup.ATTENTION)
    elif parts and TensorGroup.ATTENTION not in kept:
        fields.estimated.append("quantization_config: projections of attention left in 16 bits, counted as the others")
    return kept
