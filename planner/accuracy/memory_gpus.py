"""The device of a published start-up log: by name, by the memory that its engine saw, or by what its budget held."""

from __future__ import annotations

import dataclasses
import re
from functools import cache

from planner.catalog import get_gpu
from planner.errors import InvalidInput
from planner.inputs import EngineSettings, Gpu, Parallelism
from planner.memory import DRIVER_RESERVE_BYTES, DRIVER_RESERVE_SHARE, visible_memory_bytes
from planner.model import ModelShape, weight_bytes_by_group
from planner.tables import read_table
from planner.units import GIB

#: GPUs that a row may mean when it names none, the smallest first
ASSUMED_GPUS = ("H100 SXM", "H200 SXM", "B200")
#: sizes of device that a row may mean when it prints what its budget held
DEVICE_CLASSES = ("RTX 4080", "RTX 4090", "RTX 5090", "A100 SXM 40GB", "RTX 6000 Ada", *ASSUMED_GPUS)
RUNTIME_SHARE = 0.03  # of the budget: the least that activations and buffers take beside weights and pool
FREE_AFTER_WEIGHTS = 0.1  # share of the budget that the assumed GPU must leave beside the weights
UNIFIED = re.compile(r"\bThor\b|\bOrin(?: NX| Nano)?\b", re.IGNORECASE)


def gpu_of(name: str, memory: str) -> tuple[Gpu, bool]:
    """GPU of a row, with the memory that its engine saw where the row states it."""
    parts = re.split(r"\s\+\s", name)
    if len(parts) > 1:  # several kinds: the smallest binds
        return min((gpu_of(part, memory) for part in parts), key=lambda found: found[0].memory_gib)
    visible = _visible_gib(memory) or _visible_gib_in_name(name)
    gpu, known = _catalog_gpu(name), True
    unified = UNIFIED.search(name)
    if unified:  # what the system leaves of the memory shared with the CPU
        gib = visible or float(_sheet_memory(unified[0]).split()[0])
        return dataclasses.replace(get_gpu("GB10 (DGX Spark)"), name=name, memory_gib=gib), True
    memory = memory or _slice_of(name) or ("" if gpu else _sheet_memory(name))
    if gpu is None:
        marketing = re.search(r"(\d+)", memory) or re.search(r"(\d+) ?GB", name)
        size = visible or (float(marketing[1]) if marketing else 80.0)
        gpu, known = get_gpu("H100 SXM" if size >= 70 else "RTX 4090"), bool(visible)
        if marketing and not visible:
            gib = float(marketing[1])
            return dataclasses.replace(gpu, name=name or memory, memory_gb=gib, memory_gib=gib), True
    if visible:
        listed = (visible * GIB + DRIVER_RESERVE_BYTES) / (1 - DRIVER_RESERVE_SHARE) / GIB
        listed = visible if gpu.vendor.upper() != "NVIDIA" or gpu.unified_memory else listed
        return dataclasses.replace(gpu, memory_gib=listed), True
    stated = re.match(r"\s*~?(\d+)\s*(?:GB)?\s*$", memory or _size_in(name))
    if stated and abs(int(stated[1]) / gpu.memory_gb - 1) > 0.12:
        gib = float(stated[1])
        return dataclasses.replace(gpu, memory_gb=gib, memory_gib=gib), True
    return gpu, known


def _slice_of(name: str) -> str:
    """Memory of a part of a GPU: a MIG slice "3g.40gb", or a vGPU profile "A100D-40C"."""
    found = re.search(r"\b\d+g\.(\d+)gb", name, re.IGNORECASE) or re.search(r"\b[A-Z]+\d+[A-Z]*-(\d+)[CQAB]\b", name)
    return f"{found[1]} GB" if found else ""


def _size_in(name: str) -> str:
    found = re.search(r"\b(\d+) ?GB\b", name)
    return found[1] if found else ""


@cache
def _sheets() -> tuple[tuple[re.Pattern[str], str], ...]:
    rows = read_table("accuracy/data/device_memory.csv")
    return tuple((re.compile(row["pattern"], re.IGNORECASE), row["memory_gb"]) for row in rows)


def _sheet_memory(name: str) -> str:
    """Memory of a device that the GPU catalog lacks, from its data sheet; "" when it is not known."""
    stated = _size_in(name)
    return stated or next((f"{size} GB" for pattern, size in _sheets() if pattern.search(name)), "")


def gpu_class_in(notes: str) -> str:
    """Device size that the notes imply, when the row names no device: "80 GB-class"."""
    found = re.search(r"\b(\d+) ?GB-class", notes)
    return f"{found[1]}GB-class" if found else ""


def _visible_gib(text: str) -> float | None:
    """Memory that the engine saw: figures with decimals, or MiB; round figures are marketing."""
    mebibytes = re.match(r"\s*~?(\d+(?:\.\d+)?)\s*MiB", text)
    if mebibytes:
        return None  # nvidia-smi: what the driver lists, as the catalog does
    decimals = re.match(r"\s*~?(\d+\.\d+)", text)
    return float(decimals[1]) if decimals else None


def _visible_gib_in_name(name: str) -> float | None:
    found = re.search(r"\(\s*~?(\d+\.\d+) ?Gi?B\b", name)  # not what words between say of another figure
    return float(found[1]) if found else None


def _catalog_gpu(name: str) -> Gpu | None:
    plain = re.sub(r"\(.*?\)|-class|\bclass\b|mobile|sm\d+", " ", name, flags=re.IGNORECASE).strip()
    words = re.findall(
        r"[ABHLT]\d{1,3}S?\b|GH200|GB\d+|MI\d+X?|RTX (?:PRO )?[A]?\d{4}(?: Ada)?|RX \d+ XTX?|V100|A6000|\d090", name
    )
    for text in (name, plain, re.sub(r"\b\d+ ?GB\b", "", plain).strip(), *words):
        if not text:
            continue
        try:
            return get_gpu(text)
        except InvalidInput:
            continue
    return None


def assumed_gpu(model: ModelShape, weight_dtype: str, parallelism: Parallelism) -> Gpu:
    """GPU for a row that names none: the first usual one whose budget the weights do not fill."""
    weights = sum(weight_bytes_by_group(model, weight_dtype).values()) / parallelism.gpus_per_replica
    weights /= parallelism.attention_data_parallel_size if parallelism.expert_parallel else 1
    for name in ASSUMED_GPUS:
        gpu = get_gpu(name)
        if weights < (1 - FREE_AFTER_WEIGHTS) * 0.9 * visible_memory_bytes(gpu):
            return gpu
    return get_gpu(ASSUMED_GPUS[-1])


def device_of_budget(row: dict[str, str], engine: EngineSettings) -> Gpu | None:
    """Smallest usual device whose budget holds the weights and the pool that a row prints; None without both.

    A row that names no device still says its size so; nothing that is predicted is taken from it.
    """
    printed = [_gib_at_start(row.get(name, "")) for name in ("weights_gib_per_gpu", "available_kv_gib")]
    if engine.family != "vllm" or not all(printed):
        return None
    needed = sum(size for size in printed if size) * GIB / (1 - RUNTIME_SHARE)
    share = engine.gpu_memory_utilization or 0.9
    return next((gpu for gpu in map(get_gpu, DEVICE_CLASSES) if needed <= share * visible_memory_bytes(gpu)), None)


def _gib_at_start(text: str) -> float | None:
    found = re.match(r"\d+(\.\d+)?$", text.strip())
    return float(found[0]) if found else None
