"""Layers of the decoder families that differ only in traits, with one builder for all."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.errors import InvalidInput
from planner.model.config.blocks import (
    delta_net_linears,
    gqa_linears,
    hyper_connections,
    indexer_linears,
    mla_linears,
    mlp_linears,
    replicated_linear,
    router_linear,
)
from planner.model.config.families import Family
from planner.model.config.fields import MAX_LAYERS, Fields
from planner.model.shape import Experts, Layer, Linear, Mixer, MixerKind, Shard, TensorGroup

MIXER_OF_LAYER_TYPE = {
    "full_attention": MixerKind.FULL,
    "attention": MixerKind.FULL,
    "sliding_attention": MixerKind.SLIDING,
    "chunked_attention": MixerKind.CHUNKED,
    "linear_attention": MixerKind.STATE,
    "deepseek_sparse_attention": MixerKind.FULL,  # the MLA mixer says the rest
    "sparse_attention": MixerKind.FULL,  # Hy4 (vLLM transformers_utils/configs/hy_v4.py)
    "indexed_attention": MixerKind.FULL,  # Qwen4, as transformers and vLLM name it
    "qwen_sparse_attention": MixerKind.FULL,
}

FP32_STATES = ("qwen3_5", "qwen4_exp", "qwen3_8_flash_next")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """Head counts and widths of the attention layers."""

    heads: int
    kv_heads: int
    head_dim: int


def read_heads(fields: Fields) -> Heads:
    """Read head counts, and refuse counts that contradict one another."""
    hidden = fields.integer("hidden_size")
    heads = fields.integer("num_attention_heads", at_most=100_000)
    kv_heads = fields.integer("num_key_value_heads", heads, at_most=100_000)
    if not fields.has("head_dim") and hidden % heads:
        raise InvalidInput("num_attention_heads", heads, f"a divisor of hidden_size ({hidden:,}), or a head_dim")
    head_dim = fields.integer("head_dim", max(1, hidden // heads), at_most=65_536)
    if heads % kv_heads:
        raise InvalidInput("num_key_value_heads", kv_heads, f"a divisor of num_attention_heads ({heads})")
    return Heads(heads=heads, kv_heads=kv_heads, head_dim=head_dim)


def mixer_kinds(fields: Fields, family: Family, num_layers: int) -> list[tuple[MixerKind, int]]:
    """Kind and window of each layer's token mixer, from layer_types or the family's pattern.

    A window as long as the longest context is full attention, as in the engines.
    """
    window = fields.integer("sliding_window", family.window_default, at_least=0)
    chunk = fields.integer("attention_chunk_size", 0, at_least=0)
    limit = fields.integer("max_position_embeddings", 2**40, at_most=2**40)
    names = fields.names("layer_types")
    if names is not None:
        return _kinds_from_names(names, num_layers, window, chunk)
    if family.state:
        interval = fields.integer("full_attention_interval", 4)
        return [(MixerKind.FULL if (i + 1) % interval == 0 else MixerKind.STATE, 0) for i in range(num_layers)]
    pattern = fields.raw("sliding_window_pattern")
    every = pattern if isinstance(pattern, int) and not isinstance(pattern, bool) else family.window_pattern
    if isinstance(pattern, str) and pattern:  # EXAONE writes it as LLLG
        every = len(pattern)
    if every and window:
        return [(MixerKind.FULL, 0) if (i + 1) % every == 0 else (MixerKind.SLIDING, window) for i in range(num_layers)]
    slides = family.always_slides or fields.flag("use_sliding_window", False)
    if slides and 0 < window < limit and fields.flag("use_sliding_window", True):
        return [(MixerKind.SLIDING, window)] * num_layers
    return [(MixerKind.FULL, 0)] * num_layers


def _kinds_from_names(names: list[str], num_layers: int, window: int, chunk: int) -> list[tuple[MixerKind, int]]:
    if len(names) != num_layers:
        raise InvalidInput("layer_types", f"{len(names)} entries", f"{num_layers} entries, one per layer")
    kinds = []
    for name in names:
        kind = MIXER_OF_LAYER_TYPE.get(name)
        if kind is None:
            raise InvalidInput("layer_types", name, "one of " + ", ".join(MIXER_OF_LAYER_TYPE))
        size = {MixerKind.SLIDING: window, MixerKind.CHUNKED: chunk}.get(kind, 0)
        if kind in (MixerKind.SLIDING, MixerKind.CHUNKED) and not size:
            raise InvalidInput("sliding_window", None, f"a window, because layer_types has {name}")
        kinds.append((kind, size))
    return kinds


def decoder_layers(fields: Fields, family: Family) -> list[Layer]:
    """All layers from first to last."""
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    kinds = mixer_kinds(fields, family, num_layers)
    if family.state == "kda" and fields.names("layer_types") is None:
        kinds = kda_kinds(fields, num_layers)
    shared_kv = fields.integer("num_kv_shared_layers", 0, at_least=0, at_most=MAX_LAYERS)
    moe = moe_flags(fields, num_layers)
    chooses = indexer_flags(fields, num_layers)
    made: dict[tuple[MixerKind, int, bool, bool, bool], Layer] = {}
    layers = []
    for index, (kind, window) in enumerate(kinds):
        key = (kind, window, moe[index], index >= num_layers - shared_kv > 0, chooses[index])
        if key not in made:
            made[key] = decoder_layer(fields, family, *key)
        layers.append(made[key])
    return layers


def indexer_flags(fields: Fields, num_layers: int) -> list[bool]:
    """Which layers have an indexer of their own; the others reuse the tokens that the last indexer chose.

    GLM-5.2 lists them (`indexer_types`) or gives a frequency: `index_topk_freq` from `index_skip_topk_offset` on. A
    frequency without an offset (IndexCache) only saves computation: every layer has the weights and the cache.
    """
    names = fields.names("indexer_types")
    if names is not None:
        if len(names) != num_layers:
            raise InvalidInput("indexer_types", f"{len(names)} entries", f"{num_layers} entries, one per layer")
        return [name == "full" for name in names]
    every = fields.integer("index_topk_freq", 1, at_most=MAX_LAYERS)
    first = fields.integer("index_skip_topk_offset", 0, at_least=0, at_most=MAX_LAYERS)
    return [not first or i < first or (i - first + 1) % every == 0 for i in range(num_layers)]


def decoder_layer(
    fields: Fields, family: Family, kind: MixerKind, window: int, moe: bool, reuses_kv: bool, chooses: bool
) -> Layer:
    """One layer: token mixer and feed-forward part."""
    hidden = fields.integer("hidden_size")
    if kind is MixerKind.STATE:
        mixer, linears, small = state_mixer(fields, family)
    elif family.attention == "mla" and kind is MixerKind.SLIDING:
        mixer, linears, small = sliding_mla_mixer(fields, window)
    elif family.attention == "mla":
        mixer, linears, small = mla_mixer(fields, chooses)
        small += mixer.num_heads if family.sinks else 0
    else:
        mixer, linears, small = gqa_mixer(fields, family, kind, window, reuses_kv)
    norms = family.norms
    if fields.raw("new_decoder_architecture") is True:
        norms = 2
    small += norms * hidden * (2 if family.norm_bias else 1)
    if fields.text_value("model_type") in ("gemma4", "gemma4_text"):
        small += 1  # the layer's scalar
    experts, feed, more = feed_forward(
        fields, family, moe, wide=reuses_kv and fields.flag("use_double_wide_mlp", False)
    )
    beside, least = _beside(fields, family)
    return Layer(mixer=mixer, linears=linears + feed + beside, experts=experts, norm_parameters=small + more + least)


def _beside(fields: Fields, family: Family) -> tuple[tuple[Linear, ...], int]:
    """What a few families add to a layer: matrices and small parameters.

    Gemma 3n and 4: a gate for the layer's embedding, a low-rank residual, alternating updates. Kimi-K3: a norm and a
    score before each half, which weigh the residuals of earlier blocks. GLM-5.3-Flash: hyper-connections (vLLM
    models/glm5next/common/model.py). Hy4: those that do not mix their streams (models/hy_v4/nvidia/hc.py).
    """
    hidden, group = fields.integer("hidden_size"), TensorGroup.MLP
    linears: tuple[Linear, ...] = ()
    small = 4 * hidden if fields.has("attn_res_block_size") else 0
    if fields.raw("mhc") is True:
        small += hyper_connections(hidden, fields.integer("hc_mult", 4))
    if fields.raw("enable_ihc") is True:
        small += hyper_connections(hidden, fields.integer("hc_mult", 4), mixes=False)
    own = fields.integer("hidden_size_per_layer_input", 0, at_least=0) if family.own_embeddings else 0
    if own:
        linears += (
            replicated_linear("per_layer_input_gate", group, hidden, own),
            replicated_linear("per_layer_projection", group, own, hidden),
        )
        small += hidden
    if family.laurel:
        rank, inputs = fields.integer("laurel_rank", 64), fields.integer("altup_num_inputs", 4)
        linears += (
            replicated_linear("laurel_left", group, hidden, rank),
            replicated_linear("laurel_right", group, rank, hidden),
        )
        small += hidden + 2 * hidden + inputs**2 + inputs**3 + hidden * inputs
    return linears, small


def gqa_mixer(
    fields: Fields, family: Family, kind: MixerKind, window: int, reuses_kv: bool
) -> tuple[Mixer, tuple[Linear, ...], int]:
    """Grouped-query attention: mixer, matrices and small parameters."""
    heads = read_heads(fields)
    key_is_value = False
    if kind is MixerKind.FULL and fields.has("global_head_dim"):
        heads = Heads(
            heads=heads.heads,
            kv_heads=fields.integer("num_global_key_value_heads", heads.kv_heads),
            head_dim=fields.integer("global_head_dim"),
        )
        key_is_value = fields.flag("attention_k_eq_v", False)
    bias = fields.flag("attention_bias", False)
    qkv_bias = bias if family.qkv_bias is None else family.qkv_bias
    out_bias = bias if family.out_bias is None else family.out_bias
    mixer = Mixer(
        kind=kind,
        num_heads=heads.heads,
        num_kv_heads=heads.kv_heads,
        head_dim=heads.head_dim,
        value_head_dim=heads.head_dim,
        window_tokens=window or None,
        reuses_kv_of_another_layer=reuses_kv,
    )
    linears = gqa_linears(
        fields.integer("hidden_size"),
        heads.heads,
        heads.kv_heads,
        heads.head_dim,
        qkv_bias=qkv_bias,
        out_bias=out_bias,
        output_gate=family.output_gate and fields.flag("attn_output_gate", True),
        key_is_value=key_is_value,
    )
    return mixer, linears, _qk_norm_parameters(fields, family, heads) + (heads.heads if family.sinks else 0)


def _qk_norm_parameters(fields: Fields, family: Family, heads: Heads) -> int:
    kind = family.qk_norm
    if kind == "config":
        kind = "head" if fields.flag("use_qk_norm", False) else ""
    if kind == "head":
        return 2 * heads.head_dim
    return (heads.heads + heads.kv_heads) * heads.head_dim if kind == "full" else 0


def mla_mixer(fields: Fields, chooses: bool = True) -> tuple[Mixer, tuple[Linear, ...], int]:
    """Multi-head latent attention, with the sparse-attention indexer where the config has one for this layer."""
    hidden, heads = fields.integer("hidden_size"), fields.integer("num_attention_heads", at_most=100_000)
    kv_lora, rope = fields.integer("kv_lora_rank"), fields.integer("qk_rope_head_dim", at_least=0)
    nope, value = fields.integer("qk_nope_head_dim"), fields.integer("v_head_dim")
    q_lora = fields.integer("q_lora_rank", 0, at_least=0)
    linears = mla_linears(hidden, heads, q_lora=q_lora, kv_lora=kv_lora, nope=nope, rope=rope, value=value)
    if fields.flag("mla_use_output_gate", False) or fields.flag("gated_mla", False):
        linears += (_gate_linear(TensorGroup.ATTENTION, hidden, heads * value),)
    small = q_lora + kv_lora
    if fields.text_value("attention_gate_type") == "headwise":  # dots3-note, with a norm of the rotary key
        linears += (replicated_linear("g_proj", TensorGroup.ATTENTION, hidden, heads),)
        small += rope
    index_dim = fields.integer("index_head_dim", 0, at_least=0) if chooses else 0
    index_heads = fields.integer("index_n_heads", 0, at_least=0) if chooses else 0
    if index_dim and index_heads:
        linears += indexer_linears(hidden, q_lora or hidden, index_heads, index_dim)
        small += 2 * index_dim
    pooled = fields.integer("index_kpool", 1) if index_dim else 1  # GLM-5.3-Flash pools the indexer's keys
    if pooled > 1:
        linears += (
            replicated_linear("index_kpool_compress_gate", TensorGroup.ATTENTION, hidden, index_dim, quantizable=False),
        )
        small += 2 * pooled * index_dim  # fp32
    mixer = Mixer(
        kind=MixerKind.MLA,
        num_heads=heads,
        num_kv_heads=1,
        head_dim=nope + rope,
        value_head_dim=value,
        q_lora_rank=q_lora,
        kv_lora_rank=kv_lora,
        qk_nope_head_dim=nope,
        qk_rope_head_dim=rope,
        indexer_head_dim=index_dim,
        indexer_num_heads=index_heads,
        indexer_compression=pooled,
        indexer_top_k=fields.integer("index_topk", 0, at_least=0),
    )
    return mixer, linears, small


def sliding_mla_mixer(fields: Fields, window: int) -> tuple[Mixer, tuple[Linear, ...], int]:
    """Latent attention within a window, with widths of its own (dots3-note): a token caches the latent and its key.

    Source: vLLM models/dots3_note/nvidia/model.py.
    """
    hidden, heads = fields.integer("hidden_size"), fields.integer("swa_num_attention_heads", at_most=100_000)
    kv_lora, rope = fields.integer("swa_kv_lora_rank"), fields.integer("swa_qk_rope_head_dim")
    q_lora, nope = fields.integer("swa_q_lora_rank"), fields.integer("swa_qk_nope_head_dim")
    value = fields.integer("swa_v_head_dim")
    mixer = Mixer(
        kind=MixerKind.SLIDING,
        num_heads=heads,
        num_kv_heads=1,
        head_dim=kv_lora,
        value_head_dim=rope,
        window_tokens=window,
    )
    linears = mla_linears(hidden, heads, q_lora=q_lora, kv_lora=kv_lora, nope=nope, rope=rope, value=value)
    gate = replicated_linear("g_proj", TensorGroup.ATTENTION, hidden, heads)
    return mixer, (*linears, gate), q_lora + kv_lora + rope


def state_mixer(fields: Fields, family: Family) -> tuple[Mixer, tuple[Linear, ...], int]:
    """Gated delta net or Kimi delta attention: one state per sequence whatever its length."""
    if family.state == "kda":
        return kda_mixer(fields)
    hidden = fields.integer("hidden_size")
    key_heads, value_heads = fields.integer("linear_num_key_heads"), fields.integer("linear_num_value_heads")
    key_head, value_head = fields.integer("linear_key_head_dim"), fields.integer("linear_value_head_dim")
    kernel = fields.integer("linear_conv_kernel_dim", 4)
    key_dim, value_dim = key_heads * key_head, value_heads * value_head
    channels = 2 * key_dim + value_dim
    small = channels * kernel + 2 * value_heads + value_head
    # Qwen3.5 keeps the recurrent state in fp32 (mamba_ssm_dtype), Qwen3-Next in the model's dtype
    default = "float32" if any(x in fields.text_value("model_type") for x in FP32_STATES) else ""
    wide = fields.text_value("mamba_ssm_dtype", default)
    mixer = Mixer(
        kind=MixerKind.STATE,
        num_heads=value_heads,
        num_kv_heads=key_heads,
        head_dim=key_head,
        value_head_dim=value_head,
        state_elements=value_heads * key_head * value_head,
        conv_elements=channels * (kernel - 1),
        state_element_bytes=4 if wide == "float32" else 2,
    )
    return mixer, delta_net_linears(hidden, key_dim, value_dim, value_heads), small


def kda_kinds(fields: Fields, num_layers: int) -> list[tuple[MixerKind, int]]:
    """Which layers of Kimi-Linear are MLA (listed from 1) and which keep a state."""
    section = fields.section("linear_attn_config") or {}
    full = section.get("full_attn_layers")
    if not isinstance(full, list):
        raise InvalidInput("linear_attn_config", section, "an object with full_attn_layers, the layers with attention")
    return [(MixerKind.MLA if i + 1 in full else MixerKind.STATE, 0) for i in range(num_layers)]


def kda_mixer(fields: Fields) -> tuple[Mixer, tuple[Linear, ...], int]:
    """Kimi delta attention: convolutions of q, k, v, a matrix state per head; Kimi-K3's output gate has full rank."""
    hidden = fields.integer("hidden_size")
    section = Fields(fields.section("linear_attn_config") or {})
    heads, head_dim = section.integer("num_heads"), section.integer("head_dim")
    kernel = section.integer("short_conv_kernel_size", 4)
    width = heads * head_dim
    state = TensorGroup.STATE
    linears = tuple(replace(linear, group=state) for linear in gqa_linears(hidden, heads, heads, head_dim))
    full_rank = section.flag("use_full_rank_gate", False)
    if full_rank:
        linears += (_gate_linear(state, hidden, width),)
    for name in ("f",) if full_rank else ("f", "g"):  # decay and output gates, low rank
        linears += (
            replicated_linear(f"{name}_a_proj", state, hidden, head_dim, quantizable=False),
            replicated_linear(f"{name}_b_proj", state, head_dim, width, quantizable=False),
        )
    linears += (replicated_linear("b_proj", state, hidden, heads, quantizable=False),)
    mixer = matrix_state(heads, head_dim, conv_elements=3 * width * (kernel - 1), element_bytes=4)
    decays = head_dim if full_rank else heads  # Kimi-K3 stores A_log as wide as a head
    return mixer, linears, 3 * width * kernel + width + decays + head_dim


