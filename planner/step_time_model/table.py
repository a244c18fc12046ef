"""Step-time tables: the kernels of a deployment, added up over its layers and token counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from planner.engine import EngineSettings
from planner.hardware import Gpu, Parallelism
from planner.model import Layer, Mixer, MixerKind, ModelShape, Shard, TensorGroup
from planner.quantization import kv_bits, resolve_scheme, weight_bits
from planner.step_time import StepTimeTable
from planner.step_time_model import kernels
from planner.step_time_model.kernels import Floats, Parts
from planner.step_time_model.overheads import overhead
from planner.step_time_model.profile import EfficiencyProfile, device_of, efficiency_profile, peak_flops

EXPERT_IMBALANCE = 1.2  # work of the busiest expert-parallel rank over the mean
BENCHMARK_IMBALANCE = 0.5  # kernel tables route by a power law: the busiest of R ranks has R**0.5 times the mean
EXCHANGE_FIXED_S = 15e-6  # latency of an all-gather or reduce-scatter between attention ranks
EXCHANGE_FRACTION = 0.75  # of a PCIe link's one-way bandwidth that it reaches
EXCHANGE_FRACTION_NVLINK = 0.6  # of NVLink's
STATE_FIXED_S = 22e-6  # recurrent update of a state layer: convolution, gates, delta rule
STATE_FRACTION = 0.6
SAMPLING_S = 25e-6  # logits in fp32 read twice at half the bandwidth, plus the sampler's kernels
HOP_FIXED_S = 10e-6  # sending activations to the next pipeline stage
HOP_FRACTION = 0.8  # of the link's one-way bandwidth
ABSORBED_FIXED_S = 6e-6  # the second of the two batched products that absorb a latent's up-projections
INDEXER_FIXED_S = 45e-6  # sparse attention's indexer: rotation, quantisation, logits and selection, some eight kernels
SPARSE_HEADS = 64  # sparse latent attention pads its query heads to this (FlashMLA sparse kernels: 64 or 128)
SPARSE_PREFILL_MFU = 0.64  # FlashMLA's README: 640 TFLOP/s on H800, 1,450 on B200
SPARSE_DECODE_MFU = 0.41  # FlashMLA's README: 410 TFLOP/s on H800
SERVED_EVENNESS = 0.55  # tokens of one answer resemble each other: fewer distinct experts than the kernel tables' routing
NVLINK_GB_S = 400  # slower links are PCIe
MAX_DECODES = 4096
LARGE_HIDDEN = 6144  # SGLang's automatic choice knows DeepSeek V3 and its descendants, not small latent models
FUSED_QUANTISATION = ("fp8", "nvfp4")  # TensorRT-LLM quantises these activations inside the norm or activation before
ATTENTION_FIELDS = (
    "attention_base_s",
    "attention_per_sequence_s",
    "attention_per_kv_token_s",
    "attention_floor_s",
    "window_base_s",
    "window_per_sequence_s",
    "window_per_kv_token_s",
    "window_floor_s",
    "prefill_pair_s",
    "prefill_token_s",
    "window_prefill_pair_s",
    "fixed",
)
TOKEN_TERMS = (
    "weights_read",
    "gemm_compute",
    "expert_compute",
    "elementwise_and_launch",
    "collectives",
    "state_update",
    "pipeline_hops",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One rank's share of a replica, with the kernels it runs.

    `kernels_only` leaves out what surrounds the kernels (sampling, launches, host), for comparison
    with measurements that hold nothing else.
    """

    model: ModelShape
    gpu: Gpu
    engine: EngineSettings
    parallelism: Parallelism
    weight_dtype: str
    kv_cache_dtype: str
    kernels_only: bool = False
    profile: EfficiencyProfile = field(init=False)

    def __post_init__(self) -> None:
        profile = efficiency_profile(
            self.gpu, self.engine.family, as_measured=self.kernels_only, moe_backend=self.moe_backend
        )
        object.__setattr__(self, "profile", profile)

    @property
    def moe_backend(self) -> str:
        """Kernels of the experts: as set, or what SGLang chooses for DeepSeek's models on Blackwell."""
        chosen = self.engine.moe_runner_backend
        if chosen != "auto":
            return chosen
        latent = any(layer.mixer.kind is MixerKind.MLA for layer, _ in self.model.layer_counts())
        large = self.model.hidden_size >= LARGE_HIDDEN
        return "flashinfer_trtllm" if self.engine.family == "sglang" and latent and large else ""

    @property
    def tp(self) -> int:
        """Tensor-parallel width."""
        return self.parallelism.tensor_parallel_size

    @property
    def attention_ranks(self) -> int:
        """Data-parallel groups of attention."""
        return self.parallelism.attention_data_parallel_size

    @property
    def layers(self) -> tuple[tuple[Layer, float], ...]:
        """Distinct layers and how many of each the slowest pipeline stage holds."""
        stages = self.parallelism.pipeline_parallel_size
        share = -(-self.model.num_layers // stages) / self.model.num_layers
        return tuple((layer, count * share) for layer, count in self.model.layer_counts())

    @property
    def kv_bytes(self) -> float:
        """Bytes per cached element."""
        return kv_bits(self.kv_cache_dtype, self.model, self.weight_dtype) / 8

    @property
    def kv_kernel(self) -> str:
        """Kernel family of the KV-cache type."""
        return "bf16" if self.kv_bytes >= 2 else "fp8"

    @property
    def bandwidth(self) -> float:
        """Data-sheet memory bandwidth. [bytes/s]"""
        return self.gpu.memory_bandwidth_gb_s * 1e9


def weight_kernel(model: ModelShape, weight_dtype: str, bits: float) -> str:
    """Kernel family of matrices that a scheme stores in `bits`."""
    if bits >= 16:
        return "bf16"
    name = resolve_scheme(model, weight_dtype).name
    if name in ("fp8_block", "nvfp4", "mxfp4"):
        return name if bits < 8 or name == "fp8_block" else "fp8"
    return "fp8" if name in ("fp8", "mxfp8", "int8", "bnb_int8", "fp8_fp4_experts") else "int4"


def _gemm_parts(d: Deployment, tokens: Floats, out: Floats, inner: Floats, bits: float) -> Parts:
    """Products of several matrices that hold weights of the same type; the matrices lie along the first axis."""
    dtype = weight_kernel(d.model, d.weight_dtype, bits)
    # MXFP4 and similar 4-bit weights outside the experts are dequantised in the kernel, as INT4 ones are.
    dtype = peak_flops(d.gpu, "int4" if dtype == "mxfp4" else dtype)[1]
    parameters, _ = d.profile.parameters("gemm", dtype)
    return kernels.gemm_parts(
        parameters,
        device_of(d.gpu, dtype),
        tokens[None, :],
        out[:, None],
        inner[:, None],
        bits,
        fused_quantisation=not d.kernels_only and d.engine.family == "trtllm" and dtype in FUSED_QUANTISATION,
    )


def _local(d: Deployment, layer: Layer, shard: Shard, out: float, inner: float) -> tuple[float, float]:
    if shard in (Shard.COLUMN, Shard.VOCAB):
        return out / d.tp, inner
    if shard is Shard.ROW:
        return out, inner / d.tp
    if shard is Shard.KV_COLUMN:
        heads = max(1, layer.mixer.num_kv_heads)
        return out * max(1, heads // d.tp) / heads, inner
    return out, inner


def linear_parts(d: Deployment, layer: Layer, tokens: Floats) -> list[Parts]:
    """Matrices of a layer except its experts; projections of one input run as one product."""
    calls: dict[float, dict[tuple[str, float], float]] = {}
    for linear in layer.linears:
        if linear.group is TensorGroup.EXPERT:
            continue
        bits = weight_bits(d.model, d.weight_dtype, linear.group, linear.quantizable)
        out, inner = _local(d, layer, linear.shard, float(linear.out_features), float(linear.in_features))
        side = "out" if linear.shard is Shard.ROW else "in"
        same = calls.setdefault(bits, {})
        key = (f"{linear.group.value}/{side}", inner)
        same[key] = same.get(key, 0.0) + out * linear.count
    return [
        _gemm_parts(d, tokens, np.array(list(same.values())), np.array([inner for _, inner in same]), bits)
        for bits, same in calls.items()
    ]


def expert_parts(d: Deployment, layer: Layer, tokens: Floats) -> Parts:
    """Grouped products of a layer's experts, for the tokens of all attention ranks."""
    assert layer.experts is not None
    ranks = d.tp * d.attention_ranks
    spread = d.parallelism.expert_parallel and ranks > 1
    size = sum(x.in_features * x.out_features for x in layer.linears if x.group is TensorGroup.EXPERT)
    bits = weight_bits(d.model, d.weight_dtype, TensorGroup.EXPERT)
    dtype = peak_flops(d.gpu, weight_kernel(d.model, d.weight_dtype, bits))[1]
    parameters, _ = d.profile.parameters("experts", dtype)
    inner = layer.experts.intermediate_size
    hidden = next((x.in_features for x in layer.linears if x.group is TensorGroup.EXPERT), d.model.hidden_size)
    return kernels.expert_parts(
        parameters,
        device_of(d.gpu, dtype),
        tokens * d.attention_ranks,
        hidden=hidden,
        intermediate=inner if spread else inner / ranks,
        num_experts=layer.experts.num_experts,
        top_k=layer.experts.experts_per_token,
        bits=bits,
        resident=1 / ranks if spread else 1.0,
        imbalance=(ranks**BENCHMARK_IMBALANCE if d.kernels_only else EXPERT_IMBALANCE) if spread else 1.0,
        matrices=size / (hidden * inner),
        evenness=kernels.ROUTING_EVENNESS if d.kernels_only else SERVED_EVENNESS,
    )


def elementwise_s(d: Deployment, layer: Layer, tokens: Floats) -> Floats:
    """Norms, residuals and activation of a layer. [s]"""
    wide = sum(
        (x.out_features + x.out_features / 2) / d.tp
        for x in layer.linears
        if x.name == "gate_up_proj" and x.group in (TensorGroup.MLP, TensorGroup.SHARED_EXPERT)
    )
    elements = tokens * (8 * d.model.hidden_size + wide)
    return kernels.elementwise_s(device_of(d.gpu), elements, 3 if wide else 2)


def collectives_s(d: Deployment, layer: Layer, tokens: Floats) -> Floats:
    """All-reduces of tensor parallelism and the token exchange between attention ranks. [s]"""
    hidden, ranks = d.model.hidden_size, d.attention_ranks
    total = np.zeros_like(tokens)
    if d.tp > 1:
        calls = (
            2 if layer.experts or any(x.shard is Shard.ROW and x.group is TensorGroup.MLP for x in layer.linears) else 1
        )
        total = total + calls * kernels.collective_s(*d.profile.all_reduce(d.tp), tokens * hidden * 2)
    if ranks > 1 and layer.experts is not None:
        fraction = EXCHANGE_FRACTION_NVLINK if d.gpu.link_gb_s >= NVLINK_GB_S else EXCHANGE_FRACTION
        rate = fraction * d.gpu.link_gb_s * 1e9 / 2
        moved = tokens * ranks * hidden * 4 * (ranks - 1) / ranks
        total = total + 2 * EXCHANGE_FIXED_S + moved / rate
    return total


def state_s(d: Deployment, mixer: Mixer, tokens: Floats, prompt: NDArray[np.bool_] | bool) -> Floats:
    """Recurrent update of a state layer: each sequence's state is read and written once. [s]

    A prompt updates its state chunk by chunk, far less often than once per token.
    """
    updates = np.where(prompt, np.ceil(tokens / 64), tokens)
    size = 2 * mixer.state_elements * mixer.state_element_bytes / d.tp
    return STATE_FIXED_S + updates * size / (STATE_FRACTION * d.bandwidth)


def norm_exchange_s(d: Deployment, layer: Layer) -> float:
    """Norm of query and key over all heads, whose squares are summed across tensor-parallel ranks. [s]

    vLLM fuses it on Hopper from 0.18.
    """
    mixer = layer.mixer
    wide = (mixer.num_heads + mixer.num_kv_heads) * mixer.head_dim
    if not wide or layer.norm_parameters - 2 * d.model.hidden_size < wide:
        return 0.0
    version = tuple(int(part) for part in d.engine.version.split(".")[:3] if part.isdigit())
    if d.engine.family == "vllm" and d.gpu.architecture == "Hopper" and version >= (0, 18):
        return 0.0
    return 12e-6 + (2 * float(d.profile.all_reduce(d.tp)[1][0]) if d.tp > 1 else 0.0)


def token_terms_s(d: Deployment, tokens: Floats, *, prompt: NDArray[np.bool_] | bool) -> dict[str, Floats]:
    """Split what depends on the token count alone, of the slowest pipeline stage.

    Parameters
    ----------
    d : Deployment
        The replica.
    tokens : array
        Tokens of a step over all attention ranks, dealt evenly.
    prompt : array or bool
        Whether the step holds prompt tokens.

    Returns
    -------
    dict of str to array
        Seconds by term.
    """
    mine = np.ceil(tokens / d.attention_ranks)
    terms = {name: np.zeros_like(tokens) for name in TOKEN_TERMS}

    def add(parts: Parts, count: float, compute: str) -> None:
        for name, value in (
            ("weights_read", parts.weights),
            (compute, parts.compute),
            ("elementwise_and_launch", parts.fixed + parts.activations),
        ):
            terms[name] += count * (value if value.ndim == 1 else value.sum(axis=0))

    for layer, count in d.layers:
        for parts in linear_parts(d, layer, mine):
            add(parts, count, "gemm_compute")
        if layer.experts is not None:
            parts = expert_parts(d, layer, mine)
            if not d.kernels_only:  # routing, permutation and skew of real prompts, which no kernel table holds
                generation = d.gpu.architecture.removesuffix(" Ultra")
                factor = overhead(d.engine.family, d.engine.version, "prompt_expert_factor", generation)
                slower = np.where(prompt, factor, 1.0)
                parts = replace(parts, compute=parts.compute * slower, activations=parts.activations * slower)
            add(parts, count, "expert_compute")
        terms["elementwise_and_launch"] += count * (elementwise_s(d, layer, mine) + norm_exchange_s(d, layer))
        terms["collectives"] += count * collectives_s(d, layer, mine)
        if layer.mixer.kind is MixerKind.STATE:
            terms["state_update"] += count * state_s(d, layer.mixer, mine, prompt)
    if d.tp > 1:  # the vocabulary-parallel embedding
        message = mine * d.model.hidden_size * 2
        terms["collectives"] += kernels.collective_s(*d.profile.all_reduce(d.tp), message)
    if d.parallelism.pipeline_parallel_size > 1:
        hop = HOP_FIXED_S + mine * d.model.hidden_size * 2 / (HOP_FRACTION * d.gpu.link_gb_s * 1e9 / 2)
        terms["pipeline_hops"] += hop
    return terms


def head_s(d: Deployment, rows: Floats) -> Floats:
    """Time of lm_head and sampling for `rows` sequences. [s]"""
    mine = np.maximum(np.ceil(rows / d.attention_ranks), 1.0)
    bits = weight_bits(d.model, d.weight_dtype, TensorGroup.LM_HEAD)
    out, inner = np.array([d.model.vocab_size / d.tp]), np.array([float(d.model.hidden_size)])
    seconds = _gemm_parts(d, mine, out, inner, bits).total[0]
    if not d.kernels_only:
        seconds = seconds + SAMPLING_S + mine * d.model.vocab_size * 4 * 2 / (0.5 * d.bandwidth)
    return np.where(rows > 0, seconds, 0.0)


def graph_size(tokens: Floats, engine: EngineSettings) -> Floats:
    """Decode batch padded to the next captured CUDA graph: 1, 2, 4, 8, then steps of 8 and 16 up to 512."""
    if not engine.cuda_graphs:
        return tokens
    small = 2 ** np.ceil(np.log2(np.maximum(tokens, 1)))
    step = np.where(tokens <= 256, 8, 16)
    padded = np.where(tokens <= 8, small, np.ceil(tokens / step) * step)
    return np.where(tokens <= 512, padded, tokens)


def attention_fields(d: Deployment) -> dict[str, float]:
    """Sum the attention of all layers into the table's scalars; `fixed` is a prompt step's part per call."""
    out = dict.fromkeys(ATTENTION_FIELDS, 0.0)
    windows: dict[int, float] = {}
    for layer, count in d.layers:
        mixer = layer.mixer
        if mixer.kind is MixerKind.MLA:
            _add_latent(d, mixer, count, out, windows)
        elif mixer.kind in (MixerKind.FULL, MixerKind.SLIDING, MixerKind.CHUNKED):
            _add_attention(d, mixer, count, out, windows)
    out["window_tokens"] = max(windows, key=lambda size: windows[size]) if windows else 0
    return out


def _add_attention(d: Deployment, mixer: Mixer, count: float, out: dict[str, float], windows: dict[int, float]) -> None:
    device, share = device_of(d.gpu), count / d.attention_ranks
    decode, _ = d.profile.parameters("decode_attention", d.kv_kernel)
    prefill, _ = d.profile.parameters("prefill_attention", d.kv_kernel)
    heads, kv_heads = max(1.0, mixer.num_heads / d.tp), max(1, mixer.num_kv_heads // d.tp)
    size = mixer.head_dim + mixer.value_head_dim
    kind = "window" if mixer.window_tokens else "attention"
    out[f"{kind}_floor_s"] += count * decode.floor_us * 1e-6
    out[f"{kind}_base_s"] += count * decode.base_us * 1e-6
    out[f"{kind}_per_sequence_s"] += share * decode.sequence_us * 1e-6
    reached = float(decode.reached(mixer.num_heads > mixer.num_kv_heads)) * device.bandwidth
    out[f"{kind}_per_kv_token_s"] += share * kv_heads * size * d.kv_bytes / reached
    pair = heads * (2 * size + prefill.softmax) / (prefill.compute * device.peak)
    out["fixed"] += count * prefill.fixed_us * 1e-6
    out["prefill_token_s"] += share * 2 * (heads + kv_heads) * size / (prefill.activation * device.bandwidth)
    if mixer.window_tokens:
        windows[mixer.window_tokens] = windows.get(mixer.window_tokens, 0.0) + count
        out["window_prefill_pair_s"] += share * pair
    else:
        out["prefill_pair_s"] += share * pair


def _add_latent(d: Deployment, mixer: Mixer, count: float, out: dict[str, float], windows: dict[int, float]) -> None:
    """Multi-head latent attention: decode reads the latent once for all heads, prompts expand it.

    Under DeepSeek sparse attention only the indexer reads the whole cache.
    """
    device, share = device_of(d.gpu), count / d.attention_ranks
    decode, _ = d.profile.parameters("latent_decode", d.kv_kernel)
    prefill, _ = d.profile.parameters("latent_prefill", d.kv_kernel)
    heads, dot = mixer.num_heads / d.tp, 2 * mixer.kv_lora_rank + mixer.qk_rope_head_dim
    latent = mixer.kv_lora_rank + mixer.qk_rope_head_dim
    read = latent * d.kv_bytes / (decode.bandwidth * device.bandwidth)
    per_kv = max(read, heads * 2 * dot / (decode.compute * device.peak))
    wide = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim + (mixer.value_head_dim or mixer.qk_nope_head_dim)
    pair = heads * 2 * wide / (prefill.compute * device.peak)
    out["attention_floor_s"] += count * (decode.floor_us * 1e-6 + ABSORBED_FIXED_S)
    out["attention_base_s"] += count * (decode.base_us * 1e-6 + ABSORBED_FIXED_S)
    out["attention_per_sequence_s"] += share * 2 * heads * dot / (decode.activation * device.bandwidth)
    out["fixed"] += count * prefill.fixed_us * 1e-6
    out["prefill_token_s"] += share * 4 * heads * wide / (prefill.activation * device.bandwidth)
    if not mixer.indexer_top_k:
        out["attention_per_kv_token_s"] += share * per_kv
        out["prefill_pair_s"] += share * pair
        return
    # The sparse kernels work on latents alone, for whole tiles of heads, however few a rank holds.
    sparse_heads = max(heads, SPARSE_HEADS)
    per_kv = max(read, sparse_heads * 2 * dot / (SPARSE_DECODE_MFU * device.peak))
    pair = sparse_heads * 2 * dot / (SPARSE_PREFILL_MFU * device.peak)
    windows[mixer.indexer_top_k] = windows.get(mixer.indexer_top_k, 0.0) + count
    out["attention_base_s"] += count * INDEXER_FIXED_S
    out["attention_per_kv_token_s"] += share * mixer.indexer_head_dim / (decode.bandwidth * device.bandwidth)
    out["window_per_kv_token_s"] += share * per_kv
    out["window_prefill_pair_s"] += share * pair
    out["prefill_pair_s"] += share * mixer.indexer_num_heads * 2 * mixer.indexer_head_dim / (0.5 * device.peak)


def prompt_grid(max_tokens: int) -> Floats:
    """Token counts at which a prompt step is computed; between them it is linear."""
    tail = np.geomspace(256, max(257, max_tokens), 64)
    return np.unique(np.concatenate([[1], np.arange(4, 64, 4), np.arange(64, 257, 16), tail]).astype(int)).astype(
        np.float64
    )


def prompt_launch_s(d: Deployment) -> float:
    """Launching the kernels of a step with prompt tokens, one by one: its least time. [s]

    Layers of latent attention and of recurrent state consist of more kernels; an engine that does not
    compile its layers pays for each.
    """
    name, version = d.engine.family, d.engine.version
    usual = overhead(name, version, "prompt_launch_us_per_layer")
    total = 0.0
    for layer, count in d.layers:
        kind = {MixerKind.MLA: "latent_", MixerKind.STATE: "state_"}.get(layer.mixer.kind, "")
        own = overhead(name, version, f"prompt_launch_us_per_{kind}layer")
        total += count * (usual if math.isnan(own) else own)
    return total * 1e-6


def build_table(d: Deployment, max_tokens: int) -> StepTimeTable:
    """Add up a deployment's kernels into the table that the simulator reads.

    Parameters
    ----------
    d : Deployment
        The replica.
    max_tokens : int
        Most tokens of one step.

    Returns
    -------
    StepTimeTable
        Seconds.
    """
    name, version, stages = d.engine.family, d.engine.version, d.parallelism.pipeline_parallel_size
    attention = attention_fields(d)
    fixed = attention.pop("fixed")
    sizes = np.unique(graph_size(np.arange(1, min(max_tokens, 512) + 1, dtype=np.float64), d.engine))
    if max_tokens > 512:
        sizes = np.unique(np.concatenate([sizes, np.geomspace(513, min(max_tokens, MAX_DECODES), 24).round()]))
    grid = prompt_grid(max_tokens)
    prompt = np.arange(len(sizes) + len(grid)) >= len(sizes)
    both = np.sum(list(token_terms_s(d, np.concatenate([sizes, grid]), prompt=prompt).values()), axis=0)
    heads = head_s(d, sizes)
    at_sizes = np.maximum.accumulate(both[: len(sizes)] + heads)
    decodes = np.arange(min(max_tokens, MAX_DECODES) + 1, dtype=np.float64)
    decode = np.where(decodes > 0, np.interp(graph_size(decodes, d.engine), sizes, at_sizes), 0.0)
    mixed = np.maximum.accumulate(both[len(sizes) :] + fixed)
    host: dict[str, float] = {}
    if not d.kernels_only:
        mixed = np.maximum(mixed, prompt_launch_s(d)) + overhead(name, version, "prompt_step_us") * 1e-6
        if not d.engine.cuda_graphs:
            eager = overhead(name, version, "eager_launch_us_per_layer") * 1e-6 * d.model.num_layers / stages
            decode = np.where(decodes > 0, np.maximum(decode, eager), 0.0)
        host = {
            "host_s": overhead(name, version, "host_us") * 1e-6,
            "host_per_sequence_s": overhead(name, version, "host_us_per_sequence") * 1e-6,
            "host_overlaps": bool(overhead(name, version, "overlaps")),
            "request_overhead_s": overhead(name, version, "request_overhead_ms") * 1e-3,
            "server_per_request_s": overhead(name, version, "api_ms_per_request") * 1e-3,
            "server_per_token_s": overhead(name, version, "api_us_per_token") * 1e-6,
        }
    tokens = np.arange(max_tokens + 1, dtype=np.float64)
    return StepTimeTable(
        decode_s=decode,
        mixed_s=np.where(tokens > 0, np.interp(tokens, grid, mixed), 0.0),
        head_s=np.interp(decodes, np.concatenate([[0.0], sizes]), np.concatenate([[0.0], heads])),
        pipeline_stages=stages,
        relative_error=relative_error(d),
        notes=_notes(d),
        **host,  # type: ignore[arg-type]
        **attention,  # type: ignore[arg-type]
    )


def relative_error(d: Deployment) -> float:
    """Median error of the step times of this class: kernel residuals, wider where the profile is inherited."""
    bits = weight_bits(d.model, d.weight_dtype, TensorGroup.MLP)
    _, dense = d.profile.parameters("gemm", peak_flops(d.gpu, weight_kernel(d.model, d.weight_dtype, bits))[1])
    error = dense * 0.7  # the four products of a layer err independently
    if d.model.is_moe:
        bits = weight_bits(d.model, d.weight_dtype, TensorGroup.EXPERT)
        kernel = peak_flops(d.gpu, weight_kernel(d.model, d.weight_dtype, bits))[1]
        error = max(error, d.profile.parameters("experts", kernel)[1])
    return error + d.profile.inherited_error


def _notes(d: Deployment) -> tuple[str, ...]:
    measured = d.profile.measured
    if measured == d.gpu.name:
        return (f"kernels measured on {measured}",)
    return (f"no kernel measurement of {d.gpu.name}: efficiencies of {measured} applied to its data sheet",)
