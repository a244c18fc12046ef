"""A figure that Plotly does not check comes out as the one that it does."""

import json

import numpy as np
import plotly.graph_objects as go
import plotly.io
from plotly.tools import return_figure_from_figure_or_data

from planner.charts.style import Chart, figure, layout, ready
from planner.charts.unchecked import Unchecked


def test_what_is_sent_is_what_plotly_makes_of_the_dict():
    drawn = figure([{"type": "scatter", "x": [1.0, 2.5], "y": [3, None], "line": {"dash": "dot"}}], layout(x="s"))
    chart = Chart(title="", subtitle="", figure=drawn, alt="")
    assert isinstance(ready(chart), Unchecked)
    sent = return_figure_from_figure_or_data(ready(chart), validate_figure=True)
    assert json.loads(plotly.io.to_json(sent, validate=False)) == json.loads(go.Figure(drawn).to_json())
    assert "template" not in drawn["layout"]


def test_arrays_are_sent_too():
    chart = Chart(title="", subtitle="", figure=figure([{"type": "scatter", "y": np.array([0.5, 2.0])}], {}), alt="")
    sent = return_figure_from_figure_or_data(ready(chart), validate_figure=True)
    assert json.loads(plotly.io.to_json(sent, validate=False))["data"][0]["y"] == [0.5, 2.0]