def matrix_state(heads: int, head_dim: int, *, conv_elements: int, element_bytes: int) -> Mixer:
    """Linear attention with a square matrix per head, as delta and lightning attention keep it."""
    return Mixer(
        kind=MixerKind.STATE,
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=head_dim,
        value_head_dim=head_dim,
        state_elements=heads * head_dim * head_dim,
        conv_elements=conv_elements,
        state_element_bytes=element_bytes,
    )


def _gate_linear(group: TensorGroup, hidden: int, width: int) -> Linear:
    return Linear(name="g_proj", group=group, in_features=hidden, out_features=width, shard=Shard.COLUMN)


def moe_flags(fields: Fields, num_layers: int) -> list[bool]:
    """Which layers route to experts."""
    experts = fields.integer("num_experts", 0, at_least=0, at_most=100_000)
    if fields.raw("enable_moe_block") is False:
        experts = 0
    if not experts:
        return [False] * num_layers
    dense_first = fields.integer("first_k_dense_replace", 0, at_least=0)
    every = max(
        fields.integer("moe_layer_freq", 1) if not isinstance(fields.raw("moe_layer_freq"), list) else 1,
        fields.integer("decoder_sparse_step", 1),
        fields.integer("interleave_moe_layer_step", 1),
    )
    dense = set(fields.integers("mlp_only_layers") or ())
    listed = fields.raw("moe_layer_freq")
    if isinstance(listed, list):
        return [bool(x) for x in listed][:num_layers] + [True] * max(0, num_layers - len(listed))
    return [i >= dense_first and (i + 1) % every == 0 and i not in dense for i in range(num_layers)]


