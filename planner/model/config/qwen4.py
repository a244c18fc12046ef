"""Qwen4 (qwen4_exp, Qwen3.8-Flash-Next): parallel residual streams, sparse attention, hashed n-gram tables.

Gated delta nets and, in every fourth layer, attention whose indexer chooses blocks of keys; experts in every layer.
Hyper-connections replace the norms of other families. Shapes as in transformers, vLLM (models/qwen4_exp) and SGLang;
the total equals the hub's (tests/catalog/test_models.py).
"""

from __future__ import annotations

from dataclasses import replace

from planner.errors import InvalidInput
from planner.model.config.blocks import replicated_linear
from planner.model.config.decoder import feed_forward, gqa_mixer, mixer_kinds, state_mixer
from planner.model.config.families import FAMILIES
from planner.model.config.fields import MAX_LAYERS, Fields
from planner.model.shape import Layer, Linear, MixerKind, TensorGroup

FAMILY = FAMILIES["qwen4_exp_text"]
SMALL_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)  # enough witnesses for every 64-bit number
MOST_TABLES = 1024
#: bits of the fp8 checkpoints' draft layer, whose experts are fp8: 2,516,582,400 of its 2,607,150,848 parameters
FP8_DRAFT_BITS = (2_516_582_400 * 8.001 + 90_568_448 * 16) / 2_607_150_848


def qwen4_exp_layers(fields: Fields) -> list[Layer]:
    """Qwen4: delta nets and indexed attention, experts in every layer, n-gram tables before a few of them."""
    num_layers = fields.integer("num_hidden_layers", at_most=MAX_LAYERS)
    kinds = [kind for kind, _ in mixer_kinds(fields, FAMILY, num_layers)]
    ngrams = _ngram_layers(fields, num_layers)
    made: dict[tuple[MixerKind, bool], Layer] = {}
    layers = []
    for index, kind in enumerate(kinds):
        key = kind, index in ngrams
        if key not in made:
            made[key] = _layer(fields, *key)
        layers.append(made[key])
    return layers


def stream_mixer(fields: Fields) -> int:
    """Parameters that mix the streams into one before the head: a norm and two low-rank matrices."""
    streams, rank = _streams(fields), fields.integer("hc_lowrank", 320)
    return streams + 2 * rank * streams


def qwen4_draft_extras(fields: Fields) -> int:
    """Parameters of a draft layer beyond a layer and the usual projections.

    A final mixer, and a norm over all streams instead of a norm of two hidden states.
    """
    return stream_mixer(fields) + _streams(fields) - 2 * fields.integer("hidden_size")


