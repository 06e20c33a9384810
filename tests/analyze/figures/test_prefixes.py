import polars as pl

from roast_analyze.figures import palette
from roast_analyze.figures.prefixes import prefix_seconds


def frame(*rows: tuple) -> pl.DataFrame:
    columns = ["prefix", "task_runs", "compute_seconds", "transfer_seconds"]
    told = pl.DataFrame(rows, schema=columns, orient="row")
    return told.with_columns(deserialize_seconds=0.0, disk_seconds=None).cast(
        {"disk_seconds": pl.Float64}
    )


def test_the_longest_bar_is_on_top_in_the_colour_of_its_prefix():
    figure = prefix_seconds(
        frame(("sum", 3, 1.0, 5.0), ("load", 9, 4.0, 0.0)), {"load": "#111111"}
    )

    computing, transfer = figure.data
    assert figure.layout.yaxis.ticktext == ("sum", "load")
    assert computing.x == (1.0, 4.0)
    assert computing.marker.color == (palette.OTHER, "#111111")
    assert (transfer.name, transfer.x) == ("transfer", (5.0, 0.0))


def test_what_nothing_was_spent_on_has_no_place_in_the_legend():
    figure = prefix_seconds(frame(("sum", 3, 1.0, 0.0)), {})

    assert [trace.name for trace in figure.data] == ["computing"]


def test_many_prefixes_end_in_one_bar_with_what_is_left():
    figure = prefix_seconds(
        frame(*((f"p{i:02}", 1, 10.0 - i / 10, 0.0) for i in range(25))), {}
    )

    (computing,) = figure.data
    assert len(computing.x) == 21
    assert figure.layout.yaxis.ticktext[-1] == "5 other prefixes"
    assert computing.x[-1] == 8.0 + 7.9 + 7.8 + 7.7 + 7.6
