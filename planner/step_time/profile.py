"""Efficiency profiles: the kernel parameters of a GPU with an engine, and their source.

`catalog/efficiency.json` has the fitted parameters of each kernel family and dtype by GPU and engine, with source, date
of the fit and residual. A GPU without measurements takes those of a measured GPU of its architecture, with a larger
error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from planner.arrays import Floats
from planner.catalog import get_gpu
from planner.inputs import Gpu
from planner.step_time import kernels
from planner.step_time.kernels import Device
from planner.tables import read_table

#: rows that a tensor instruction multiplies at least (PTX ISA, wgmma.mma_async: every shape is m64); unpacked 4-bit
#: weights go through the older instructions of 16 rows
LEAST_ROWS = {"Hopper": 64}
NVLINK_GB_S = 400  # slower links are PCIe
LEAST_HBM_GB_S = 1200  # the fastest Ampere card with GDDR has 1,008 GB/s, the slowest with HBM2e 933 and 1,555
H200_LIKE_GB_S = 4000  # Hopper with more bandwidth has the HBM3e of H200
PROFILE_FILE = Path(__file__).parent.parent / "catalog" / "efficiency.json"

#: message sizes at which all-reduce times are kept [bytes]
ALL_REDUCE_BYTES: Floats = 2.0 ** np.arange(8, 31, 2, dtype=np.float64)
#: matrix products with a longer fixed time were measured without a CUDA graph, or with a separate kernel that quantises
#: the input. Engines use graphs and fuse the two: serving takes the shortest fixed time of any engine
UNFUSED_US = 9.0
#: TensorRT-LLM quantises activations in the preceding norm: a product costs little more than in 16 bits
FUSED_QUANTISATION_US = 1.0
#: above these, another engine's parameters are used: the fixed time hides the rest, or several kernels share one fit
LAUNCH_BOUND_US = 40.0
#: no kernel reads the KV cache from memory faster; measurements above it hit the L2 cache
MOST_BANDWIDTH = 0.92
MIXED_KERNELS_RESIDUAL = 0.25
#: added to the residual where the profile is of another GPU of the same architecture, or of another architecture
INHERITED_ERROR = 0.06
FOREIGN_ERROR = 0.15
#: error that each kind of evidence of a class adds
EVIDENCE_ERROR = dict.fromkeys(("measured", "kernel", "family"), INHERITED_ERROR) | dict.fromkeys(
    ("related", "none"), FOREIGN_ERROR
)

#: what a replica's kernel parameters rest on, from near to far
KERNELS_MEASURED, SAME_ARCHITECTURE, NOTHING_MEASURED = EVIDENCE = ("measured", "architecture", "none")
_MEASURED_ENGINES = ("vllm", "sglang", "trtllm")


def peak_flops(gpu: Gpu, dtype: str) -> tuple[float, str]:
    """Dense rate for weights of this type, and the type of the kernel.

    A GPU without the type dequantises the weights in the kernel and multiplies in 16 bits.

    Parameters
    ----------
    gpu : Gpu
        The accelerator.
    dtype : str
        bf16, fp8, fp8_block, int8, nvfp4, mxfp4 or int4.

    Returns
    -------
    rate, kernel : float, str
        FLOP/s, and the dtype of the kernel in the profiles.
    """
    if dtype == "int8" and gpu.int8_tops:  # no table has INT8: FP8's kernels stand in, or 16-bit ones
        return gpu.int8_tops * 1e12, "fp8" if gpu.fp8_tflops else "bf16"
    rates = {"fp8": gpu.fp8_tflops, "fp8_block": gpu.fp8_tflops, "nvfp4": gpu.fp4_tflops}
    rate = rates.get(dtype)
    if rate:
        return rate * 1e12, dtype
    return gpu.bf16_tflops * 1e12, dtype if dtype in ("bf16", "mxfp4", "int4") else "int4"


def device_of(gpu: Gpu, dtype: str = "bf16") -> Device:
    """Rates of a GPU for kernels of one type.

    Parameters
    ----------
    gpu : Gpu
        The accelerator.
    dtype : str
        Type of the weights.

    Returns
    -------
    Device
        Of a GPU that is not in `catalog/gpu_classes.csv` the SMs follow from the tensor rate, as on H100.
    """
    known = class_of(gpu)["num_sms"]
    sms = int(known) if known else max(8, min(304, round(132 * gpu.bf16_tflops / 989)))
    peak, kernel = peak_flops(gpu, dtype)
    rows = 1 if kernel == "int4" else LEAST_ROWS.get(gpu.architecture, 1)
    return Device(bandwidth=gpu.memory_bandwidth_gb_s * 1e9, peak=peak, num_sms=sms, least_rows=rows)


@cache
def _profiles() -> dict[str, Any]:
    """Profiles by GPU and engine; `kernels_of` names a GPU whose kernels predict this one's no worse than its own fit.

    B300, GB200 and GB300 with B200's kernels: TPOT 5.6 % instead of 5.7 % on 206 rows of B300, output tokens/s 7.3 %
    instead of 7.6 % on 57 rows of GB200; what Blackwell Ultra does faster is a factor in `efficiency_classes.csv`.
    H200 with H100's: 9.2 % instead of 7.0 %, so it keeps its own.
    """
    with PROFILE_FILE.open(encoding="utf-8") as file:
        data: dict[str, Any] = json.load(file)
    return {
        gpu: {engine: data.get(own.get("kernels_of"), {}).get(engine, {}) | own for engine, own in engines.items()}
        for gpu, engines in data.items()
    }


def fitted_numbers() -> dict[str, int]:
    """How many numbers of the step times were fitted, by where they are kept; measured tables do not count.

    Returns
    -------
    dict
        kernels (`catalog/efficiency.json`), overheads (`catalog/serving_overheads.csv`, without what is convention),
        served kernels (`catalog/serving_kernels.csv`), GPU classes (`catalog/efficiency_classes.csv`) and links
        (`catalog/all_reduce_links.csv`).
    """
    with PROFILE_FILE.open(encoding="utf-8") as file:
        data: dict[str, Any] = json.load(file)
    kernel_numbers = sum(
        len(parameters.keys() - {"residual", "rows"})
        for engines in data.values()
        for profile in engines.values()
        for kind, by_type in profile.items()
        if kind in kernels.PARAMETERS
        for parameters in by_type.values()
    )
    overheads = [row for row in read_table("catalog/serving_overheads.csv") if row["how_fitted"] != "convention"]
    served = [row for row in read_table("catalog/serving_kernels.csv") if row["parameter"] != "engine"]
    classes = [row for row in read_table("catalog/efficiency_classes.csv") if row["kind"] != "reference"]
    return {
        "kernels": kernel_numbers,
        "overheads": len(overheads),
        "served kernels": len(served),
        "GPU classes": len(classes),
        "links": 2 * len(read_table("catalog/all_reduce_links.csv")),
    }


@lru_cache(maxsize=256)
def class_of(gpu: Gpu) -> Mapping[str, str]:
    """Line of `catalog/gpu_classes.csv`; a GPU that is not listed takes the class of its architecture.

    Returns
    -------
    mapping
        gpu, class, num_sms ("" = not known), link and source.
    """
    for row in read_table("catalog/gpu_classes.csv"):
        if row["gpu"] == gpu.name:
            return row
    pcie = gpu.link_gb_s < NVLINK_GB_S
    wanted = {
        "Hopper": "hopper",
        "Ada": "ada_gddr",
        "Ampere": "ampere_gddr" if gpu.memory_bandwidth_gb_s < LEAST_HBM_GB_S else "ampere_hbm",
        "Blackwell": "blackwell_gddr" if pcie else "blackwell",
        "CDNA2": "cdna2",
        "CDNA3": "cdna3",
        "CDNA4": "cdna4",
    }.get(gpu.architecture.removesuffix(" Ultra"), "")
    return {"gpu": gpu.name, "class": wanted, "num_sms": "", "link": "pcie_p2p" if pcie else "", "source": ""}


def chip_family(gpu: Gpu) -> str:
    """Family of chips that run the same kernels: the architecture, of which Blackwell's workstation chips are apart."""
    generation = gpu.architecture.removesuffix(" Ultra")
    apart = generation == "Blackwell" and class_of(gpu)["class"] not in ("blackwell", "blackwell_ultra")
    return "Blackwell workstation" if apart else generation


