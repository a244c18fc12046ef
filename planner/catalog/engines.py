"""Engine presets with their sources (engines.csv): one scheduler with different settings."""

from __future__ import annotations

import difflib
from functools import lru_cache
from typing import Any

from planner.errors import InvalidInput
from planner.inputs import Batching, EngineSettings, KvReservation, OnMemoryShortage, StepOrder
from planner.tables import read_table

_ENUMS: dict[str, Any] = {
    "batching": Batching,
    "kv_reservation": KvReservation,
    "step_order": StepOrder,
    "on_memory_shortage": OnMemoryShortage,
}
_FLOATS = ("batch_timeout_s", "waiting_served_ratio")
_TEXT = ("name", "family", "version", "source", "source_date")


def engine_names() -> tuple[str, ...]:
    """Names of all engine presets, in the order of the catalog."""
    return tuple(_presets()[0])


def get_engine(name: str) -> EngineSettings:
    """The engine preset of a name.

    Parameters
    ----------
    name : str
        For example "vllm", "sglang", "tensorrt-llm", "tgi", "ollama", "static"; case, spaces and
        underscores do not matter.

    Returns
    -------
    EngineSettings
        The preset, with the engine version that it describes and its source.

    Raises
    ------
    InvalidInput
        When no preset has that name.
    """
    presets, aliases = _presets()
    key = str(name).strip().lower().replace("_", "-").replace(" ", "-")
    key = aliases.get(key, key)
    if key not in presets:
        near = difflib.get_close_matches(key, [*presets, *aliases], n=3)
        hint = f"one of {', '.join(presets)}" + (f"; closest: {', '.join(near)}" if near else "")
        raise InvalidInput("engine", name, hint)
    return presets[key]


@lru_cache(maxsize=1)
def _presets() -> tuple[dict[str, EngineSettings], dict[str, str]]:
    presets: dict[str, EngineSettings] = {}
    aliases: dict[str, str] = {}
    for row in read_table("catalog/engines.csv"):
        for alias in filter(None, row["aliases"].split(";")):
            aliases[alias] = row["name"]
        settings = {key: _value(key, text) for key, text in row.items() if text and key != "aliases"}
        presets[row["name"]] = EngineSettings(**settings)
    return presets, aliases


def _value(key: str, text: str) -> Any:
    if key in _TEXT:
        return text
    if key in _ENUMS:
        return _ENUMS[key](text)
    if text in ("true", "false"):
        return text == "true"
    return float(text) if key in _FLOATS else int(text)
