"""The small lines and bars inside the headline tiles, as SVG: no library to load, drawn with the first figures."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from html import escape

from planner.errors import InvalidInput

WIDTH, HEIGHT, PADDING = 100.0, 24.0, 2.5  # of the drawing's own grid, which stretches to the tile
COLOUR = "#3b7fe0"  # 3:1 and more on the light and on the dark page
STYLE = (
    "<style>.curve,.here{fill:none;stroke:currentColor;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round;"
    "vector-effect:non-scaling-stroke}.here{stroke-width:7}.area{fill:currentColor;opacity:.16}"
    ".filled{fill:currentColor}</style>"
)
MOST_BLOCKS, GAP_OF_REPLICAS = 64, 0.6  # blocks of GPUs in a tile; the gap between replicas, in blocks
LEAST_RELATIVE_RISE = 0.02  # a curve that changes less is drawn flat and labelled once


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure against load.

    Parameters
    ----------
    x, y : tuple of float
        The curve, at rising x.
    here : tuple of float, optional
        x and y of the plan.
    ends : tuple of str
        What the first and the last value are, in words.
    about : str
        The curve in a sentence, for those who cannot see it.

    Raises
    ------
    InvalidInput
        Of fewer than two points, or of a value that is not finite.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    ends: tuple[str, str]
    about: str
    here: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or len(self.x) < 2:
            raise InvalidInput("x", len(self.x), "at least two points, as many x as y")
        if not all(math.isfinite(value) for value in (*self.x, *self.y, *(self.here or ()))):
            raise InvalidInput("y", self.y, "finite values")


def line_svg(line: Line) -> str:
    """The curve with a dot at the plan and its ends in words below."""
    low, high = min(line.y), max(line.y)
    flat = high - low <= LEAST_RELATIVE_RISE * abs(high)
    first, last = line.x[0], line.x[-1]

    def at(x: float, y: float) -> tuple[float, float]:
        across = 0.0 if last == first else min(max((x - first) / (last - first), 0.0), 1.0)
        up = 0.5 if flat else min(max((y - low) / (high - low), 0.0), 1.0)
        return PADDING + across * (WIDTH - 2 * PADDING), HEIGHT - PADDING - up * (HEIGHT - 2 * PADDING)

    points = [at(x, y) for x, y in zip(line.x, line.y, strict=True)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = f"{points[0][0]:.1f},{HEIGHT:g} {path} {points[-1][0]:.1f},{HEIGHT:g}"
    drawn = f'<polygon points="{area}" class="area"/><polyline points="{path}" class="curve"/>'
    if line.here is not None:
        x, y = at(*line.here)
        drawn += f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y:.1f}" y2="{y:.1f}" class="here"/>'
    ends = line.ends if not flat else (line.ends[0],)
    return _figure(drawn, line.about, ends)


def bar_svg(share: float, about: str) -> str:
    """A share of a whole as a bar; what is above the whole fills it."""
    filled = 0.0 if math.isnan(share) else min(max(share, 0.0), 1.0) * WIDTH
    top, thick = HEIGHT / 2 - 3.5, 7.0
    drawn = (
        f'<rect x="0" y="{top:g}" width="{WIDTH:g}" height="{thick:g}" class="area"/>'
        f'<rect x="0" y="{top:g}" width="{filled:.1f}" height="{thick:g}" class="filled"/>'
    )
    return _figure(drawn, about, ("0", "saturated"))


def blocks_svg(num_replicas: int, gpus_each: int, about: str) -> str:
    """A block for each GPU, replica by replica; empty where they would be too narrow to see."""
    total = num_replicas * gpus_each
    if not 0 < total <= MOST_BLOCKS:
        return ""
    step = WIDTH / (total + (num_replicas - 1) * GAP_OF_REPLICAS)  # a block with its gap
    places = [(k + k // gpus_each * GAP_OF_REPLICAS) * step for k in range(total)]
    drawn = "".join(
        f'<rect x="{x:.2f}" y="6" width="{0.8 * step:.2f}" height="{HEIGHT - 12:g}" class="filled"/>' for x in places
    )
    return _figure(drawn, about, ("each block a GPU",))


def _figure(drawn: str, about: str, ends: tuple[str, ...]) -> str:
    words = "".join(f"<span>{escape(text)}</span>" for text in ends)
    # As an image: Streamlit removes inline SVG from HTML.
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" color="{COLOUR}" '
        f'preserveAspectRatio="none">{STYLE}{drawn}</svg>'
    )
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
    said = escape(about)
    return f'<div class="tile-line"><img src="{source}" alt="{said}" title="{said}"><div>{words}</div></div>'
