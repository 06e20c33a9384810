import polars as pl

from roast_analyze.figures import load
from roast_analyze.figures.layout import TimeAxis

AXIS = TimeAxis(100.0, 104.0)
STRETCHES = pl.DataFrame(
    {
        "t": [100.0, 101.0, 102.0, 103.0],
        "transitions_per_second": [0.0, 12.5, 3.0, 0.0],
        "ready": [0.0, 5.0, 2.0, 0.0],
        "waiting": [0.0, 1.0, 1.0, 0.0],
        "slowest_loop_seconds": [None, 0.02, None, 0.4],
    }
)


def rows(*cells: tuple) -> pl.DataFrame:
    """Cells of the map: row, stretch, share; a worker a row."""
    return pl.DataFrame(
        [
            {"row": row, "worker": f"tcp://w:{row}", "name": str(row), "workers": 1,
             "stretch": stretch, "share": share}
            for row, stretch, share in cells
        ]
    )  # fmt: skip


def test_a_map_has_a_row_a_worker_and_holes_where_none_was_there():
    figure = load.busy(rows((0, 0, 0.0), (0, 1, 1.0), (1, 3, 0.256)), STRETCHES, AXIS)

    (drawn,) = figure.data
    assert list(map(list, drawn.z)) == [[0, 100, None, None], [None, None, None, 26]]
    assert drawn.x == (0.5, 1.5, 2.5, 3.5)
    assert figure.layout.yaxis.ticktext == ("worker 0", "worker 1")


def test_rows_of_several_workers_say_so():
    together = rows((0, 0, 0.5)).with_columns(pl.lit(13).alias("workers"))

    figure = load.busy(together, STRETCHES, AXIS)

    assert figure.layout.yaxis.ticktext == ("worker 0 and 12 more",)


def test_names_are_no_markup():
    hostile = rows((0, 0, 0.5)).with_columns(pl.lit("<b>x").alias("name"))

    assert load.busy(hostile, STRETCHES, AXIS).layout.yaxis.ticktext == ("&lt;b&gt;x",)


def test_what_the_scheduler_had_to_do_is_drawn_over_time():
    figure = load.scheduler(STRETCHES, AXIS)

    assert {trace.meta["columns"]["y"]: list(trace.y) for trace in figure.data} == {
        "transitions_per_second": [0.0, 12.5, 3.0, 0.0],
        "ready": [0.0, 5.0, 2.0, 0.0],
        "waiting": [0.0, 1.0, 1.0, 0.0],
        "slowest_loop_seconds": [None, 0.02, None, 0.4],
    }
    assert all(list(trace.x) == [0.0, 1.0, 2.0, 3.0] for trace in figure.data)
