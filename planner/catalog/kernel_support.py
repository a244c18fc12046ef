"""How engines run a precision on a GPU: natively, weight-only, or not at all (kernel_support.csv)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from planner.inputs import Gpu, first_of, release_of
from planner.tables import read_table

NATIVE, WEIGHT_ONLY, EMULATED = "native", "weight_only", "emulated"
REFUSED, UNVERIFIED = "refused", "unverified"
HBM_GB_S = 4000.0  # Blackwell with HBM reads faster than this, with GDDR7 slower (gpus.csv)
#: weight schemes whose kernels are those of another's row
_PRECISIONS = {
    "fp8": "fp8_per_tensor",
    "int8": "int8_w8a8",
    "int4_g128": "gptq_int4",
    "int4_g32": "gptq_int4",
    "nvfp4_linear": "nvfp4",
    "bnb_nf4": "bitsandbytes",
    "bnb_int8": "bitsandbytes",
}
_CACHES = ("fp8", "fp8_e4m3", "fp8_e5m2")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSupport:
    """How an engine runs one precision on one architecture; `note` is what its source says."""

    support: str  # native, weight_only, emulated, refused or unverified
    note: str
    version: str  # of the engine, where it was read
    source: str


def kernel_support(engine: str, version: str, gpu: Gpu, weight_dtype: str) -> KernelSupport | None:
    """How an engine runs weights of a scheme on a GPU.

    Parameters
    ----------
    engine : str
        Family: vllm, sglang, trtllm or llamacpp.
    version : str
        Release; a refusal that came with a later one does not hold. "" = the newest.
    gpu : Gpu
        Its architecture decides; data-centre and consumer Blackwell differ.
    weight_dtype : str
        A name of quantization.csv.

    Returns
    -------
    KernelSupport or None
        None where the catalog has no line for the scheme in this engine, or the GPU has no architecture.
    """
    key = "gguf" if weight_dtype.startswith("gguf_") else _PRECISIONS.get(weight_dtype, weight_dtype)
    return _found(engine, version, gpu, key)


def cache_support(engine: str, version: str, gpu: Gpu, kv_cache_dtype: str) -> KernelSupport | None:
    """How an engine runs attention over a KV cache of a type on a GPU; as `kernel_support`, fp8 types alone."""
    return _found(engine, version, gpu, "fp8_kv") if kv_cache_dtype in _CACHES else None


def kernel_architecture(gpu: Gpu) -> str:
    """The architecture as kernel_support.csv names it."""
    if gpu.architecture.startswith("Blackwell"):
        return "Blackwell_datacenter" if gpu.memory_bandwidth_gb_s > HBM_GB_S else "Blackwell_consumer"
    return "Apple" if gpu.vendor == "Apple" else gpu.architecture


def _found(engine: str, version: str, gpu: Gpu, precision: str) -> KernelSupport | None:
    known = _table().get((engine, precision))
    if known is None or not gpu.architecture:
        return None
    row, since = known.get(kernel_architecture(gpu), (None, ""))
    if row is None:
        note = f"no source names {gpu.architecture} GPUs"
        return KernelSupport(support=UNVERIFIED, note=note, version="", source="")
    if since and release_of(version) < first_of(since):
        return KernelSupport(support=UNVERIFIED, note=f"read for {since} alone", version=since, source=row.source)
    return row


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str], dict[str, tuple[KernelSupport, str]]]:
    found: dict[tuple[str, str], dict[str, tuple[KernelSupport, str]]] = {}
    for row in read_table("catalog/kernel_support.csv"):
        line = KernelSupport(support=row["support"], note=row["note"], version=row["version"], source=row["source"])
        found.setdefault((row["engine"], row["precision"]), {})[row["architecture"]] = (line, row["since"])
    return found
