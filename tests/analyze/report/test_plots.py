import plotly.graph_objects as go

from analyze.report.reading import unpack
from roast_analyze.report.packed import deltas, pack
from roast_analyze.report.section import Plot


def test_a_figure_is_packed_with_null_for_nan():
    figure = go.Figure(go.Scatter(x=[1, 2], y=[float("nan"), 3.0])).update_layout(height=321)
    texts = dict.fromkeys(("name", "title", "description", "query", "command"), "")

    plot = Plot(figure, **texts)

    (curve,) = unpack(plot.packed)["data"]
    assert (curve["x"], curve["y"], plot.height_px) == ([1, 2], [None, 3.0], 321)


def test_packed_data_contains_no_markup_and_is_reproducible():
    value = {"names": ["</script><!-- & \"'", "ä", "\u2028"], "numbers": [1, 2.5, None]}

    assert unpack(pack(value)) == value
    assert set("<>&\"'").isdisjoint(pack(value))
    assert pack(value) == pack(value)


def test_deltas():
    assert deltas([100, 101, 103]) == [100, 1, 2]
    assert deltas([]) == []
