"""Published names of models, GPUs, engines and schemes → names of the catalog.

Benchmarks write "Llama 3.1 8B", "LLaMA-3.1-8B" or "Llama-3.1-8B-Instruct-FP8" for one shape. A name is looked up as it
stands, then reduced to the letters and digits that tell shapes apart (accuracy/data/published_names.csv and the ids of
the catalog), then as a part of a longer text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from planner.accuracy.row_reader import read_fields
from planner.catalog import base_model_id, find_model_id, get_gpu, get_model, listed_weight_dtype, model_names
from planner.errors import InvalidInput
from planner.model import ModelShape
from planner.tables import read_table

SCHEMES, MODELS = "accuracy/data/scheme_patterns.csv", "accuracy/data/model_patterns.csv"
ENGINES = "accuracy/data/engine_patterns.csv"
#: flags that quantise while loading
QUANTIZATION_FLAG = re.compile(r"--?(?:quantization|load[-_]format)[= ]+(fp8|bitsandbytes|awq\w*|gptq\w*)")
PLAIN = re.compile(r"\W*(?:none|bf16|bfloat16|fp16|float16|half|unquanti[sz]ed|original|full precision).*")
#: vLLM's --quantization: which loader reads the checkpoint, whatever its bits
LOADERS = ("compressed-tensors", "modelopt", "modelopt_mixed", "quark", "moe_wna16", "torchao", "inc", "humming")
LEAST_PART = 6  # letters of a name that is looked for inside another
_NO_SHAPE = re.compile(
    r"(?:^|[-_ .])(?:instruct|chat|it|hf|base|pt|preview|exp|fp8|nvfp4[-_]v[0-9]|nvfp4|fp4[-_]v[0-9]|fp4|mxfp4|bf16"
    r"|fp16|awq|gptq|int4|int8|w8a8|w4a16|quantized|dynamic|kv|thinking|terminus|speciale|interactive|99\.9|99|1m"
    r"|0528|0324|0905|2501|2503|2506|2507|2407|2411|2512|17b|16e|128e|v0\.[0-9]|v1|nvidia|meta)"
    r"(?=$|[-_ .])"
)
_SCHEME_IN_NAME = re.compile(
    r"[-_ .]?(fp8([-_](dynamic|block|static))?|nvfp4|mxfp4|w\d+a\d+|quantized|awq|gptq|int\d|\d ?bits?|gguf|"
    r"autoround|q\d[_-]?(k[_-]?[sml]|k|0)?|ud|resharded|bnb|bf16|unsloth)(?![a-z0-9])",
    re.IGNORECASE,
)


@cache
def find_model(published: str) -> str | None:
    """Find the catalog's id for a published model name.

    Parameters
    ----------
    published : str
        "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "Llama 3.1 8B", "gemma3:4b", "70B Llama-3.x class".

    Returns
    -------
    str or None
        None where no shape of the catalog fits.
    """
    told = read_fields({"checkpoint": published}, MODELS).get("model")
    if told is None and "/" in published:
        told = find_model_id(published)
    if told is None:
        told = _published("model").get(reduce_name(published)) or find_model_id(published)
    found = str(told) if told else _by_spelling(published)
    return base_model_id(found) if found else None  # the scheme is read from the row


def reduce_name(name: str) -> str:
    """Reduce a published model name to what tells shapes apart.

    Parameters
    ----------
    name : str
        Name as published, with or without the organisation.

    Returns
    -------
    str
        Lower-case letters and digits, without words that do not change the shape.
    """
    text = name.strip().lower().rsplit("/", 1)[-1]
    before = None
    while before != text:
        before, text = text, _NO_SHAPE.sub("", text)
    return re.sub(r"[^a-z0-9]", "", text)


def find_gpu(published: str) -> str | None:
    """Find the catalog's name of a published GPU name, None when the catalog lacks it."""
    try:
        return get_gpu(published).name
    except InvalidInput:
        reduced = re.sub(r"[^a-z0-9]", "", published.lower())
        reduced = re.sub(r"^(nvidia|amd|intel|apple)", "", reduced)
        found = [key for key in _published("gpu") if reduced.startswith(key)]
        return _published("gpu")[max(found, key=len)] if found else None


def find_engine_preset(published: str) -> str:
    """Find the catalog's preset of a published engine name; of one that it lacks, the one with a paged cache."""
    return str(read_fields({"engine": published or "?"}, ENGINES)["engine"])


def scheme_named(text: str, publisher: str = "") -> str | None:
    """Scheme of weights that a text names, None where it names none.

    Parameters
    ----------
    text : str
        A column, a flag or a checkpoint's name: "AWQ-INT4", "Q4_K_M", "…-NVFP4".
    publisher : str
        The row's whole name, where the publisher tells schemes of one name apart.

    Returns
    -------
    str or None
        A `weight_dtype` of the Scenario; "quantized" where the text says no more than that.
    """
    return read_fields({"text": text, "publisher": publisher}, SCHEMES).get("weight_dtype")


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
        scheme = scheme_named(text, publisher)
        if scheme is not None:
            return "auto" if _is_published(scheme, name, model) else scheme
        if text == column and text not in ("", "auto", *LOADERS):
            raise InvalidInput("weight_quant", row["weight_quant"], "a scheme of planner/catalog/quantization.csv")
    if column in LOADERS and not model.quantization:
        raise InvalidInput("weight_quant", row["weight_quant"], "a scheme, or a checkpoint whose name says it")
    if column:
        return "auto"
    return "bf16" if "bf16" in name else listed_weight_dtype(name) or "auto"


def _is_published(scheme: str, name: str, model: ModelShape) -> bool:
    if model.quantization == "fp8_fp4_experts" and re.search(r"-(?:fp8|base)\b", name):
        return False  # the experts in 8 bits too
    if scheme == "gguf_f16" and model.quantization == "mxfp4":
        return True  # such files keep the experts as published
    own = model.quantization
    return bool(own) and (scheme.removesuffix("_linear") == own or (scheme == "fp8" and own.startswith("fp8")))


@cache
def _published(kind: str) -> dict[str, str]:
    return {
        row["published"]: row["catalog"]
        for row in read_table("accuracy/data/published_names.csv")
        if row["kind"] == kind
    }


@cache
def _catalog_models() -> dict[str, str]:
    return {reduce_name(name): name for name in reversed(model_names())}


def _by_spelling(name: str) -> str | None:
    """Catalog id by the name less remarks and scheme, a catalog name in it, its class, or the only name it begins."""
    plain = re.sub(r"-\d{4}$", "", re.sub(r"\(.*?\)", " ", name).strip())
    spellings = [name, plain, plain.split(" ")[0]]
    spellings += [_without_scheme(text) for text in spellings[1:]]
    for text in spellings:
        found = find_model_id(text.split("/")[-1]) if len(text) >= LEAST_PART else None
        if found is not None:
            return found
    for text in filter(None, spellings):
        reduced = reduce_name(text)
        found = _published("model").get(reduced) or _catalog_models().get(reduced)
        if found is not None:
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
        if len(short) >= LEAST_PART and at >= 0 and not text[at + len(short) : at + len(short) + 1].isdigit():
            return _short_names()[short]
    return None


def _only_continuation(name: str) -> str | None:
    """Catalog model whose short name begins with the published one, when all such models have the same size."""
    text = re.sub(r"[^a-z0-9.]", "", _without_scheme(name).lower())
    fits = [key for short, key in _short_names().items() if len(text) >= LEAST_PART and short.startswith(text)]
    return fits[0] if len({get_model(key).num_parameters for key in fits}) == 1 else None
