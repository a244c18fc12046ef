"""One figure of several plans."""

from __future__ import annotations

import math

from planner.charts.style import COLOUR, ROWS, Chart, bars, figure, layout


def plan_bars(
    title: str, subtitle: str, names: list[str], values: list[float], texts: list[str], errors: list[float]
) -> Chart:
    """A bar for each plan, the first one's marked as the reader's own.

    Parameters
    ----------
    title, subtitle : str
        The finding, and what is drawn.
    names, texts : list of str
        Of the plans; their figures in words.
    values : list of float
        The figures; NaN where a plan has none, which is said instead of a bar.
    errors : list of float
        Our median error as a share of the figure; none is drawn for 0 and NaN.
    """
    shown = [value if math.isfinite(value) else 0.0 for value in values]
    off = [value * error if error > 0 and value else 0.0 for value, error in zip(shown, errors, strict=True)]
    rows = [_short(name) for name in names]
    trace = bars(
        rows,
        shown,
        [f"  {text}" for text in texts],
        "%{text}",
        marker={"color": [COLOUR["here"], *[COLOUR["neutral"]] * (len(names) - 1)]},
        width=0.6,
    )
    trace |= {"textposition": "none"}
    if any(off):
        trace["error_x"] = {"type": "data", "array": off, "color": "#5b6472", "thickness": 2, "width": 5}
    top = max(a + b for a, b in zip(shown, off, strict=True)) or 1.0
    notes = [
        {
            "text": text,
            "x": value + error,
            "y": row,
            "showarrow": False,
            "xanchor": "left",
            "xshift": 8,
            "font": {"size": 13},
        }
        for text, value, error, row in zip(texts, shown, off, rows, strict=True)
    ]
    return Chart(
        title=title,
        subtitle=subtitle,
        figure=figure(
            [trace],
            layout(
                height=60 + 46 * len(names),
                showlegend=False,
                margin={"t": 12},
                yaxis=ROWS,
                xaxis={"range": [0, 1.6 * top], "showticklabels": False, "showgrid": False},
                annotations=notes,
            ),
        ),
        alt=f"{title}. " + "; ".join(f"{name}: {text}" for name, text in zip(names, texts, strict=True)),
    )


def _short(name: str) -> str:
    """A name for the axis, in at most two lines, with HTML escaped."""
    safe = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if len(name) <= 16:
        return safe
    words, lines = name.split(), [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) >= 16:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    cut = [line if len(line) <= 18 else line[:17] + "…" for line in lines[:2]]
    if len(lines) > 2:
        cut[1] = cut[1][:17].rstrip("…") + "…"
    return "<br>".join(part.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for part in cut)
