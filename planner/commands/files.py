"""Files and standard input of the command line, read and written within bounds."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path

from planner.errors import InvalidInput

MAX_FILE_BYTES = 5_000_000


def read_file(path: Path, field: str, valid: str, *, max_bytes: int | None = MAX_FILE_BYTES) -> str:
    """The text of a file of at most `max_bytes` (None: any size, for traces).

    Raises
    ------
    InvalidInput
        When it does not exist, is too large or is not text.
    """
    try:
        if path.is_char_device():  # such as /dev/zero, which never ends
            raise InvalidInput(field, str(path), valid)
        with path.open("rb") as file:
            data = file.read() if max_bytes is None else file.read(max_bytes + 1)
        if max_bytes is not None and len(data) > max_bytes:
            raise InvalidInput(field, str(path), f"a file of at most {max_bytes:,} bytes")
        return decode(data, field, str(path), valid)
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(field, str(path), valid) from error


def own_file(name: str) -> bytes:
    """What an engine or a benchmark printed, from a file or, for "-", from standard input.

    Raises
    ------
    InvalidInput
        When it is no file, or standard input is closed.
    """
    from planner.reading import MAX_BYTES  # noqa: PLC0415 - its tables only here

    if name == "-":
        return read_stdin("FILE", MAX_BYTES)
    if not is_file(name):
        raise InvalidInput("FILE", name, "a file on this machine")
    with Path(name).open("rb") as file:
        return file.read(MAX_BYTES + 1)


def write_file(path: Path, text: str, field: str, valid: str) -> None:
    """Write a file in UTF-8.

    Raises
    ------
    InvalidInput
        When it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(field, str(path), valid) from error


def read_stdin(field: str = "SCENARIO", max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """At most one byte more than `max_bytes` of standard input.

    Raises
    ------
    InvalidInput
        When it is closed.
    """
    try:
        return sys.stdin.buffer.read(max_bytes + 1)
    except (AttributeError, OSError, ValueError) as error:  # closed: None, or a file that cannot be read
        raise InvalidInput(field, "-", "text on standard input, which is closed") from error


def is_file(text: str) -> bool:
    """Whether a text is the path of a file."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a file name, or with invalid characters
        return False


def decode(data: bytes, field: str, value: str, valid: str) -> str:
    """Text from UTF-8, or from UTF-16 with a byte-order mark, which some shells write.

    Raises
    ------
    InvalidInput
        When it is neither.
    """
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(field, value, valid) from error
