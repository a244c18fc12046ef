"""Shared by the pages: charts with their finding, formulas that open, escaped text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from zlib import crc32

import streamlit as st

from planner.charts import Chart, ready
from planner.dashboard import player
from planner.dashboard.markdown import escaped
from planner.dashboard.tabular import csv_text, folding_style
from planner.memory import PARTLY_ON_CPU, Formula, MemoryPlan
from planner.units import GIB, format_number


def plain(text: object) -> str:
    """Text from users and links with every markdown character escaped."""
    return escaped(str(text).replace("\n", " "), every=True)


UNIT = re.compile(r"(?<=\d) (?=(?:µs|ms|s|min|h|GiB|USD|GPUs?)\b)")  # the space before a unit


def prose(text: str) -> str:
    """Our own sentences, which may quote users, with markup escaped; a unit stays on the line of its figure."""
    return UNIT.sub("\u00a0", escaped(text).replace(" %", "\u00a0%"))


def show(chart: Chart | None, key: str, note: str = "") -> None:
    """A chart in a card, under its finding and with an optional note below."""
    if chart is None:
        return
    with st.container(border=True, height="stretch", key=f"card_{key}"):
        st.markdown(f"**{prose(chart.title)}**\n\n:small[{prose(chart.subtitle)}]")
        _save_menu(chart, key)
        st.plotly_chart(
            ready(chart), key=key, alt=chart.alt, config={"displayModeBar": False, "responsive": True}, width="stretch"
        )
        if note:
            st.caption(prose(note))


@st.fragment
def _save_menu(chart: Chart, key: str) -> None:
    """The button in the card's corner; its contents are drawn when it is opened, without the rest of the page."""
    menu = st.popover(
        ":material/download:",
        type="tertiary",
        key=f"save_menu_{key}",
        help="Save this chart as a picture",
        on_change="rerun",
    )
    if menu.open:
        with menu:
            player.save_buttons(chart, key)


FORMULA_TITLES = {
    "total": "Memory of the GPU",
    "budget": "The engine's budget",
    "weights": "Weights",
    "activation": "Activation peak",
    "non_torch": "Runtime (non-torch)",
    "cuda_graphs": "CUDA graphs",
    "occupied": "Other processes",
    "states": "Recurrent states",
    "kv_pool": "KV pool",
    "free": "Free",
    "kv_used": "KV used at peak",
    "kv_held": "KV reserved at peak",
    "kv_bytes_per_token": "KV cache of one token",
    "block_bytes": "One KV block",
    "kv_blocks": "KV blocks",
    "kv_tokens": "KV tokens",
    "blocks_per_sequence": "Blocks of one full sequence",
    "max_concurrency": "Sequences of full length at once",
    "sequence_tokens": "Tokens of a running sequence",
    "typical_concurrency_paged": "Sequences of this traffic, paged",
    "typical_concurrency_reserved": "Reserving max_model_len for each request",
    "typical_concurrency_limit": "Reserving the full answer limit for each request",
    "run_at_once": "Sequences of this traffic running at once",
    "longest_context": "Longest context that starts",
    "offloaded": "Tokens kept in CPU memory",
}


def formula(item: Formula) -> None:
    """A figure that opens into its derivation."""
    name = FORMULA_TITLES.get(item.name, item.name.replace("_", " ").capitalize())
    with st.expander(f"{plain(name)}: **{plain(value_text(item))}**"):
        st.code(f"{item.expression}\n= {item.substituted}\n= {value_text(item)}", language=None, wrap_lines=True)
        if item.source:
            st.caption(f"Source: {prose(item.source)}")


def value_text(item: Formula) -> str:
    """A formula's value with its unit; bytes also in GiB when large."""
    if item.unit == "bytes" and abs(item.value) >= 2**20:
        return f"{item.value:,.0f} bytes = {item.value / GIB:,.3f} GiB"
    unit = item.unit.removesuffix("s") if item.value == 1 and item.unit == "sequences" else item.unit
    said = f"{item.value:,.0f}" if float(item.value).is_integer() else format_number(item.value, 5)
    return f"{said.replace('-', '−')} {unit}"


@st.fragment
def folded(title: str, key: str, draw: Callable[[], None]) -> None:
    """A closed section whose contents are drawn when it is opened, without the rest of the page.

    Parameters
    ----------
    title : str
        Always the same: another one would close it.
    key : str
        Under which the session knows whether it is open.
    draw : callable
        Draws the contents.
    """
    section = st.expander(title, key=key, on_change="rerun")
    if section.open:
        with section:
            draw()


def table(rows: list[dict[str, str]], name: str = "") -> None:
    """A small table whose rows become cards where the screen is narrow, with a button that saves it as CSV.

    `name` is that of the file; tables of one page have different names, or different headers and first cells.
    """
    if not rows:
        return
    first = "".join((*rows[0], *rows[0].values()))
    key = f"table_{name}" if name else f"table_{crc32(first.encode())}"
    with st.container(key=key, gap="xsmall"):
        st.html(folding_style(key, list(rows[0])))
        st.table(rows, border="horizontal", width="content")
        st.download_button(
            "CSV",
            lambda: csv_text(rows),
            f"headroom-{name or 'table'}.csv",
            "text/csv",
            key=f"csv_{key}",
            icon=":material/download:",
            type="tertiary",
            on_click="ignore",
        )


def bullets(lines: Iterable[str]) -> None:
    """Sentences as a list."""
    text = "\n".join(f"- {prose(line)}" for line in lines)
    if text:
        st.markdown(text)


def verdict(ok: bool, text: str) -> None:
    """A green or red badge that says its verdict in words."""
    st.badge(prose(text), icon=":material/check:" if ok else ":material/close:", color="green" if ok else "red")


def cannot_start(memory: MemoryPlan) -> None:
    """What every page shows when the engine does not start: its own message, and what would help."""
    title = (
        "It would run partly on the CPU, which Headroom does not plan"
        if memory.outcome == PARTLY_ON_CPU
        else "The engine says"
    )
    st.error(prose(memory.refusal) or "The engine does not start.", title=title)
    longest = memory.longest_context_tokens
    if memory.remedies:
        st.markdown("**What would make it start**, in the order to try:")
        bullets(memory.remedies)
    else:
        st.markdown("**No single change of these inputs makes it start**; a larger GPU or a smaller model does.")
    if 0 < longest < memory.max_model_len:
        more = (
            " (a shorter context also needs less memory for activations)" if longest > memory.held_length_tokens else ""
        )
        st.caption(f"Longest context that starts with the other inputs unchanged: {longest:,} tokens{more}.")
    elif not longest:
        st.caption("With the other inputs unchanged, not even the shortest context starts.")


def hover_text(text: str) -> str:
    """Text for a chart's hover box with HTML escaped, except our own line breaks."""
    parts = [part.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for part in text.split("<br>")]
    return "<br>".join(parts)
