"""Step times from kernel families: four physical parameters per kernel, dtype and GPU architecture.

Every matrix of a layer is one kernel call, experts one grouped call, attention one call per layer:

    seconds = fixed + (memory³ + compute³)^(1/3) + activation

with the weight bytes that one rank reads, its FLOP against the dense peak, and its activation bytes.
The parameters (`catalog/kernel_families.csv`) are fitted to published kernel measurements, so a GPU
without measurements inherits those of its architecture. Experts touched by T tokens are
E·(1 − (1 − k/E)^T) (uniform routing). What an engine adds around the kernels (host time, launches
without CUDA graphs, request overhead) is in `catalog/serving_overheads.csv`.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planner.engine import EngineSettings
from planner.hardware import Gpu, Parallelism
from planner.model import Layer, Mixer, MixerKind, ModelShape, Shard, TensorGroup
from planner.quantization import kv_bits, resolve_scheme, weight_bits
from planner.step_time import StepTimeTable

Floats = NDArray[np.float64]

_FOLDER = Path(__file__).parent / "catalog"
EXPERT_IMBALANCE = 1.2  # work of the busiest expert-parallel rank over the mean (routing skew)
EXCHANGE_FIXED_S = 15e-6  # latency of one all-gather or reduce-scatter between attention ranks
EXCHANGE_FRACTION = 0.75  # of the link's one-way bandwidth that such a collective reaches
DECODE_FLOOR_S = {"Ampere": 16e-6, "Hopper": 11e-6, "Blackwell": 10e-6}
STATE_FIXED_S = 22e-6  # one recurrent update: convolution, gates, delta rule
STATE_FRACTION = 0.6
SAMPLING_S = 25e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel family on one architecture."""

    fixed_s: float
    bandwidth_fraction: float
    compute_fraction: float
    activation_fraction: float
    residual: float

    def seconds(self, memory_s: Floats | float, compute_s: Floats | float, activation_s: Floats | float) -> Floats:
        """Time of a call whose ideal parts (at data-sheet rates) are given, in seconds."""
        bound = np.cbrt(
            (np.asarray(memory_s) / self.bandwidth_fraction) ** 3 + (compute_s / self.compute_fraction) ** 3
        )
        return self.fixed_s + bound + activation_s / self.activation_fraction


@cache
def _rows(name: str) -> tuple[dict[str, str], ...]:
    with (_FOLDER / name).open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(line for line in file if not line.startswith("#")))


def architecture_family(gpu: Gpu) -> str:
    """Architecture whose measured kernels a GPU inherits."""
    name = gpu.architecture
    if name.startswith("Blackwell"):
        return "Blackwell" if gpu.link_gb_s > 400 else "Blackwell workstation"
    if name in ("Hopper", "CDNA3", "CDNA4", "Gaudi"):
        return "Hopper"
    if name in ("Ada", "RDNA3", "Battlemage"):
        return "Ada"
    return "Ampere"


@cache
def kernel(name: str, architecture: str, engine: str, dtype: str) -> Kernel:
    """Look up a kernel family; an engine's own line precedes the one for any engine.

    Parameters
    ----------
    name : str
        gemm, moe, attention, mla or allreduce with the width.
    architecture : str
        As `architecture_family` returns.
    engine : str
        Engine family.
    dtype : str
        bf16, fp8, fp8_block, nvfp4, mxfp4, int4 or "" for collectives.

    Returns
    -------
    Kernel
        Without a line for the dtype, that of 16-bit kernels.
    """
    for wanted in (dtype, "fp8" if dtype.startswith("fp8") else "int4" if dtype == "mxfp4" else "bf16", "bf16"):
        for owner in (engine, ""):
            for row in _rows("kernel_families.csv"):
                if (row["kernel"], row["architecture"], row["engine"], row["dtype"]) == (
                    name, architecture, owner, wanted,
                ):  # fmt: skip
                    return Kernel(
                        fixed_s=float(row["fixed_us"]) * 1e-6,
                        bandwidth_fraction=float(row["bandwidth_fraction"]),
                        compute_fraction=float(row["compute_fraction"] or 1),
                        activation_fraction=float(row["activation_fraction"] or 1),
                        residual=float(row["residual_pct"] or 15) / 100,
                    )
    if architecture != "Hopper":
        return kernel(name, "Hopper", engine, dtype)
    raise LookupError(f"no kernel family {name} for {architecture}")


