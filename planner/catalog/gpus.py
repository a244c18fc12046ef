"""GPUs and other accelerators with their sources (gpus.csv), found by any common spelling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import lru_cache

from planner.errors import InvalidInput
from planner.inputs import Gpu
from planner.tables import read_table

_OPTIONAL = (
    "fp16_tflops",
    "fp8_tflops",
    "int8_tops",
    "fp4_tflops",
    "tdp_w",
    "usd_per_hour_low",
    "usd_per_hour_typical",
    "usd_per_hour_high",
)
_NOISE = re.compile(
    r"\b(nvidia|amd|intel|google|apple|huawei|tesla|geforce|instinct|arc|tensor|core|gpu|oam|hgx|dgx|edition|generation"
    r"|hbm\d*e?|gddr\dx?|unified)\b"
)
_MEMORY = re.compile(r"\b(\d+(?:\.\d+)?) ?gi?b\b")
# Vendors quote one board's size a few per cent apart (B200: 180, 186, 192 GB).
_SAME_MEMORY = 0.12


def gpu_names() -> tuple[str, ...]:
    """Names of all accelerators, in the order of the catalog."""
    return tuple(_gpus())


@lru_cache(maxsize=1024)
def get_gpu(name: str) -> Gpu:
    """The accelerator of a name or of a common spelling of it.

    Vendor words, separators and case do not matter; a memory size in the name ("A100 40GB") chooses between boards and
    must be within 12 %.

    Parameters
    ----------
    name : str
        For example "H100 SXM", "H100-SXM-80GB", "NVIDIA A100-SXM4-80GB", "GB200-192GB(NVL72)".

    Returns
    -------
    Gpu
        Data-sheet figures with their sources.

    Raises
    ------
    InvalidInput
        When no accelerator has that name; suggests the closest ones.
    """
    if isinstance(name, str):
        if name in _gpus():
            return _gpus()[name]
        stem, memory_gb = _normalised(name)
        exact = _spellings().get((stem, memory_gb))
        if exact is not None:
            return exact
        candidates = _stems().get(stem, ())
        for gpu in candidates:
            if memory_gb is None or abs(gpu.memory_gb / memory_gb - 1) <= _SAME_MEMORY:
                return gpu
    raise InvalidInput("gpu", name, "a GPU of the catalog, such as " + ", ".join(_near(str(name))))


def recalled_figures(name: str) -> tuple[str, ...]:
    """Fields of an accelerator that stand as recalled from its data sheet: no source that could be read confirms them.

    Parameters
    ----------
    name : str
        As `get_gpu` takes it; raises as that does.

    Returns
    -------
    tuple of str
        Names of `Gpu` fields, as "link_gb_s"; empty where every figure has a source or is an estimate.
    """
    return _recalled()[get_gpu(name).name]


@lru_cache(maxsize=1)
def _recalled() -> dict[str, tuple[str, ...]]:
    rows = read_table("catalog/gpus.csv")
    return {row["name"]: tuple(filter(None, row["recalled"].split(";"))) for row in rows}


@lru_cache(maxsize=1)
def _gpus() -> dict[str, Gpu]:
    return {gpu.name: gpu for gpu, _ in _rows()}


@lru_cache(maxsize=1)
def _rows() -> tuple[tuple[Gpu, tuple[str, ...]], ...]:
    return tuple((_gpu(row), tuple(filter(None, row["aliases"].split(";")))) for row in read_table("catalog/gpus.csv"))


def _gpu(row: Mapping[str, str]) -> Gpu:
    return Gpu(
        name=row["name"],
        vendor=row["vendor"],
        architecture=row["architecture"],
        memory_gb=float(row["memory_gb"]),
        memory_gib=float(row["memory_gib"]),
        memory_bandwidth_gb_s=float(row["memory_bandwidth_gb_s"]),
        bf16_tflops=float(row["bf16_tflops"]),
        interconnect=row["interconnect"],
        link_gb_s=float(row["link_gb_s"]),
        gpus_per_node=int(row["gpus_per_node"]),
        price_source=row["price_source"],
        spec_source=row["spec_source"],
        unified_memory=row["unified_memory"] == "yes",
        estimated_fields=tuple(filter(None, row["estimated_fields"].split(";"))),
        **{key: float(row[key]) if row[key] else None for key in _OPTIONAL},
    )


@lru_cache(maxsize=1)
def _spellings() -> dict[tuple[str, float | None], Gpu]:
    # An alias with its own memory size (GH200 480GB includes the CPU's) must match exactly.
    exact: dict[tuple[str, float | None], Gpu] = {}
    for gpu, aliases in _rows():
        for text in (gpu.name, *aliases):
            exact.setdefault(_normalised(text), gpu)
    return exact


@lru_cache(maxsize=1)
def _stems() -> dict[str, list[Gpu]]:
    stems: dict[str, list[Gpu]] = {}
    for gpu, aliases in _rows():
        for stem in dict.fromkeys(_normalised(text)[0] for text in (gpu.name, *aliases)):
            stems.setdefault(stem, []).append(gpu)
    return stems


def _normalised(name: str) -> tuple[str, float | None]:
    # "NVIDIA A100-SXM4-80GB" -> ("a100sxm", 80.0)
    text = re.sub(r"[^a-z0-9.]+", " ", name.lower().replace("\u2011", " "))
    sizes = _MEMORY.findall(text)
    text = _NOISE.sub(" ", _MEMORY.sub(" ", text))
    text = re.sub(r"sxm\d?", "sxm", text)
    return re.sub(r"[^a-z0-9]+", "", text), float(sizes[-1]) if sizes else None


def _near(name: str) -> list[str]:
    wanted = _normalised(name)[0]
    likeness = {
        gpu: difflib.SequenceMatcher(None, wanted, _normalised(gpu)[0][: len(wanted)]).ratio() for gpu in gpu_names()
    }
    near = [gpu for gpu in sorted(likeness, key=lambda gpu: -likeness[gpu]) if likeness[gpu] >= 0.4]
    return near[:3] or ["H100 SXM", "A100 SXM 80GB", "L40S"]
