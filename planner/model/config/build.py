"""Build a ModelShape: layers, embeddings, vision tower, draft layers, dtype of the checkpoint."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from planner.errors import InvalidInput, require_int
from planner.model.config.checkpoint import read_kv_cache, read_quantization
from planner.model.config.decoder import decoder_layers
from planner.model.config.eagle import EAGLE3, eagle3_fusion, eagle3_layers
from planner.model.config.encoder_decoder import ENCODER_DECODER, encoder_decoder_stacks
from planner.model.config.families import (
    EXPERTS_OF_INTERMEDIATE_SIZE,
    FAMILIES,
    FAMILY_OF_CLASS,
    LLAMA,
    OWN_BUILDER,
    SAME_AS,
    UNKNOWN_MIXER_FIELDS,
    WITHOUT_KV_HEADS,
    Family,
)
from planner.model.config.fields import MAX_LAYERS, Fields, parse_config
from planner.model.config.hybrids import hybrid_layers, mimo_v2_draft_layer
from planner.model.config.inkling import inkling_drafts
from planner.model.config.mixtures import ngram_embedding, step3p5_draft_layer
from planner.model.config.qwen4 import checkpoint_widths, ngram_table, qwen4_draft_extras, stream_mixer
from planner.model.config.vision import QWEN3_5, QWEN_VL, image_tokens, vision_parameters, vision_tower
from planner.model.shape import Layer, ModelShape
from planner.tables import read_table

PER_LAYER_FIELDS = ("moe_intermediate_size", "moe_topk", "num_shared_expert", "num_experts", "intermediate_size")
DENSE_DRAFTS = ("dots3_note", "ernie4_5_moe", "exaone_moe")  # their draft layer is dense, like their first layer
MULTIMODAL_POSITIONS = 4  # vLLM mrope.py keeps four times the positions for images and videos
ONE_DRAFT = ("qwen3_next", "longcat_flash", "qwen4_exp_text")  # one draft layer, which the config does not mention
WITHOUT_DRAFTS = ("minimax_m3",)  # the config mentions draft layers, the checkpoint has none
DTYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}


def model_from_config(config: dict[str, Any] | str, name: str = "") -> ModelShape:
    """Describe the model of a Hugging Face config.json.

    Parameters
    ----------
    config : dict or str
        The parsed file, or its text.
    name : str
        What to call the model; "" = the config's own name or its model_type.

    Returns
    -------
    ModelShape
        Layers, matrices and parameters; `estimated_fields` lists what was assumed.

    Raises
    ------
    InvalidInput
        When a required field is missing, contradicts another or cannot be read, and when an unknown architecture has a
        mixer that a Llama-like estimate would get wrong.
    """
    config = parse_config(config)
    fields = Fields(_flat(config))
    model_type = _model_type(fields)
    if model_type in ENCODER_DECODER:
        return _encoder_decoder_shape(fields, model_type, name)
    _refuse_encoder_decoder(fields, model_type)
    family = _family(fields, model_type)
    _note_assumptions(fields, model_type)
    layers = _layers(fields, family, model_type)
    kinds, order = _distinct(layers)
    limit = _longest_context(fields)
    is_head = model_type == EAGLE3
    scheme, kept = read_quantization(fields)
    own_name = fields.root.get("_name_or_path")
    vision = vision_parameters(fields)
    tables, ngrams, beside = _tables(fields, family, model_type, limit, len(layers))
    drafts = _mtp_parameters(fields, family, model_type, layers)
    return ModelShape(
        name=name or (own_name if isinstance(own_name, str) and own_name else model_type or "config"),
        model_type=model_type or "unknown",
        hidden_size=fields.integer("hidden_size"),
        vocab_size=fields.integer("vocab_size"),
        max_position_embeddings=limit,
        layer_kinds=kinds,
        layer_order=order,
        tie_word_embeddings=fields.flag("tie_word_embeddings", family.tied),
        extra_embedding_parameters=tables + (eagle3_fusion(fields) if is_head else 0),
        draft_vocab_size=fields.integer("draft_vocab_size", fields.integer("vocab_size")) if is_head else 0,
        ngram_parameters=ngrams,
        final_norm_parameters=_final_norm(fields, family, model_type) + beside,
        lm_head_bias=family.lm_head_bias,
        vision_parameters=vision,
        vision_tower=vision_tower(fields),
        encoder_splits=_encoder_splits().get(str(fields.root.get("model_type")).lower(), ()) if vision else (),
        image_tokens=image_tokens(fields) if vision else 0,
        mtp_parameters=drafts,
        mtp_shared_parameters=0 if not drafts or family.draft_uses_copies else _draft_copies(fields, family),
        draft_keeps_window=family.draft_keeps_window,
        window_pool_engines=family.window_pool_engines,
        second_runner_since=_second_runner().get(str(fields.root.get("model_type")).lower()),
        rope_cache_elements=_rope_cache_elements(fields, family, limit),
        native_dtype=_native_dtype(fields),
        quantization=scheme,
        unquantized_groups=kept,
        group_bits=checkpoint_widths(fields, scheme) if model_type == "qwen4_exp_text" else (),
        kv_cache_quantization=read_kv_cache(fields),
        estimated_fields=tuple(dict.fromkeys(fields.estimated)),
        source="config.json",
    )


def _layers(fields: Fields, family: Family, model_type: str) -> list[Layer]:
    """All layers from first to last."""
    own = model_type in OWN_BUILDER
    layers = hybrid_layers(fields, model_type) if own else decoder_layers(fields, family)
    return eagle3_layers(layers) if model_type == EAGLE3 else layers


def _longest_context(fields: Fields) -> int:
    """Positions of the model, stretched where the config scales them. [tokens]"""
    limit = fields.integer("max_position_embeddings", 4096, at_most=10**9, note=True)
    return max(limit, min(10**9, int(_stretched_positions(fields, limit))))


@lru_cache(maxsize=1)
def _second_runner() -> dict[str, tuple[int, int]]:
    """VLLM release from which its second model runner takes a model, by model_type."""
    rows = read_table("catalog/second_runner.csv")
    return {row["model_type"]: (int(row["major"]), int(row["minor"])) for row in rows}


@lru_cache(maxsize=1)
def _encoder_splits() -> dict[str, tuple[tuple[str, str], ...]]:
    """What the ranks of an engine may divide instead of the weights of a vision tower, by model_type."""
    splits: dict[str, tuple[tuple[str, str], ...]] = {}
    for row in read_table("catalog/encoder_splits.csv"):
        splits[row["model_type"]] = (*splits.get(row["model_type"], ()), (row["engine"], row["split"]))
    return splits


def model_from_shape(
    *,
    num_layers: int,
    hidden_size: int,
    num_attention_heads: int,
    num_kv_heads: int,
    head_dim: int,
    intermediate_size: int,
    vocab_size: int,
    max_position_embeddings: int = 1_000_000,
    num_experts: int = 0,
    experts_per_token: int = 0,
    moe_intermediate_size: int = 0,
    name: str = "custom",
) -> ModelShape:
    """Describe a Llama-like model by its dimensions.

    Parameters
    ----------
    num_layers, hidden_size, num_attention_heads, num_kv_heads, head_dim : int
        As in a config.json.
    intermediate_size, vocab_size, max_position_embeddings : int
        As in a config.json. [tokens for the last]
    num_experts, experts_per_token, moe_intermediate_size : int
        0 experts = dense; otherwise every layer routes to experts of that width.
    name : str
        What to call it.

    Returns
    -------
    ModelShape
        RMSNorm, gated MLP, no biases, an output head of its own.

    Raises
    ------
    InvalidInput
        When a dimension is out of bounds or contradicts another.
    """
    require_int("num_layers", num_layers, at_most=MAX_LAYERS)
    if num_attention_heads and num_kv_heads and num_attention_heads % num_kv_heads:
        raise InvalidInput("num_kv_heads", num_kv_heads, f"a divisor of num_attention_heads ({num_attention_heads})")
    config: dict[str, Any] = {
        "model_type": "mixtral" if num_experts else "llama",
        "num_hidden_layers": num_layers,
        "hidden_size": hidden_size,
        "num_attention_heads": num_attention_heads,
        "num_key_value_heads": num_kv_heads,
        "head_dim": head_dim,
        "intermediate_size": intermediate_size,
        "vocab_size": vocab_size,
        "max_position_embeddings": max_position_embeddings,
        "tie_word_embeddings": False,
    }
    if num_experts:
        config |= {"num_experts": num_experts, "num_experts_per_tok": experts_per_token or 1}
        config |= {"moe_intermediate_size": moe_intermediate_size or intermediate_size}
    return model_from_config(config, name)


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Move nested sections of older configs (DBRX, Qwen3-Omni) to where other configs have them."""
    flat = dict(config)
    if isinstance(config.get("text_config"), dict):
        flat["text_config"] = dict(config["text_config"])
    thinker = config.get("thinker_config")
    if isinstance(thinker, dict):
        flat = {**flat, **thinker, "model_type": config.get("model_type")}
    attention, ffn = config.get("attn_config"), config.get("ffn_config")
    if isinstance(attention, dict):
        flat.setdefault("num_key_value_heads", attention.get("kv_n_heads"))
    if isinstance(ffn, dict):
        flat.setdefault("intermediate_size", ffn.get("ffn_hidden_size"))
        flat.setdefault("num_experts", ffn.get("moe_num_experts"))
        flat.setdefault("num_experts_per_tok", ffn.get("moe_top_k"))
    for section in (flat, flat.get("text_config")):
        if isinstance(section, dict):
            _join_equal_figures(section)
    if config.get("multi_query") is True and config.get("new_decoder_architecture") is not True:
        flat["num_key_value_heads"] = 1
    return flat