def _kernel_owner(engine: EngineSettings) -> str:
    """Name the engine for the kernel table: SGLang changed its 16-bit expert kernels with 0.5.10."""
    if engine.family == "sglang" and engine.version and _numbers(engine.version) < (0, 5, 10):
        return "sglang<0.5.10"
    return engine.family


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit())


@cache
def overhead(engine: str, version: str, parameter: str) -> float:
    """Read one serving overhead of an engine at a version (unknown version: the newest)."""
    have = _numbers(version)
    value = math.nan
    for row in _rows("serving_overheads.csv"):
        since = tuple(int(part) for part in row["version_from"].split(".") if part)
        if row["parameter"] == parameter and row["engine"] in ("", engine) and (not have or have >= since):
            value = float(row["value"])
    return value


def kernel_dtype(model: ModelShape, weight_dtype: str) -> str:
    """Kernel family of a quantisation scheme."""
    name = resolve_scheme(model, weight_dtype).name
    if name in ("bf16", "fp16", "fp32", "gguf_f16"):
        return "bf16"
    if name in ("fp8_block", "nvfp4", "mxfp4"):
        return name
    if name in ("fp8", "mxfp8", "int8", "bnb_int8"):
        return "fp8"
    return "int4"


def _peak(gpu: Gpu, dtype: str) -> tuple[float, str]:
    """Dense FLOP/s of a kernel dtype on a GPU, and the dtype that then computes."""
    rates = {"fp8": gpu.fp8_tflops, "fp8_block": gpu.fp8_tflops, "nvfp4": gpu.fp4_tflops}
    if dtype == "mxfp4" and gpu.fp4_tflops:
        return (gpu.fp8_tflops or gpu.bf16_tflops) * 1e12, dtype
    rate = rates.get(dtype)
    if rate:
        return rate * 1e12, dtype
    weight_only = dtype in ("nvfp4", "mxfp4", "int4", "fp8", "fp8_block")
    return gpu.bf16_tflops * 1e12, ("mxfp4" if dtype == "mxfp4" else "int4") if weight_only else "bf16"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rank:
    """One rank's share of a deployment: what the formulas below need."""

    model: ModelShape
    gpu: Gpu
    engine: EngineSettings
    parallelism: Parallelism
    weight_dtype: str
    kv_bytes: float
    layers: tuple[tuple[Layer, float], ...]

    @property
    def bandwidth(self) -> float:
        return self.gpu.memory_bandwidth_gb_s * 1e9

    @property
    def arch(self) -> str:
        return architecture_family(self.gpu)

    def call(self, name: str, dtype: str) -> Kernel:
        return kernel(name, self.arch, _kernel_owner(self.engine), dtype)


def _gemm_s(rank: _Rank, tokens: Floats, out: float, inner: float, bits: float) -> Floats:
    dtype = kernel_dtype(rank.model, rank.weight_dtype) if bits < 16 else "bf16"
    peak, dtype = _peak(rank.gpu, "bf16" if dtype == "mxfp4" else dtype)
    memory = out * inner * bits / 8 / rank.bandwidth
    return rank.call("gemm", dtype).seconds(
        memory, 2 * tokens * out * inner / peak, tokens * (out + inner) * 2 / rank.bandwidth
    )


