"""Layers of families whose blocks differ from one another: Llama 4, Nemotron, Falcon-H1, DeepSeek-V4, MiMo-V2."""

from __future__ import annotations

import dataclasses
from typing import Any

from planner.errors import InvalidInput
from planner.model.config.bailing import bailing_hybrid_layers
from planner.model.config.blocks import gqa_linears, hyper_connections, mlp_linears, replicated_linear, router_linear
from planner.model.config.decoder import Heads, feed_forward, moe_flags, read_heads
from planner.model.config.families import Family
from planner.model.config.fields import MAX_LAYERS, Fields
from planner.model.config.inkling import inkling_layers
from planner.model.config.mixers import full_mixer, mamba2_mixer
from planner.model.config.mixtures import (
    ernie_vl_layers,
    laguna_layers,
    longcat_flash_layers,
    minimax_m3_layers,
    step3p5_layers,
)
from planner.model.config.qwen4 import qwen4_exp_layers
from planner.model.config.states import granite_hybrid_layers, jamba_layers, lfm2_layers, lightning_layers, mamba_layers
from planner.model.shape import Experts, Layer, Linear, Mixer, MixerKind, Shard, TensorGroup

NO_MIXER = Mixer(kind=MixerKind.NONE)
MLLAMA_IMAGE_TOKENS = 4 * 1601  # four tiles of 40 × 40 patches and a class token


def hybrid_layers(fields: Fields, model_type: str) -> list[Layer]:
    """All layers, from first to last, of a family with a builder of its own."""
    builders = {
        "llama4": llama4_layers,
        "llama4_text": llama4_layers,
        "nemotron_h": nemotron_h_layers,
        "nemotron-nas": nemotron_nas_layers,
        "falcon_h1": falcon_h1_layers,
        "deepseek_v4": deepseek_v4_layers,
        "granitemoehybrid": granite_hybrid_layers,
        "jamba": jamba_layers,
        "mamba": mamba_layers,
        "falcon_mamba": mamba_layers,
        "lfm2": lfm2_layers,
        "lfm2_moe": lfm2_layers,
        "minimax": lightning_layers,
        "mllama": mllama_layers,
        "mimo_v2": mimo_v2_layers,
        "minimax_m3": minimax_m3_layers,
        "step3p5": step3p5_layers,
        "longcat_flash": longcat_flash_layers,
        "qwen4_exp_text": qwen4_exp_layers,
        "laguna": laguna_layers,
        "inkling_text": inkling_layers,
        "bailing_hybrid": bailing_hybrid_layers,
        "ernie4_5_moe_vl": ernie_vl_layers,
    }
    return builders[model_type](fields)


def llama4_layers(fields: Fields) -> list[Layer]:
    """Llama 4: chunked attention except in every fourth layer, one shared and many routed experts."""
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    hidden, chunk = fields.integer("hidden_size"), fields.integer("attention_chunk_size", 8192)
    heads = read_heads(fields)
    moe = moe_flags(fields, num_layers)
    no_rope = fields.integers("no_rope_layers") or [int((i + 1) % 4 != 0) for i in range(num_layers)]
    if len(no_rope) != num_layers:
        raise InvalidInput("no_rope_layers", f"{len(no_rope)} entries", f"{num_layers} entries, one per layer")
    width = fields.integer("intermediate_size")
    layers = []
    for index in range(num_layers):
        local = bool(no_rope[index])
        mixer = full_mixer(heads, MixerKind.CHUNKED, chunk) if local else full_mixer(heads)
        linears = gqa_linears(hidden, heads.heads, heads.kv_heads, heads.head_dim)
        experts = None
        if moe[index]:
            count = fields.integer("num_experts", at_most=100_000)
            experts = Experts(
                num_experts=count,
                experts_per_token=fields.integer("num_experts_per_tok", 1),
                intermediate_size=width,
                shared_intermediate_size=width,
            )
            linears += (router_linear(hidden, count),)
            linears += mlp_linears(hidden, width, group=TensorGroup.EXPERT, count=count)
            linears += mlp_linears(hidden, width, group=TensorGroup.SHARED_EXPERT)
        else:
            linears += mlp_linears(hidden, fields.integer("intermediate_size_mlp", width))
        layers.append(Layer(mixer=mixer, linears=linears, experts=experts, norm_parameters=2 * hidden))
    return layers