def _join_equal_figures(section: dict[str, Any]) -> None:
    """Replace lists with one figure per layer (Hunyuan, Gemma 3n) by the figure, where all layers have the same."""
    for name in PER_LAYER_FIELDS:
        value = section.get(name)
        if isinstance(value, list) and value and all(x == value[0] for x in value):
            section[name] = value[0]


def _model_type(fields: Fields) -> str:
    classes = fields.raw("architectures")
    if isinstance(classes, list) and classes and isinstance(classes[0], str) and classes[0] in FAMILY_OF_CLASS:
        return FAMILY_OF_CLASS[classes[0]]
    inner = fields.text.get("model_type")
    given = inner if inner is not None else fields.root.get("model_type")
    if given is None:
        fields.estimated.append("model_type: not given, taken as Llama-like")
        return ""
    if not isinstance(given, str) or len(given) > 100:
        raise InvalidInput("model_type", given, "text, such as llama")
    return SAME_AS.get(given.lower(), given.lower())


def _family(fields: Fields, model_type: str) -> Family:
    if model_type in FAMILIES:
        return FAMILIES[model_type]
    if model_type in OWN_BUILDER:
        return LLAMA
    strange = [name for name in UNKNOWN_MIXER_FIELDS if fields.has(name)]
    if strange:
        known = ", ".join(sorted(FAMILIES))
        raise InvalidInput(
            "model_type", model_type, f"a known architecture, because {strange[0]} is set; known are {known}"
        )
    if model_type:
        fields.estimated.append(f"model_type: {model_type} is not known, taken as Llama-like")
    return LLAMA


