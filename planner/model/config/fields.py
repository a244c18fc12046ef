"""Typed access to an untrusted Hugging Face config.json, whatever the architecture.

A field that is missing, of the wrong type or out of bounds raises InvalidInput with its name; a default that is only
assumed is noted in `estimated`.
"""

from __future__ import annotations

import json
from typing import Any

from planner.errors import InvalidInput

MAX_TEXT_CHARACTERS = 2_000_000
MAX_COUNT = 10**9
MAX_LAYERS = 2000

#: other names of a field in older or foreign configs
ALIASES: dict[str, tuple[str, ...]] = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "hidden_size": ("n_embd", "n_embed", "d_model", "dim"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads"),
    "num_key_value_heads": ("num_kv_heads", "n_head_kv", "multi_query_group_num", "kv_n_heads", "num_attention_groups"),
    "intermediate_size": ("n_inner", "ffn_dim", "ffn_hidden_size", "d_ff"),
    "vocab_size": ("padded_vocab_size",),
    "head_dim": ("kv_channels", "attention_head_dim"),
    "first_k_dense_replace": ("num_dense_layers", "moe_layer_start_index"),
    "n_shared_experts": ("num_shared_expert", "moe_num_shared_experts"),
    "max_position_embeddings": ("n_positions", "max_seq_len", "seq_length", "max_sequence_length", "model_max_length"),
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": (
        "top_k_experts",
        "moe_top_k",
        "num_experts_per_token",
        "experts_per_token",
        "moe_topk",
        "moe_k",
    ),
    "moe_intermediate_size": ("expert_ffn_hidden_size",),
    "moe_layer_freq": ("moe_layer_frequency",),
    "torch_dtype": ("dtype",),
}


def parse_config(config: dict[str, Any] | str) -> dict[str, Any]:
    """Parse a config.json, or check what was parsed already.

    Parameters
    ----------
    config : dict or str
        The parsed file or its text.

    Returns
    -------
    dict
        The fields of the file.

    Raises
    ------
    InvalidInput
        When the text is not JSON, is too long or too deep, holds NaN, or is not an object.
    """
    if isinstance(config, str):
        if len(config) > MAX_TEXT_CHARACTERS:
            raise InvalidInput("model_config", f"{len(config):,} characters", f"at most {MAX_TEXT_CHARACTERS:,}")
        try:
            config = json.loads(config, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(
                "model_config", str(config)[:60], "the JSON text of a Hugging Face config.json"
            ) from error
    if not isinstance(config, dict):
        raise InvalidInput("model_config", type(config).__name__, "a JSON object, as in a Hugging Face config.json")
    if not all(isinstance(key, str) for key in config):
        raise InvalidInput("model_config", "keys that are not text", "a JSON object with named fields")
    return config


def _refuse_constant(text: str) -> float:
    raise InvalidInput("model_config", text, "numbers that are finite")


class Fields:
    """The fields of one model: first those of its language model, then those of the whole file."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.root = config
        inner = config.get("text_config", config.get("llm_config", config.get("language_config")))
        if inner is not None and not isinstance(inner, dict):
            raise InvalidInput("text_config", inner, "a JSON object")
        self.text: dict[str, Any] = inner if inner else config
        self.estimated: list[str] = []

    def raw(self, name: str) -> Any:
        """Return the first non-null value under the name or one of its aliases, else None."""
        for source in (self.text, self.root):
            for key in (name, *ALIASES.get(name, ())):
                if source.get(key) is not None:
                    return source[key]
        return None

    @property
    def outer_type(self) -> str:
        """The model_type of the whole file, in small letters; a multimodal file has another for its language model."""
        given = self.root.get("model_type")
        return given.lower() if isinstance(given, str) else ""

    def has(self, name: str) -> bool:
        """Whether the field is given and not null."""
        return self.raw(name) is not None

    def integer(
        self, name: str, default: int | None = None, *, at_least: int = 1, at_most: int = MAX_COUNT, note: bool = False
    ) -> int:
        """Read a whole number; with `note` a default is recorded as assumed."""
        value = self.raw(name)
        if value is None:
            if default is None:
                raise InvalidInput(name, None, "a whole number: the model cannot be sized without it")
            if note:
                self.estimated.append(f"{name} = {default:,}")
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value) if abs(value) <= at_most else value
        if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= at_most:
            shown = value if not isinstance(value, int) or abs(value) < 10**30 else "a huge number"
            raise InvalidInput(name, shown, f"a whole number from {at_least:,} to {at_most:,}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """Read a true/false field."""
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InvalidInput(name, value, "true or false")
        return value

    def text_value(self, name: str, default: str = "") -> str:
        """Read a text field."""
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, str) or len(value) > 20_000:
            raise InvalidInput(name, value, "text")
        return value

    def names(self, name: str) -> list[str] | None:
        """Read a list of text, None when it is not given."""
        value = self.raw(name)
        if value is None:
            return None
        ok = isinstance(value, list) and len(value) <= MAX_LAYERS and all(isinstance(x, str) for x in value)
        if not ok:
            raise InvalidInput(name, value, f"a list of at most {MAX_LAYERS:,} names")
        return list(value)

    def integers(self, name: str) -> list[int] | None:
        """Read a list of whole numbers, None when it is not given."""
        value = self.raw(name)
        if value is None:
            return None
        ok = isinstance(value, list) and len(value) <= MAX_LAYERS
        if not ok or not all(isinstance(x, int) and not isinstance(x, bool) and 0 <= x <= MAX_COUNT for x in value):
            raise InvalidInput(name, value, f"a list of at most {MAX_LAYERS:,} whole numbers")
        return list(value)

    def section(self, name: str) -> dict[str, Any] | None:
        """Read a nested object, None when it is not given."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise InvalidInput(name, value, "a JSON object")
        return value