def measured_gpu(gpu: Gpu) -> tuple[str, float]:
    """Name the GPU whose measurements are used for this one, and the error that this adds.

    Parameters
    ----------
    gpu : Gpu
        Any accelerator.

    Returns
    -------
    name, error : str, float
        A GPU of `catalog/efficiency.json`; 0 when it is the same one.
    """
    if gpu.name in _profiles():
        return gpu.name, 0.0
    row = _reference_of(gpu)
    if row is None:
        modern = gpu.architecture in ("Gaudi", "TPU")
        return "H100 SXM" if modern else "A100 SXM 80GB", FOREIGN_ERROR
    name = row["value"]
    if name == "H100 SXM" and gpu.memory_bandwidth_gb_s > H200_LIKE_GB_S and row["class"] == "hopper":
        name = "H200 SXM"
    if name == "B200" and "Ultra" in gpu.architecture:
        name = "B300"
    return name, EVIDENCE_ERROR[row["evidence"]]


def _reference_of(gpu: Gpu) -> Mapping[str, str] | None:
    """Line that names the measured GPU whose kernels a GPU's class takes."""
    own = class_of(gpu)["class"]
    rows = read_table("catalog/efficiency_classes.csv")
    return next((row for row in rows if row["kind"] == "reference" and row["class"] == own), None)


