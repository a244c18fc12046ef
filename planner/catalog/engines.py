"""Engine presets with their sources (engines.csv): one scheduler with different settings."""

from __future__ import annotations

import difflib
from dataclasses import replace
from functools import lru_cache
from typing import Any

from planner.errors import InvalidInput
from planner.inputs import Batching, EngineSettings, KvReservation, OnMemoryShortage, StepOrder, first_of, release_of
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


def release_names(family: str) -> tuple[str, ...]:
    """Newest patch of each minor release of an engine that the catalog lists, oldest first; () where it lists none."""
    versions = [row["version"] for row in read_table("catalog/engine_releases.csv") if row["engine"] == family]
    newest = {release_of(version)[:2]: version for version in sorted(versions, key=release_of)}
    return tuple(newest.values())


def newest_version(family: str) -> str:
    """Newest release of an engine that the catalog lists, "" where it lists none."""
    versions = [row["version"] for row in read_table("catalog/engine_releases.csv") if row["engine"] == family]
    return max(versions, key=release_of, default="")


def version_in_full(family: str, version: str) -> str:
    """A release in full: the newest patch of a line that the catalog lists, else the version as given.

    Parameters
    ----------
    family : str
        vllm, sglang or trtllm; others have no list, and their versions stay as they are.
    version : str
        "0.19" is 0.19.1; "" is the newest.
    """
    if not version:
        return newest_version(family)
    rows = [row["version"] for row in read_table("catalog/engine_releases.csv") if row["engine"] == family]
    line = [known for known in rows if known.startswith(f"{version}.")]
    return max(line, key=release_of) if version not in rows and line else version


def version_at(family: str, day: str) -> str:
    """Release of an engine that was current on a day.

    Parameters
    ----------
    family : str
        vllm, sglang or trtllm.
    day : str
        "2026-03-28", or its beginning: the month's or year's last day.

    Returns
    -------
    str
        "" where the engine had no release yet, or the catalog lists none.
    """
    rows = [row for row in read_table("catalog/engine_releases.csv") if row["engine"] == family]
    known = [row["version"] for row in rows if row["date"] <= day + "-99"]
    return max(known, key=release_of, default="")


def get_engine(name: str, version: str = "") -> EngineSettings:
    """The engine preset of a name.

    Parameters
    ----------
    name : str
        For example "vllm", "sglang", "tensorrt-llm", "tgi", "ollama", "static"; case, spaces and
        underscores do not matter.
    version : str, optional
        Release whose defaults hold (engine_changes.csv); "" = that of the preset, else the newest.

    Returns
    -------
    EngineSettings
        The preset with its version and source.

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
    preset = presets[key]
    return as_of(replace(preset, version=version)) if version else preset


def as_of(engine: EngineSettings) -> EngineSettings:
    """The engine with the defaults that its release and core had where the newest has others."""
    changes = {
        row["field"]: _value(row["field"], row["value"])
        for row in read_table("catalog/engine_changes.csv")
        if row["engine"] == engine.family and _holds(row["holds"], engine)
    }
    return replace(engine, **changes)


def _holds(condition: str, engine: EngineSettings) -> bool:
    if condition == "V0":
        return engine.is_v0
    return release_of(engine.version) < first_of(condition.removeprefix("<"))


@lru_cache(maxsize=1)
def _presets() -> tuple[dict[str, EngineSettings], dict[str, str]]:
    presets: dict[str, EngineSettings] = {}
    aliases: dict[str, str] = {}
    for row in read_table("catalog/engines.csv"):
        for alias in filter(None, row["aliases"].split(";")):
            aliases[alias] = row["name"]
        settings = {key: _value(key, text) for key, text in row.items() if text and key != "aliases"}
        settings.setdefault("version", newest_version(settings["family"]))
        presets[row["name"]] = as_of(EngineSettings(**settings))
    return presets, aliases


def _value(key: str, text: str) -> Any:
    if key in _TEXT:
        return text
    if key in _ENUMS:
        return _ENUMS[key](text)
    if text in ("true", "false"):
        return text == "true"
    return float(text) if key in _FLOATS else int(text)
