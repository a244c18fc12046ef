"""A public model on the hub: what is refused before and without a connection."""

import pytest

from planner.catalog.hub import fetch_from_hub
from planner.errors import InvalidInput


@pytest.mark.parametrize("hub_id", ["", "no-slash", "../../etc/passwd", "a/b/c", "a b/c", "x" * 300])
def test_malformed_hub_id_is_refused_before_any_request(hub_id):
    with pytest.raises(InvalidInput, match="owner/name"):
        fetch_from_hub(hub_id)


def test_offline_hub_says_so(monkeypatch):
    def refuse(*_args, **_more):
        raise OSError("no network")

    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("planner.catalog.hub.socket.create_connection", refuse)
    with pytest.raises(InvalidInput, match="this machine cannot reach"):
        fetch_from_hub("Qwen/Qwen3-8B")