def ngram_table(fields: Fields) -> int:
    """Parameters of the hashed n-gram tables.

    Each head of each n-gram length has a table with the next prime at or above the base as its rows and an equal share
    of the width; the rows of a layer are padded together (vLLM Qwen4ExpNGramEmbedding).
    """
    number = len(_ngram_layers(fields, fields.integer("num_hidden_layers", at_most=MAX_LAYERS)))
    if not number:
        return 0
    heads = (fields.integer("ngram_size", 3, at_least=2, at_most=100) - 1) * fields.integer("heads_per_ngram", 8)
    if heads * number > MOST_TABLES:
        raise InvalidInput("heads_per_ngram", heads, f"at most {MOST_TABLES:,} tables in all")
    width = fields.integer("ple_embed_dim", fields.integer("hidden_size"))
    multiple = fields.integer("make_ngram_vocab_size_divisible_by", 128)
    sizes = _primes_from(fields.integer("ngram_vocab_size_base", 20_000_000, at_most=10**12), heads * number)
    per_layer = (sum(sizes[first : first + heads]) for first in range(0, len(sizes), heads))
    return sum(-(-rows // multiple) * multiple for rows in per_layer) * (width // heads)


def checkpoint_widths(fields: Fields, scheme: str) -> tuple[tuple[str, float], ...]:
    """Bits of the n-gram table and of the draft layer, where a quantised checkpoint states them.

    `ple_embedding_dtype` names the table's type; without it, an NVFP4 checkpoint is assumed to have an fp8 table.
    `quantized_layers` (ModelOpt's mixed precision) names the draft layer's experts.
    """
    if not scheme:
        return ()
    widths: tuple[tuple[str, float], ...] = ()
    dtype = fields.text_value("ple_embedding_dtype")
    if dtype:
        widths += ((TensorGroup.NGRAM.value, 8.0 if "float8" in dtype else 16.0),)
    elif scheme == "nvfp4" and fields.integers("ple_layer_ids"):
        fields.estimated.append("ple_embedding_dtype: not given, n-gram table taken as fp8")
    layers = (fields.section("quantization_config") or {}).get("quantized_layers")
    chosen = layers.get("mtp.layers.0.mlp.experts") if isinstance(layers, dict) else None
    if isinstance(chosen, dict) and str(chosen.get("quant_algo", "")).upper().startswith("FP8"):
        widths += ((TensorGroup.MTP.value, FP8_DRAFT_BITS),)
    return widths


def _streams(fields: Fields) -> int:
    """Width of all residual streams together."""
    return fields.integer("hc_count", 4, at_most=1000) * fields.integer("hidden_size")


def _ngram_layers(fields: Fields, num_layers: int) -> set[int]:
    """Layers with an n-gram table, counted from 0; the config counts from 1."""
    given = set(fields.integers("ple_layer_ids") or ())
    if any(not 1 <= layer <= num_layers for layer in given):
        raise InvalidInput("ple_layer_ids", sorted(given), f"layers from 1 to {num_layers}")
    return {layer - 1 for layer in given}


def _layer(fields: Fields, kind: MixerKind, ngrams: bool) -> Layer:
    experts, feed, small = feed_forward(fields, FAMILY, True)
    if kind is MixerKind.STATE:
        mixer, linears, own = state_mixer(fields, FAMILY)
    else:
        mixer, linears, own = gqa_mixer(fields, FAMILY, kind, 0, False)
        if fields.has("indexer_n_heads"):
            heads, width = fields.integer("indexer_n_heads", at_most=100_000), fields.integer("indexer_head_dim", 128)
            mixer = replace(
                mixer,
                indexer_head_dim=width,
                indexer_num_heads=heads,
                indexer_top_k=fields.integer("indexer_budget", 2048),
                indexer_compression=fields.integer("indexer_compress_ratio", 4),
            )
            rows = (heads + fields.integer("indexer_kv_heads", 1)) * width
            linears += (_small_linear("index_qk_proj", TensorGroup.INDEXER, fields.integer("hidden_size"), rows),)
            own += 2 * width
    if ngrams:
        taps = fields.integer("ngram_size", 3) * (fields.integer("ple_conv_kernel_size", 4) - 1)
        mixer = replace(mixer, side_channels=_streams(fields), side_taps=taps)
        beside, norms = _ngram_mixing(fields)
        linears, own = linears + beside, own + norms
    connections, norms = _hyper_connections(fields)
    return Layer(
        mixer=mixer, linears=linears + feed + connections, experts=experts, norm_parameters=own + small + norms
    )


def _small_linear(name: str, group: TensorGroup, inputs: int, outputs: int) -> Linear:
    """Return a matrix that is on every rank and that no published checkpoint quantises."""
    return replicated_linear(name, group, inputs, outputs, quantizable=False)


def _hyper_connections(fields: Fields) -> tuple[tuple[Linear, ...], int]:
    """Matrices and norms around both halves of a layer: streams to one input, output to each stream."""
    streams, rank = _streams(fields), fields.integer("hc_lowrank", 320)
    count, group = fields.integer("hc_count", 4), TensorGroup.HYPER_CONNECTION
    linears: tuple[Linear, ...] = ()
    for half in ("attn", "mlp"):
        linears += (
            _small_linear(f"{half}_streams_down", group, streams, rank + count),
            _small_linear(f"{half}_streams_up", group, rank, streams),
        )
    return linears, 2 * streams


def _ngram_mixing(fields: Fields) -> tuple[tuple[Linear, ...], int]:
    """Projections of the looked-up rows to key and value, three norms, a dilated convolution over all streams."""
    hidden, streams = fields.integer("hidden_size"), _streams(fields)
    width = fields.integer("ple_embed_dim", hidden)
    linears = (
        _small_linear("ngram_key_proj", TensorGroup.MLP, width, streams),
        _small_linear("ngram_value_proj", TensorGroup.MLP, width, hidden),
    )
    return linears, streams * (3 + fields.integer("ple_conv_kernel_size", 4))


def _primes_from(start: int, count: int) -> list[int]:
    """Return the first primes at or above a number."""
    found: list[int] = []
    candidate = max(2, start)
    while len(found) < count:
        if _is_prime(candidate):
            found.append(candidate)
        candidate += 1
    return found


def _is_prime(number: int) -> bool:
    """Miller and Rabin's test, exact below 2 to the 64th."""
    if number < 2 or any(number % prime == 0 for prime in SMALL_PRIMES):
        return number in SMALL_PRIMES
    odd, halvings = number - 1, 0
    while odd % 2 == 0:
        odd, halvings = odd // 2, halvings + 1
    for witness in SMALL_PRIMES:
        power = pow(witness, odd, number)
        if power in (1, number - 1):
            continue
        if not any((power := power * power % number) == number - 1 for _ in range(halvings - 1)):
            return False
    return True