def evidence_of(gpu: Gpu) -> str:
    """What the kernel parameters of a GPU rest on, in words."""
    name, error = measured_gpu(gpu)
    if not error:
        return f"kernels measured on {name}"
    row = _reference_of(gpu)
    why = {
        "measured": f"kernels of {name} with bandwidth and compute that published runs on this class of GPU reach",
        "kernel": f"kernels of {name} with bandwidth and compute that kernels timed on this class of GPU reach",
        "family": f"efficiencies of {name}, the same architecture, applied to its data sheet",
        "related": f"efficiencies of {name} and of a related architecture applied to its data sheet",
        "none": f"efficiencies of {name}, another architecture, applied to its data sheet",
    }[row["evidence"] if row else "none"]
    return f"no kernel measurement of {gpu.name}: {why}"


def evidence_class(gpu: Gpu, engine: str, kernel_types: tuple[tuple[str, str], ...] = ()) -> str:
    """How near the measured kernels are to those that a GPU runs with an engine.

    Parameters
    ----------
    gpu : Gpu
        Any accelerator.
    engine : str
        Engine family.
    kernel_types : tuple of (str, str)
        Kernel family and type of the weights' kernels, which must have been measured too.

    Returns
    -------
    str
        One of `EVIDENCE`: these kernels were measured on this GPU with this engine; they were measured on another GPU
        of the architecture, with another engine or for another type; none was measured on the architecture.
    """
    name, _ = measured_gpu(gpu)
    if name == gpu.name:
        own = _profiles()[name].get(engine, {}) if engine in _MEASURED_ENGINES else {}
        known = bool(own) and all(dtype in own.get(kind, {}) for kind, dtype in kernel_types)
        return KERNELS_MEASURED if known else SAME_ARCHITECTURE
    row = _reference_of(gpu)
    return SAME_ARCHITECTURE if row is not None and _same_architecture(gpu, name) else NOTHING_MEASURED


def _same_architecture(gpu: Gpu, measured: str) -> bool:
    return gpu.architecture.removesuffix(" Ultra") == get_gpu(measured).architecture.removesuffix(" Ultra")


