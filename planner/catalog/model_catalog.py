"""Published models: their shapes, totals, licences and sources, from catalog/models.json."""

from __future__ import annotations

import difflib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.errors import InvalidInput
from planner.model import ModelShape
from planner.model_config import model_from_config

_FILE = Path(__file__).with_name("models.json")


@lru_cache(maxsize=1)
def _entries() -> dict[str, dict[str, Any]]:
    with _FILE.open(encoding="utf-8") as stream:
        return {entry["id"]: entry for entry in json.load(stream)["models"]}


def model_names() -> tuple[str, ...]:
    """Hub ids of all catalog models, in the catalog's order."""
    return tuple(_entries())


def find_model_id(name: str) -> str | None:
    """Hub id for a name as people write it: exact, or the unique id that ends with it.

    Parameters
    ----------
    name : str
        "meta-llama/Llama-3.1-8B-Instruct", or "llama-3.1-8b-instruct".

    Returns
    -------
    str or None
        None when no id, or more than one, fits.
    """
    entries = _entries()
    if name in entries:
        return name
    wanted = name.strip().lower()
    if not wanted:
        return None
    fits = [key for key in entries if key.lower() == wanted or key.lower().split("/")[-1] == wanted]
    if not fits:
        fits = [key for key in entries if key.lower().endswith(wanted)]
    return fits[0] if len(fits) == 1 else None


@lru_cache(maxsize=512)
def get_model(name: str) -> ModelShape:
    """Shape of a catalog model.

    Parameters
    ----------
    name : str
        Hub id, or its unique ending in any case.

    Returns
    -------
    ModelShape
        With the published total where one is known.

    Raises
    ------
    InvalidInput
        When the catalog has no such model; names the nearest ones.
    """
    key = find_model_id(name) if isinstance(name, str) else None
    if key is None:
        raise InvalidInput("model", name, _suggestion(str(name)))
    entry = _entries()[key]
    shape = model_from_config(entry["config"], key)
    fields = {field: getattr(shape, field) for field in shape.__dataclass_fields__ if field != "num_layers"}
    fields |= {"published_parameters": entry.get("published_parameters"), "source": entry.get("config_source", "")}
    return ModelShape(**fields)


def _suggestion(name: str) -> str:
    lower = {key.lower(): key for key in _entries()} | {key.lower().split("/")[-1]: key for key in _entries()}
    near = difflib.get_close_matches(name.strip().lower()[:200], list(lower), n=4, cutoff=0.5)
    names = list(dict.fromkeys(lower[key] for key in near)) or list(_entries())[:3]
    return f"a catalog model, such as {', '.join(names)}; or paste its config.json"


def model_facts(name: str) -> dict[str, Any]:
    """What the catalog knows of a model beside its shape.

    Parameters
    ----------
    name : str
        As for `get_model`.

    Returns
    -------
    dict
        id, licence, source, config_source, published_parameters, published_source, note.

    Raises
    ------
    InvalidInput
        When the catalog has no such model.
    """
    key = find_model_id(name) if isinstance(name, str) else None
    if key is None:
        raise InvalidInput("model", name, _suggestion(str(name)))
    return {field: value for field, value in _entries()[key].items() if field != "config"}
