"""Published names of models, GPUs, engines and dtypes → names of the catalog.

Benchmarks write "Llama 3.1 8B", "LLaMA-3.1-8B" or "Llama-3.1-8B-Instruct-FP8" for one shape.
A name is reduced to its letters and digits without the words that do not change the shape
(instruct, fp8, a release month), and then looked up in `accuracy/data/published_names.csv` and among
the ids of the catalog itself.
"""

from __future__ import annotations

import re
from functools import cache

from planner.catalog import get_gpu, model_names
from planner.errors import InvalidInput
from planner.tables import read_table

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
    """Find the catalog's preset of a published engine name (`accuracy/data/engine_presets.csv`)."""
    name = published.lower()
    return next(row["preset"] for row in read_table("accuracy/data/engine_presets.csv") if row["contains"] in name)
