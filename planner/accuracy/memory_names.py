"""Which model and which weights a published start-up log means, from names as people write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from planner.accuracy.names import find_model
from planner.accuracy.row_reader import read_fields
from planner.catalog import base_model_id, find_model_id, get_model, model_names
from planner.errors import InvalidInput
from planner.model import ModelShape

SCHEMES, MODELS = "accuracy/data/scheme_patterns.csv", "accuracy/data/model_patterns.csv"
#: flags that quantise while loading
QUANTIZATION_FLAG = re.compile(r"--?(?:quantization|load[-_]format)[= ]+(fp8|bitsandbytes|awq\w*|gptq\w*)")
PLAIN = re.compile(r"\W*(?:none|bf16|bfloat16|fp16|float16|half|unquanti[sz]ed|original|full precision).*")
_SCHEME_IN_NAME = re.compile(
    r"[-_ .]?(fp8([-_](dynamic|block|static))?|nvfp4|mxfp4|w\d+a\d+|quantized|awq|gptq|int\d|\d ?bits?|gguf|"
    r"autoround|q\d[_-]?(k[_-]?[sml]|k|0)?|ud|resharded|bnb|bf16|unsloth)(?![a-z0-9])",
    re.IGNORECASE,
)


def weight_dtype_of(row: Mapping[str, str], model: ModelShape) -> str:
    """Scheme of the weights: what the column says, else what a flag or the checkpoint's name says, else as published.

    Parameters
    ----------
    row : mapping
        Columns of a start-up log; read are dtype, weight_quant, model, version, other_flags and engine.
    model : ModelShape
        Where the row names the scheme that the checkpoint is published in, that is "auto".

    Returns
    -------
    str
        A `weight_dtype` of the Scenario.

    Raises
    ------
    InvalidInput
        When the column names a scheme that planner/catalog/quantization.csv has not.
    """
    column, name = (row.get(key, "").lower() for key in ("weight_quant", "model"))
    if "float32" in row.get("dtype", ""):
        return "fp32"
    if PLAIN.fullmatch(column):
        return "bf16" if "bf16" in name else "auto"  # of a model that is published in fewer bits
    flag = QUANTIZATION_FLAG.search(row.get("other_flags", ""))
    texts = [column or (flag[1] if flag else ""), name]
    if "ollama" in row.get("engine", "").lower() and model.quantization != "mxfp4":
        texts.append("gguf")
    publisher = f"{name} {row.get('version', '')} {column}"
    for text in texts:
        scheme = read_fields({"text": text, "publisher": publisher}, SCHEMES).get("weight_dtype")
        if scheme is not None:
            return "auto" if _is_published(scheme, name, model) else scheme
        if text == column and text not in ("", "auto", "compressed-tensors"):
            raise InvalidInput("weight_quant", row["weight_quant"], "a scheme of planner/catalog/quantization.csv")
    return "bf16" if "bf16" in name and not column else "auto"


def _is_published(scheme: str, name: str, model: ModelShape) -> bool:
    if model.quantization == "fp8_fp4_experts" and re.search(r"-(?:fp8|base)\b", name):
        return False  # the experts in 8 bits too
    if scheme == "gguf_f16" and model.quantization == "mxfp4":
        return True  # such files keep the experts as published
    own = model.quantization
    return bool(own) and (scheme.removesuffix("_linear") == own or (scheme == "fp8" and own.startswith("fp8")))


@cache
def find_model_key(name: str) -> str | None:
    """Catalog id for a published name: as spelled, without its scheme, contained in it, or by its class.

    Parameters
    ----------
    name : str
        "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "gemma3:4b", "70B Llama-3.x class".

    Returns
    -------
    str or None
        None where nothing in the catalog fits.
    """
    told = read_fields({"checkpoint": name}, MODELS).get("model") or find_model_id(name)
    if told is not None:  # the scheme is read from the row
        return base_model_id(str(told))
    plain = re.sub(r"-\d{4}$", "", re.sub(r"\(.*?\)", " ", name).strip())
    spellings = [name, plain, plain.split(" ")[0]]
    spellings += [_without_scheme(text) for text in spellings[1:]]
    for text in spellings:
        found = find_model_id(text.split("/")[-1]) if len(text) > 5 else None
        if found is not None:
            return base_model_id(found)
    for text in spellings:
        found = find_model(text) if text else None
        if found is not None and found in model_names():
            return found
    found = _longest_contained(plain) or _longest_contained(name)
    return found or read_fields({"class": name}, MODELS).get("model") or _only_continuation(plain)


def _without_scheme(text: str) -> str:
    before, text = "", text.split("/")[-1]
    while before != text:
        before, text = text, _SCHEME_IN_NAME.sub("", text)
    return text


@cache
def _short_names() -> dict[str, str]:
    short: dict[str, str] = {}
    for key in model_names():
        name = re.sub(r"-(instruct|it|hf|chat|base)\b.*", "", key.split("/")[-1].lower())
        short.setdefault(re.sub(r"[^a-z0-9.]", "", name), key)
    return short


def _longest_contained(name: str) -> str | None:
    """Catalog model whose short name the published one contains, the longest first."""
    text = re.sub(r"[^a-z0-9.]", "", name.lower())
    for short in sorted(_short_names(), key=len, reverse=True):
        at = text.find(short)
        if len(short) >= 6 and at >= 0 and not text[at + len(short) : at + len(short) + 1].isdigit():
            return _short_names()[short]
    return None


def _only_continuation(name: str) -> str | None:
    """Catalog model whose short name begins with the published one, when all that do have one size."""
    text = re.sub(r"[^a-z0-9.]", "", _without_scheme(name).lower())
    fits = [key for short, key in _short_names().items() if len(text) >= 6 and short.startswith(text)]
    return fits[0] if len({get_model(key).num_parameters for key in fits}) == 1 else None