def mimo_v2_layers(fields: Fields) -> list[Layer]:
    """MiMo-V2: windows with sinks and full layers differ in heads and widths; values are narrower than keys."""
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    pattern = fields.integers("hybrid_layer_pattern")
    if pattern is None or len(pattern) != num_layers:
        raise InvalidInput("hybrid_layer_pattern", pattern, f"{num_layers} entries, 1 = window")
    family, moe = Family(routing_bias=True), moe_flags(fields, num_layers)
    keys = list(zip(map(bool, pattern), moe, strict=True))
    made = {key: _mimo_layer(fields, family, *key) for key in sorted(set(keys))}
    return [made[key] for key in keys]


def mimo_v2_draft_layer(fields: Fields) -> Layer:
    """Return a draft layer of MiMo-V2: a window with sinks and a dense MLP."""
    return _mimo_layer(fields, Family(routing_bias=True), True, False)


def _mimo_layer(fields: Fields, family: Family, slides: bool, routed: bool) -> Layer:
    hidden, mixer = fields.integer("hidden_size"), _mimo_mixer(fields, slides)
    sinks = fields.flag(f"add_{'swa' if slides else 'full'}_attention_sink_bias", slides)
    experts, feed, small = feed_forward(fields, family, routed)
    wide = gqa_linears(hidden, mixer.num_heads, mixer.num_kv_heads, mixer.head_dim)
    narrow = gqa_linears(hidden, mixer.num_heads, mixer.num_kv_heads, mixer.value_head_dim)
    small += 2 * hidden + (mixer.num_heads if sinks else 0)
    return Layer(mixer=mixer, linears=wide[:2] + narrow[2:] + feed, experts=experts, norm_parameters=small)


def _mimo_mixer(fields: Fields, slides: bool) -> Mixer:
    prefix = "swa_" if slides else ""
    heads = fields.integer(f"{prefix}num_attention_heads", fields.integer("num_attention_heads"))
    return Mixer(
        kind=MixerKind.SLIDING if slides else MixerKind.FULL,
        num_heads=heads,
        num_kv_heads=fields.integer(f"{prefix}num_key_value_heads", fields.integer("num_key_value_heads", heads)),
        head_dim=fields.integer(f"{prefix}head_dim", fields.integer("head_dim")),
        value_head_dim=fields.integer(f"{prefix}v_head_dim", fields.integer("v_head_dim")),
        window_tokens=fields.integer("sliding_window", 128) if slides else None,
    )


def mllama_layers(fields: Fields) -> list[Layer]:
    """Llama 3.2 Vision: every fifth layer attends to the image instead of the text.

    Its cache holds the longest image of every running sequence, whatever the length of the text: a state mixer whose
    `window_tokens` is that image, as in encoder-decoder models.
    """
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    hidden, heads = fields.integer("hidden_size"), read_heads(fields)
    crossing = set(fields.integers("cross_attention_layers") or range(3, num_layers, 5))
    linears = gqa_linears(hidden, heads.heads, heads.kv_heads, heads.head_dim)
    linears += mlp_linears(hidden, fields.integer("intermediate_size"))
    own = Layer(mixer=full_mixer(heads), linears=linears, norm_parameters=2 * hidden)
    image = dataclasses.replace(full_mixer(heads), kind=MixerKind.STATE, window_tokens=MLLAMA_IMAGE_TOKENS)
    cross = Layer(mixer=image, linears=linears, norm_parameters=2 * hidden + 2 * heads.head_dim + 2)
    return [cross if index in crossing else own for index in range(num_layers)]


