"""Published models: their shapes, totals, licences and sources, from catalog/models.json."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.catalog.names import (
    MOST_CHARACTERS,
    scheme_of,
    split_id,
    variants,
    without_edit,
    without_maker,
    without_role,
    without_scheme,
)
from planner.errors import InvalidInput
from planner.model import ESTIMATED_TOWER, ModelShape, model_from_config
from planner.tables import read_table

_FILE = Path(__file__).with_name("models.json")
HUB_SOURCE = "figures and total of the hub, as PyPI llmfit 1.1.17 embeds them (hf_models.json, MIT licence)"
FAMILY = re.compile("[a-z]{3,}")  # what a name begins with, in small letters
LEAST_LIKENESS = 0.75  # of a name of another family that is worth suggesting
SHORTEST_NAME = 5  # characters of a name that may stand for a model of any publisher
HUB_NUMBERS = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
    "num_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "sliding_window",
    "sliding_window_pattern",
)


@lru_cache(maxsize=1)
def _hub() -> dict[str, Mapping[str, str]]:
    """More models by id: the hub's most downloaded ones whose config gives the published parameter count exactly."""
    return {row["id"]: row for row in read_table("catalog/hub_models.csv")}


@lru_cache(maxsize=1)
def _heads() -> dict[str, Mapping[str, str]]:
    """EAGLE-3 heads by id: they draft for a model and are not models on their own."""
    return {row["id"]: row for row in read_table("catalog/draft_heads.csv")}


@lru_cache(maxsize=1)
def _checkpoints() -> dict[str, Mapping[str, str]]:
    """Checkpoints of catalog models by id, where their publisher keeps other tensors wide than most."""
    return {row["id"]: row for row in read_table("catalog/checkpoints.csv")}


@lru_cache(maxsize=1)
def _file() -> dict[str, Any]:
    with _FILE.open(encoding="utf-8") as stream:
        return json.load(stream)


@lru_cache(maxsize=1)
def _entries() -> dict[str, dict[str, Any]]:
    return {entry["id"]: entry for entry in _file()["models"]}


def catalog_date() -> str:
    """Day on which the list of models was last brought up to date, such as "2026-11-30"."""
    return str(_file()["date"])


def hub_ids() -> tuple[str, ...]:
    """Ids of the hub's list, which has further models by their figures alone."""
    return tuple(_hub())


def draft_head_names() -> tuple[str, ...]:
    """Hub ids of the EAGLE-3 heads that the catalog knows."""
    return tuple(_heads())


def stored_entry(name: str) -> dict[str, Any]:
    """The entry of a model as the file has it; empty where it has none."""
    return dict(_entries().get(name, {}))


def write_entries(entries: Mapping[str, Mapping[str, Any]], day: str) -> None:
    """Put entries into the file, in the place of those of the same id, else at the end.

    Parameters
    ----------
    entries : mapping
        Id to entry.
    day : str
        Date of the catalog from now on: "2026-11-30".
    """
    left = dict(entries)
    lines = []
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith('{"id": '):  # one entry a line; those that stay keep their spelling
            name = json.loads(line.rstrip(","))["id"]
            lines.append(json.dumps(left.pop(name), ensure_ascii=False) if name in left else line.rstrip(","))
    lines += [json.dumps(entry, ensure_ascii=False) for entry in left.values()]
    text = f'{{"date": "{day}", "models":[\n' + ",\n".join(lines) + "\n]}\n"
    _FILE.write_text(text, encoding="utf-8")
    for cached in (_file, _entries, _variant, get_model):
        cached.cache_clear()


def model_names() -> tuple[str, ...]:
    """Hub ids of all catalog models, in the order of the catalog."""
    return tuple(_entries())


def recalled_facts(name: str) -> tuple[str, ...]:
    """What the catalog gives of a model as recalled, without a source that could be read again.

    Parameters
    ----------
    name : str
        As `get_model` takes it; raises as that does. A checkpoint has the facts of the model that it was made of.

    Returns
    -------
    tuple of str
        Of "config", "vision_config" and "published_parameters"; empty where everything has a source.
    """
    return tuple(_entries().get(base_model_id(get_model(name).name), {}).get("recalled", ()))


def checkpoint(model: ModelShape, weight_dtype: str) -> ModelShape:
    """The model as its published checkpoint of a scheme holds it: some leave groups in 16 bits."""
    made_of = base_model_id(model.name)
    for row in _checkpoints().values():
        if row["usual"] and (row["model"], row["quantization"]) == (made_of, weight_dtype):
            return replace(model, quantization=weight_dtype, unquantized_groups=(), group_bits=_group_bits(row))
    return model


