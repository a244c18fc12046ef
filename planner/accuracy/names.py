"""Published names of models, GPUs, engines and dtypes → names of the catalog.

Benchmarks write "Llama 3.1 8B", "LLaMA-3.1-8B" or "Llama-3.1-8B-Instruct-FP8" for one shape.
A name is reduced to its letters and digits without the words that do not change the shape
(instruct, fp8, a release month), and then looked up in `accuracy/data/published_names.csv` and among
the ids of the catalog itself.
"""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache
from pathlib import Path

from planner.catalog import get_gpu, get_model, model_names
from planner.errors import InvalidInput
from planner.model import ModelShape, model_from_config
from planner.tables import read_table

_EXTRA_MODELS = Path(__file__).parent / "data" / "benchmark_models.json"
_NO_SHAPE = re.compile(
    r"(?:^|[-_ .])(?:instruct|chat|it|hf|base|pt|preview|exp|fp8|nvfp4[-_]v[0-9]|nvfp4|fp4[-_]v[0-9]|fp4|mxfp4|bf16"
    r"|fp16|awq|gptq|int4|int8|w8a8|w4a16|quantized|dynamic|kv|thinking|terminus|speciale|interactive|99\.9|99|1m"
    r"|0528|0324|0905|2501|2503|2506|2507|2407|2411|2512|17b|16e|128e|v0\.[0-9]|v1|nvidia|meta)"
    r"(?=$|[-_ .])"
)


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


def find_model(published: str) -> str | None:
    """Find the catalog's name of a published model name, None when its shape is not known."""
    if published in model_names():
        return published
    reduced = reduce_name(published)
    return _published("model").get(reduced) or _catalog_models().get(reduced)


@cache
def benchmark_model(name: str) -> ModelShape:
    """Shape of a model that `find_model` named: from the catalog, or from the benchmarks' own additions."""
    with _EXTRA_MODELS.open(encoding="utf-8") as file:
        extra = {entry["id"]: entry["config"] for entry in json.load(file)["models"]}
    return model_from_config(extra[name], name) if name in extra else get_model(name)


@cache
def checkpoint_shape(name: str, weight_dtype: str) -> ModelShape:
    """Shape of the checkpoint that was served: NVFP4 checkpoints leave some groups in 16 bits.

    Parameters
    ----------
    name : str
        Catalog name, as `find_model` returns.
    weight_dtype : str
        Scheme of the published run.

    Returns
    -------
    ModelShape
        The model with the groups that its published checkpoint in that scheme does not quantise.
    """
    model = benchmark_model(name)
    kept = _published("nvfp4_keeps").get(name)
    if weight_dtype != "nvfp4" or kept is None:
        return model
    return dataclasses.replace(model, quantization="nvfp4", unquantized_groups=tuple(kept.split("|")))


def find_gpu(published: str) -> str | None:
    """Find the catalog's name of a published GPU name, None when the catalog lacks it."""
    try:
        return get_gpu(published).name
    except InvalidInput:
        reduced = re.sub(r"[^a-z0-9]", "", published.lower())
        reduced = re.sub(r"^(nvidia|amd|intel|apple)", "", reduced)
        found = [key for key in _published("gpu") if reduced.startswith(key)]
        return _published("gpu")[max(found, key=len)] if found else None


def find_engine(published: str) -> str:
    """Find the engine family (vllm, sglang, trtllm, tgi, llamacpp, generic) of a published engine name."""
    name = published.lower()
    for word, family in (
        ("vllm", "vllm"),
        ("sglang", "sglang"),
        ("tensorrt", "trtllm"),
        ("trt", "trtllm"),
        ("nim", "trtllm"),
        ("tgi", "tgi"),
        ("llama.cpp", "llamacpp"),
        ("ollama", "llamacpp"),
    ):
        if word in name:
            return family
    return "generic"


def version_tuple(version: str) -> tuple[int, ...]:
    """Read the numbers of an engine version ("v0.5.4.post2" → (0, 5, 4)), () when there are none."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", version or "")
    return tuple(int(part) for part in found.groups() if part is not None) if found else ()
