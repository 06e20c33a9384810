import polars as pl
import pytest
from roast_analyze.figures.chunks import chunk_seconds, median_rate

from roast_analyze.figures import palette
from roast_analyze.figures.layout import TimeAxis

AXIS = TimeAxis(100.0, 110.0)
SCHEMA = {
    "dataset": pl.String,
    "filename": pl.String,
    "entry_start": pl.Int64,
    "entry_stop": pl.Int64,
    "events": pl.Int64,
    "attempt": pl.Int64,
    "worker": pl.String,
    "outcome": pl.String,
    "processing_t": pl.Float64,
    "compute_seconds": pl.Float64,
    "events_per_second": pl.Float64,
}


@pytest.fixture
def chunks():
    """A frame of chunk attempts from ``(dataset, events, seconds, outcome)``."""

    def frame(*rows: tuple) -> pl.DataFrame:
        told = [
            {
                "dataset": dataset,
                "filename": f"{dataset}.root",
                "entry_start": 0,
                "entry_stop": 1000,
                "events": events,
                "attempt": 1,
                "worker": "w",
                "outcome": outcome,
                "processing_t": 101.0,
                "compute_seconds": seconds,
                "events_per_second": events / seconds if events and seconds else None,
            }
            for dataset, events, seconds, outcome in rows
        ]
        return pl.DataFrame(told, schema=SCHEMA)

    return frame


def test_a_point_is_an_attempt_by_size_and_by_time(chunks):
    drawn = chunk_seconds(
        chunks(("Z", 1000, 2.0, "memory"), ("W", 500, 1.0, "memory")), ["Z", "W"], AXIS
    )

    points = [(t.name, t.xaxis, t.x, t.y) for t in drawn.figure.data if t.mode == "markers"]
    assert points == [
        ("Z", "x", (1000,), (2.0,)),
        ("Z", "x2", (1.0,), (2.0,)),
        ("W", "x", (500,), (1.0,)),
        ("W", "x2", (1.0,), (1.0,)),
    ]


def test_failed_chunks_stand_where_they_were_to_be(chunks):
    drawn = chunk_seconds(chunks(("Z", None, 2.0, "erred")), ["Z"], AXIS)

    failed = drawn.figure.data[0]
    assert (failed.name, failed.x, failed.marker.color) == (
        "not finished",
        (1000,),
        palette.FAILURE,
    )


def test_lost_chunks_are_counted_not_drawn(chunks):
    drawn = chunk_seconds(
        chunks(("Z", None, None, "lost"), ("Z", 10, 1.0, "memory")), ["Z"], AXIS
    )

    assert (drawn.drawn, drawn.undrawn, drawn.without_time) == (1, 0, 1)


def test_of_many_chunks_the_failed_and_the_slowest_are_kept(chunks):
    many = [("Z", 1000, 1.0 + i / 1000, "memory") for i in range(1000)]

    drawn = chunk_seconds(
        chunks(*many, ("Z", None, 0.1, "erred"), ("Z", 1000, 50.0, "memory")),
        ["Z"],
        AXIS,
        point_limit=100,
    )

    seconds = {y for trace in drawn.figure.data for y in trace.y}
    assert {0.1, 50.0} <= seconds
    assert drawn.drawn <= 100
    assert drawn.drawn + drawn.undrawn == 1002


def test_the_line_has_the_median_rate(chunks):
    told = chunks(
        ("Z", 1000, 1.0, "memory"), ("Z", 1000, 2.0, "memory"), ("Z", 1000, 4.0, "memory")
    )

    line = chunk_seconds(told, ["Z"], AXIS).figure.data[-1]

    assert median_rate(told) == 500
    assert (line.x, line.y) == ((0, 1000), (0, 2.0))


def test_markup_of_a_trace_is_no_markup_of_plotly(chunks):
    figure = chunk_seconds(
        chunks(("<a href=x>", 1, 1.0, "memory")), ["<a href=x>"], AXIS
    ).figure

    assert "<a" not in figure.to_json()
