"""Layers of mixture-of-experts families with a builder of their own: MiniMax-M3, Step-3.5, LongCat-Flash, Laguna.

Shapes as in the modelling files of Hugging Face transformers, vLLM and SGLang; parameter counts agree with the hub's
totals (tests/catalog/test_models.py).
"""

from __future__ import annotations

from dataclasses import replace

from planner.errors import InvalidInput
from planner.model.config.blocks import gqa_linears, mlp_linears, replicated_linear, router_linear
from planner.model.config.decoder import Heads, mixer_kinds, mla_mixer, moe_flags, read_heads
from planner.model.config.families import LLAMA
from planner.model.config.fields import MAX_LAYERS, Fields
from planner.model.config.mixers import full_mixer
from planner.model.shape import Experts, Layer, Linear, MixerKind, Shard, TensorGroup

STEP_DENSE_LAYERS = 3  # of Step-3.5, where moe_layers_enum is absent


def minimax_m3_layers(fields: Fields) -> list[Layer]:
    """MiniMax-M3: an indexer chooses blocks of keys in most layers; dense layers first, then experts."""
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    sparse, moe = _m3_sparse_flags(fields, num_layers), _m3_moe_flags(fields, num_layers)
    made = {key: _m3_layer(fields, *key) for key in sorted(set(zip(sparse, moe, strict=True)))}
    return [made[key] for key in zip(sparse, moe, strict=True)]


def _m3_sparse_flags(fields: Fields, num_layers: int) -> list[bool]:
    names = fields.names("layer_types")
    if names is not None:
        flags = [name == "minimax_m3_sparse" for name in names]
    else:
        section = Fields(fields.section("sparse_attention_config") or {})
        chosen = section.flag("use_sparse_attention", True)
        flags = [bool(x) and chosen for x in section.integers("sparse_attention_freq") or [0] * num_layers]
    if len(flags) != num_layers:
        raise InvalidInput("sparse_attention_freq", f"{len(flags)} entries", f"{num_layers} entries, one per layer")
    return flags


def _m3_moe_flags(fields: Fields, num_layers: int) -> list[bool]:
    names = fields.names("mlp_layer_types")
    if names is None:
        return moe_flags(fields, num_layers)
    if len(names) != num_layers:
        raise InvalidInput("mlp_layer_types", f"{len(names)} entries", f"{num_layers} entries, one per layer")
    return [name == "sparse" for name in names]


def _m3_layer(fields: Fields, sparse: bool, moe: bool) -> Layer:
    hidden, heads = fields.integer("hidden_size"), read_heads(fields)
    gate = fields.flag("attention_output_gate", False)
    mixer = full_mixer(heads)
    linears = gqa_linears(hidden, heads.heads, heads.kv_heads, heads.head_dim, output_gate=gate)
    small = 2 * hidden + (2 * heads.head_dim if fields.flag("use_qk_norm", True) else 0)
    if sparse:
        section = Fields(fields.section("sparse_attention_config") or {})
        count = section.integer("sparse_num_index_heads", fields.integer("index_n_heads", heads.kv_heads))
        width = section.integer("sparse_index_dim", fields.integer("index_head_dim", 128))
        block = section.integer("sparse_block_size", fields.integer("index_block_size", 128))
        chosen = section.integer("sparse_topk_blocks", fields.integer("index_topk_blocks", 16))
        mixer = replace(mixer, indexer_head_dim=width, indexer_num_heads=count, indexer_top_k=chosen * block)
        linears += _m3_indexer(hidden, count, width)
        small += 2 * width
    if not moe:
        linears += mlp_linears(hidden, fields.integer("dense_intermediate_size", fields.integer("intermediate_size")))
        return Layer(mixer=mixer, linears=linears, norm_parameters=small)
    experts, feed = _routed(fields, fields.integer("intermediate_size"), _m3_shared_width(fields))
    small += experts.num_experts if fields.flag("use_routing_bias", True) else 0
    return Layer(mixer=mixer, linears=linears + feed, experts=experts, norm_parameters=small)