_runs_left_out: ContextVar[bool] = ContextVar("runs_left_out", default=False)


@contextmanager
def runs_left_out() -> Iterator[None]:
    """Ignore, while the block runs, what published runs taught about a GPU class's kernels."""
    before = _runs_left_out.set(True)
    try:
        yield
    finally:
        _runs_left_out.reset(before)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EfficiencyProfile:
    """Kernel parameters of one GPU with one engine.

    `measured` names the GPU that they were measured on, `inherited_error` is the error that this adds.
    """

    gpu: Gpu
    engine: str
    family: str
    measured: str
    inherited_error: float
    as_measured: bool = False
    moe_backend: str = ""

    def _found(self, kind: str, dtype: str) -> dict[str, float] | None:
        engines = _profiles()[self.measured]
        order = [self.engine, *(name for name in ("trtllm", "sglang", "vllm") if name != self.engine)]
        all_found = [found for name in order if (found := engines.get(name, {}).get(kind, {}).get(dtype))]
        if self.as_measured or not all_found:
            return all_found[0] if all_found else None
        if kind == "latent_decode":
            return self._launched_in_a_graph(all_found)
        if kind != "gemm":
            return next((x for x in all_found if x["residual"] < MIXED_KERNELS_RESIDUAL), all_found[0])
        graphed: dict[str, float] | None = next((x for x in all_found if x["fixed_us"] < LAUNCH_BOUND_US), None)
        if graphed and graphed["fixed_us"] > UNFUSED_US:
            graphed = graphed | {"fixed_us": min(x["fixed_us"] for x in all_found)}
        if graphed and self.engine == "trtllm" and dtype != "bf16":
            plain = engines[self.engine]["gemm"]["bf16"]["fixed_us"] + FUSED_QUANTISATION_US
            graphed = graphed | {"fixed_us": min(plain, graphed["fixed_us"])}
        return graphed

    def _launched_in_a_graph(self, all_found: list[dict[str, float]]) -> dict[str, float]:
        """Latent attention as a CUDA graph replays it: a long fixed time is the launch of its metadata kernel."""
        first = next((x for x in all_found if x["residual"] < MIXED_KERNELS_RESIDUAL), all_found[0])
        if first["base_us"] <= LAUNCH_BOUND_US:
            return first
        engines = _profiles()[self.measured].values()
        tables = [x for engine in engines for x in engine.get("latent_decode", {}).values()]
        return first | {"base_us": min(x["base_us"] for x in tables)}

    def _served(self, kind: str, dtype: str) -> dict[str, float] | None:
        """Parameters in serving: the measured ones, with replacements from `catalog/serving_kernels.csv`."""
        found = self._found(kind, dtype)
        if self.as_measured:
            return found
        if kind == "decode_attention" and found:
            most = {name: found[name] for name in ("bandwidth", "bandwidth_single") if name in found}
            found = found | {name: min(value, MOST_BANDWIDTH) for name, value in most.items()}
        if _runs_left_out.get() and not _same_architecture(self.gpu, self.measured):
            return found
        family = chip_family(self.gpu)
        for row in read_table("catalog/serving_kernels.csv"):
            if (row["architecture"], row["engine"], row["kind"], row["dtype"]) != (family, self.engine, kind, dtype):
                continue
            if row["backend"] not in ("", self.moe_backend):
                continue
            if row["parameter"] == "engine":
                found = _profiles()[self.measured].get(row["value"], {}).get(kind, {}).get(dtype, found)
            elif found is not None:
                found = found | {row["parameter"]: float(row["value"])}
        return found

    def _adjusted(self, found: dict[str, float], kind: str, dtype: str) -> dict[str, float]:
        """Replace or scale what the GPU's class is known to reach; "compute" means a GEMM at every token count."""
        if self.as_measured:
            return found
        out, own = dict(found), {class_of(self.gpu)["class"], self._ggml_class} - {""}
        last: dict[tuple[str, str], Mapping[str, str]] = {}
        for row in read_table("catalog/efficiency_classes.csv"):
            if row["class"] not in own or row["kind"] != kind or row["dtype"] not in ("", dtype):
                continue
            if not (_runs_left_out.get() and row["evidence"] == "measured"):
                last[row["dtype"], row["parameter"]] = row
        for row in last.values():
            value = float(row["value"])
            if row["how"] == "gb_s_per_sm":
                value *= device_of(self.gpu).num_sms / self.gpu.memory_bandwidth_gb_s
            for name in [key for key in out if key == row["parameter"] or key.startswith(f"{row['parameter']}_")]:
                out[name] = value * (out[name] if row["how"] == "times" else 1.0)
        return out

    @property
    def multiplies_int8(self) -> bool:
        """Whether quantised matrices meet activations in 8 bits: llama.cpp's MMQ on NVIDIA's tensor cores.

        Source: github.com/ggml-org/llama.cpp/pull/7676 and 7860 (int8 tensor cores for all GGUF types). Without such
        tensor cores (Volta) it unpacks prompts' weights for cuBLAS (ggml-cuda/mmq.cu, `ggml_cuda_should_use_mmq`).
        """
        return self.family == "llamacpp" and self.gpu.vendor == "NVIDIA" and bool(self.gpu.int8_tops)

    @property
    def _ggml_class(self) -> str:
        """Class of llama.cpp's own kernels, one per back end; "" for other engines."""
        if self.family != "llamacpp":
            return ""
        if self.gpu.vendor == "NVIDIA":
            return "ggml_cuda" if self.multiplies_int8 else ""
        return f"ggml_{class_of(self.gpu)['class']}"

    def parameters(self, kind: str, dtype: str) -> tuple[Any, float]:
        """Parameters of a kernel family and their residual (median absolute error).

        A dtype without measurements on this GPU takes the nearest one: fp8 for block-scaled fp8, 16-bit for weight-only
        schemes, which multiply in 16 bits.

        Parameters
        ----------
        kind : str
            gemm, experts, decode_attention or prefill_attention.
        dtype : str
            Type of the weights (gemm, experts) or of the KV cache (attention).

        Returns
        -------
        parameters, residual
            One of the dataclasses of `planner.step_time.kernels`.
        """
        nearest = {
            "fp8_block": ("fp8_block", "fp8", "bf16"),
            "nvfp4": ("nvfp4", "fp8_block", "fp8", "bf16"),
            "mxfp4": ("mxfp4", "int4", "bf16"),
            "int4": ("int4", "mxfp4", "bf16") if kind == "experts" else ("int4", "bf16"),
        }.get(dtype, (dtype, "bf16"))
        for name in nearest:
            found = self._served(kind, name)
            if found:
                found = self._adjusted(found, kind, dtype)
                names = [item.name for item in fields(kernels.PARAMETERS[kind])]
                error = found["residual"] + (0.0 if name == dtype else INHERITED_ERROR)
                return kernels.PARAMETERS[kind](**{key: found[key] for key in names if key in found}), error
        raise LookupError(f"no {kind} measured on {self.measured}")

    def all_reduce(self, ranks: int) -> tuple[Floats, Floats]:
        """All-reduce times by message size.

        Over PCIe they follow `catalog/all_reduce_links.csv`. On another NVLink of the same architecture the time beyond
        the latency is scaled; more ranks than one node has add a ring over a network of 50 GB/s per GPU.

        Parameters
        ----------
        ranks : int
            GPUs in the collective.

        Returns
        -------
        bytes, seconds : array
            Message sizes, times.
        """
        if not self.as_measured and (link := self._pcie_link(ranks)):
            alpha_us, bytes_s = link
            seconds = alpha_us * 1e-6 + ALL_REDUCE_BYTES * 2 * (ranks - 1) / ranks / bytes_s
            if self.measured == self.gpu.name:
                seconds = np.minimum(seconds, self._measured_all_reduce(ranks))
        else:
            seconds = self._measured_all_reduce(ranks)
        if ranks > self.gpu.gpus_per_node:
            seconds = seconds + NETWORK_S + 2 * ALL_REDUCE_BYTES / NETWORK_BYTES_S
        return ALL_REDUCE_BYTES, seconds

    def _measured_all_reduce(self, ranks: int) -> Floats:
        engines = _profiles()[self.measured]
        table = (engines.get(self.engine, {}) or {}).get("all_reduce") or engines["sglang"]["all_reduce"]
        known = sorted(int(size) for size in table)
        nearest = min(known, key=lambda size: abs(np.log(size / ranks)))
        seconds = np.array(table[str(nearest)], dtype=np.float64) * 1e-6
        if self.measured != self.gpu.name:
            ratio = REFERENCE_LINK_GB_S[self.measured] / self.gpu.link_gb_s
            seconds = seconds[0] + (seconds - seconds[0]) * ratio
        return seconds

    def _pcie_link(self, ranks: int) -> tuple[float, float] | None:
        """Latency in µs and bytes/s of an all-reduce over PCIe; None over NVLink and other fabrics."""
        link, gb_s = class_of(self.gpu)["link"], self.gpu.link_gb_s
        if link == "nvlink_pair":
            if ranks == 2:
                return None
            link, gb_s = "pcie_p2p", PCIE5_GB_S
        rows = [row for row in read_table("catalog/all_reduce_links.csv") if row["link"] == link]
        if not rows:
            return None
        row = min(rows, key=lambda row: abs(np.log(float(row["gpus"]) / ranks)))
        return float(row["alpha_us"]), float(row["beta_gb_s"]) * 1e9 * gb_s / float(row["reference_gb_s"])

    @property
    def source(self) -> str:
        """Source of the measurements, and when they were fitted."""
        engines = _profiles()[self.measured]
        entry = engines.get(self.engine) or next(iter(engines.values()))
        return f"{entry['source']}, fitted {entry['fitted']}"


