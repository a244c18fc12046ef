"""Encoder-decoder models: Whisper, BART, T5.

The encoder runs once per request; its parameters count like those of a vision tower. Cross-attention caches the
encoder's output for every running sequence, whatever the length of the answer: a state mixer whose `window_tokens` is
the longest source.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.config.blocks import gqa_linears, mlp_linears
from planner.model.config.fields import MAX_LAYERS, Fields
from planner.model.shape import Layer, Linear, Mixer, MixerKind

ENCODER_DECODER = ("whisper", "bart", "mbart", "t5", "mt5", "umt5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacks:
    """Decoder layers, and the parameters outside them."""

    layers: list[Layer]
    encoder_parameters: int
    extra_embedding_parameters: int
    final_norm_parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Width:
    hidden: int
    heads: int
    head_dim: int
    ffn: int
    bias: bool  # linears with bias (Whisper's keys have none)
    key_bias: bool
    gated: bool
    norm: int  # parameters of one norm


def encoder_decoder_stacks(fields: Fields, model_type: str) -> Stacks:
    """Decoder layers, encoder parameters and embeddings other than the vocabulary's.

    Parameters
    ----------
    fields : Fields
        The config.
    model_type : str
        One of ENCODER_DECODER.

    Returns
    -------
    Stacks
        Input of `model_from_config`.
    """
    t5 = model_type.endswith("t5")
    hidden = fields.integer("d_model", fields.integer("hidden_size", 0, at_least=0) or None)
    heads = fields.integer("decoder_attention_heads", fields.integer("num_heads", 0, at_least=0) or None)
    width = _Width(
        hidden=hidden,
        heads=heads,
        head_dim=fields.integer("d_kv", max(1, hidden // heads)),
        ffn=fields.integer("decoder_ffn_dim", fields.integer("d_ff", 4 * hidden)),
        bias=not t5,
        key_bias=not t5 and model_type != "whisper",
        gated=fields.flag("is_gated_act", "gated" in fields.text_value("feed_forward_proj", "")),
        norm=hidden if t5 else 2 * hidden,
    )
    decoder = fields.integer(
        "decoder_layers", fields.integer("num_decoder_layers", 0, at_least=0) or None, at_most=MAX_LAYERS
    )
    encoder = fields.integer("encoder_layers", fields.integer("num_layers", decoder), at_least=0, at_most=MAX_LAYERS)
    source = fields.integer("max_source_positions", fields.integer("max_position_embeddings", 512))
    limit = fields.integer("max_target_positions", fields.integer("max_position_embeddings", 512))
    heads_cached = Mixer(
        kind=MixerKind.STATE,
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=width.head_dim,
        value_head_dim=width.head_dim,
        window_tokens=source,
    )
    own = Layer(
        mixer=Mixer(
            kind=MixerKind.FULL,
            num_heads=heads,
            num_kv_heads=heads,
            head_dim=width.head_dim,
            value_head_dim=width.head_dim,
        ),
        linears=_attention(width) + _attention(width) + _mlp(width),
        norm_parameters=3 * width.norm,
    )
    cross = Layer(mixer=heads_cached, linears=())
    one = sum(x.num_parameters for x in _attention(width) + _mlp(width)) + 2 * width.norm
    extra = _outside_layers(fields, model_type, width, source, limit)
    return Stacks(
        layers=[own, cross] * decoder,
        encoder_parameters=encoder * one + extra[0],
        extra_embedding_parameters=extra[1],
        final_norm_parameters=extra[2],
    )


def _attention(width: _Width) -> tuple[Linear, ...]:
    linears = gqa_linears(
        width.hidden, width.heads, width.heads, width.head_dim, qkv_bias=width.bias, out_bias=width.bias
    )
    if width.bias and not width.key_bias:
        query, key, *rest = linears
        key = Linear(
            name=key.name, group=key.group, in_features=key.in_features, out_features=key.out_features, shard=key.shard
        )
        return (query, key, *rest)
    return linears


def _mlp(width: _Width) -> tuple[Linear, ...]:
    return mlp_linears(width.hidden, width.ffn, gated=width.gated, bias=width.bias)


def _outside_layers(fields: Fields, model_type: str, width: _Width, source: int, limit: int) -> tuple[int, int, int]:
    """Parameters of the encoder outside its layers, of the decoder's learned positions, and of final norms."""
    hidden = width.hidden
    if model_type == "whisper":
        mel = fields.integer("num_mel_bins", 80)
        convolutions = 3 * mel * hidden + hidden + 3 * hidden * hidden + hidden
        return convolutions + source * hidden + width.norm, limit * hidden, width.norm
    if model_type in ("bart", "mbart"):  # positions start at 2; a norm after each embedding
        final = width.norm if model_type == "mbart" else 0
        return (source + 2) * hidden + width.norm + final, (limit + 2) * hidden, width.norm + final
    buckets = fields.integer("relative_attention_num_buckets", 32) * width.heads
    return buckets + width.norm, 0, width.norm + buckets