def _m3_indexer(hidden: int, heads: int, width: int) -> tuple[Linear, ...]:
    """Indexer of MiniMax-M3: queries divided like the KV heads that they choose for, one key on every rank."""
    group = TensorGroup.ATTENTION
    queries = Linear(
        name="index_q_proj", group=group, in_features=hidden, out_features=heads * width, shard=Shard.KV_COLUMN
    )
    return queries, replicated_linear("index_k_proj", group, hidden, width)


def _m3_shared_width(fields: Fields) -> int:
    width = fields.integer("shared_intermediate_size", fields.integer("intermediate_size"), at_least=0)
    return width * fields.integer("n_shared_experts", 1, at_least=0)


def step3p5_layers(fields: Fields) -> list[Layer]:
    """Step-3.5 and 3.7: windows with more heads than full attention, a gate per head, experts after dense layers."""
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    slides, moe = _step_slides(fields, num_layers), _step_moe_flags(fields, num_layers)
    made = {key: _step_layer(fields, *key) for key in sorted(set(zip(slides, moe, strict=True)))}
    return [made[key] for key in zip(slides, moe, strict=True)]


def step3p5_draft_layer(fields: Fields) -> Layer:
    """Return the draft layer of Step-3.5: dense, with the attention that layer_types names after the main layers."""
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    names = (fields.names("layer_types") or [])[num_layers:]
    return _step_layer(fields, not names or names[0] == "sliding_attention", False)


def _step_slides(fields: Fields, num_layers: int) -> list[bool]:
    names = fields.names("layer_types") or ["full_attention"] * num_layers
    if len(names) < num_layers:
        raise InvalidInput("layer_types", f"{len(names)} entries", f"at least {num_layers} entries, one per layer")
    return [name == "sliding_attention" for name in names[:num_layers]]  # draft layers follow


def _step_moe_flags(fields: Fields, num_layers: int) -> list[bool]:
    names = fields.names("mlp_layer_types")
    if names is not None and len(names) >= num_layers:
        return [name == "sparse" for name in names[:num_layers]]
    given = fields.raw("moe_layers_enum")
    if isinstance(given, str):
        parts = given.split(",")
        if not all(part.strip().isdecimal() for part in parts):
            raise InvalidInput("moe_layers_enum", given[:60], "numbers of layers with commas between")
        chosen = {int(part) for part in parts}
    else:
        chosen = set(fields.integers("moe_layers_enum") or range(STEP_DENSE_LAYERS, num_layers))
    return [index in chosen for index in range(num_layers)]


def _step_layer(fields: Fields, slides: bool, moe: bool) -> Layer:
    hidden, heads = fields.integer("hidden_size"), read_heads(fields)
    if slides:
        other = Fields(fields.section("attention_other_setting") or {})
        heads = Heads(
            heads=other.integer(
                "num_attention_heads", fields.integer("num_sliding_attention_heads", heads.heads), at_most=100_000
            ),
            kv_heads=other.integer("num_key_value_heads", heads.kv_heads, at_most=100_000),
            head_dim=other.integer("head_dim", heads.head_dim, at_most=65_536),
        )
    window = fields.integer("sliding_window", 512) if slides else None
    mixer = full_mixer(heads, MixerKind.SLIDING if slides else MixerKind.FULL, window)
    linears = gqa_linears(hidden, heads.heads, heads.kv_heads, heads.head_dim)
    if fields.flag("use_head_wise_attn_gate", True):
        gate = Linear(name="g_proj", group=TensorGroup.ATTENTION, in_features=hidden, out_features=heads.heads,
                      shard=Shard.COLUMN, quantizable=False)  # fmt: skip
        linears += (gate,)
    small = 2 * hidden + 2 * heads.head_dim
    if not moe:
        linears += mlp_linears(hidden, fields.integer("intermediate_size"))
        return Layer(mixer=mixer, linears=linears, norm_parameters=small)
    shared = fields.integer("share_expert_dim", fields.integer("share_expert_dims", 0, at_least=0), at_least=0)
    experts, feed = _routed(fields, fields.integer("moe_intermediate_size"), shared)
    small += experts.num_experts  # use_moe_router_bias
    return Layer(mixer=mixer, linears=linears + feed, experts=experts, norm_parameters=small)