#: bidirectional GB/s per GPU of the links on which the collectives were measured
REFERENCE_LINK_GB_S = {
    "A100 SXM 80GB": 600.0,
    "H100 SXM": 900.0,
    "H200 SXM": 900.0,
    "B200": 1800.0,
    "B300": 1800.0,
    "GB200": 1800.0,
    "GB300": 1800.0,
    "L40S": 64.0,
    "RTX PRO 6000 Blackwell Server": 128.0,
}
NETWORK_BYTES_S = 50e9
#: 4 KB among 16 H100s on two nodes over InfiniBand (github.com/NVIDIA/nccl/issues/1453)
NETWORK_S = 75e-6
PCIE5_GB_S = 128  # both directions of PCIe 5 x16


def stored_profile(gpu: Gpu, engine: str) -> dict[str, Any]:
    """Profile of a GPU, or of the measured GPU that is used for it, with an engine, as in the file."""
    engines = _profiles()[measured_gpu(gpu)[0]]
    found: dict[str, Any] = engines.get(engine) or engines["vllm"]
    return found


@lru_cache(maxsize=256)
def efficiency_profile(gpu: Gpu, engine: str, *, as_measured: bool = False, moe_backend: str = "") -> EfficiencyProfile:
    """Choose the profile of a GPU with an engine.

    Parameters
    ----------
    gpu : Gpu
        Any accelerator.
    engine : str
        Engine family; without measurements it takes vLLM's kernels.
    as_measured : bool
        Keep kernels whose measured time is mostly launch, for comparison with these measurements.
    moe_backend : str
        Kernels of the experts that the user chose; "" = those measured.

    Returns
    -------
    EfficiencyProfile
    """
    name, error = measured_gpu(gpu)
    family = engine if engine in ("vllm", "sglang", "trtllm") else "vllm"
    return EfficiencyProfile(
        gpu=gpu,
        engine=family,
        family=engine,
        measured=name,
        inherited_error=error,
        as_measured=as_measured,
        moe_backend=moe_backend,
    )
