"""A public model on Hugging Face, read without a token and into memory only: its config.json and its headers."""

from __future__ import annotations

import os
import re
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from planner.errors import InvalidInput

if TYPE_CHECKING:
    from huggingface_hub.utils import SafetensorsRepoMetadata

MAX_HUB_BYTES, HUB_TIMEOUT_S = 2_000_000, 5.0
OFFLINE = "a connection to huggingface.co, which this machine cannot reach; paste the config.json instead"
HUB_ID = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")


def fetch_from_hub(hub_id: str) -> str:
    """The config.json of a public model on Hugging Face, read without a token and into memory only.

    Raises
    ------
    InvalidInput
        When the id is malformed, the model unknown or gated, its config.json too large, or the machine offline.
    """
    hub_id = hub_id.strip()
    if not HUB_ID.fullmatch(hub_id):
        raise InvalidInput("hub_id", hub_id[:80], "owner/name, such as Qwen/Qwen3-8B")
    # Importing the hub client takes half a second, and few callers need it.
    from huggingface_hub import constants, get_hf_file_metadata  # noqa: PLC0415
    from huggingface_hub import errors as hub  # noqa: PLC0415

    if not _reachable(constants.ENDPOINT):
        raise InvalidInput("hub_id", hub_id, OFFLINE)
    too_large = f"a model whose config.json has at most {MAX_HUB_BYTES / 1e6:.0f} MB"
    try:
        # Never a token: a visitor must not read what this host may read.
        url = f"{constants.ENDPOINT}/{hub_id}/resolve/main/config.json"
        stated = get_hf_file_metadata(url, token=False, timeout=HUB_TIMEOUT_S, endpoint=constants.ENDPOINT)
        data = None if (stated.size or 0) > MAX_HUB_BYTES else _download(stated.location)
        if data is not None:
            return data.decode("utf-8")
        valid = too_large
    except hub.GatedRepoError:
        valid = "a public model; this one is gated, so paste its config.json"
    except hub.RepositoryNotFoundError:
        valid = "the id of a public model on Hugging Face"
    except hub.EntryNotFoundError:
        valid = "a model with a config.json"
    except UnicodeDecodeError:
        valid = "a model whose config.json is UTF-8 text"
    except Exception:  # the client's network errors differ by version and transport; each means: not reachable
        valid = OFFLINE
    raise InvalidInput("hub_id", hub_id, valid)


def hub_tensors(hub_id: str) -> SafetensorsRepoMetadata | None:
    """Names, types and shapes of a public model's tensors, from the headers of its safetensors files, without a token.

    Returns
    -------
    SafetensorsRepoMetadata or None
        None where the model has no such files or they cannot be read.
    """
    from huggingface_hub import HfApi, constants  # noqa: PLC0415

    try:
        api = HfApi(endpoint=constants.ENDPOINT, token=False)
        return api.get_safetensors_metadata(hub_id, token=False, timeout=HUB_TIMEOUT_S)
    except Exception:  # no safetensors, a broken header, no network: each means that there is nothing to compare with
        return None


def _download(url: str) -> bytes | None:
    """What is at the address, None when it is more than a config.json may have, whatever size was stated."""
    from huggingface_hub.utils import build_hf_headers, http_stream_backoff  # noqa: PLC0415

    data = b""
    headers = build_hf_headers(token=False)
    with http_stream_backoff("GET", url, max_retries=0, headers=headers, timeout=HUB_TIMEOUT_S) as answer:
        answer.raise_for_status()
        for part in answer.iter_bytes(2**16):
            data += part
            if len(data) > MAX_HUB_BYTES:
                return None
    return data


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
