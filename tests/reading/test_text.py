"""Bytes of uploads: what is text becomes lines, what is not is named."""

import pytest

from planner.errors import InvalidInput
from planner.reading.text import MAX_BYTES, MAX_LINES, lines_of, text_of


def test_colours_prefixes_and_progress_bars_leave_the_line_that_counts():
    raw = b"\xef\xbb\xbf\x1b[36m(EngineCore pid=1)\x1b[0m INFO ok\r\nLoading: 10%\rLoading: 100%\r\n\r\nend"
    assert [(line.number, line.text) for line in lines_of(text_of(raw))] == [
        (1, "(EngineCore pid=1) INFO ok"),
        (2, "Loading: 100%"),
        (4, "end"),
    ]


def test_other_encodings_are_read():
    assert text_of("größe = 5".encode("utf-16")) == "größe = 5"
    assert text_of("größe = 5".encode("latin-1")) == "größe = 5"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no text"),
        (b" \n\t\n", "no text"),
        (b"PK\x03\x04rest", "a zip archive"),
        (b"\x1f\x8brest", "a gzip archive"),
        (bytes(range(256)) * 40, "a binary file"),
        (b"x" * (MAX_BYTES + 1), "50 MB"),
    ],
)
def test_what_is_no_log_is_named(data, said):
    with pytest.raises(InvalidInput) as caught:
        text_of(data)
    assert caught.value.field == "file"
    assert said in f"{caught.value.value}"


def test_a_log_that_was_rotated_and_begins_with_nothing_is_text():
    assert text_of(b"\x00" * 5000 + b"GPU KV cache size: 5 tokens\n") == "GPU KV cache size: 5 tokens\n"
    assert text_of(b"\x1b[32mINFO\x1b[0m \x07done") == "INFO done"


def test_more_lines_than_a_log_has_are_refused():
    with pytest.raises(InvalidInput, match="1,000,001 lines"):
        lines_of("a\n" * (MAX_LINES + 1))
