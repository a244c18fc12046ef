"""Accelerators: what a data sheet and the driver say of one GPU, and the deployment on several."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import require_int, require_number
from planner.units import GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One accelerator. Rates are dense (no sparsity); None means that the hardware lacks the dtype.

    `memory_gib` is what the driver reports (GiB), `memory_gb` what the box says (GB).
    `link_gb_s` is the bidirectional GPU-to-GPU bandwidth per GPU in GB/s.
    """

    name: str
    vendor: str = ""
    architecture: str = ""
    memory_gb: float
    memory_gib: float
    memory_bandwidth_gb_s: float
    bf16_tflops: float
    fp16_tflops: float | None = None
    fp8_tflops: float | None = None
    int8_tops: float | None = None
    fp4_tflops: float | None = None
    interconnect: str = ""
    link_gb_s: float = 64.0
    gpus_per_node: int = 8
    tdp_w: float | None = None
    usd_per_hour_low: float | None = None
    usd_per_hour_typical: float | None = None
    usd_per_hour_high: float | None = None
    price_source: str = ""
    spec_source: str = ""
    unified_memory: bool = False  # the CPU's memory is the GPU's: nothing is kept back, and both fill it
    estimated_fields: tuple[str, ...] = ()  # fields that no source gave and that had to be estimated

    def __post_init__(self) -> None:
        require_number("memory_gb", self.memory_gb, above=0, at_most=10_000)
        require_number("memory_gib", self.memory_gib, above=0, at_most=10_000)
        require_number("memory_bandwidth_gb_s", self.memory_bandwidth_gb_s, above=0, at_most=1e6)
        require_number("bf16_tflops", self.bf16_tflops, above=0, at_most=1e6)
        require_number("link_gb_s", self.link_gb_s, above=0, at_most=1e5)
        require_int("gpus_per_node", self.gpus_per_node, at_most=1024)
        for name in ("fp16_tflops", "fp8_tflops", "int8_tops", "fp4_tflops", "tdp_w"):
            if getattr(self, name) is not None:
                require_number(name, getattr(self, name), above=0)
        for name in ("usd_per_hour_low", "usd_per_hour_typical", "usd_per_hour_high"):
            if getattr(self, name) is not None:
                require_number(name, getattr(self, name), at_least=0)

    @property
    def memory_bytes(self) -> float:
        """Memory that the driver reports. [bytes]"""
        return self.memory_gib * GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """How one replica is spread over GPUs.

    `expert_parallel` deals experts out whole instead of slicing each; `attention_data_parallel`
    runs attention as that many data-parallel groups inside the replica (experts stay shared);
    `decode_context_parallel` shards the KV cache along tokens inside the tensor-parallel group.
    """

    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    expert_parallel: bool = False
    attention_data_parallel_size: int = 1
    decode_context_parallel_size: int = 1

    def __post_init__(self) -> None:
        for name in (
            "tensor_parallel_size",
            "pipeline_parallel_size",
            "attention_data_parallel_size",
            "decode_context_parallel_size",
        ):
            require_int(name, getattr(self, name), at_most=1024)

    @property
    def gpus_per_replica(self) -> int:
        """GPUs of one replica: tensor × pipeline × attention data parallel."""
        return self.tensor_parallel_size * self.pipeline_parallel_size * self.attention_data_parallel_size
