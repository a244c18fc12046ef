"""A pasted, uploaded or fetched config.json, checked and cut to the keys that matter. No streamlit."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from planner.errors import InvalidInput
from planner.model import model_from_config
from planner.scenario import MAX_CONFIG_TEXT

MAX_BYTES = 5 * 2**20
LONG_LIST, LARGE = 32, 1000  # entries of a list; characters of a value
# Work is counted in characters read: so much for each of the text, so much for a layer or for a check of its own.
WORK_PER_CHARACTER, COST_PER_LAYER, COST_PER_CHECK, LEAST_WORK, SHORT_CHECKS = 4, 100, 2000, 2_000_000, 40


def pruned(text: str) -> str:
    """A config.json as minified JSON, cut to the keys that change the model.

    Raises
    ------
    InvalidInput
        When the text is too large, is not a JSON object or does not describe a model.
    """
    if len(text) > MAX_BYTES:
        raise InvalidInput(
            "model_config", f"{len(text) / 2**20:.1f} MB of text", "at most 5 MB; a config.json is a few kB"
        )
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("model_config", _glimpse(text), "JSON, as in a Hugging Face config.json") from None
    if not isinstance(config, dict):
        raise InvalidInput("model_config", _glimpse(text), "a JSON object, as in a Hugging Face config.json")
    try:
        short = json.dumps(_Cutter(config, len(text)).cut(), separators=(",", ":"))
    except RecursionError:
        raise InvalidInput("model_config", _glimpse(text), "JSON that is not nested hundreds of levels deep") from None
    if len(short) > MAX_CONFIG_TEXT:
        raise InvalidInput(
            "model_config",
            f"{len(short):,} characters that matter",
            f"at most {MAX_CONFIG_TEXT:,}, since the link carries them",
        )
    return short


class _Cutter:
    """Cuts out of a config whatever leaves its model as it is, with work that grows as its length does.

    Whole groups of keys, or of entries of a list of names, are tried at once and halved only where something
    in them matters; what takes the most text goes first. When the work is used up, the rest is kept.
    """

    def __init__(self, config: dict[str, Any], size: int) -> None:
        self.config, self.shape, self.size = config, model_from_config(config), size
        # A model is read in time that grows with its text and with its layers.
        self.layers_cost = COST_PER_LAYER * len(self.shape.layer_order)
        self.work_left = WORK_PER_CHARACTER * size + LEAST_WORK + SHORT_CHECKS * self.layers_cost
        self.sizes: dict[int, int] = {}
        self._measure(config)

    def cut(self) -> dict[str, Any]:
        """Cut and return the config."""
        self._cut_keys(self.config)
        return self.config

    def _measure(self, value: Any) -> int:
        if isinstance(value, dict):
            size = sum(len(name) + 4 + self._measure(entry) for name, entry in value.items())
        elif isinstance(value, list):
            size = sum(2 + self._measure(entry) for entry in value)
        else:
            return len(value) if isinstance(value, str) else 8
        self.sizes[id(value)] = size
        return size

    def _size(self, value: Any) -> int:
        return self.sizes.get(id(value)) or (len(value) if isinstance(value, str) else 8)

    def _cut_keys(self, part: dict[str, Any]) -> None:
        large = [name for name in part if self._size(part[name]) > LARGE]
        self._drop(part, large)
        for name in sorted((name for name in large if name in part), key=lambda name: -self._size(part[name])):
            self._cut_inside(part[name])
        self._drop(part, [name for name in part if name not in set(large)])
        for name in part:
            if name not in set(large):
                self._cut_inside(part[name])

    def _cut_inside(self, value: Any) -> None:
        if isinstance(value, dict):
            self._cut_keys(value)
        elif isinstance(value, list) and len(value) > LONG_LIST and all(isinstance(entry, str) for entry in value):
            kept = dict(enumerate(value))
            self._drop(kept, list(kept), lambda: value.__setitem__(slice(None), kept.values()))

    def _drop(self, part: dict[Any, Any], names: list[Any], write: Callable[[], None] = lambda: None) -> None:
        """Leave out as many of these entries of a part as leave the model as it is; `write` puts the rest in place."""
        groups = [names] if names else []
        while groups:  # level by level, so that what can go is gone before the smaller groups are tried
            halves = []
            for group in groups:
                if not self._drop_all(part, group, write) and len(group) > 1:
                    halves += [group[: len(group) // 2], group[len(group) // 2 :]]
            groups = halves

    def _drop_all(self, part: dict[Any, Any], names: list[Any], write: Callable[[], None]) -> bool:
        if self.work_left <= 0:
            return False
        before, size = dict(part), self.size
        for name in names:
            self.size -= self._size(part.pop(name)) + (len(name) + 4 if isinstance(name, str) else 2)
        write()
        self.work_left -= max(0, self.size) + self.layers_cost + COST_PER_CHECK
        if self._same():
            return True
        part.clear()
        part.update(before)  # in its old order, which can matter
        self.size = size
        write()
        return False

    def _same(self) -> bool:
        try:
            return model_from_config(self.config) == self.shape
        except InvalidInput:
            return False


def _glimpse(text: str) -> str:
    clean = " ".join("".join(c if c.isprintable() else " " for c in text[:200]).split())
    return clean[:40] + ("…" if len(clean) > 40 or len(text) > 200 else "")
