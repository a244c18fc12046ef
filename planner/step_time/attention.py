"""Attention: what each layer's mixer adds to the scalars of a step-time table."""

from __future__ import annotations

from planner.model import Mixer, MixerKind
from planner.step_time import kernels
from planner.step_time.profile import device_of
from planner.step_time.rank_share import RankShare

INDEXER_KERNELS = 8  # small ones of the sparse indexer, from the rotation of its queries to the scores
#: selection of the indexer's tokens: vLLM's top_k_per_row_decode takes 17 µs of 4,096 tokens, 20.5 of 16,384 and 26 of
#: 32,768 on an H20 (github.com/flagos-ai/FlagGems/pull/3431)
SELECTION_S = 20.5e-6
INDEXER_MFU = 0.5  # share of the 16-bit peak that the indexer reaches on prompts, in 8 bits; estimate
SPARSE_HEADS = 64  # sparse MLA pads its query heads to this number (FlashMLA sparse kernels: 64 or 128)
SPARSE_PREFILL_MFU = 0.64  # FlashMLA's README: 640 TFLOP/s on H800, 1,450 on B200
SPARSE_DECODE_MFU = 0.41  # FlashMLA's README: 410 TFLOP/s on H800
#: around latent attention, beside the products: the norm of both latents as one kernel, and the rotation with the write
#: to the cache (TensorRT-LLM docs/source/blogs/tech_blog/blog1, modules 2 and 5; vLLM's concat_and_cache_mla)
LATENT_KERNELS = 2
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


def attention_fields(d: RankShare) -> dict[str, float]:
    """Sum the attention of all layers into the table's scalars; `fixed` is the fixed time of a prompt step. [s]"""
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


def _add_attention(d: RankShare, mixer: Mixer, count: float, out: dict[str, float], windows: dict[int, float]) -> None:
    device, share = device_of(d.gpu), count / d.attention_ranks
    decode, _ = d.profile.parameters("decode_attention", d.kv_kernel)
    prefill, _ = d.profile.parameters("prefill_attention", d.kv_kernel)
    heads, kv_heads = max(1.0, mixer.num_heads / d.tp), max(1, mixer.num_kv_heads // d.tp)
    size = mixer.head_dim + mixer.value_head_dim
    window = mixer.window_tokens or mixer.indexer_top_k  # a sparse layer reads what its indexer chose
    kind = "window" if window else "attention"
    out[f"{kind}_floor_s"] += count * decode.floor_us * 1e-6
    out[f"{kind}_base_s"] += count * decode.base_us * 1e-6
    out[f"{kind}_per_sequence_s"] += share * decode.sequence_us * 1e-6
    reached = float(decode.reached(mixer.num_heads > mixer.num_kv_heads)) * device.bandwidth
    out[f"{kind}_per_kv_token_s"] += share * kv_heads * size * d.kv_bytes / reached
    pair = heads * (2 * size + prefill.softmax) / (prefill.compute * device.peak)
    out["fixed"] += count * prefill.fixed_us * 1e-6
    out["prefill_token_s"] += share * 2 * (heads + kv_heads) * size / (prefill.activation * device.bandwidth)
    if window:
        windows[window] = windows.get(window, 0.0) + count
        out["window_prefill_pair_s"] += share * pair
    else:
        out["prefill_pair_s"] += share * pair
    if mixer.indexer_top_k:
        _add_indexer(d, mixer, count, reached, out)


def _add_latent(d: RankShare, mixer: Mixer, count: float, out: dict[str, float], windows: dict[int, float]) -> None:
    """Multi-head latent attention: decode reads the latent once for all heads, prefill expands it.

    With DeepSeek sparse attention only the indexer reads the whole cache.
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
    # The second of the two batched products that absorb a latent's up-projections; the first is in the measurement.
    around_us = d.profile.parameters("gemm", "bf16")[0].fixed_us
    if not d.kernels_only:
        around_us += LATENT_KERNELS * kernels.ELEMENTWISE_FIXED_S * 1e6
    out["attention_floor_s"] += count * (decode.floor_us + around_us) * 1e-6
    out["attention_base_s"] += count * (decode.base_us + around_us) * 1e-6
    out["attention_per_sequence_s"] += share * 2 * heads * dot / (decode.activation * device.bandwidth)
    out["fixed"] += count * prefill.fixed_us * 1e-6
    out["prefill_token_s"] += share * 4 * heads * wide / (prefill.activation * device.bandwidth)
    if not mixer.indexer_top_k:
        out["attention_per_kv_token_s"] += share * per_kv
        out["prefill_pair_s"] += share * pair
        return
    # Sparse kernels attend in the latent space only, and in whole tiles of heads however few a rank holds.
    sparse_heads = max(heads, SPARSE_HEADS)
    per_kv = max(read, sparse_heads * 2 * dot / (SPARSE_DECODE_MFU * device.peak))
    pair = sparse_heads * 2 * dot / (SPARSE_PREFILL_MFU * device.peak)
    windows[mixer.indexer_top_k] = windows.get(mixer.indexer_top_k, 0.0) + count
    out["window_per_kv_token_s"] += share * per_kv
    out["window_prefill_pair_s"] += share * pair
    if mixer.indexer_num_heads:  # layers without an indexer reuse the tokens of the last one
        _add_indexer(d, mixer, count, decode.bandwidth * device.bandwidth, out)


def _add_indexer(d: RankShare, mixer: Mixer, count: float, bandwidth: float, out: dict[str, float]) -> None:
    """Add the indexer of sparse attention, which scores the whole context.

    With MLA: fp8 keys, all heads on every rank. With keys and values: 16-bit keys, and either a share of the heads
    (MiniMax-M3) or all heads over pooled keys (Qwen4).
    """
    latent = mixer.kind is MixerKind.MLA
    share, heads = count / d.attention_ranks / mixer.indexer_compression, mixer.indexer_num_heads
    if not latent and mixer.indexer_compression == 1:
        heads = max(1, heads // d.tp)
    width = mixer.indexer_head_dim * (1 if latent else 2)
    out["attention_base_s"] += count * (INDEXER_KERNELS * kernels.ELEMENTWISE_FIXED_S + SELECTION_S)
    out["attention_per_kv_token_s"] += share * width / bandwidth
    out["prefill_pair_s"] += share * heads * 2 * mixer.indexer_head_dim / (INDEXER_MFU * device_of(d.gpu).peak)
