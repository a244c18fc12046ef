"""A figure that Plotly does not check anew: on a page that took longer than all the rest of the drawing."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import plotly.io
from plotly.basedatatypes import BaseFigure


class Unchecked(BaseFigure):
    """A figure whose dict is passed on as it is; the tests hold those of all pages to Plotly's schema."""

    def __init__(self, figure: dict[str, Any]) -> None:
        self._figure = figure

    def to_dict(self) -> dict[str, Any]:
        """The figure as a dict, with Plotly's present default template."""
        shape = {"template": _template(plotly.io.templates.default), **self._figure["layout"]}
        return {**self._figure, "layout": shape}


@lru_cache(maxsize=4)
def _template(name: str) -> dict[str, Any]:
    found: dict[str, Any] = plotly.io.templates[name].to_plotly_json()
    return found
