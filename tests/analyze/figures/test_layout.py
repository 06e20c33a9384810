import polars as pl

from roast_analyze.figures import layout, palette
from roast_analyze.figures.layout import TimeAxis


def test_the_unit_of_the_time_axis_fits_its_length():
    ends = {}
    for seconds in (10, 600, 1200, 36_000):
        axis = TimeAxis(1000.0, 1000.0 + seconds)
        assert axis.title == f"time since the start ({axis.unit})"
        frame = pl.DataFrame({"t": [1000.0, 1000.0 + seconds]})
        ends[seconds] = (axis.unit, axis.places(frame))

    assert ends == {
        10: ("s", [0, 10]), 600: ("s", [0, 600]), 1200: ("min", [0, 20]),
        36_000: ("h", [0, 10]),
    }  # fmt: skip


def test_an_axis_has_margins_and_places_are_rounded():
    axis = TimeAxis(1000.0, 1010.0)
    frame = pl.DataFrame({"t": [1000.12345678]})

    assert axis.range == [-0.1, 10.1]
    assert (axis.places(frame), axis.places(frame, "t", 6)) == ([0.123], [0.123457])
    # An axis without length can be drawn, too.
    low, high = TimeAxis(5.0, 5.0).range
    assert low < high


def test_panels_from_top_to_bottom():
    axes = {
        count: layout.panels(TimeAxis(0.0, 1.0), 100, *"abc"[:count]).layout
        for count in (1, 2, 3)
    }

    assert axes[1].yaxis.domain == (0, 1)
    assert (axes[2].yaxis.domain, axes[2].yaxis2.domain) == ((0.58, 1), (0, 0.42))
    three = [axes[3].yaxis, axes[3].yaxis2, axes[3].yaxis3]
    assert [axis.domain for axis in three] == [(0.76, 1), (0.38, 0.62), (0, 0.24)]
    assert [axis.title.text for axis in three] == ["a", "b", "c"]
    assert [axes[count].xaxis.anchor for count in axes] == ["y", "y2", "y3"]


def test_colors_by_rank():
    colors = palette.by_rank([f"p{i}" for i in range(50)])

    assert colors["p0"] == palette.RANKED[0]
    assert len(colors) == len(palette.RANKED) == len(set(palette.RANKED))
    assert palette.FAILURE not in palette.RANKED
