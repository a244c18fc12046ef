"""Efficiency profiles: the kernel parameters of a GPU with an engine, and their source.

`catalog/efficiency.json` has the fitted parameters of each kernel family and dtype by GPU and engine, with source, date
of the fit and residual. A GPU without measurements takes those of a measured GPU of its architecture, with a larger
error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from planner.arrays import Floats
from planner.inputs import Gpu
from planner.step_time import kernels
from planner.step_time.kernels import Device
from planner.tables import read_table

PROFILE_FILE = Path(__file__).parent.parent / "catalog" / "efficiency.json"

#: message sizes at which all-reduce times are kept [bytes]
ALL_REDUCE_BYTES: Floats = 2.0 ** np.arange(8, 31, 2, dtype=np.float64)
#: streaming multiprocessors of the measured GPUs, from their data sheets
NUM_SMS = {
    "A100 SXM 80GB": 108,
    "H100 SXM": 132,
    "H200 SXM": 132,
    "B200": 148,
    "B300": 148,
    "GB200": 148,
    "GB300": 148,
    "L40S": 142,
    "RTX PRO 6000 Blackwell Server": 188,
}
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
#: share of a PCIe link's one-way bandwidth that a ring reaches; the measured servers had no peer-to-peer access
PCIE_RING_FRACTION = 0.55
#: added to the residual where the profile is of another GPU of the same architecture, or of another architecture
INHERITED_ERROR = 0.06
FOREIGN_ERROR = 0.15


def peak_flops(gpu: Gpu, dtype: str) -> tuple[float, str]:
    """Dense rate for weights of this type, and the type of the kernel.

    A GPU without the type dequantises the weights in the kernel and multiplies in 16 bits.

    Parameters
    ----------
    gpu : Gpu
        The accelerator.
    dtype : str
        bf16, fp8, fp8_block, nvfp4, mxfp4 or int4.

    Returns
    -------
    rate, kernel : float, str
        FLOP/s, and the dtype of the kernel in the profiles.
    """
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
        Without a measured profile the SMs follow from the tensor rate, which per SM hardly differs within a generation.
    """
    sms = NUM_SMS.get(gpu.name) or max(8, min(304, round(132 * gpu.bf16_tflops / 989)))
    return Device(bandwidth=gpu.memory_bandwidth_gb_s * 1e9, peak=peak_flops(gpu, dtype)[0], num_sms=sms)


@cache
def _profiles() -> dict[str, Any]:
    with PROFILE_FILE.open(encoding="utf-8") as file:
        data: dict[str, Any] = json.load(file)
    return data


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
    if gpu.architecture == "Hopper":
        return "H200 SXM" if gpu.memory_bandwidth_gb_s > 4000 else "H100 SXM", INHERITED_ERROR
    if gpu.architecture.startswith("Blackwell"):
        workstation = gpu.link_gb_s < 400
        name = "RTX PRO 6000 Blackwell Server" if workstation else "B300" if "Ultra" in gpu.architecture else "B200"
        return name, INHERITED_ERROR
    if gpu.architecture in ("Ada", "Ampere"):
        return "L40S" if gpu.architecture == "Ada" else "A100 SXM 80GB", INHERITED_ERROR
    modern = gpu.architecture in ("CDNA3", "CDNA4", "Gaudi", "TPU")
    return "H100 SXM" if modern else "A100 SXM 80GB", FOREIGN_ERROR


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EfficiencyProfile:
    """Kernel parameters of one GPU with one engine.

    `measured` names the GPU that they were measured on, `inherited_error` is the error that this adds.
    """

    gpu: Gpu
    engine: str
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
        if kind != "gemm":
            return next((x for x in all_found if x["residual"] < MIXED_KERNELS_RESIDUAL), all_found[0])
        graphed: dict[str, float] | None = next((x for x in all_found if x["fixed_us"] < LAUNCH_BOUND_US), None)
        if graphed and graphed["fixed_us"] > UNFUSED_US:
            graphed = graphed | {"fixed_us": min(x["fixed_us"] for x in all_found)}
        if graphed and self.engine == "trtllm" and dtype != "bf16":
            plain = engines[self.engine]["gemm"]["bf16"]["fixed_us"] + FUSED_QUANTISATION_US
            graphed = graphed | {"fixed_us": min(plain, graphed["fixed_us"])}
        return graphed

    def _served(self, kind: str, dtype: str) -> dict[str, float] | None:
        """Parameters in serving: the measured ones, with replacements from `catalog/serving_kernels.csv`."""
        found = self._found(kind, dtype)
        if self.as_measured:
            return found
        if kind == "decode_attention" and found:
            most = {name: found[name] for name in ("bandwidth", "bandwidth_single") if name in found}
            found = found | {name: min(value, MOST_BANDWIDTH) for name, value in most.items()}
        family = self.gpu.architecture.removesuffix(" Ultra") + ("" if self.gpu.link_gb_s >= 400 else " PCIe")
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
                names = [item.name for item in fields(kernels.PARAMETERS[kind])]
                error = found["residual"] + (0.0 if name == dtype else INHERITED_ERROR)
                return kernels.PARAMETERS[kind](**{key: found[key] for key in names if key in found}), error
        raise LookupError(f"no {kind} measured on {self.measured}")

    def all_reduce(self, ranks: int) -> tuple[Floats, Floats]:
        """All-reduce times by message size.

        On another link of the same architecture the time beyond the latency is scaled; more ranks than one node has add
        a ring over a network of 50 GB/s per GPU.

        Parameters
        ----------
        ranks : int
            GPUs in the collective.

        Returns
        -------
        bytes, seconds : array
            Message sizes, times.
        """
        engines = _profiles()[self.measured]
        table = (engines.get(self.engine, {}) or {}).get("all_reduce") or engines["sglang"]["all_reduce"]
        known = sorted(int(size) for size in table)
        nearest = min(known, key=lambda size: abs(np.log(size / ranks)))
        seconds = np.array(table[str(nearest)], dtype=np.float64) * 1e-6
        if self.measured != self.gpu.name:
            ratio = REFERENCE_LINK_GB_S[self.measured] / self.gpu.link_gb_s
            seconds = seconds[0] + (seconds - seconds[0]) * ratio
        if not self.as_measured and self.gpu.link_gb_s <= 128:
            ring = PCIE_RING_FRACTION * self.gpu.link_gb_s * 1e9 / 2
            seconds = np.minimum(seconds, seconds[0] + ALL_REDUCE_BYTES * 2 * (ranks - 1) / ranks / ring)
        if ranks > self.gpu.gpus_per_node:
            seconds = seconds + 20e-6 + 2 * ALL_REDUCE_BYTES / NETWORK_BYTES_S
        return ALL_REDUCE_BYTES, seconds

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
        measured=name,
        inherited_error=error,
        as_measured=as_measured,
        moe_backend=moe_backend,
    )
