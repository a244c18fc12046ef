"""A table of the page as CSV, and as cards on a narrow screen. No streamlit here."""

from __future__ import annotations

import csv
import io
import re

from planner.dashboard.markdown import WORD_JOINER
from planner.tables import cell_of_text

NARROW_PX = 640
_ESCAPED = re.compile(r"\\(\W|_)")


def csv_text(rows: list[dict[str, str]]) -> str:
    """The rows as a spreadsheet reads them: rounded as on the page, and no cell of them is a formula there."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([cell_of_text(_plain(name)) for name in rows[0]])
    writer.writerows([cell_of_text(_plain(cell)) for cell in row.values()] for row in rows)
    return "\ufeff" + out.getvalue()  # the mark by which Excel knows UTF-8


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text.replace(WORD_JOINER, "")).replace("\u00a0", " ")


def folding_style(key: str, header: list[str]) -> str:
    """CSS that turns each row of the table in the container `key` into a card: its first cell, then name and value.

    Parameters
    ----------
    key : str
        Key of the container, letters, digits and underscores.
    header : list of str
        Names of the columns.
    """
    inside = f".st-key-{key} [data-testid=stTable]"
    names = "".join(
        f'{inside} td:nth-child({place})::before{{content:"{_quoted(_plain(name))}"}}'
        for place, name in enumerate(header, 1)
        if place > 1
    )
    return (
        f"<style>@media (max-width:{NARROW_PX}px){{{inside},{inside} table,{inside} tbody{{display:block;width:100%}}"
        f"{inside} thead{{display:none}}{inside} tr{{display:block;padding:.4rem 0}}"
        f"{inside} td{{display:flex;justify-content:space-between;gap:1rem;border:none;padding:.1rem .25rem;"
        "text-align:right;white-space:normal}"
        f"{inside} td::before{{text-align:left;opacity:.8;flex:1 1 0}}"
        f"{inside} td>*{{flex:none;max-width:60%}}"  # a long name gives way to its value, which would be cut
        f"{inside} td:first-child{{font-weight:600;text-align:left}}"
        f"{inside} tr{{border-bottom:1px solid rgba(128,136,150,.35)}}{names}}}</style>"
    )


def _quoted(text: str) -> str:
    """Text inside a CSS string."""
    return "".join(c if c.isalnum() or c in " .,·/%&()" else f"\\{ord(c):x} " for c in text)
