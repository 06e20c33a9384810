import polars as pl
import pytest

from roast_analyze.figures.layout import TimeAxis


@pytest.mark.parametrize(
    ("seconds", "unit", "place_of_the_end"),
    [(10, "s", 10), (600, "s", 600), (1200, "min", 20), (36_000, "h", 10)],
)
def test_the_unit_fits_the_span(seconds, unit, place_of_the_end):
    axis = TimeAxis(1000.0, 1000.0 + seconds)

    places = pl.DataFrame({"t": [1000.0, 1000.0 + seconds]}).select(axis.place("t"))

    assert axis.unit == unit
    assert axis.title == f"time since the start ({unit})"
    assert places.to_series().to_list() == [0, place_of_the_end]


def test_an_axis_without_length_can_be_drawn():
    low, high = TimeAxis(5.0, 5.0).range

    assert low < high
