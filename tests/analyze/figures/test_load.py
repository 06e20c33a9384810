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


def test_rows_of_a_map_have_the_names_of_their_workers():
    names = load.row_names(
        pl.DataFrame(
            {
                "row": [0, 0, 1, 2],
                "worker": ["tcp://w:0", "tcp://w:0", "tcp://w:1", "tcp://w:20"],
                "name": ["0", "0", None, "<b>x</b>"],
                "workers": [1, 1, 1, 13],
            }
        )
    )

    assert names == {0: "worker 0", 1: "w:1", 2: "&lt;b&gt;x&lt;/b&gt; and 12 more"}


def test_what_the_scheduler_had_to_do_is_drawn_over_time():
    figure = load.scheduler(STRETCHES, AXIS)

    assert {trace.meta["columns"]["y"]: list(trace.y) for trace in figure.data} == {
        "transitions_per_second": [0.0, 12.5, 3.0, 0.0],
        "ready": [0.0, 5.0, 2.0, 0.0],
        "waiting": [0.0, 1.0, 1.0, 0.0],
        "slowest_loop_seconds": [None, 0.02, None, 0.4],
    }
    assert all(list(trace.x) == [0.0, 1.0, 2.0, 3.0] for trace in figure.data)


def came(**columns: list) -> pl.DataFrame:
    return pl.DataFrame({"t": [100.0, 101.0, 102.0], "batches": [0, 0, 0], **columns})


def test_tasks_that_came_have_a_stem_where_some_did():
    figure = load.submissions(came(tasks=[0, 7, 2], stolen=[0, 0, 0]), AXIS)

    (stems,) = figure.data
    assert (stems.x, stems.y) == ((1.0, 2.0), (7, 2))
    assert stems.error_y.arrayminus == (7, 2)


def test_tasks_that_were_stolen_have_a_panel_of_their_own():
    figure = load.submissions(came(tasks=[9, 0, 0], stolen=[0, 0, 3]), AXIS)

    _, stolen = figure.data
    assert (stolen.x, stolen.y, stolen.yaxis) == ((2.0,), (3,), "y2")
