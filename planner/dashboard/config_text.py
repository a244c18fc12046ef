"""A pasted, uploaded or fetched config.json, checked and cut to the keys that matter. No streamlit."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from planner.errors import InvalidInput
from planner.model import ModelShape, model_from_config
from planner.scenario import MAX_CONFIG_TEXT

MAX_BYTES = 5 * 2**20
OFFLINE = "a connection to huggingface.co, which this machine cannot reach; paste the config.json instead"
LONG_LIST = 32
HUB_ID = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")


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
    shape = model_from_config(config)
    short = json.dumps(_without_idle_keys(config, config, shape), separators=(",", ":"))
    if len(short) > MAX_CONFIG_TEXT:
        raise InvalidInput(
            "model_config",
            f"{len(short):,} characters that matter",
            f"at most {MAX_CONFIG_TEXT:,}, since the link carries them",
        )
    return short


def _without_idle_keys(root: dict[str, Any], part: dict[str, Any], shape: ModelShape) -> dict[str, Any]:
    for name in list(part):
        value = part.pop(name)
        if _same(root, shape):
            continue
        part[name] = value
        if isinstance(value, dict):
            _without_idle_keys(root, value, shape)
        elif isinstance(value, list) and len(value) > LONG_LIST and all(isinstance(entry, str) for entry in value):
            _without_idle_entries(root, value, shape)
    return part


def _without_idle_entries(root: dict[str, Any], entries: list[str], shape: ModelShape) -> None:
    # Lists of module names run to thousands of entries, most of them redundant.
    size = len(entries) // 2
    while size:
        start = 0
        while start < len(entries):
            cut = entries[start : start + size]
            del entries[start : start + size]
            if not _same(root, shape):
                entries[start:start] = cut
                start += size
        size //= 2


def _same(config: dict[str, Any], shape: ModelShape) -> bool:
    try:
        return model_from_config(config) == shape
    except InvalidInput:
        return False


def _glimpse(text: str) -> str:
    clean = " ".join("".join(c if c.isprintable() else " " for c in text[:200]).split())
    return clean[:40] + ("…" if len(clean) > 40 or len(text) > 200 else "")


def fetch_from_hub(hub_id: str) -> str:
    """The config.json of a public model on Hugging Face.

    Raises
    ------
    InvalidInput
        When the id is malformed, the model unknown or gated, or the machine offline.
    """
    hub_id = hub_id.strip()
    if not HUB_ID.fullmatch(hub_id):
        raise InvalidInput("hub_id", hub_id[:80], "owner/name, such as Qwen/Qwen3-8B")
    # Importing the hub client takes half a second, and only this button needs it.
    from huggingface_hub import constants, hf_hub_download  # noqa: PLC0415
    from huggingface_hub import errors as hub  # noqa: PLC0415

    if not _reachable(constants.ENDPOINT):
        raise InvalidInput("hub_id", hub_id, OFFLINE)
    try:
        path = hf_hub_download(hub_id, "config.json", etag_timeout=5)
        with Path(path).open(encoding="utf-8") as file:
            return file.read(MAX_BYTES + 1)
    except hub.GatedRepoError:
        valid = "a public model; this one is gated, so paste its config.json"
    except hub.RepositoryNotFoundError:
        valid = "the id of a public model on Hugging Face"
    except hub.LocalEntryNotFoundError:
        valid = OFFLINE
    except hub.EntryNotFoundError:
        valid = "a model with a config.json"
    except Exception:  # network errors differ by client version and transport
        valid = OFFLINE
    raise InvalidInput("hub_id", hub_id, valid)


def _reachable(endpoint: str) -> bool:
    # Offline, the client retries for 20 s; one connection attempt answers at once. A proxy is left to the client.
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True
    address = urlsplit(endpoint)
    try:
        socket.create_connection((address.hostname or "", address.port or 443), timeout=3).close()
    except OSError:
        return False
    return True
