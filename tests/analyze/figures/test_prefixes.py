import polars as pl
from roast_analyze.figures.prefixes import BAR_LIMIT, durations, prefix_seconds

from roast_analyze.figures import palette


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


def spread(*rows: tuple) -> pl.DataFrame:
    """Prefixes and the 5th, 25th, 50th, 75th, 95th and 100th percentile of their times."""
    places = ["p05", "p25", "median", "p75", "p95", "max"]
    columns = ["prefix", *(f"{place}_compute_seconds" for place in places)]
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_a_box_shows_how_the_times_of_a_prefix_are_spread():
    figure = durations(spread(("sum", 0.1, 0.2, 0.5, 1.0, 2.0, 9.0)), {"sum": "#0072B2"})

    box, longest = figure.data
    assert (box.lowerfence, box.q1, box.median) == ((0.1,), (0.2,), (0.5,))
    assert (box.q3, box.upperfence) == ((1.0,), (2.0,))
    assert (box.line.color, box.fillcolor) == ("#0072B2", "rgba(0, 114, 178, 0.22)")
    assert (longest.x, longest.customdata) == ((9.0,), (["sum", 0.1, 0.2, 0.5, 1.0, 2.0],))
    assert figure.layout.xaxis.type == "log"


def test_no_time_at_all_has_a_place_on_powers_of_ten():
    figure = durations(spread(("sum", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)), {})

    assert figure.data[0].median == (1e-6,)


def test_prefixes_without_a_time_and_cheap_ones_have_no_box():
    never = ("never", None, None, None, None, None, None)
    many = [(f"p{i:02}", 1.0, 1.0, 1.0, 1.0, 1.0, 1.0) for i in range(25)]

    figure = durations(spread(never, *many), {})

    assert len(figure.data) == BAR_LIMIT + 1
    assert figure.layout.yaxis.ticktext[0] == "p00"
