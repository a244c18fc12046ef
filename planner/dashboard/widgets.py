"""What pages share: charts with their finding, formulas that open, text made safe."""

from __future__ import annotations

import re
from collections.abc import Iterable

import streamlit as st

from planner.charts import Chart
from planner.memory_plan import Formula
from planner.units import GIB, format_number

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$<>:&])")


def plain(text: object) -> str:
    """Text from users and links, with every markdown special escaped."""
    return _SPECIAL.sub(r"\\\1", str(text).replace("\n", " "))


def prose(text: str) -> str:
    """Our own sentences, which may quote users: no math, no links, no HTML, no emphasis."""
    return re.sub(r"([\\`*_\[\]$<>~]|:(?=[a-z]))", r"\\\1", text)


def show(chart: Chart | None, key: str) -> None:
    """Draw a chart in a card under its finding."""
    if chart is None:
        return
    with st.container(border=True, height="stretch"):
        st.markdown(f"**{prose(chart.title)}**")
        st.caption(prose(chart.subtitle))
        st.plotly_chart(
            chart.figure, key=key, alt=chart.alt, config={"displayModeBar": False, "responsive": True}, width="stretch"
        )


FORMULA_TITLES = {
    "weights": "Weights",
    "budget": "The engine's budget",
    "activation": "Activation peak",
    "non_torch": "Runtime (non-torch)",
    "cuda_graphs": "CUDA graphs",
    "kv_pool": "KV pool",
    "kv_bytes_per_token": "KV cache of one token",
    "kv_blocks": "KV blocks",
    "kv_tokens": "KV tokens",
    "max_concurrency": "Sequences of full length at once",
}


def formula(item: Formula) -> None:
    """One figure that opens into its derivation."""
    with st.expander(f"{plain(FORMULA_TITLES.get(item.name, item.name))}: **{plain(value_text(item))}**"):
        st.code(f"{item.expression}\n= {item.substituted}\n= {value_text(item)}", language=None, wrap_lines=True)
        if item.source:
            st.caption(f"Source: {prose(item.source)}")


def value_text(item: Formula) -> str:
    """A formula's value with its unit; bytes also in GiB when large."""
    if item.unit == "bytes" and abs(item.value) >= 2**20:
        return f"{item.value:,.0f} bytes = {item.value / GIB:,.3f} GiB"
    whole = float(item.value).is_integer()
    return f"{item.value:,.0f} {item.unit}" if whole else f"{format_number(item.value, 5)} {item.unit}"


def table(rows: list[dict[str, str]]) -> None:
    """A small table that scrolls by itself where the screen is narrow."""
    st.table(rows, border="horizontal", width="content")


def bullets(lines: Iterable[str]) -> None:
    """Sentences as a list."""
    text = "\n".join(f"- {prose(line)}" for line in lines)
    if text:
        st.markdown(text)


def verdict(ok: bool, yes: str, no: str) -> None:
    """A coloured badge that also says it in words."""
    st.badge(
        prose(yes if ok else no), icon=":material/check:" if ok else ":material/close:", color="green" if ok else "red"
    )


def cannot_start(refusal: str, remedies: Iterable[str]) -> None:
    """The same place on every page when the engine does not start: why, and what would help."""
    tried = list(remedies)
    st.error(prose(refusal) or "The engine does not start.", title="Does not start")
    if tried:
        st.markdown("**What would make it start**, most likely first:")
        bullets(tried)


def hover_text(text: str) -> str:
    """Text for a chart's hover box, which understands HTML: only our own line breaks are kept."""
    parts = [part.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for part in text.split("<br>")]
    return "<br>".join(parts)