def _dense_s(rank: _Rank, layer: Layer, tokens: Floats) -> Floats:
    """All matrices of a layer but its experts; projections of one input run as one call."""
    tp = rank.parallelism.tensor_parallel_size
    calls: dict[tuple[str, float, float], list[float]] = {}
    for linear in layer.linears:
        if linear.group is TensorGroup.EXPERT:
            continue
        bits = weight_bits(rank.model, rank.weight_dtype, linear.group, linear.quantizable)
        out, inner = float(linear.out_features), float(linear.in_features)
        if linear.shard in (Shard.COLUMN, Shard.VOCAB):
            out /= tp
        elif linear.shard is Shard.ROW:
            inner /= tp
        elif linear.shard is Shard.KV_COLUMN:
            heads = max(1, layer.mixer.num_kv_heads)
            out *= max(1, heads // tp) / heads
        key = (linear.group.value + ("/out" if linear.shard is Shard.ROW else "/in"), inner, bits)
        calls.setdefault(key, [0.0])[0] += out * linear.count
    total = np.zeros_like(tokens)
    for (_, inner, bits), (out,) in calls.items():
        total = total + _gemm_s(rank, tokens, out, inner, bits)
    return total


def _experts_s(rank: _Rank, layer: Layer, tokens: Floats) -> Floats:
    """Time the grouped expert call of a layer, for the tokens of all attention ranks together."""
    experts = layer.experts
    if experts is None:
        return np.zeros_like(tokens)
    p = rank.parallelism
    ranks = p.tensor_parallel_size * p.attention_data_parallel_size
    everyone = tokens * p.attention_data_parallel_size
    matrices = sum(
        linear.in_features * linear.out_features for linear in layer.linears if linear.group is TensorGroup.EXPERT
    )
    bits = weight_bits(rank.model, rank.weight_dtype, TensorGroup.EXPERT)
    peak, dtype = _peak(rank.gpu, kernel_dtype(rank.model, rank.weight_dtype) if bits < 16 else "bf16")
    share = experts.experts_per_token / experts.num_experts
    touched = experts.num_experts * (1 - (1 - share) ** everyone)
    pairs = everyone * experts.experts_per_token
    inner = experts.intermediate_size
    if p.expert_parallel and ranks > 1:
        pairs = pairs / ranks * EXPERT_IMBALANCE
        work = 2 * matrices * pairs
    else:
        inner = inner / ranks
        work = 2 * matrices * pairs / ranks
    memory = touched * matrices * bits / 8 / ranks / rank.bandwidth
    activation = pairs * (rank.model.hidden_size * 2 + inner * 4) * 2 / rank.bandwidth
    return rank.call("moe", dtype).seconds(memory, work / peak, activation)


def _full_width_norm_s(rank: _Rank, layer: Layer) -> float:
    """Norm of query and key over all heads: under tensor parallelism their squares are summed across ranks.

    vLLM fuses it on Hopper from 0.18.
    """
    mixer, hidden = layer.mixer, rank.model.hidden_size
    wide = (mixer.num_heads + mixer.num_kv_heads) * mixer.head_dim
    if not wide or layer.norm_parameters - 2 * hidden < wide:
        return 0.0
    engine = rank.engine
    if engine.family == "vllm" and rank.arch == "Hopper" and _numbers(engine.version) >= (0, 18):
        return 0.0
    width = rank.parallelism.tensor_parallel_size
    if width == 1:
        return 12e-6
    line = kernel(f"allreduce{2 ** round(math.log2(min(8, width)))}", rank.arch, "", "")
    return 12e-6 + 2 * line.fixed_s


def _exchange_s(rank: _Rank, layer: Layer, tokens: Floats) -> Floats:
    """All-reduces of tensor parallelism and the token exchange between attention ranks."""
    p, hidden = rank.parallelism, rank.model.hidden_size
    total = np.zeros_like(tokens)
    if p.tensor_parallel_size > 1:
        width = 2 ** round(math.log2(min(8, p.tensor_parallel_size)))
        line = kernel(f"allreduce{width}", rank.arch, "", "")
        total = total + 2 * (line.fixed_s + tokens * hidden * 2 / (line.bandwidth_fraction * 1e9))
    ranks = p.attention_data_parallel_size
    if ranks > 1 and layer.experts is not None:
        rate = EXCHANGE_FRACTION * rank.gpu.link_gb_s * 1e9 / 2
        moved = tokens * ranks * hidden * 4 * (ranks - 1) / ranks
        total = total + 2 * EXCHANGE_FIXED_S + moved / rate
    return total


def _state_s(rank: _Rank, mixer: Mixer, tokens: Floats) -> Floats:
    """Recurrent update of a state layer: its state is read and written once per sequence."""
    if mixer.kind is not MixerKind.STATE:
        return np.zeros_like(tokens)
    size = 2 * mixer.state_elements * mixer.state_element_bytes / rank.parallelism.tensor_parallel_size
    return STATE_FIXED_S + tokens * size / (STATE_FRACTION * rank.bandwidth)


def _tokens_s(rank: _Rank, tokens: Floats, *, prompt: bool) -> Floats:
    """Time everything that depends on the token count alone, in the slowest stage."""
    per_rank = np.ceil(tokens / rank.parallelism.attention_data_parallel_size)
    element = overhead(rank.engine.family, rank.engine.version, "element_us_per_layer") * 1e-6
    stream = per_rank * rank.model.hidden_size * 2 * 12 / (0.7 * rank.bandwidth)
    total = np.zeros_like(tokens)
    for layer, count in rank.layers:
        # A prompt updates its state chunk by chunk: far fewer state passes than tokens.
        updates = np.ceil(per_rank / 64) if prompt else per_rank
        total = total + count * (
            _dense_s(rank, layer, per_rank)
            + _experts_s(rank, layer, per_rank)
            + _exchange_s(rank, layer, per_rank)
            + _state_s(rank, layer.mixer, updates)
            + _full_width_norm_s(rank, layer)
            + element
            + stream
        )
    return total


def _head_s(rank: _Rank, rows: Floats) -> Floats:
    """Time of lm_head and sampling."""
    tp = rank.parallelism.tensor_parallel_size
    per_rank = np.ceil(rows / rank.parallelism.attention_data_parallel_size)
    bits = weight_bits(rank.model, rank.weight_dtype, TensorGroup.LM_HEAD)
    matrix = _gemm_s(rank, per_rank, rank.model.vocab_size / tp, rank.model.hidden_size, bits)
    logits = per_rank * rank.model.vocab_size * 4 * 2 / (0.5 * rank.bandwidth)
    return np.where(rows > 0, matrix + SAMPLING_S + logits, 0.0)


def _graph_size(tokens: Floats, engine: EngineSettings) -> Floats:
    """Decode batch padded to the next captured CUDA graph."""
    if not engine.cuda_graphs:
        return tokens
    small = 2 ** np.ceil(np.log2(np.maximum(tokens, 1)))
    step = np.where(tokens <= 256, 8, 16)
    padded = np.where(tokens <= 8, small, np.ceil(tokens / step) * step)
    return np.where(tokens <= 512, padded, tokens)


def _attention(rank: _Rank) -> dict[str, float]:
    """Sum the attention of all layers into the table's scalars."""
    p = rank.parallelism
    tp, ranks = p.tensor_parallel_size, p.attention_data_parallel_size
    peak = rank.gpu.bf16_tflops * 1e12
    floor = DECODE_FLOOR_S.get(rank.arch, 12e-6)
    out = dict.fromkeys(
        (
            "attention_base_s", "attention_per_sequence_s", "attention_per_kv_token_s", "attention_floor_s",
            "window_base_s", "window_per_kv_token_s", "window_floor_s", "prefill_pair_s", "prefill_token_s",
            "window_prefill_pair_s",
        ),
        0.0,
    )  # fmt: skip
    windows: dict[int, float] = {}
    for layer, count in rank.layers:
        mixer = layer.mixer
        if mixer.kind is MixerKind.MLA:
            line = rank.call("mla", "bf16")
            latent = mixer.kv_lora_rank + mixer.qk_rope_head_dim
            memory = latent * rank.kv_bytes / (line.bandwidth_fraction * rank.bandwidth)
            flop = mixer.num_heads / tp * 2 * (latent + mixer.kv_lora_rank)
            per_kv = max(memory, flop / (line.compute_fraction * peak))
            wide = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim + (mixer.value_head_dim or mixer.qk_nope_head_dim)
            pair = mixer.num_heads / tp * 2 * wide / (line.compute_fraction * peak)
            # the absorbed projections of query and value are two batched calls beside the kernel
            base, per_sequence = line.fixed_s + 12e-6, 30e-9
            out["attention_base_s"] += count * base
            out["attention_per_sequence_s"] += count * per_sequence / ranks
            if mixer.indexer_top_k:
                keys = mixer.indexer_head_dim / (line.bandwidth_fraction * rank.bandwidth)
                out["attention_per_kv_token_s"] += count * keys / ranks
                windows[mixer.indexer_top_k] = windows.get(mixer.indexer_top_k, 0.0) + count
                out["window_per_kv_token_s"] += count * per_kv / ranks
                out["window_prefill_pair_s"] += count * pair / ranks
                index_pair = mixer.indexer_num_heads * 2 * mixer.indexer_head_dim / (0.5 * peak)
                out["prefill_pair_s"] += count * index_pair / ranks
                out["attention_base_s"] += count * 20e-6
            else:
                out["attention_per_kv_token_s"] += count * per_kv / ranks
                out["prefill_pair_s"] += count * pair / ranks
        elif mixer.kind in (MixerKind.FULL, MixerKind.SLIDING, MixerKind.CHUNKED):
            line = rank.call("attention", "bf16")
            heads = max(1, mixer.num_kv_heads // tp)
            size = heads * (mixer.head_dim + mixer.value_head_dim) * rank.kv_bytes
            per_kv = size / (line.bandwidth_fraction * rank.bandwidth)
            flop = max(1.0, mixer.num_heads / tp) * 2 * (mixer.head_dim + mixer.value_head_dim)
            pair = flop / (line.compute_fraction * peak)
            kind = "window" if mixer.window_tokens else "attention"
            out[f"{kind}_base_s"] += count * line.fixed_s
            out[f"{kind}_floor_s"] += count * floor
            out[f"{kind}_per_kv_token_s"] += count * per_kv / ranks
            if mixer.window_tokens:
                windows[mixer.window_tokens] = windows.get(mixer.window_tokens, 0.0) + count
                out["window_prefill_pair_s"] += count * pair / ranks
            else:
                out["prefill_pair_s"] += count * pair / ranks
    out["window_tokens"] = max(windows, key=lambda size: windows[size]) if windows else 0
    return out


def kernel_step_time_table(
    model: ModelShape,
    gpu: Gpu,
    engine: EngineSettings,
    parallelism: Parallelism,
    *,
    weight_dtype: str,
    kv_cache_dtype: str,
    max_tokens: int,
    max_decodes: int = 4096,
) -> StepTimeTable:
    """Build the step times of one replica from its kernels.

    Parameters
    ----------
    model, gpu, engine, parallelism
        The deployment. Under attention data parallelism token counts are those of all its ranks,
        dealt evenly.
    weight_dtype, kv_cache_dtype : str
        Schemes of `planner.quantization`.
    max_tokens : int
        Most tokens of a step with prompt tokens.
    max_decodes : int
        Most sequences of a step that only decodes.

    Returns
    -------
    StepTimeTable
        Seconds; `relative_error` is the median error of the GEMM kernels.
    """
    stages = parallelism.pipeline_parallel_size
    rank = _Rank(
        model=model,
        gpu=gpu,
        engine=engine,
        parallelism=parallelism,
        weight_dtype=weight_dtype,
        kv_bytes=kv_bits(kv_cache_dtype, model, weight_dtype) / 8,
        layers=tuple((layer, count / stages) for layer, count in model.layer_counts()),
    )
    name, version = engine.family, engine.version
    decodes = np.arange(min(max_tokens, max_decodes) + 1, dtype=np.float64)
    graph = _graph_size(decodes, engine)
    decode = np.where(decodes > 0, _tokens_s(rank, graph, prompt=False) + _head_s(rank, graph), 0.0)
    # a coarse grid, filled linearly: a step of thousands of prompt tokens is smooth in their number
    grid = np.unique(np.concatenate([np.arange(0, 257), np.geomspace(256, max(257, max_tokens), 240).astype(int)]))
    floor = overhead(name, version, "prompt_launch_us_per_layer") * 1e-6 * model.num_layers / stages
    mixed = np.maximum(_tokens_s(rank, grid.astype(np.float64), prompt=True), floor)
    mixed = mixed + overhead(name, version, "prompt_step_us") * 1e-6
    tokens = np.arange(max_tokens + 1, dtype=np.float64)
    return StepTimeTable(
        decode_s=decode,
        mixed_s=np.where(tokens > 0, np.interp(tokens, grid, mixed), 0.0),
        head_s=_head_s(rank, decodes),
        host_s=overhead(name, version, "host_us") * 1e-6,
        # every attention rank schedules its own sequences
        host_per_sequence_s=overhead(name, version, "host_us_per_sequence")
        * 1e-6
        / parallelism.attention_data_parallel_size,
        host_overlaps=bool(overhead(name, version, "overlaps")),
        pipeline_stages=stages,
        request_overhead_s=overhead(name, version, "request_overhead_ms") * 1e-3,
        relative_error=rank.call("gemm", kernel_dtype(model, weight_dtype)).residual,
        notes=(f"kernels of {rank.arch}",),
        **_attention(rank),
    )
