"""Flags that engines and load generators accept, by release (engine_flags.csv)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from planner.inputs import first_of, release_of
from planner.tables import read_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag of a command: all its names, what it takes, and the releases that have it ("" = no bound known)."""

    names: tuple[str, ...]
    kind: str  # int, float, str, bool, choice, dict
    choices: tuple[str, ...]
    default: str
    since: str
    until: str
    meaning: str
    source: str


def flags_of(command: str, version: str = "") -> Mapping[str, Flag]:
    """Flags of a command in a release, by each of their names.

    Parameters
    ----------
    command : str
        "vllm serve", "vllm bench serve", "sglang.launch_server", "trtllm-serve", "trtllm-serve YAML", "llama-server",
        "ollama serve" (environment variables), "text-generation-launcher" or "guidellm run".
    version : str, optional
        Release of the engine; "" = the newest.

    Returns
    -------
    mapping of str to Flag
        Empty for a command that the catalog does not have.
    """
    return _flags(command, version)


@lru_cache(maxsize=64)
def _flags(command: str, version: str) -> dict[str, Flag]:
    release = release_of(version)
    found: dict[str, Flag] = {}
    for flag in _all_flags().get(command, ()):
        if release < first_of(flag.since) or (flag.until and release >= first_of(flag.until)):
            continue
        found |= dict.fromkeys(flag.names, flag)
    return found


@lru_cache(maxsize=1)
def _all_flags() -> dict[str, list[Flag]]:
    found: dict[str, list[Flag]] = {}
    for row in read_table("catalog/engine_flags.csv"):
        found.setdefault(row["command"], []).append(
            Flag(
                names=tuple(row["flag"].split()),
                kind=row["type"],
                choices=tuple(filter(None, row["choices"].split("|"))),
                default=row["default"],
                since=row["since"],
                until=row["until"],
                meaning=row["meaning"],
                source=row["source"],
            )
        )
    return found
