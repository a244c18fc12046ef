"""The parts of the page that the browser runs: the step timeline's player, and the buttons that save a picture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import streamlit as st

from planner.charts import Chart, StepPicture

BROWSER = Path(__file__).parent / "browser"


def _text(name: str) -> str:
    return (BROWSER / name).read_text(encoding="utf-8")


_STEPS = st.components.v2.component(
    "headroom_steps",
    html=_text("player.html"),
    css=_text("player.css"),
    js=_text("saving.js") + _text("player.js"),
)
_SAVE = st.components.v2.component(
    "headroom_save",
    html=_text("save.html"),
    css=_text("player.css"),
    js=_text("saving.js") + _text("charts.js"),
)


def file_name(title: str) -> str:
    """A finding as the name of a file, without its ending."""
    return "headroom-" + re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60]


def play(picture: StepPicture, key: str) -> None:
    """The step timeline with its controls."""
    words = {"title": picture.title, "subtitle": picture.subtitle, "name": file_name(picture.title)}
    data: dict[str, Any] = {
        name: getattr(picture, name)
        for name in ("wide", "narrow", "edges", "figures", "durations_ms", "num_blocks", "before")
    }
    _STEPS(key=key, data={**data, "words": words})


def save_buttons(chart: Chart, key: str) -> None:
    """Buttons that save the Plotly chart shown under `key`."""
    words = {"title": chart.title, "subtitle": chart.subtitle, "name": file_name(chart.title)}
    _SAVE(key=f"save_{key}", data={"key": key, "words": words})
