"""Workers: the worker count, CPU usage, and sparklines in the table."""

import polars as pl
import pytest

from analyze.report.reading import plain
from roast_analyze.figures.layout import TimeAxis
from roast_analyze.figures.samples import POINT_LIMIT
from roast_analyze.report.topics.workers import sparklines
from roast_analyze.report.topics.workers.worker_count import figure

AXIS = TimeAxis(0.0, 10.0)


def test_workers_are_ordered_by_number_and_samples_aggregated_by_bucket(
    opened, worker, gone, sample
):
    _, about = opened(
        worker("a", t=3.0, name="10"),
        worker("b", t=1.0, name="9"),
        worker("c", t=2.0, name="x"),
        gone("a", 4.0, "handle-worker-cleanup-4.0"),
        gone("b", 5.0, "retire-workers-5.0"),
        sample(1.0, "c", server_id="i", cpu=10.0, memory=5, executing=1),
        sample(1.01, "c", server_id="i", cpu=30.0, memory=9, executing=0),
        sample(7.0, "c", server_id="i", cpu=50.0, memory=1, executing=0),
    )

    assert about.workers.select("worker", "lost").rows() == [
        ("b", False), ("a", True), ("c", False),
    ]  # fmt: skip
    assert about.worker_names == {"b": "worker 9", "a": "worker 10", "c": "x"}
    assert about.worker_samples.select(
        "t", "worker", "server_id", "samples", "cpu_percent", "memory_bytes", "executing"
    ).rows() == [(1.0, "c", "i", 2, 20.0, 9, 0.5), (7.0, "c", "i", 1, 50.0, 1, 0.0)]


def test_sentences(section, sentences, worker, task, run, gone, sample):
    assert sentences(
        "workers",
        worker("w1"),
        worker("w2", t=3.0),
        worker("w3", t=4.0),
        *(task("a-1"), *run("a-1", 1.0, 3.0)),
        *(task("a-2"), *run("a-2", 4.0, 5.0, worker="w2")),
        gone("w1", 5.0, "retire-workers-5.0"),
        gone("w2", 6.0, "handle-worker-cleanup-6.0"),
    ) == (
        "The cluster had 3 worker processes. The busiest worker computed for 2 s (1 "
        "attempt), the least busy for 0 s (0 attempts). 1 worker was lost. 2 workers joined "
        "after the start and 1 worker left."
    )
    alone = section(
        "workers",
        worker("w1", server_id="a"),
        sample(1.0, server_id="a", cpu=100, nthreads=1),
    )
    assert plain(alone.sentences[0]) == "The cluster had 1 worker process."
    assert plain(alone.plots[1].note).startswith(
        "The workers used 1 core on average and had 1 thread for tasks."
    )
    assert "peak CPU" in [column.title for column in alone.tables[0].columns]


def counted(*rows, recorded_t=0.1):
    names = ("worker", "nthreads", "added_t", "removed_t", "lost")
    types = (pl.String, pl.Int64, pl.Float64, pl.Float64, pl.Boolean)
    workers = pl.DataFrame(rows, dict(zip(names, types, strict=True)), orient="row")
    drawn = figure(workers.with_columns(name="worker"), AXIS, recorded_t)
    return {trace.name: trace for trace in drawn.data}


def test_the_next_worker_at_an_address_is_not_lost_with_the_first(opened, worker, gone):
    _, about = opened(
        worker("a", server_id="first"),
        {**gone("a", 4.0, "handle-worker-cleanup-4.0"), "server_id": "first"},
        worker("a", t=4.2, server_id="second"),
        {**gone("a", 4.8, "retire-workers-4.8"), "server_id": "second"},
    )
    assert about.workers["lost"].to_list() == [True, False]


def test_the_worker_count_and_the_workers_that_joined_left_or_were_lost():
    drawn = counted(
        ("w1", 2, 0.0, None, False),
        ("w2", 2, 4.0, 8.0, False),
        ("<b>3", 2, 4.0, 6.0, True),
        ("w4", None, None, None, None),
    )

    steps = drawn.pop("workers")
    assert (steps.x, steps.y, steps.line.shape) == ((0, 4, 6, 8, 10), (2, 4, 3, 2, 2), "hv")
    assert {name: (mark.x, mark.y, mark.customdata) for name, mark in drawn.items()} == {
        "joined": ((4,), (4,), ([2, "w2, &lt;b&gt;3"],)),
        "left": ((8,), (2,), ([1, "w2"],)),
        "lost": ((6,), (3,), ([1, "&lt;b&gt;3"],)),
    }
    # The threads are drawn if workers have different numbers of them.
    threads = counted(("w1", 2, 0.0, None, False), ("w2", 8, 5.0, 8.0, False))["threads"]
    assert (threads.y, threads.yaxis) == ((2, 10, 2, 2), "y2")


def test_the_figure_of_many_changes_is_small():
    rows = [(f"w{i}", 1, i / 500, 0.5 + i / 500, False) for i in range(3000)]

    drawn = counted(*rows, recorded_t=0.0)

    assert all(len(trace.x) <= POINT_LIMIT + 2 for trace in drawn.values())
    assert sum(n for n, _ in drawn["left"].customdata) == 3000
    assert drawn["left"].customdata[0][1] == "w250, w251, w252 and 39 more"


