"""Uploaded bytes as clean lines: no colours, no progress bars, no log prefixes of containers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.errors import InvalidInput

MAX_BYTES = 50_000_000
MAX_LINES = 1_000_000  # of a log: at 50 MB, lines of 50 characters
MAX_LINE_CHARS = 200_000  # vLLM prints its whole configuration on one line
#: first bytes of archives and pictures: nothing that is unpacked here, so nothing that can expand
_BINARY = {b"PK\x03\x04": "a zip archive", b"\x1f\x8b": "a gzip archive", b"%PDF": "a PDF", b"\x89PNG": "a picture"}
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
#: no text has many of them; NUL is left out, with which a rotated log fills the place of what was cut off
_NEVER_TYPED = re.compile(r"[\x01-\x06\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f]")
HEAD_CHARS, MOST_UNTYPED = 4096, 0.05
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a file: its number from 1, and its text without colours."""

    number: int
    text: str


def text_of(data: bytes | str) -> str:
    """Text of an uploaded file.

    Parameters
    ----------
    data : bytes or str
        UTF-8, UTF-16 with a byte-order mark, or Latin-1; at most 50 MB.

    Returns
    -------
    str
        Lines end in a line feed; of a progress bar that redraws its line, the last state.

    Raises
    ------
    InvalidInput
        When the file is empty, too large, an archive, a picture or otherwise binary.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > MAX_BYTES:
        raise InvalidInput("file", f"{len(raw) / 1e6:,.0f} MB", f"at most {MAX_BYTES // 1_000_000} MB of text")
    for start, what in _BINARY.items():
        if raw.startswith(start):
            raise InvalidInput("file", what, "the text itself: a log, a benchmark's output or its JSON")
    text = _decoded(raw)
    if len(_NEVER_TYPED.findall(text[:HEAD_CHARS])) > MOST_UNTYPED * len(text[:HEAD_CHARS]):
        raise InvalidInput("file", "a binary file", "the text itself: a log, a benchmark's output or its JSON")
    text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    text = _CONTROL.sub("", _ANSI.sub("", text))
    if not text.strip():
        raise InvalidInput("file", "no text", "a log, a benchmark's output or its JSON")
    return text


def lines_of(text: str) -> tuple[Line, ...]:
    """Lines that hold something, numbered as in the file; a line beyond 200,000 characters is cut there.

    Raises
    ------
    InvalidInput
        When there are more than a million.
    """
    count = text.count("\n")
    if count > MAX_LINES:
        raise InvalidInput("file", f"{count:,} lines", f"at most {MAX_LINES:,} lines of a log, or a table of requests")
    return tuple(
        Line(number=number, text=line[:MAX_LINE_CHARS])
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip()
    )


def _decoded(raw: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