def longcat_flash_layers(fields: Fields) -> list[Layer]:
    """LongCat-Flash: two MLAs and two dense MLPs per layer, and experts beside the second pair.

    A `Layer` has one mixer, so each layer becomes two: the first half with the experts, the second without.
    Zero-computation experts have no weights; `experts_per_token` is without the share of tokens routed to them.
    """
    # transformers counts every attention as a layer in num_hidden_layers
    num_layers = fields.integer("num_layers", fields.integer("num_hidden_layers", at_most=MAX_LAYERS // 2))
    hidden = fields.integer("hidden_size")
    mixer, linears, small = mla_mixer(fields)
    linears += mlp_linears(hidden, fields.integer("intermediate_size"))
    plain = Layer(mixer=mixer, linears=linears, norm_parameters=small + 2 * hidden)
    experts, feed = _routed(fields, fields.integer("moe_intermediate_size"), 0)
    idle = fields.integer("zero_expert_num", 0, at_least=0, at_most=100_000)
    routes = experts.num_experts + idle
    experts = replace(
        experts, experts_per_token=max(1, round(experts.experts_per_token * experts.num_experts / routes))
    )
    feed = (router_linear(hidden, routes), *feed[1:])
    shortcut = Layer(mixer=mixer, linears=linears + feed, experts=experts, norm_parameters=small + 2 * hidden + routes)
    return [shortcut, plain] * num_layers


def laguna_layers(fields: Fields) -> list[Layer]:
    """Laguna: layers may differ in query heads; a gate per head or per channel; dense layers first, then experts."""
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    kinds, moe = mixer_kinds(fields, LLAMA, num_layers), _laguna_moe_flags(fields, num_layers)
    counts = fields.integers("num_attention_heads_per_layer")
    counts = [fields.integer("num_attention_heads", at_most=100_000)] * num_layers if counts is None else counts
    if len(counts) != num_layers:
        raise InvalidInput("num_attention_heads_per_layer", f"{len(counts)} entries", f"{num_layers} entries")
    keys = list(zip(kinds, counts, moe, strict=True))
    made = {key: _laguna_layer(fields, *key) for key in sorted(set(keys), key=repr)}
    return [made[key] for key in keys]


def _laguna_moe_flags(fields: Fields, num_layers: int) -> list[bool]:
    names = fields.names("mlp_layer_types")
    if names is None:
        dense = set(fields.integers("mlp_only_layers") or (0,))
        return [index not in dense for index in range(num_layers)]
    if len(names) != num_layers:
        raise InvalidInput("mlp_layer_types", f"{len(names)} entries", f"{num_layers} entries, one per layer")
    return [name == "sparse" for name in names]


def _laguna_layer(fields: Fields, kind: tuple[MixerKind, int], count: int, moe: bool) -> Layer:
    hidden, own = fields.integer("hidden_size"), read_heads(fields)
    if count < 1 or count % own.kv_heads:
        raise InvalidInput("num_attention_heads_per_layer", count, f"multiples of num_key_value_heads ({own.kv_heads})")
    heads = Heads(heads=count, kv_heads=own.kv_heads, head_dim=own.head_dim)
    mixer = full_mixer(heads, kind[0], kind[1] or None)
    linears = gqa_linears(hidden, heads.heads, heads.kv_heads, heads.head_dim)
    gating = fields.raw("gating")
    if gating is not False:
        wide = gating == "per-element"
        gate = Linear(name="g_proj", group=TensorGroup.ATTENTION, in_features=hidden,
                      out_features=count * (heads.head_dim if wide else 1), shard=Shard.COLUMN,
                      quantizable=wide)  # fmt: skip
        linears += (gate,)
    small = 2 * hidden + 2 * heads.head_dim
    if not moe:
        linears += mlp_linears(hidden, fields.integer("intermediate_size"))
        return Layer(mixer=mixer, linears=linears, norm_parameters=small)
    shared = fields.integer("shared_expert_intermediate_size", 0, at_least=0)
    experts, feed = _routed(fields, fields.integer("moe_intermediate_size"), shared)
    return Layer(mixer=mixer, linears=linears + feed, experts=experts, norm_parameters=small + experts.num_experts)


def ernie_vl_layers(fields: Fields) -> list[Layer]:
    """ERNIE 4.5 VL: experts for text and narrower ones for images, each with a router; one shared expert for both."""
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    hidden, heads = fields.integer("hidden_size"), read_heads(fields)
    widths, counts = _pair(fields, "moe_intermediate_size"), _pair(fields, "num_experts")
    linears = gqa_linears(hidden, heads.heads, heads.kv_heads, heads.head_dim)
    dense = Layer(
        mixer=full_mixer(heads),
        linears=linears + mlp_linears(hidden, fields.integer("intermediate_size")),
        norm_parameters=2 * hidden,
    )
    shared = fields.integer("n_shared_experts", 0, at_least=0, at_most=1000) * widths[0]
    feed: tuple[Linear, ...] = ()
    for count, width in zip(counts, widths, strict=True):
        feed += (router_linear(hidden, count),)
        feed += mlp_linears(hidden, width, group=TensorGroup.EXPERT, count=count)
    if shared:
        feed += mlp_linears(hidden, shared, group=TensorGroup.SHARED_EXPERT)
    experts = Experts(
        num_experts=counts[0],
        experts_per_token=fields.integer("num_experts_per_tok", at_most=100_000),
        intermediate_size=widths[0],
        shared_intermediate_size=shared,
    )
    sparse = Layer(
        mixer=full_mixer(heads), linears=linears + feed, experts=experts, norm_parameters=2 * hidden + sum(counts)
    )
    first = (
        fields.integer("first_k_dense_replace", 1, at_least=0) if not _listed(fields, "moe_layer_start_index") else 1
    )
    return [dense if index < first else sparse for index in range(num_layers)]


def _listed(fields: Fields, name: str) -> bool:
    return isinstance(fields.raw(name), list)


def _pair(fields: Fields, name: str) -> tuple[int, int]:
    """Figures of the text's and of the images' experts; a single one holds for both."""
    if not _listed(fields, name):
        value = fields.integer(name, at_most=10**6)
        return value, value
    values = fields.integers(name) or []
    if len(values) != 2 or min(values) < 1:
        raise InvalidInput(name, values, "one whole number, or two: for text and for images")
    return values[0], values[1]


def ngram_embedding(fields: Fields) -> tuple[int, int]:
    """Parameters of LongCat-Flash-Lite's hashed n-gram tables, and of their projections.

    Every split of every n-gram length has a table, two rows longer than the one before, with an equal share of the
    hidden size (vLLM longcat_flash_ngram.py).
    """
    ratio = fields.raw("ngram_vocab_size_ratio") or fields.raw("oe_vocab_size_ratio")
    if ratio is None:
        return 0, 0
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0 < ratio < 10_000:
        raise InvalidInput("ngram_vocab_size_ratio", ratio, "a number from 0 to 10,000")
    hidden = fields.integer("hidden_size")
    longest = fields.integer("emb_neighbor_num", fields.integer("oe_neighbor_num", 4), at_most=100)
    tables = (longest - 1) * fields.integer("emb_split_num", fields.integer("oe_split_num", 4), at_most=100)
    if not tables:
        return 0, 0
    width = hidden // tables
    rows = tables * int(ratio * fields.integer("vocab_size")) + tables * tables
    return rows * width, tables * width * hidden


def _routed(fields: Fields, width: int, shared: int) -> tuple[Experts, tuple[Linear, ...]]:
    """Router, routed experts and shared expert of a layer."""
    hidden, count = fields.integer("hidden_size"), fields.integer("num_experts", at_most=100_000)
    linears: tuple[Linear, ...] = (router_linear(hidden, count),)
    linears += mlp_linears(hidden, width, group=TensorGroup.EXPERT, count=count)
    if shared:
        linears += mlp_linears(hidden, shared, group=TensorGroup.SHARED_EXPERT)
    experts = Experts(
        num_experts=count,
        experts_per_token=fields.integer("num_experts_per_tok", at_most=100_000),
        intermediate_size=width,
        shared_intermediate_size=shared,
    )
    return experts, linears
