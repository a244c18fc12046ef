"""Workspace of sparse latent attention (DeepSeek-V3.2 and V4, GLM-5) in vLLM, and how its kernels store an fp8 cache.

vLLM reserves one buffer per GPU that experts and sparse attention use in turn: it is as large as the largest of them.
Source: vLLM v1/worker/workspace.py, read in the releases 0.18, 0.20, 0.23, 0.26, 0.28 and 0.30 to 0.33.
"""

from __future__ import annotations

from planner.inputs import EngineSettings, Gpu, Parallelism
from planner.memory.defaults import Resolved
from planner.memory.edition import (
    DECODE_LOGITS_BY_SEQUENCES,
    DECODE_LOGITS_RESERVED,
    FLASHINFER_SPARSE,
    INDEXER_LOGITS_PROFILED,
    SHARED_WORKSPACE,
    SMALLER_GATHER,
    WORKSTATION_SPARSE,
    Edition,
)
from planner.memory.expert_padding import is_data_centre_blackwell
from planner.memory.log_constants import constant
from planner.model import Layer, Mixer, MixerKind, kv_bits
from planner.units import MIB

PACKED = "fp8_ds_mla"  # fp8 latents with their scales and 16-bit rotary keys; other kernels keep plain fp8
INDEX_LOGITS_BYTES = 512 * MIB  # VLLM_SPARSE_INDEXER_MAX_LOGITS_MB
INDEX_KEYS_PER_LATENT = 8  # 576 × 2 bytes // 132, the bytes of an index key and its scale
GATHERED_CONTEXTS, GATHERED_LONG_CONTEXTS = 5, 2  # of max_model_len, and above LONG_CONTEXT_TOKENS
LONG_CONTEXT_TOKENS = 262_144
PREFILL_CHUNK = 4  # prompts whose compressed cache DeepSeek-V4 gathers at once


def stored_type(mixers: tuple[Mixer, ...], gpu: Gpu, edition: Edition, kv_cache_dtype: str) -> str:
    """How the cache of sparse latent attention is stored: packed where its kernels ask for that, else as set.

    Parameters
    ----------
    mixers : tuple of Mixer
        Of all cached layers.
    gpu, edition
        FlashMLA packs an fp8 cache. From vLLM 0.19 on data-centre Blackwell, and AMD, run kernels that do not;
        workstation Blackwell, from 0.26 on, has only kernels for a packed cache.
    kv_cache_dtype : str
        As set or as the checkpoint asks.

    Returns
    -------
    str
        A name that `kv_bits` knows. Source: vLLM platforms/cuda.py `_get_backend_priorities` and mla_attention.py.
    """
    sparse = any(x.kind is MixerKind.MLA and x.indexer_top_k and x.kv_compression == 1 for x in mixers)
    if not sparse or edition.family not in ("vllm", "sglang"):
        return kv_cache_dtype
    is_fp8 = kv_bits(kv_cache_dtype) == 8
    if edition.family == "sglang":
        return PACKED if is_fp8 else kv_cache_dtype
    if gpu.vendor.upper() == "AMD":
        return kv_cache_dtype
    if gpu.architecture == "Blackwell" and not is_data_centre_blackwell(gpu):
        unset = kv_cache_dtype == "auto" and edition.since(WORKSTATION_SPARSE)
        return PACKED if is_fp8 or unset else kv_cache_dtype
    plain = is_data_centre_blackwell(gpu) and edition.since(FLASHINFER_SPARSE)
    return PACKED if is_fp8 and not plain else kv_cache_dtype


def index_logits_bytes(layers: tuple[tuple[Layer, int], ...], edition: Edition) -> float:
    """Scores of an indexer that vLLM's profile run allocates within the forward pass. [bytes]"""
    indexed = any(layer.mixer.kind is MixerKind.MLA and layer.mixer.indexer_head_dim for layer, _ in layers)
    return INDEX_LOGITS_BYTES if indexed and edition.family == "vllm" and edition.since(INDEXER_LOGITS_PROFILED) else 0


