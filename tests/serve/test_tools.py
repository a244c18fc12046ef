import json
import socket

import pytest

from planner.errors import InvalidInput
from planner.serve.tools import call, named, tools


def test_the_tools_are_the_six_promised():
    assert list(tools()) == ["plan", "recommend", "compare", "fits", "read_link", "list"]
    assert all(named(name).name == name for name in tools())


@pytest.mark.parametrize(
    ("name", "arguments", "field", "valid"),
    [
        ("plam", {}, "tool", "the closest is plan"),
        ("plan", {"nonsense": 1}, "argument", "scenario, link, preset"),
        ("plan", [], "arguments", "a JSON object"),
        ("fits", {}, "gpu", "a GPU of the catalog"),
        ("read_link", {"link": None}, "link", "a link of the dashboard, or its query string"),
        ("list", {"what": "everything"}, "what", "one of models"),
    ],
)
def test_a_call_that_no_schema_allows_names_what_would_be(name, arguments, field, valid):
    with pytest.raises(InvalidInput) as caught:
        call(name, arguments)
    assert caught.value.field == field
    assert valid in caught.value.valid


def test_no_address_is_fetched_and_no_file_of_the_caller_is_read(monkeypatch, tmp_path):
    def fail(*_):
        raise AssertionError("the network")

    monkeypatch.setattr(socket.socket, "connect", fail)
    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert call("read_link", {"link": "https://plan.example.com/?u=60"})["scenario"] == {"users": 60}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "llama"}))
    for scenario in ({"model": str(file)}, {"model": "config", "model_config": str(file)}):
        with pytest.raises(InvalidInput) as caught:
            call("plan", {"scenario": scenario})
        assert caught.value.field in ("model", "model_config")
