import base64
import gzip
import json

import plotly.graph_objects as go

from roast_analyze.report.plots import plot_of


def test_a_figure_lies_in_the_page_packed_with_null_for_nan():
    figure = go.Figure(go.Scatter(x=[1, 2], y=[float("nan"), 3.0])).update_layout(height=321)

    plot = plot_of(
        figure,
        name="rate",
        title="Rate",
        description="A curve",
        query="FROM run",
        command="roast-analyze x",
    )

    spec = json.loads(gzip.decompress(base64.b64decode(plot.figure)))
    assert spec["data"][0]["x"] == [1, 2]
    assert spec["data"][0]["y"] == [None, 3.0]
    assert (plot.height_px, plot.note) == (321, "")
    assert (plot.name, plot.query) == ("rate", "FROM run")