def sparse_workspace_bytes(
    layers: tuple[tuple[Layer, int], ...],
    gpu: Gpu,
    engine: EngineSettings,
    parallelism: Parallelism,
    resolved: Resolved,
    max_model_len: int,
    *,
    hidden_size: int,
    kv_cache_dtype: str,
    expert_bytes: float,
) -> float:
    """What sparse attention adds on one GPU to the workspace of the experts.

    Parameters
    ----------
    layers : tuple of (Layer, int)
        Distinct layers of the stage and how many of each.
    gpu, engine, parallelism, resolved
        Kernels, drafted tokens, what divides the heads, and the limits of a step.
    max_model_len : int
        Longest sequence [tokens]: the buffers hold several.
    hidden_size : int
        Of the model; DeepSeek-V4 on AMD keeps several streams of it.
    kv_cache_dtype : str
        As `stored_type` gives it.
    expert_bytes : float
        Workspace of the experts, which the buffer serves as well.

    Returns
    -------
    float
        Bytes; 0 for other engines and other attention.
    """
    mixers = [layer.mixer for layer, _ in layers if layer.mixer.kind is MixerKind.MLA]
    edition = resolved.edition
    if edition.family != "vllm" or not any(mixer.indexer_head_dim for mixer in mixers):
        return 0.0
    if not edition.since(SHARED_WORKSPACE):
        return 0.0
    compression = min(mixer.kv_compression for mixer in mixers if mixer.indexer_head_dim)
    if gpu.vendor.upper() == "AMD":
        needed = _decode_logits(engine, resolved, max_model_len // compression)
    elif compression > 1:
        needed = _compressed_gather(mixers, resolved, max_model_len // compression)
    else:
        needed = _latent_gather(mixers, resolved, parallelism, max_model_len, packed=kv_cache_dtype == PACKED)
    index = _gathered(edition, max_model_len) * INDEX_KEYS_PER_LATENT * _index_key_bytes(mixers) / compression
    held = max(0.0, max(needed, index) - expert_bytes)
    if compression > 1 and gpu.vendor.upper() == "AMD":
        return held + constant("v4_amd_stream") * resolved.max_num_batched_tokens * hidden_size
    return held + mega_experts_bytes(layers, gpu, parallelism, resolved)


def _gathered(edition: Edition, max_model_len: int) -> int:
    """Tokens of cache that a prefill gathers at once; a smaller multiple of long contexts from 0.32 on."""
    long = edition.since(SMALLER_GATHER) and max_model_len > LONG_CONTEXT_TOKENS
    return max_model_len * (GATHERED_LONG_CONTEXTS if long else GATHERED_CONTEXTS)


def _index_key_bytes(mixers: list[Mixer]) -> int:
    return max(mixer.indexer_head_dim for mixer in mixers) + 4  # fp8 and one scale


def _latent_gather(
    mixers: list[Mixer], resolved: Resolved, parallelism: Parallelism, max_model_len: int, *, packed: bool
) -> float:
    """FlashMLA: queries of a step, and gathered latents in 16 bits where the cache is packed. [bytes]"""
    width = 2.0 * max(mixer.kv_lora_rank + mixer.qk_rope_head_dim for mixer in mixers)
    heads = max(mixer.num_heads for mixer in mixers) / parallelism.tensor_parallel_size
    latents = _gathered(resolved.edition, max_model_len) if packed else 0
    return width * (resolved.max_num_batched_tokens * heads + latents)


def _compressed_gather(mixers: list[Mixer], resolved: Resolved, entries: int) -> float:
    """DeepSeek-V4: the compressed cache, the window and the step of several prompts, in 16 bits. [bytes]

    Source: vLLM models/deepseek_v4/nvidia/flashmla.py.
    """
    width = 2.0 * max(mixer.kv_lora_rank + mixer.qk_rope_head_dim for mixer in mixers)
    window = max(mixer.window_tokens or 0 for mixer in mixers)
    return PREFILL_CHUNK * width * (entries + window + resolved.max_num_batched_tokens)


def _decode_logits(engine: EngineSettings, resolved: Resolved, context: int) -> float:
    """AMD: fp32 scores of every row of a decode step against the whole context. [bytes]

    Source: vLLM v1/attention/ops/rocm_aiter_mla_sparse.py; rows are the tokens of a step up to 0.28.
    """
    if not resolved.edition.since(DECODE_LOGITS_RESERVED):
        return 0.0
    rows = resolved.max_num_batched_tokens
    if resolved.edition.since(DECODE_LOGITS_BY_SEQUENCES):
        rows = min(rows, resolved.max_num_seqs * (1 + engine.num_speculative_tokens))
    return 4.0 * rows * context


def mega_experts_bytes(
    layers: tuple[tuple[Layer, int], ...], gpu: Gpu, parallelism: Parallelism, resolved: Resolved
) -> float:
    """Buffers of the kernels for DeepSeek-V4's experts on one GPU where each holds whole experts. [bytes]

    Three logs with expert parallelism hold them; one without it (H200, two GPUs) leaves no room for them.
    """
    compressed = any(layer.mixer.kv_compression > 1 for layer, _ in layers)
    linked = "nvlink" in gpu.interconnect.lower() and gpu.vendor.upper() == "NVIDIA"
    if not compressed or not linked or not parallelism.expert_parallel or resolved.edition.family != "vllm":
        return 0.0
    return constant("v4_workspace") + constant("v4_workspace_token") * resolved.max_num_batched_tokens