def drawn(processes, *ticks, limit=100, spilled=0):
    """Return maxima and curves; ticks are (t, worker, server_id, cpu, memory, executing).

    Curves are given as description and path.
    """
    table = pl.DataFrame(processes, schema=["worker", "server_id"], orient="row")
    names = ("t", "worker", "server_id", "cpu_percent", "memory_bytes", "executing")
    types = (pl.Float64, pl.String, pl.String, pl.Float64, pl.Int64, pl.Float64)
    samples = pl.DataFrame(ticks, schema=dict(zip(names, types, strict=True)), orient="row")
    samples = samples.with_columns(
        samples=1, memory_limit_bytes=pl.lit(limit, pl.Int64), spilled_bytes=spilled
    )
    rows, curves = sparklines.draw(table, samples, AXIS)
    return rows.drop("worker", "server_id").rows(), {
        name: [one and (plain(one.description), one.path) for one in some]
        for name, some in curves.items()
    }


def test_sparklines_of_each_process():
    # A restarted worker has the same address, but is another process. Curves of a column share
    # one scale; that of memory ends at the limit. Values are repeated until the last sample.
    maxima, curves = drawn(
        [("w1", "a"), ("w2", "b"), ("w1", "c"), ("w1", None)],
        (2.0, "w1", "a", 50.0, 80, 1.0),
        (2.1, "w1", "a", None, 80, 1.0),
        (5.0, "w1", "a", 50.0, 50, 0.0),
        (0.0, "w2", "b", 100.0, 50, 2.0),
        (9.0, "w1", "c", 70.0, 1, 0.0),
    )

    assert curves == {
        "max_cpu_cores": [
            ("50 to 50 %", "M12 8h18"), ("100 to 100 %", "M0 1h0"), ("70 to 70 %", "M54 5h0"),
            None,
        ],
        "max_memory_share": [
            ("50 to 80 %", "M12 4h12l6 4"), ("50 to 50 %", "M0 8h0"), ("1 to 1 %", "M54 15h0"),
            None,
        ],
        "max_executing": [
            ("0 to 1", "M12 8h12l6 7"), ("2 to 2", "M0 1h0"), ("0 to 0", "M54 15h0"), None,
        ],
    }  # fmt: skip
    assert maxima == [(0.5, 0.8, 1.0), (1.0, 0.5, 2.0), (0.7, 0.01, 0.0), (None, None, None)]


def test_samples_without_measurements_are_not_drawn():
    # The worker "w" sent samples without values.
    _, curves = drawn(
        [("v", "a"), ("w", "b")],
        (1.0, "v", "a", 50.0, 80, 1.0),
        (1.0, "w", "b", None, None, None),
    )

    assert {name: one[1] for name, one in curves.items()} == {
        "max_cpu_cores": None, "max_memory_share": None, "max_executing": None,
    }  # fmt: skip


def test_columns_depend_on_limits_and_spilling():
    process = ("w1", "a")
    _, curves = drawn([process], (1.0, *process, 10.0, 2048, 0.0), limit=None, spilled=1024)

    assert list(curves) == ["max_cpu_cores", "max_memory_bytes", "max_spilled_bytes"]
    assert curves["max_memory_bytes"][0][0] == "2 to 2 KiB"
    assert drawn([process]) == ([()], {})


def test_the_sparklines_of_a_page_are_small():
    workers = [(f"w{i}", f"id{i}") for i in range(300)]
    ticks = [
        (t / 10, *process, (7 * i * t) % 97, (13 * i * t) % 89, (i * t) % 3)
        for i, process in enumerate(workers)
        for t in range(100)
    ]

    _, curves = drawn(workers, *ticks, spilled=5)

    paths = [path for column in curves.values() for _, path in column]
    assert len(paths) == 4 * 300
    assert sum(map(len, paths)) < 8 * sparklines.POINTS_PER_PAGE
    points = {(9, 1000): 60, (9, 19): 15, (9, 0): 10, (300, 1000): 30, (900, 1000): 10,
              (0, 5): 10}  # fmt: skip
    assert {case: sparklines.point_count(*case) for case in points} == points


@pytest.mark.parametrize(
    ("values", "top", "step", "path"),
    [
        ([0.0, 1.0], 1.0, 30, "M0 15l30-14"),
        ([1.0, 0.0, 0.5], 1.0, 20, "M0 1l20 14l20-7"),
        ([5.0, 5.0, 5.0, 5.0], 10.0, 15, "M0 8h45"),
        ([None, 1.0, None, 0.0, 0.0], 1.0, 12, "M12 1h0M36 15h12"),
        ([9.0, -9.0], 1.0, 30, "M0 1l30 14"),
        ([None, None], 1.0, 30, ""),
        ([], 1.0, 30, ""),
    ],
)
def test_paths(values, top, step, path):
    assert sparklines.path(values, top, step) == path
