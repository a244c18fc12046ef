"""Text that the page's markdown shows as it is. No streamlit here."""

from __future__ import annotations

import re

#: shows as nothing; GitHub's markdown makes a link of every address in a text, escaped or not, unless it is broken up
WORD_JOINER = "\u2060"
_ADDRESS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)(?=[-\w])", re.IGNORECASE)
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$<>:&@])")
_STYLE = re.compile(r"([\\`*_\[\]$<>~|]|:(?=[a-z/])|@)")


def escaped(text: str, *, every: bool = False) -> str:
    """Text without math, links, HTML and emphasis; with `every`, no character of it means anything to markdown."""
    return (_SPECIAL if every else _STYLE).sub(r"\\\1", _ADDRESS.sub(WORD_JOINER, text))
