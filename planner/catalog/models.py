"""Published models: their shapes, totals, licences and sources, from catalog/models.json."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.errors import InvalidInput
from planner.model import ESTIMATED_TOWER, ModelShape, model_from_config
from planner.tables import read_table

_FILE = Path(__file__).with_name("models.json")
HUB_SOURCE = "figures and total of the hub, as PyPI llmfit 1.1.17 embeds them (hf_models.json, MIT licence)"
HUB_NUMBERS = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
    "num_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
)


@lru_cache(maxsize=1)
def _hub() -> dict[str, Mapping[str, str]]:
    """More models by id: the hub's most downloaded ones whose config gives the published parameter count exactly."""
    return {row["id"]: row for row in read_table("catalog/hub_models.csv")}


@lru_cache(maxsize=1)
def _checkpoints() -> dict[str, Mapping[str, str]]:
    """Checkpoints of catalog models by id, where their publisher keeps other tensors wide than most."""
    return {row["id"]: row for row in read_table("catalog/checkpoints.csv")}


@lru_cache(maxsize=1)
def _entries() -> dict[str, dict[str, Any]]:
    with _FILE.open(encoding="utf-8") as stream:
        return {entry["id"]: entry for entry in json.load(stream)["models"]}


def model_names() -> tuple[str, ...]:
    """Hub ids of all catalog models, in the order of the catalog."""
    return tuple(_entries())


def checkpoint(model: ModelShape, weight_dtype: str) -> ModelShape:
    """The model as its published checkpoint of a scheme holds it: some leave groups in 16 bits."""
    for row in _checkpoints().values():
        if row["usual"] and (row["model"], row["quantization"]) == (model.name, weight_dtype):
            return replace(model, quantization=weight_dtype, unquantized_groups=(), group_bits=_group_bits(row))
    return model


def find_model_id(name: str) -> str | None:
    """Hub id of a model name: the exact id, or the only one that ends with the name.

    Parameters
    ----------
    name : str
        "meta-llama/Llama-3.1-8B-Instruct", or "llama-3.1-8b-instruct".

    Returns
    -------
    str or None
        None when no id matches, or more than one does.
    """
    entries = _entries()
    if name in entries:
        return name
    wanted = name.strip().lower()
    if not wanted:
        return None
    fits = [key for key in entries if key.lower() == wanted or key.lower().split("/")[-1] == wanted]
    # A checkpoint goes by its whole id alone: it is the publisher that makes it differ.
    fits = fits or [key for key in _checkpoints() if key.lower() == wanted]
    fits = fits or [key for key in _hub() if key.lower() == wanted]
    fits = fits or [key for key in _hub() if key.lower().split("/")[-1] == wanted]
    if not fits:
        fits = [key for key in entries if key.lower().endswith(wanted)]
    return fits[0] if len(fits) == 1 else None


@lru_cache(maxsize=512)
def get_model(name: str) -> ModelShape:
    """The shape of a catalog model.

    Parameters
    ----------
    name : str
        Hub id, or its unique ending in any case.

    Returns
    -------
    ModelShape
        With the published parameter count where known.

    Raises
    ------
    InvalidInput
        When the catalog has no such model; suggests the closest ones.
    """
    key = find_model_id(name) if isinstance(name, str) else None
    if key is None:
        raise InvalidInput("model", name, _suggestion(str(name)))
    if key in _checkpoints():
        return _checkpoint_shape(key)
    if key not in _entries():
        row = _hub()[key]
        shape = model_from_config(_hub_config(row), key)
        return replace(shape, published_parameters=int(row["parameters"]), source=HUB_SOURCE)
    entry = _entries()[key]
    shape = model_from_config(entry["config"], key)
    published = entry.get("published_parameters")
    shape = replace(
        shape,
        published_parameters=published,
        extended_context=entry.get("extended_context"),
        source=entry.get("config_source", ""),
    )
    return _with_measured_tower(shape)


def _checkpoint_shape(key: str) -> ModelShape:
    row = _checkpoints()[key]
    return replace(
        get_model(row["model"]),
        name=key,
        quantization=row["quantization"],
        unquantized_groups=(),
        group_bits=_group_bits(row),
        source=row["source"],
    )


def _group_bits(row: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    pairs = (pair.split(":") for pair in row["group_bits"].split("|"))
    return tuple((group, float(bits)) for group, bits in pairs)


def _with_measured_tower(shape: ModelShape) -> ModelShape:
    """The vision tower as published total − language model, where the config says too little about it."""
    others = tuple(note for note in shape.estimated_fields if not note.startswith(ESTIMATED_TOWER))
    if shape.published_parameters is None or len(others) == len(shape.estimated_fields):
        return shape
    tower = shape.published_parameters - shape.num_parameters
    return replace(shape, vision_parameters=tower, estimated_fields=others) if tower > 0 else shape


def _hub_config(row: Mapping[str, str]) -> dict[str, Any]:
    config: dict[str, Any] = {name: int(row[name]) for name in HUB_NUMBERS if row[name]}
    return config | {
        "model_type": row["model_type"],
        "tie_word_embeddings": row["tied"] == "yes",
        "attention_bias": row["attention_bias"] == "yes",
    }


def _suggestion(name: str) -> str:
    lower = {key.lower(): key for key in _entries()} | {key.lower().split("/")[-1]: key for key in _entries()}
    near = difflib.get_close_matches(name.strip().lower()[:200], list(lower), n=4, cutoff=0.5)
    names = list(dict.fromkeys(lower[key] for key in near)) or list(_entries())[:3]
    return f"a catalog model, such as {', '.join(names)}; or paste its config.json"
