import polars as pl

from roast_analyze.figures import palette
from roast_analyze.figures.layout import TimeAxis


def test_the_unit_of_the_time_axis_fits_its_length():
    ends = {}
    for seconds in (10, 600, 1200, 36_000):
        axis = TimeAxis(1000.0, 1000.0 + seconds)
        places = pl.DataFrame({"t": [1000.0, 1000.0 + seconds]}).select(axis.place("t"))
        assert axis.title == f"time since the start ({axis.unit})"
        ends[seconds] = (axis.unit, *places.to_series())

    assert ends == {
        10: ("s", 0, 10), 600: ("s", 0, 600), 1200: ("min", 0, 20), 36_000: ("h", 0, 10),
    }  # fmt: skip


def test_an_axis_without_length_can_be_drawn():
    low, high = TimeAxis(5.0, 5.0).range

    assert low < high


def test_colors_by_rank():
    colors = palette.by_rank([f"p{i}" for i in range(50)])

    assert colors["p0"] == palette.RANKED[0]
    assert len(colors) == len(palette.RANKED) == len(set(palette.RANKED))
    assert palette.FAILURE not in palette.RANKED