def base_model_id(name: str) -> str:
    """Id of the model that a checkpoint was made of; the name itself where the catalog has no other model for it.

    Parameters
    ----------
    name : str
        What `find_model_id` gave: "Qwen/Qwen3-32B-AWQ" is "Qwen/Qwen3-32B".
    """
    if name in _entries() or name in _checkpoints() or name in _hub():
        return name
    variant = _variant(name.strip().lower()) if name and len(name) <= MOST_CHARACTERS else None
    return variant.model if variant is not None else name


def find_model_id(name: str) -> str | None:
    """Id of a model name: an id of the catalog, a checkpoint of one of its models, or the only id that ends with it.

    Parameters
    ----------
    name : str
        "meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b-instruct", "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic",
        "unsloth/Qwen3-8B-GGUF".

    Returns
    -------
    str or None
        The catalog's id; for a checkpoint of a catalog model the name as given, which `get_model` knows too. None when
        no model fits, or more than one does.
    """
    entries = _entries()
    if name in entries or name in _heads():
        return name
    wanted = name.strip().lower()
    if not wanted or len(wanted) > MOST_CHARACTERS:
        return None
    # Tags of Ollama are in small letters: GLM-4.7-Flash is the model, glm-4.7-flash its 4-bit file.
    tag = wanted in variants() and not set(wanted) & {"/", ":"} and name.strip() != wanted
    own = _own_id(wanted) if not tag else _of_publisher(wanted)
    if own is not None:
        return own
    variant = _variant(wanted)
    if variant is not None:
        return name.strip()
    fits = [key for key in entries if key.lower().endswith(wanted)]
    return fits[0] if len(fits) == 1 else None


def _own_id(wanted: str) -> str | None:
    """Id of the catalog or of the hub's list that is spelled so in small letters, whole or without its publisher."""
    if wanted in variants():
        return None
    for ids in (_entries(), _checkpoints(), _hub()):
        for key in ids:
            if key.lower() == wanted:
                return key
    return _of_publisher(wanted)


def _of_publisher(wanted: str) -> str | None:
    """The only id of the catalog, else of the hub's list, whose last part is spelled so in small letters."""
    for ids in (_entries(), _hub()):
        fits = [key for key in ids if key.lower().split("/")[-1] == wanted]
        if fits:
            return fits[0] if len(fits) == 1 else None
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variant:
    """A published checkpoint with the shape of a catalog model."""

    model: str
    quantization: str = ""  # "" = as that model is published, none = 16 bits
    max_position_embeddings: int = 0  # 0 = as that model
    source: str = ""


@lru_cache(maxsize=4096)
def _variant(wanted: str) -> _Variant | None:
    """What a name in small letters is a checkpoint of, by variants.csv, else by its words."""
    row = variants().get(wanted)
    if row is not None:
        positions = int(row["max_position_embeddings"] or 0)
        return _Variant(
            model=row["model"],
            quantization=row["quantization"],
            max_position_embeddings=positions,
            source=row["source"],
        )
    packed = without_scheme(wanted)
    plain = without_edit(packed)
    base, inherited = _base_id(wanted, plain), ""
    if base is None:
        return None
    if base in variants():
        row = variants()[base]
        base, inherited = row["model"], row["quantization"]
    scheme = scheme_of(wanted, get_model(base).model_type) if packed != split_id(wanted)[1] else inherited
    if plain != packed and not scheme and get_model(base).quantization:
        return None  # edited in 16 bits, packed again or not: the name does not tell
    return _Variant(model=base, quantization=scheme or inherited, source="the name of the checkpoint")


def _base_id(wanted: str, plain: str) -> str | None:
    """Id of the model that a checkpoint was made of: same name, or same but for words such as instruct and chat.

    A row of variants.csv is given by its id in small letters.
    """
    publisher = split_id(wanted)[0]
    if plain != split_id(wanted)[1]:
        whole = f"{publisher}/{plain}" if publisher else plain
        if whole in variants():
            return whole
        own = _own_id(whole) if publisher else None
        if own is not None:
            return own
    if len(plain) < SHORTEST_NAME:
        return None
    for ids in (_entries(), variants(), _hub()):
        same = [key for key in ids if without_maker(key).removesuffix("-bf16") == without_maker(plain)]
        if same:
            return same[0]
    reduced = without_role(plain)
    if not any(letter.isdigit() for letter in reduced):
        return None
    if ":" in reduced and reduced in variants():
        return reduced
    for ids in (_entries(), _hub()):
        same = [key for key in ids if without_role(key).removesuffix("-bf16") == reduced]
        if same:
            return same[0]
    return None