def _note_assumptions(fields: Fields, model_type: str) -> None:
    """Note what the config leaves out although models of its family state it, with what is taken instead."""
    latent = fields.has("kv_lora_rank") or fields.has("multi_query")
    if not latent and not fields.has("num_key_value_heads") and model_type not in WITHOUT_KV_HEADS:
        fields.estimated.append("num_key_value_heads: not given, as many as attention heads")
    experts = fields.has("num_experts")
    if experts and not fields.has("moe_intermediate_size") and model_type not in EXPERTS_OF_INTERMEDIATE_SIZE:
        fields.estimated.append("moe_intermediate_size: not given, experts as wide as intermediate_size")
    routed = [name for name in ("num_experts_per_tok", "moe_intermediate_size") if fields.has(name)]
    if routed and not experts and model_type != "nemotron_h":
        fields.estimated.append(f"num_experts: not given although {routed[0]} is, counted as a dense model")


def _refuse_encoder_decoder(fields: Fields, model_type: str) -> None:
    if fields.raw("is_encoder_decoder") is True:
        known = ", ".join(ENCODER_DECODER)
        raise InvalidInput("model_type", model_type, f"a decoder-only model, or one of {known}")


def _encoder_decoder_shape(fields: Fields, model_type: str, name: str) -> ModelShape:
    stacks = encoder_decoder_stacks(fields, model_type)
    kinds, order = _distinct(stacks.layers)
    scheme, kept = read_quantization(fields)
    given = fields.root.get("_name_or_path")
    return ModelShape(
        name=name or (given if isinstance(given, str) and given else model_type),
        model_type=model_type,
        hidden_size=fields.integer("d_model", fields.integer("hidden_size", 0, at_least=0) or None),
        vocab_size=fields.integer("vocab_size"),
        max_position_embeddings=fields.integer(
            "max_target_positions",
            fields.integer("max_position_embeddings", 512, note=not fields.has("max_target_positions")),
        ),
        layer_kinds=kinds,
        layer_order=order,
        tie_word_embeddings=fields.flag("tie_word_embeddings", True),
        extra_embedding_parameters=stacks.extra_embedding_parameters,
        final_norm_parameters=stacks.final_norm_parameters,
        vision_parameters=stacks.encoder_parameters,
        native_dtype=_native_dtype(fields),
        quantization=scheme,
        unquantized_groups=kept,
        estimated_fields=tuple(dict.fromkeys(fields.estimated)),
        source="config.json",
    )