def nemotron_h_layers(fields: Fields) -> list[Layer]:
    """Nemotron-H and Nemotron 3: each block is M (Mamba-2), * (attention), - (MLP) or E (experts)."""
    pattern = fields.text_value("hybrid_override_pattern") or _nemotron_pattern(fields)
    num_layers = fields.integer("num_hidden_layers", len(pattern) or None, at_most=MAX_LAYERS)
    if len(pattern) != num_layers or set(pattern) - set("M*-E"):
        raise InvalidInput("hybrid_override_pattern", pattern, f"{num_layers} characters out of M * - E")
    hidden = fields.integer("hidden_size")
    made: dict[str, Layer] = {}
    for kind in set(pattern):
        if kind == "M":
            mixer, linears, small = mamba2_mixer(fields)
            made[kind] = Layer(mixer=mixer, linears=linears, norm_parameters=small + hidden)
        elif kind == "*":
            heads = read_heads(fields)
            linears = gqa_linears(hidden, heads.heads, heads.kv_heads, heads.head_dim)
            made[kind] = Layer(mixer=full_mixer(heads), linears=linears, norm_parameters=hidden)
        elif kind == "-":
            linears = mlp_linears(hidden, fields.integer("intermediate_size"), gated=False)
            made[kind] = Layer(mixer=NO_MIXER, linears=linears, norm_parameters=hidden)
        else:
            made[kind] = _nemotron_expert_layer(fields)
    return [made[kind] for kind in pattern]


def _nemotron_pattern(fields: Fields) -> str:
    """Pattern of the block types that newer configs list."""
    letters = {"mamba": "M", "attention": "*", "mlp": "-", "moe": "E"}
    return "".join(letters.get(name, "?") for name in fields.names("layers_block_type") or ())


def _nemotron_expert_layer(fields: Fields) -> Layer:
    hidden = fields.integer("hidden_size")
    count, width = fields.integer("n_routed_experts", at_most=100_000), fields.integer("moe_intermediate_size")
    shared = fields.integer("moe_shared_expert_intermediate_size", 0, at_least=0)
    latent = fields.integer("moe_latent_size", 0, at_least=0)
    linears: tuple[Linear, ...] = (router_linear(hidden, count),)
    if latent:  # experts work on a narrower vector
        linears += (
            replicated_linear("latent_down_proj", TensorGroup.SHARED_EXPERT, hidden, latent),
            replicated_linear("latent_up_proj", TensorGroup.SHARED_EXPERT, latent, hidden),
        )
    linears += mlp_linears(latent or hidden, width, gated=False, group=TensorGroup.EXPERT, count=count)
    if shared:
        linears += mlp_linears(hidden, shared, gated=False, group=TensorGroup.SHARED_EXPERT)
    experts = Experts(
        num_experts=count,
        experts_per_token=fields.integer("num_experts_per_tok", at_most=100_000),
        intermediate_size=width,
        shared_intermediate_size=shared,
    )
    return Layer(mixer=NO_MIXER, linears=linears, experts=experts, norm_parameters=hidden + count)


def nemotron_nas_layers(fields: Fields) -> list[Layer]:
    """Nemotron-NAS (Llama-Nemotron 49B, 51B, 253B): each block has KV heads and an MLP width of its own, or none."""
    blocks = fields.raw("block_configs")
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    if blocks is None and fields.has("num_key_value_heads_per_layer"):
        return _deci_layers(fields, num_layers)
    ok = isinstance(blocks, list) and len(blocks) == num_layers and all(isinstance(b, dict) for b in blocks)
    if not ok:
        raise InvalidInput("block_configs", type(blocks).__name__, f"a list of {num_layers} objects, one per layer")
    return [_nas_layer(fields, block) for block in blocks]


