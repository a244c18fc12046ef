"""Inkling: windows in five of six layers, short convolutions in every layer, experts with shared ones among them.

Shapes as in transformers (models/inkling); totals with towers and draft layers equal the hub's
(tests/model/config/test_inkling.py).
"""

from __future__ import annotations

from planner.errors import InvalidInput
from planner.model.config.blocks import gqa_linears, mlp_linears, router_linear
from planner.model.config.decoder import Heads, read_heads
from planner.model.config.fields import MAX_LAYERS, Fields
from planner.model.config.mixers import full_mixer
from planner.model.shape import Experts, Layer, Linear, MixerKind, Shard, TensorGroup

FULL_EVERY = 6  # of layers without local_layer_ids
#: channels of the image encoder between its stages of 5 x 5, 2 x 2, 4 x 4 and 2 x 1 patches (plan_out_scales)
IMAGE_CHANNELS = ((3 * 25, 128), (128 * 4, 320), (320 * 16, 4800))
IMAGE_FRAMES = 2
#: convolutions of keys, values and of both halves of a layer keep this many tokens less one
TAPS = 4


def inkling_layers(fields: Fields) -> list[Layer]:
    """All layers: windows and full attention differ in KV heads; dense layers first, then experts."""
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    local = _local(fields, "local_layer_ids", num_layers, {i for i in range(num_layers) if (i + 1) % FULL_EVERY})
    dense = fields.integer("dense_mlp_idx", 0, at_least=0)
    fields.estimated.append("states of the short convolutions: not counted, a few MiB per sequence")
    keys = [(i in local, i >= dense) for i in range(num_layers)]
    made = {key: _layer(fields, *key) for key in sorted(set(keys))}
    return [made[key] for key in keys]


def inkling_drafts(fields: Fields) -> int:
    """Parameters of the draft layers: a dense layer, a projection of two vectors and two norms each."""
    section = Fields(fields.section("mtp_config") or {})
    count = section.integer("num_nextn_predict_layers", 0, at_least=0, at_most=64)
    local = _local(section, "local_layer_ids", count, set())
    hidden = fields.integer("hidden_size")
    layers = (_layer(fields, i in local, False) for i in range(count))
    return sum(layer.num_parameters + 2 * hidden * hidden + 2 * hidden for layer in layers)


def inkling_towers(fields: Fields) -> int:
    """Parameters of the image encoder and of the sound embedding, where the config has them."""
    hidden, total = fields.integer("hidden_size"), 0
    if isinstance(fields.root.get("vision_config"), dict):
        stages = sum(inputs * outputs + outputs for inputs, outputs in IMAGE_CHANNELS)
        total += stages + IMAGE_FRAMES * IMAGE_CHANNELS[-1][1] * hidden + hidden
    if isinstance(fields.root.get("audio_config"), dict):
        sound = Fields(fields.root["audio_config"])
        total += (sound.integer("n_mel_bins", 80) * sound.integer("mel_vocab_size", 16) + 1) * hidden
    return total


def _local(fields: Fields, name: str, count: int, default: set[int]) -> set[int]:
    given = fields.integers(name)
    if given is None:
        return default
    if any(index >= count for index in given):
        raise InvalidInput(name, given, f"layers from 0 to {count - 1}")
    return set(given)


def _heads(fields: Fields, slides: bool) -> Heads:
    heads = read_heads(fields)
    if not slides:
        return heads
    count = fields.integer("swa_num_attention_heads", heads.heads, at_most=100_000)
    kv_heads = fields.integer("swa_num_key_value_heads", heads.kv_heads, at_most=100_000)
    if count % kv_heads:
        raise InvalidInput("swa_num_key_value_heads", kv_heads, f"a divisor of swa_num_attention_heads ({count})")
    return Heads(
        heads=count, kv_heads=kv_heads, head_dim=fields.integer("swa_head_dim", heads.head_dim, at_most=65_536)
    )


def _layer(fields: Fields, slides: bool, moe: bool) -> Layer:
    hidden, heads = fields.integer("hidden_size"), _heads(fields, slides)
    window = fields.integer("sliding_window_size", 512)
    reach, width = fields.integer("d_rel", 16), heads.kv_heads * heads.head_dim
    mixer = full_mixer(heads, MixerKind.SLIDING, window) if slides else full_mixer(heads)
    linears = gqa_linears(hidden, heads.heads, heads.kv_heads, heads.head_dim)
    linears += (
        Linear(name="r_proj", group=TensorGroup.ATTENTION, in_features=hidden, out_features=heads.heads * reach,
               shard=Shard.COLUMN, quantizable=False),
    )  # fmt: skip
    taps = fields.integer("sconv_kernel_size", TAPS, at_most=1000)
    small = 2 * heads.head_dim + reach * (window if slides else fields.integer("rel_extent", 1024))
    small += taps * (2 * width + 2 * hidden) + 2 * hidden + 1
    if not moe:
        linears += mlp_linears(hidden, fields.integer("dense_intermediate_size", fields.integer("intermediate_size")))
        return Layer(mixer=mixer, linears=linears, norm_parameters=small)
    experts, feed = _experts(fields)
    return Layer(mixer=mixer, linears=linears + feed, experts=experts, norm_parameters=small + experts.num_experts)


def _experts(fields: Fields) -> tuple[Experts, tuple[Linear, ...]]:
    """Router over routed and shared experts, and both."""
    hidden, count = fields.integer("hidden_size"), fields.integer("num_experts", at_most=100_000)
    width = fields.integer("intermediate_size")
    number = fields.integer("n_shared_experts", 0, at_least=0, at_most=1000)
    linears: tuple[Linear, ...] = (router_linear(hidden, count + number),)
    linears += mlp_linears(hidden, width, group=TensorGroup.EXPERT, count=count)
    if number:
        linears += mlp_linears(hidden, number * width, group=TensorGroup.SHARED_EXPERT)
    experts = Experts(
        num_experts=count,
        experts_per_token=fields.integer("num_experts_per_tok", at_most=100_000),
        intermediate_size=width,
        shared_intermediate_size=number * width,
    )
    return experts, linears
