"""A config.json that is pasted or fetched: checked, and cut to the keys that matter."""

import json

import pytest

from planner.dashboard.config_text import MAX_BYTES, fetch_from_hub, pruned
from planner.errors import InvalidInput
from planner.model.config.build import model_from_config

from .published_config import LLAMA_3_8B


def test_pruning_keeps_the_model_and_drops_the_rest():
    short = pruned(json.dumps(LLAMA_3_8B))
    assert model_from_config(json.loads(short)) == model_from_config(LLAMA_3_8B)
    assert "transformers_version" not in short
    assert len(short) < 300


def test_too_large_is_told_in_megabytes():
    with pytest.raises(InvalidInput, match="MB"):
        pruned(" " * (MAX_BYTES + 1))


@pytest.mark.parametrize("hub_id", ["", "no-slash", "../../etc/passwd", "a/b/c", "a b/c", "x" * 300])
def test_malformed_hub_id_is_refused_before_any_request(hub_id):
    with pytest.raises(InvalidInput, match="owner/name"):
        fetch_from_hub(hub_id)


def test_offline_hub_says_so(monkeypatch):
    def refuse(*_args, **_more):
        raise OSError("no network")

    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("planner.dashboard.config_text.socket.create_connection", refuse)
    with pytest.raises(InvalidInput, match="this machine cannot reach"):
        fetch_from_hub("Qwen/Qwen3-8B")
