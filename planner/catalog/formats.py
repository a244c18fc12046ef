"""The weight formats in which a model can be downloaded (published_formats.csv)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from planner.catalog.models import base_model_id, get_model
from planner.tables import read_table

#: formats that hold nearly the same bytes and run on the same kernels: a search tries one of each group
ALIKE = (
    ("fp8_block", "fp8"),
    ("nvfp4", "nvfp4_linear"),
    ("awq_int4", "gptq_int4", "int4_g128", "int4_g32"),
    ("mxfp4",),
    ("mxfp8",),
    ("int8",),
    ("gptq_int8",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFormat:
    """One format of a model: the scheme's name as `weight_dtype` takes it, and a repository that has it."""

    quantization: str
    checkpoint: str
    source: str


@lru_cache(maxsize=1)
def _rows() -> tuple[dict[str, list[PublishedFormat]], dict[str, str]]:
    """Formats by model, and the model by each checkpoint."""
    formats: dict[str, list[PublishedFormat]] = {}
    models: dict[str, str] = {}
    for row in read_table("catalog/published_formats.csv"):
        formats.setdefault(row["model"], []).append(_format(row))
        models.setdefault(row["checkpoint"], row["model"])
    return formats, models


def _format(row: Mapping[str, str]) -> PublishedFormat:
    return PublishedFormat(quantization=row["quantization"], checkpoint=row["checkpoint"], source=row["source"])


def alike_formats(one: str, other: str) -> bool:
    """Whether two formats hold nearly the same bytes and run on the same kernels."""
    return one == other or any(one in group and other in group for group in ALIKE)


def plain_model_id(name: str) -> str:
    """Id of the model that a checkpoint was made of; the model's own id where it is none.

    Parameters
    ----------
    name : str
        As `get_model` takes it; raises as that does.
    """
    own = get_model(name).name
    return _rows()[1].get(own) or base_model_id(own)


@lru_cache(maxsize=512)
def published_formats(name: str) -> tuple[PublishedFormat, ...]:
    """Formats besides its own in which a model is published.

    Parameters
    ----------
    name : str
        As `get_model` takes it; raises as that does. A checkpoint has the formats of the model that it was made of.

    Returns
    -------
    tuple of PublishedFormat
        16 bits first where the name is a quantised checkpoint of a model published so; empty where none is known.
    """
    own = get_model(name)
    formats, base = _rows()[0], plain_model_id(name)
    found = list(formats.get(base, ()))
    if own.quantization and base != own.name and not get_model(base).quantization:
        found.insert(0, PublishedFormat(quantization="bf16", checkpoint=base, source="models.json of this catalog"))
    return tuple(item for item in found if item.quantization != own.quantization)


def one_of_each_kind(name: str) -> tuple[PublishedFormat, ...]:
    """Published formats of a model, of those that are alike the publisher's own, else the most common one."""
    own = get_model(name)
    publisher = base_model_id(own.name).split("/")[0]
    found = published_formats(name)
    kept = [item for item in found if item.quantization == "bf16"]
    for group in ALIKE:
        if own.quantization in group:
            continue
        alike = [item for item in found if item.quantization in group]
        alike.sort(key=lambda item: (item.checkpoint.split("/")[0] != publisher, group.index(item.quantization)))
        kept += alike[:1]
    return tuple(kept)