@lru_cache(maxsize=512)
def get_model(name: str) -> ModelShape:
    """The shape of a catalog model.

    Parameters
    ----------
    name : str
        Hub id, or its unique ending in any case.

    Returns
    -------
    ModelShape
        With the published parameter count where known.

    Raises
    ------
    InvalidInput
        When the catalog has no such model; suggests the closest ones.
    """
    key = find_model_id(name) if isinstance(name, str) else None
    if key is None:
        raise InvalidInput("model", name, _suggestion(str(name)))
    if key in _heads():
        return _head_shape(key)
    if key in _checkpoints():
        return _checkpoint_shape(key)
    if key not in _entries() and key not in _hub():
        return _variant_shape(key)
    if key not in _entries():
        row = _hub()[key]
        shape = model_from_config(_hub_config(row), key)
        return replace(shape, published_parameters=int(row["parameters"]), source=HUB_SOURCE)
    entry = _entries()[key]
    shape = model_from_config(entry["config"], key)
    published = entry.get("published_parameters")
    shape = replace(
        shape,
        published_parameters=published,
        extended_context=entry.get("extended_context"),
        source=entry.get("config_source", ""),
    )
    return _with_measured_tower(shape)


def _head_shape(key: str) -> ModelShape:
    row = _heads()[key]
    config: dict[str, Any] = {name: int(text) for name, text in row.items() if name not in ("id", "source")}
    config |= {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1}
    return replace(model_from_config(config, key), source=row["source"])


def _checkpoint_shape(key: str) -> ModelShape:
    row = _checkpoints()[key]
    return replace(
        get_model(row["model"]),
        name=key,
        quantization=row["quantization"],
        unquantized_groups=(),
        group_bits=_group_bits(row),
        source=row["source"],
    )


def _variant_shape(name: str) -> ModelShape:
    """The shape of the model that a checkpoint was made of, with the scheme of the checkpoint."""
    variant = _variant(name.lower())
    assert variant is not None
    base = get_model(variant.model)
    shape = replace(base, name=name, source=variant.source)
    if variant.max_position_embeddings:
        shape = replace(shape, max_position_embeddings=variant.max_position_embeddings, extended_context=None)
    if not variant.quantization:
        return shape
    if variant.quantization == "none":
        return replace(shape, quantization="", unquantized_groups=(), group_bits=(), kv_cache_quantization="")
    if variant.quantization == base.quantization:
        return shape
    held = checkpoint(base, variant.quantization)
    widths = held.group_bits if held is not base else ()
    return replace(
        shape, quantization=variant.quantization, unquantized_groups=(), group_bits=widths, kv_cache_quantization=""
    )


def _group_bits(row: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    pairs = (pair.split(":") for pair in row["group_bits"].split("|"))
    return tuple((group, float(bits)) for group, bits in pairs)


def _with_measured_tower(shape: ModelShape) -> ModelShape:
    """The vision tower as published total − language model, where the config says too little about it."""
    others = tuple(note for note in shape.estimated_fields if not note.startswith(ESTIMATED_TOWER))
    if shape.published_parameters is None or len(others) == len(shape.estimated_fields):
        return shape
    tower = shape.published_parameters - shape.num_parameters
    return replace(shape, vision_parameters=tower, estimated_fields=others) if tower > 0 else shape


def _hub_config(row: Mapping[str, str]) -> dict[str, Any]:
    config: dict[str, Any] = {name: int(row[name]) for name in HUB_NUMBERS if row[name]}
    return config | {
        "model_type": row["model_type"],
        "tie_word_embeddings": row["tied"] == "yes",
        "attention_bias": row["attention_bias"] == "yes",
    }


def _suggestion(name: str) -> str:
    lower = {key.lower().split("/")[-1]: key for key in _entries()}
    wanted = name.strip().lower().split("/")[-1][:200]
    family = FAMILY.match(wanted)
    related = [key for key in lower if family and re.match(f"{family[0]}(?![a-z])", key)]
    near = difflib.get_close_matches(wanted, related, n=3, cutoff=0.0)
    near = near or difflib.get_close_matches(wanted, list(lower), n=3, cutoff=LEAST_LIKENESS)
    such_as = f", such as {', '.join(lower[key] for key in near)}," if near else ""
    return f"a model of the catalog{such_as} or its config.json"
