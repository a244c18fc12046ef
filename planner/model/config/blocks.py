"""The weight matrices of each building block: attention, MLP, experts, state layers."""

from __future__ import annotations

from planner.model.shape import Linear, Shard, TensorGroup


def gqa_linears(
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    *,
    qkv_bias: bool = False,
    out_bias: bool = False,
    output_gate: bool = False,
    key_is_value: bool = False,
) -> tuple[Linear, ...]:
    """Projections of (grouped-query) attention.

    `output_gate` doubles the query projection (Qwen3-Next); with `key_is_value` there is no value projection (full
    layers of Gemma 4).
    """
    group = TensorGroup.ATTENTION
    query = heads * head_dim * (2 if output_gate else 1)
    parts = [
        Linear(name="q_proj", group=group, in_features=hidden, out_features=query, shard=Shard.COLUMN, bias=qkv_bias)
    ]
    for name in ("k_proj",) if key_is_value else ("k_proj", "v_proj"):
        parts.append(
            Linear(
                name=name,
                group=group,
                in_features=hidden,
                out_features=kv_heads * head_dim,
                shard=Shard.KV_COLUMN,
                bias=qkv_bias,
            )
        )
    parts.append(
        Linear(
            name="o_proj",
            group=group,
            in_features=heads * head_dim,
            out_features=hidden,
            shard=Shard.ROW,
            bias=out_bias,
        )
    )
    return tuple(parts)


def mla_linears(
    hidden: int, heads: int, *, q_lora: int, kv_lora: int, nope: int, rope: int, value: int
) -> tuple[Linear, ...]:
    """Projections of multi-head latent attention (DeepSeek V2): the down-projections are replicated."""
    group = TensorGroup.ATTENTION

    def linear(name: str, inputs: int, outputs: int, shard: Shard) -> Linear:
        return Linear(name=name, group=group, in_features=inputs, out_features=outputs, shard=shard)

    query = heads * (nope + rope)
    parts = (
        (linear("q_a_proj", hidden, q_lora, Shard.REPLICATED), linear("q_b_proj", q_lora, query, Shard.COLUMN))
        if q_lora
        else (linear("q_proj", hidden, query, Shard.COLUMN),)
    )
    return (
        *parts,
        linear("kv_a_proj", hidden, kv_lora + rope, Shard.REPLICATED),
        linear("kv_b_proj", kv_lora, heads * (nope + value), Shard.COLUMN),
        linear("o_proj", heads * value, hidden, Shard.ROW),
    )


def indexer_linears(hidden: int, q_lora: int, heads: int, head_dim: int) -> tuple[Linear, ...]:
    """Projections of the sparse-attention indexer (DeepSeek V3.2), replicated on every rank."""
    group, shard = TensorGroup.ATTENTION, Shard.REPLICATED
    return (
        Linear(name="indexer_wq_b", group=group, in_features=q_lora, out_features=heads * head_dim, shard=shard),
        Linear(name="indexer_wk", group=group, in_features=hidden, out_features=head_dim, shard=shard),
        Linear(
            name="indexer_weights", group=group, in_features=hidden, out_features=heads, shard=shard, quantizable=False
        ),
    )


def hyper_connections(hidden: int, streams: int, *, mixes: bool = True) -> int:
    """Parameters of a layer's two hyper-connections, kept in fp32: each counts as two of 16 bits.

    Each weighs the streams before and after its half of the layer, and, where it `mixes`, each stream by every other.
    """
    return 2 * 2 * (2 + (streams if mixes else 0)) * streams * streams * hidden


def mlp_linears(
    hidden: int,
    intermediate: int,
    *,
    gated: bool = True,
    bias: bool = False,
    group: TensorGroup = TensorGroup.MLP,
    count: int = 1,
) -> tuple[Linear, ...]:
    """Matrices of an MLP; gate and up are one matrix, as engines fuse them."""
    expert = group is TensorGroup.EXPERT
    return (
        Linear(
            name="gate_up_proj" if gated else "up_proj",
            group=group,
            in_features=hidden,
            out_features=(2 if gated else 1) * intermediate,
            shard=Shard.EXPERT if expert else Shard.COLUMN,
            bias=bias,
            count=count,
        ),
        Linear(
            name="down_proj",
            group=group,
            in_features=intermediate,
            out_features=hidden,
            shard=Shard.EXPERT if expert else Shard.ROW,
            bias=bias,
            count=count,
        ),
    )


def router_linear(hidden: int, experts: int, *, bias: bool = False) -> Linear:
    """Return the router, which stays in 16 bits and is on every rank."""
    return Linear(
        name="router",
        group=TensorGroup.ROUTER,
        in_features=hidden,
        out_features=experts,
        shard=Shard.REPLICATED,
        bias=bias,
        quantizable=False,
    )


def replicated_linear(name: str, group: TensorGroup, inputs: int, outputs: int, *, quantizable: bool = True) -> Linear:
    """Return a matrix that every rank holds in full."""
    return Linear(
        name=name,
        group=group,
        in_features=inputs,
        out_features=outputs,
        shard=Shard.REPLICATED,
        quantizable=quantizable,
    )


def delta_net_linears(hidden: int, key_dim: int, value_dim: int, value_heads: int) -> tuple[Linear, ...]:
    """Projections of a gated delta net layer (Qwen3-Next, Qwen3.5)."""
    group = TensorGroup.STATE
    return (
        Linear(
            name="in_proj_qkvz",
            group=group,
            in_features=hidden,
            out_features=2 * key_dim + 2 * value_dim,
            shard=Shard.COLUMN,
        ),
        Linear(
            name="in_proj_ba",
            group=group,
            in_features=hidden,
            out_features=2 * value_heads,
            shard=Shard.COLUMN,
            quantizable=False,
        ),
        Linear(name="out_proj", group=group, in_features=value_dim, out_features=hidden, shard=Shard.ROW),
    )


def mamba_linears(hidden: int, inner: int, groups: int, state: int, heads: int) -> tuple[Linear, ...]:
    """Projections of a Mamba-2 layer: gate, input, B, C and one step size per head."""
    group = TensorGroup.STATE
    return (
        Linear(
            name="in_proj",
            group=group,
            in_features=hidden,
            out_features=2 * inner + 2 * groups * state + heads,
            shard=Shard.COLUMN,
        ),
        Linear(name="out_proj", group=group, in_features=inner, out_features=hidden, shard=Shard.ROW),
    )