def _deci_layers(fields: Fields, num_layers: int) -> list[Layer]:
    """DeciLM: layers differ in KV heads only."""
    counts = fields.integers("num_key_value_heads_per_layer") or []
    if len(counts) != num_layers:
        raise InvalidInput("num_key_value_heads_per_layer", f"{len(counts)} entries", f"{num_layers} entries")
    hidden, heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    head_dim = fields.integer("head_dim", max(1, hidden // heads))
    feed = mlp_linears(hidden, fields.integer("intermediate_size"))
    made = {}
    for count in set(counts):
        mixer = full_mixer(Heads(heads=heads, kv_heads=count, head_dim=head_dim))
        linears = gqa_linears(hidden, heads, count, head_dim) + feed
        made[count] = Layer(mixer=mixer, linears=linears, norm_parameters=2 * hidden)
    return [made[count] for count in counts]


def _nas_layer(fields: Fields, block: dict[str, Any]) -> Layer:
    hidden, heads = fields.integer("hidden_size"), fields.integer("num_attention_heads")
    head_dim = fields.integer("head_dim", max(1, hidden // heads))
    attention, ffn = Fields(block.get("attention") or {}), Fields(block.get("ffn") or {})
    mixer, norms = NO_MIXER, 0
    linears: tuple[Linear, ...] = ()
    if attention.flag("replace_with_linear", False):
        linears = (replicated_linear("linear_attn", TensorGroup.ATTENTION, hidden, hidden),)
        norms += hidden
    elif not attention.flag("no_op", False):
        per_group = attention.integer("n_heads_in_group", at_most=100_000) if attention.has("n_heads_in_group") else 0
        kv_heads = max(1, heads // per_group) if per_group else attention.integer("num_key_value_heads")
        shape = Heads(heads=heads, kv_heads=kv_heads, head_dim=head_dim)
        mixer = full_mixer(shape)
        linears = gqa_linears(hidden, heads, shape.kv_heads, head_dim)
        norms += hidden
    if ffn.flag("replace_with_linear", False):
        linears += (replicated_linear("linear_mlp", TensorGroup.MLP, hidden, hidden),)
        norms += hidden
    elif not ffn.flag("no_op", False):
        linears += mlp_linears(hidden, _nas_width(ffn, hidden))
        norms += hidden
    return Layer(mixer=mixer, linears=linears, norm_parameters=norms)


def _nas_width(ffn: Fields, hidden: int) -> int:
    """Width of a block's MLP: as stated, or a multiple of two thirds of the hidden size, rounded up to 256."""
    factor = ffn.raw("ffn_mult")
    if factor is None and ffn.has("intermediate_size"):
        return ffn.integer("intermediate_size")
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0 < factor < 100:
        raise InvalidInput("ffn_mult", factor, "a number from 0 to 100")
    return -(-int(2 * factor * hidden / 3) // 256) * 256


def falcon_h1_layers(fields: Fields) -> list[Layer]:
    """Falcon-H1: attention and Mamba-2 side by side in every layer.

    A `Layer` has one mixer, so each layer becomes two: the Mamba half with the MLP, then the attention half without.
    Memory and parameters are the same.
    """
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS // 2)
    hidden, heads = fields.integer("hidden_size"), read_heads(fields)
    mixer, linears, small = mamba2_mixer(fields, "mamba_d_", wide_state=True)
    mamba = Layer(
        mixer=mixer,
        linears=linears + mlp_linears(hidden, fields.integer("intermediate_size")),
        norm_parameters=small + 2 * hidden,
    )
    attention = Layer(mixer=full_mixer(heads), linears=gqa_linears(hidden, heads.heads, heads.kv_heads, heads.head_dim))
    return [mamba, attention] * num_layers


def deepseek_v4_layers(fields: Fields) -> list[Layer]:
    """DeepSeek-V4: one shared 512-wide KV head, compressed 4:1 or 128:1 beyond a short window.

    The mixer of a compressed layer has the window, the ratio (`kv_compression`) and, at 4:1, the indexer. Source: vLLM
    models/deepseek_v4 (compressor.py, attention.py, nvidia/model.py `DeepseekV4DecoderLayer`).
    """
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    ratios = (fields.integers("compress_ratios") or [])[:num_layers]
    if len(ratios) != num_layers:
        raise InvalidInput("compress_ratios", f"{len(ratios)} entries", f"at least {num_layers} entries")
    hidden, width = fields.integer("hidden_size"), fields.integer("moe_intermediate_size")
    connections = hyper_connections(hidden, fields.integer("hc_mult", 4))
    count = fields.integer("num_experts", at_most=100_000)
    shared = fields.integer("n_shared_experts", 1, at_least=0) * width
    experts = Experts(
        num_experts=count,
        experts_per_token=fields.integer("num_experts_per_tok"),
        intermediate_size=width,
        shared_intermediate_size=shared,
    )
    feed: tuple[Linear, ...] = (router_linear(hidden, count),)
    feed += mlp_linears(hidden, width, group=TensorGroup.EXPERT, count=count)
    feed += mlp_linears(hidden, shared, group=TensorGroup.SHARED_EXPERT)
    return [
        Layer(
            mixer=_v4_mixer(fields, ratio),
            linears=_v4_attention(fields, ratio) + feed,
            experts=experts,
            norm_parameters=2 * hidden + count + fields.integer("num_attention_heads") + connections,
        )
        for ratio in ratios
    ]


def _v4_mixer(fields: Fields, ratio: int) -> Mixer:
    heads, width = fields.integer("num_attention_heads"), fields.integer("head_dim")
    rope = fields.integer("qk_rope_head_dim", 64)
    if ratio == 0:
        return Mixer(
            kind=MixerKind.SLIDING,
            num_heads=heads,
            num_kv_heads=1,
            head_dim=width,
            value_head_dim=width,
            window_tokens=fields.integer("sliding_window", 128),
        )
    return Mixer(
        kind=MixerKind.MLA,
        num_heads=heads,
        num_kv_heads=1,
        head_dim=width,
        value_head_dim=width,
        window_tokens=fields.integer("sliding_window", 128),
        kv_lora_rank=width - rope,
        qk_rope_head_dim=rope,
        q_lora_rank=fields.integer("q_lora_rank", 0, at_least=0),
        kv_compression=ratio,
        indexer_head_dim=fields.integer("index_head_dim", 0, at_least=0) if ratio == 4 else 0,
        indexer_num_heads=fields.integer("index_n_heads", 0, at_least=0) if ratio == 4 else 0,
        indexer_top_k=fields.integer("index_topk", 0, at_least=0) if ratio == 4 else 0,
    )


def _v4_attention(fields: Fields, ratio: int) -> tuple[Linear, ...]:
    hidden, heads, width = (
        fields.integer("hidden_size"),
        fields.integer("num_attention_heads"),
        fields.integer("head_dim"),
    )
    q_lora, o_lora = fields.integer("q_lora_rank"), fields.integer("o_lora_rank", 1024)
    groups = fields.integer("o_groups", 8)
    group = TensorGroup.ATTENTION

    def linear(name: str, inputs: int, outputs: int, shard: Shard, count: int = 1) -> Linear:
        return Linear(name=name, group=group, in_features=inputs, out_features=outputs, shard=shard, count=count)

    def unquantized(name: str, outputs: int) -> Linear:
        return replicated_linear(name, group, hidden, outputs, quantizable=False)

    linears: tuple[Linear, ...] = (
        linear("q_a_proj", hidden, q_lora, Shard.REPLICATED),
        linear("q_b_proj", q_lora, heads * width, Shard.COLUMN),
        linear("kv_proj", hidden, width, Shard.REPLICATED),
        linear("o_a_proj", heads * width // groups, o_lora, Shard.COLUMN, groups),
        linear("o_b_proj", groups * o_lora, hidden, Shard.ROW),
    )
    if ratio:
        linears += (unquantized("compressor", 2 * width * (2 if ratio == 4 else 1)),)
    if ratio == 4:
        heads, width = fields.integer("index_n_heads"), fields.integer("index_head_dim")
        linears += (
            linear("indexer_wq_b", q_lora, heads * width, Shard.REPLICATED),
            unquantized("indexer_weights", heads),
            unquantized("indexer_compressor", 4 * width),
        )
    return linears
