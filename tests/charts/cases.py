"""What several tests of charts do with a figure."""

from planner.charts.style import Chart


def traces(chart: Chart) -> dict[str, dict[str, object]]:
    """The traces of a figure by name."""
    return {str(trace.get("name", "")): trace for trace in chart.figure["data"]}


def lines_at(chart: Chart, axis: str) -> list[float]:
    """Values at which straight lines cross the whole chart."""
    other = "y" if axis == "x" else "x"
    return [
        shape[f"{axis}0"]
        for shape in chart.figure["layout"].get("shapes", ())
        if shape["type"] == "line" and shape[f"{axis}0"] == shape[f"{axis}1"] and shape.get(f"{other}0") == 0
    ]
