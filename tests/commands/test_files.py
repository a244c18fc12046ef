import io
import json
import sys

import pytest

from planner.commands.files import decode, write_file
from planner.errors import InvalidInput
from tests.commands.running import run


def test_standard_input_may_begin_with_a_mark(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'\xef\xbb\xbf{"num_requests": 150}')))
    _, out, _ = run("simulate", "-", "--json", capsys=capsys)
    assert json.loads(out)["requests"] == 150
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe\xff")))
    code, _, err = run("simulate", "-", capsys=capsys)
    assert (code, len(err.splitlines())) == (2, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "https://[::1"),
        ("plan", "https://[::1/plan.json"),
        ("plan", "/dev/zero"),
        ("plan", "--trace", "/dev/zero"),
        ("validate", "https://example.com/steps.csv"),
        ("validate", "file:///etc/hostname"),
        ("validate", "s3://bucket/steps.csv"),
        ("validate", "."),
        ("calibrate", "https://example.com/steps.csv"),
    ],
)
def test_addresses_and_devices_are_no_files(arguments, monkeypatch, capsys):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a connection"))
    code, out, err = run(*arguments, capsys=capsys)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("error: ")


def test_closed_standard_input_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    code, out, err = run("plan", "-", capsys=capsys)
    assert (code, out, len(err.splitlines())) == (2, "", 1)


def test_text_is_utf_8_or_utf_16_with_a_mark():
    assert decode("≥ 1".encode("utf-16"), "FILE", "x", "text") == "≥ 1"
    assert decode("≥ 1".encode(), "FILE", "x", "text") == "≥ 1"
    with pytest.raises(InvalidInput):
        decode(b"\xff\xfe\xff", "FILE", "x", "text")


def test_what_cannot_be_written_names_the_option(tmp_path):
    with pytest.raises(InvalidInput) as caught:
        write_file(tmp_path / "none" / "x.html", "text", "--html", "a writable file path")
    assert caught.value.field == "--html"