def _rope_cache_elements(fields: Fields, family: Family, limit: int) -> int:
    """Elements of the rotary tables that engines precompute: positions × rotary width.

    Linear scaling multiplies the positions by its factor, YaRN the original positions; Qwen's multimodal positions have
    four times as many. DeepSeek-V4 has a table in fp32 for its compressed layers and one for the others (vLLM
    models/deepseek_v4/common/rope.py, `DeepseekV4ScalingRotaryEmbedding`).
    """
    if family.position_offset is not None or not fields.has("num_attention_heads"):
        return 0
    if fields.raw("mla_use_nope") is True:  # no layer has rotary positions
        return 0
    width = fields.integer("qk_rope_head_dim", 0, at_least=0)
    if not width:
        heads, hidden = fields.integer("num_attention_heads", at_most=100_000), fields.integer("hidden_size")
        width = fields.integer("head_dim", max(1, hidden // heads), at_most=65_536)
        partial = fields.raw("partial_rotary_factor")
        if partial is None and fields.outer_type.startswith(QWEN3_5):
            partial = 0.25
        if isinstance(partial, (int, float)) and not isinstance(partial, bool) and 0 < partial <= 1:
            width = int(width * partial)
    kind, factor = _rope_scaling(fields)
    positions = limit * factor if kind == "linear" and _counts_scaled(fields) else limit
    if kind == "yarn":
        positions = _stretched_positions(fields, limit) or limit
    if fields.outer_type.startswith((*QWEN3_5, *QWEN_VL)):
        positions *= MULTIMODAL_POSITIONS
    local = limit if family.window_pattern > 2 else 0  # windowed layers of Gemma 3 have a table of their own
    if fields.has("compress_ratios"):
        positions *= 2 * len({ratio > 1 for ratio in fields.integers("compress_ratios") or []})
    return int(min(positions, 10**9) + local) * width


def _rope_section(fields: Fields) -> dict[str, Any]:
    section = fields.raw("rope_scaling") or fields.raw("rope_parameters")
    return section if isinstance(section, dict) else {}


def _rope_scaling(fields: Fields) -> tuple[str, float]:
    """Kind and factor of RoPE scaling; "" and 1 where the config states none that is usable."""
    scaling = _rope_section(fields)
    kind, factor = scaling.get("rope_type", scaling.get("type")), scaling.get("factor")
    if isinstance(kind, str) and isinstance(factor, (int, float)) and not isinstance(factor, bool):
        return (kind, float(factor)) if 1 <= factor <= 1000 else ("", 1.0)
    return "", 1.0


def _counts_scaled(fields: Fields) -> bool:
    """Whether max_position_embeddings already includes RoPE scaling: Gemma 3."""
    return fields.text_value("model_type").startswith("gemma3")


def _stretched_positions(fields: Fields, limit: int) -> float:
    """Longest context with RoPE scaling, as vLLM derives it (_get_and_verify_max_len); 0 without scaling. [tokens]

    Linear and dynamic scaling multiply the positions, YaRN the original ones.
    """
    kind, factor = _rope_scaling(fields)
    if kind in ("linear", "dynamic"):
        return 0.0 if _counts_scaled(fields) else limit * factor
    original = _rope_section(fields).get("original_max_position_embeddings") if kind == "yarn" else None
    return original * factor if isinstance(original, int) and 0 < original <= 10**8 else 0.0


def _tables(fields: Fields, family: Family, model_type: str, limit: int, num_layers: int) -> tuple[int, int, int]:
    """Parameters of tables beside the embedding, of n-gram tables, and of other matrices outside the layers."""
    tables, beside = _own_embeddings(fields, family, num_layers)
    ngrams, projections = ngram_embedding(fields) if model_type == "longcat_flash" else (0, 0)
    if model_type == "qwen4_exp_text":
        ngrams = ngram_table(fields)
    if model_type == "mllama":
        tables = 8 * fields.integer("hidden_size")  # rows for the image token
    if family.position_offset is not None:
        tables = (limit + family.position_offset) * fields.integer("hidden_size")
    return tables, ngrams, beside + projections


def _final_norm(fields: Fields, family: Family, model_type: str) -> int:
    """Parameters before the head: a norm; Qwen4 mixes its residual streams there instead."""
    if model_type == "qwen4_exp_text":
        return stream_mixer(fields)
    if model_type == "inkling_text":  # and a norm of the embedding
        return 2 * fields.integer("hidden_size")
    return fields.integer("hidden_size") * (2 if family.norm_bias else 1) * (2 if family.embedding_norm else 1)


def _own_embeddings(fields: Fields, family: Family, num_layers: int) -> tuple[int, int]:
    """Parameters of the embeddings that layers have of their own (Gemma 3n, 4), and of what comes with them.

    Kimi-K3 has a norm and a score before the head, which weigh the residuals once more.
    """
    own = fields.integer("hidden_size_per_layer_input", 0, at_least=0) if family.own_embeddings else 0
    hidden = fields.integer("hidden_size")
    beside = 2 * hidden if fields.has("attn_res_block_size") else 0
    if fields.has("canvas_length"):  # DiffusionGemma feeds the last step's guess back through an MLP and a norm
        beside += 3 * hidden * fields.integer("intermediate_size") + hidden
    if family.laurel:
        beside = 2 * (fields.integer("altup_num_inputs", 4) - 1) * hidden * hidden
    if not own:
        return 0, beside
    rows = fields.integer("vocab_size_per_layer_input", 262_144)
    return rows * num_layers * own, beside + hidden * num_layers * own + own


def _native_dtype(fields: Fields) -> str:
    given = fields.text_value("torch_dtype", "bfloat16").replace("torch.", "")
    if given not in DTYPES:
        fields.estimated.append(f"torch_dtype: {given} taken as bfloat16")
    return DTYPES.get(given, "bf16")


def _distinct(layers: list[Layer]) -> tuple[tuple[Layer, ...], tuple[int, ...]]:
    kinds: dict[Layer, int] = {}
    order = tuple(kinds.setdefault(layer, len(kinds)) for layer in layers)
    return tuple(kinds), order


def _draft_copies(fields: Fields, family: Family) -> int:
    return family.draft_copies * fields.integer("vocab_size") * fields.integer("hidden_size")


def _mtp_parameters(fields: Fields, family: Family, model_type: str, layers: list[Layer]) -> int:
    """Draft layers: a layer of the model, a projection of two vectors, norms; in some, copies of embedding and head."""
    if model_type == "inkling_text":
        return inkling_drafts(fields)
    count = fields.integer(
        "num_nextn_predict_layers", fields.integer("mtp_num_hidden_layers", 0, at_least=0), at_least=0, at_most=64
    )
    if model_type in ONE_DRAFT and not any(map(fields.has, ("num_nextn_predict_layers", "mtp_num_hidden_layers"))):
        count = 1
    if not count or not layers or model_type in WITHOUT_DRAFTS:
        return 0
    hidden = fields.integer("hidden_size")
    full = [layer for layer in layers if layer.mixer.kind.value in ("full_attention", "mla")]
    full = [layer for layer in full if layer.mixer.indexer_head_dim] or full  # a draft layer chooses for itself
    layer = full[-1] if full else layers[-1]
    if model_type in DENSE_DRAFTS:
        layer = layers[0]
    if model_type == "step3p5":
        layer = step3p5_draft_layer(fields)
    if model_type == "mimo_v2":
        layer = mimo_v2_draft_layer(fields)
    own = layer.num_parameters
    if model_type == "nemotron_h":  # its draft module is an attention block and an expert block
        own += next((x.num_parameters for x in reversed(layers) if x.experts is not None), 0)
    if model_type == "qwen4_exp_text":
        own += qwen4_draft_extras(fields)
    per_layer = own + 2 * hidden * hidden + 3 * hidden + _draft_copies(fields, family)
    return count * per_layer
