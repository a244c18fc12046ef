"""The device of a published start-up log: by its name, with the memory that the row states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.accuracy.names import find_gpu
from planner.accuracy.row_reader import read_fields
from planner.catalog import get_gpu
from planner.inputs import Gpu
from planner.memory import DRIVER_RESERVE_BYTES, DRIVER_RESERVE_SHARE
from planner.units import GIB

DEVICES = "accuracy/data/device_patterns.csv"
#: boards for rows that name a size and no board: the larger from this size on
UNNAMED_LARGE, UNNAMED_SMALL, LARGE_GB = "H100 SXM", "RTX 4090", 70.0
SAME_MEMORY = 0.12  # vendors' sizes of the same board differ by as much
_BOARD = re.compile(
    r"[ABHLT]\d{1,3}S?\b|GH200|GB\d+|MI\d+X?|RTX (?:PRO )?[A]?\d{4}(?: Ada)?|RX \d+ XTX?|V100|A6000|\d090"
)


def gpu_fields(row: Mapping[str, str]) -> dict[str, Any]:
    """`gpu` and `gpu_total_gib` of a row, from its columns gpu and gpu_mem_gib.

    A figure with decimals is what the engine saw; the driver's figure is derived from it. A round one is the advertised
    size, used where it differs from that of the catalog's board. Of several kinds of device the smallest counts.

    Returns
    -------
    dict
        Fields of the Scenario; empty where the row names neither a device nor its memory.
    """
    several = re.split(r"\s\+\s", row.get("gpu", ""))
    return min((_one_device(name, row.get("gpu_mem_gib", "")) for name in several), key=_memory_gib)


def _one_device(name: str, memory: str) -> dict[str, Any]:
    fields = read_fields({"gpu": name}, DEVICES)
    seen = _seen_gib(memory, name)
    size = re.match(r"\s*~?(\d+)\s*(?:GB)?\s*(?:\(|$)", memory) or re.search(r"\b(\d+) ?GB\b", name)
    listed = fields.get("gpu") or _listed(name)
    if listed is None:
        if not (seen or size):
            return {}
        large = (seen or float(size[1] if size else 0)) >= LARGE_GB
        listed = UNNAMED_LARGE if large else UNNAMED_SMALL
    gpu = get_gpu(listed)
    total = fields.get("gpu_total_gib")
    if seen:
        total = _driver_gib(seen, gpu)
    elif size and total is None and abs(float(size[1]) / gpu.memory_gb - 1) > SAME_MEMORY:
        total = float(size[1])
    return {"gpu": listed} if total is None else {"gpu": listed, "gpu_total_gib": float(total)}


def _listed(name: str) -> str | None:
    """Name in the catalog: of the whole text, of what is left without its remarks, or of a board named in it."""
    plain = re.sub(r"\(.*?\)|-class|\bclass\b|mobile", " ", name).strip()
    texts = (name, plain, re.sub(r"\b\d+ ?GB\b", "", plain).strip(), *_BOARD.findall(name))
    return next((found for found in map(find_gpu, filter(None, texts)) if found), None)


def _seen_gib(memory: str, name: str) -> float | None:
    """Memory that the engine saw [GiB]: figures with decimals, or in parentheses after the name."""
    found = re.match(r"\s*~?(\d+\.\d+)(?! ?MiB)", memory) or re.search(r"\(\s*~?(\d+\.\d+) ?Gi?B\b", name)
    return float(found[1]) if found else None


def _driver_gib(seen_gib: float, gpu: Gpu) -> float:
    """What the driver lists when a program sees this much: the inverse of `visible_memory_bytes`. [GiB]"""
    if gpu.vendor.upper() != "NVIDIA" or gpu.unified_memory:
        return seen_gib
    return (seen_gib + DRIVER_RESERVE_BYTES / GIB) / (1 - DRIVER_RESERVE_SHARE)


def _memory_gib(fields: Mapping[str, Any]) -> float:
    gib = fields.get("gpu_total_gib") or (get_gpu(fields["gpu"]).memory_gib if fields else 0.0)
    return float(gib)