def feed_forward(
    fields: Fields, family: Family, moe: bool, *, wide: bool = False
) -> tuple[Experts | None, tuple[Linear, ...], int]:
    """MLP or experts of a layer: matrices and small parameters."""
    hidden = fields.integer("hidden_size")
    bias = fields.flag("mlp_bias", False) if family.mlp_bias is None else family.mlp_bias
    if not moe:
        size = fields.integer("intermediate_size", 0 if family.gated else 4 * hidden, at_least=0)
        size = size // (2 if family.halved_mlp else 1) * (2 if wide else 1)
        if not size:
            raise InvalidInput("intermediate_size", None, "a whole number: the model cannot be sized without it")
        return None, mlp_linears(hidden, size, gated=family.gated, bias=bias), 0
    experts = read_experts(fields)
    count, size = experts.num_experts, experts.intermediate_size
    linears: tuple[Linear, ...] = (router_linear(hidden, count, bias=family.router_bias),)
    small = count if family.routing_bias else 0
    latent = fields.integer("routed_expert_hidden_size", 0, at_least=0)
    if latent:  # Kimi-K3: experts work on a narrower vector
        linears += (
            replicated_linear("latent_down_proj", TensorGroup.SHARED_EXPERT, hidden, latent),
            replicated_linear("latent_up_proj", TensorGroup.SHARED_EXPERT, latent, hidden),
        )
        small += latent if fields.flag("latent_moe_use_norm", False) else 0
    linears += mlp_linears(latent or hidden, size, bias=family.expert_bias, group=TensorGroup.EXPERT, count=count)
    if experts.shared_intermediate_size:
        linears += mlp_linears(hidden, experts.shared_intermediate_size, group=TensorGroup.SHARED_EXPERT)
        if family.shared_gate:
            linears += (replicated_linear("shared_expert_gate", TensorGroup.ROUTER, hidden, 1, quantizable=False),)
    if family.residual_mlp:
        dense, norm = _residual_mlp(fields, family)
        linears, small = linears + dense, small + norm
    if fields.raw("enable_moe_block") is True:  # Gemma 4: the dense MLP stays beside the experts
        linears += mlp_linears(hidden, fields.integer("intermediate_size"))
        small += hidden + count + 3 * hidden  # router scale, scale per expert, three more norms
    return experts, linears, small


def _residual_mlp(fields: Fields, family: Family) -> tuple[tuple[Linear, ...], int]:
    """Return the dense MLP beside the experts of Arctic and Grok-2, and the parameters of its norm."""
    hidden = fields.integer("hidden_size")
    if family.residual_mlp == "hidden":
        return (mlp_linears(hidden, hidden), hidden) if fields.flag("use_residual", True) else ((), 0)
    if not fields.flag("residual_moe", True):
        return (), 0
    return mlp_linears(hidden, fields.integer("intermediate_size")), 0


def read_experts(fields: Fields) -> Experts:
    """Read expert counts and widths."""
    count = fields.integer("num_experts", at_most=100_000)
    width = fields.integer("moe_intermediate_size", fields.integer("intermediate_size", 0, at_least=0) or None)
    shared = fields.integer("shared_expert_intermediate_size", 0, at_least=0)
    if not shared:
        number = fields.integer("n_shared_experts", fields.integer("num_shared_experts", 0, at_least=0), at_least=0)
        shared = number * width
    top = fields.integer("num_experts_per_tok", at_most=100_000)
    return Experts(num_experts=count, experts_per_token=top, intermediate_size=width, shared_intermediate_size=shared)
