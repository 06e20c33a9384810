"""Workers: the worker count, CPU usage, and sparklines in the table."""

import polars as pl
import pytest

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


def test_sentences(sentences, worker, task, run, gone):
    assert sentences(
        "workers",
        worker("w1"),
        worker("w2", t=3.0),
        worker("w3", t=4.0),
        task("a-1"),
        task("a-2"),
        *run("a-1", 1.0, 3.0),
        *run("a-2", 4.0, 5.0, worker="w2"),
        gone("w1", 5.0, "retire-workers-5.0"),
        gone("w2", 6.0, "handle-worker-cleanup-6.0"),
    ) == (
        "The cluster had 3 worker processes. The busiest worker computed for 2 s (1 "
        "attempt), the least busy for 0 s (0 attempts). 1 worker was lost. 2 workers joined "
        "after the start and 1 worker left in order."
    )


def test_one_worker_and_its_cpu_usage(section, worker, sample):
    found = section("workers", worker("w1"), sample(1.0, cpu=100, nthreads=1))

    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in found.sentences] == [
        "The cluster had 1 worker process."
    ]
    assert (
        found.plots[1]
        .note.replace("\N{NO-BREAK SPACE}", " ")
        .startswith("The workers used 1 core on average and had 1 thread for tasks.")
    )


def counted(*rows, recorded_t=0.1):
    names = ("worker", "nthreads", "added_t", "removed_t", "lost")
    workers = pl.DataFrame(
        [{**dict(zip(names, row, strict=True)), "name": row[0]} for row in rows],
        schema_overrides={"nthreads": pl.Int64, "added_t": pl.Float64, "removed_t": pl.Float64,
                          "lost": pl.Boolean},
    )  # fmt: skip
    return {trace.name: trace for trace in figure(workers, AXIS, recorded_t).data}


def test_the_worker_count_and_who_joined_left_or_was_lost():
    drawn = counted(
        ("w1", 2, 0.0, None, False),
        ("w2", 2, 4.0, 8.0, False),
        ("<b>3", 2, 4.0, 6.0, True),
        ("w4", None, None, None, None),
    )

    steps = drawn.pop("workers")
    assert (steps.x, steps.y, steps.line.shape) == ((0, 4, 6, 8, 10), (2, 4, 3, 2, 2), "hv")
    assert "threads" not in drawn
    marks = {name: (mark.x, mark.y, mark.customdata) for name, mark in drawn.items()}
    assert marks == {
        "joined": ((4,), (4,), ([2, "w2, &lt;b&gt;3"],)),
        "left": ((8,), (2,), ([1, "w2"],)),
        "lost": ((6,), (3,), ([1, "&lt;b&gt;3"],)),
    }


def test_threads_are_drawn_if_workers_differ_in_them():
    drawn = counted(("w1", 2, 0.0, None, False), ("w2", 8, 5.0, None, False))

    assert (drawn["threads"].y, drawn["threads"].yaxis) == ((2, 10, 10), "y2")


def test_the_figure_of_many_changes_is_small():
    rows = [(f"w{i}", 1, i / 500, 0.5 + i / 500, False) for i in range(3000)]

    drawn = counted(*rows, recorded_t=0.0)

    assert all(len(trace.x) <= POINT_LIMIT + 2 for trace in drawn.values())
    assert sum(n for n, _ in drawn["left"].customdata) == 3000
    assert drawn["left"].customdata[0][1] == "w250, w251, w252 and 39 more"


def drawn(processes, *ticks, limit=100, spilled=0):
    """Sparklines of processes; ticks are ``(t, worker, server_id, cpu, memory, executing)``."""
    table = pl.DataFrame(processes, schema=["worker", "server_id"], orient="row")
    names = ("t", "worker", "server_id", "cpu_percent", "memory_bytes", "executing")
    types = (pl.Float64, pl.String, pl.String, pl.Float64, pl.Int64, pl.Float64)
    samples = pl.DataFrame(ticks, schema=dict(zip(names, types, strict=True)), orient="row")
    samples = samples.with_columns(
        samples=1, memory_limit_bytes=pl.lit(limit, pl.Int64), spilled_bytes=spilled
    )
    return sparklines.draw(table, samples, AXIS)


def described(columns, name):
    return [
        curve and curve.description.replace("\N{NO-BREAK SPACE}", " ")
        for curve in columns.sparklines[name]
    ]


def test_sparklines_of_each_process():
    # A restarted worker has the same address, but is another process.
    columns = drawn(
        [("w1", "a"), ("w2", "b"), ("w1", "c"), ("w1", None)],
        (1.0, "w1", "a", 20.0, 10, 1.0),
        (6.0, "w1", "a", 80.0, 50, 0.0),
        (1.0, "w2", "b", 40.0, 30, 2.0),
        (9.0, "w1", "c", 70.0, 1, 0.0),
    )

    assert {field.title: described(columns, field.name) for field in columns.fields} == {
        "CPU": ["20 to 80 %", "40 to 40 %", "70 to 70 %", None],
        "memory of limit": ["10 to 50 %", "30 to 30 %", "1 to 1 %", None],
        "executing tasks": ["0 to 1", "2 to 2", "0 to 0", None],
    }
    assert columns.rows.select("max_cpu_cores", "max_memory_share").rows() == [
        (0.8, 0.5), (0.4, 0.3), (0.7, 0.01), (None, None),
    ]  # fmt: skip


def test_sparklines_of_a_column_have_one_scale_and_that_of_memory_ends_at_the_limit():
    columns = drawn(
        [("w1", "a"), ("w2", "b")],
        (0.0, "w1", "a", 50.0, 100, 0.0),
        (0.0, "w2", "b", 100.0, 50, 0.0),
    )

    half, full = "M0 8h0", "M0 1h0"
    assert [curve.path for curve in columns.sparklines["max_cpu_cores"]] == [half, full]
    assert [curve.path for curve in columns.sparklines["max_memory_share"]] == [full, half]


def test_a_sparkline_repeats_values_until_the_last_sample():
    columns = drawn([("w1", "a")], (2.0, "w1", "a", 9.0, 1, 0.0), (5.0, "w1", "a", 9.0, 1, 0.0))

    assert columns.sparklines["max_cpu_cores"][0].path == "M12 1h18"


def test_columns_depend_on_limits_and_spilling():
    process = ("w1", "a")
    columns = drawn([process], (1.0, *process, 10.0, 2048, 0.0), limit=None, spilled=1024)
    empty = drawn([process])

    assert [field.name for field in columns.fields] == [
        "max_cpu_cores", "max_memory_bytes", "max_spilled_bytes",
    ]  # fmt: skip
    assert described(columns, "max_memory_bytes") == ["2 to 2 KiB"]
    assert (empty.fields, empty.sparklines, empty.rows.rows()) == ((), {}, [process])


def test_the_sparklines_of_a_page_are_small():
    workers = [(f"w{i}", f"id{i}") for i in range(300)]
    ticks = [
        (t / 10, *process, (7 * i * t) % 97, (13 * i * t) % 89, (i * t) % 3)
        for i, process in enumerate(workers)
        for t in range(100)
    ]

    columns = drawn(workers, *ticks, spilled=5)

    paths = [curve.path for column in columns.sparklines.values() for curve in column]
    assert len(paths) == 4 * 300
    assert sum(map(len, paths)) < 8 * sparklines.POINTS_PER_PAGE


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


def test_more_sparklines_have_fewer_points():
    cases = {(9, 1000): 60, (9, 19): 15, (9, 0): 10, (300, 1000): 30, (900, 1000): 10,
             (0, 5): 10}  # fmt: skip

    assert {case: sparklines.point_count(*case) for case in cases} == cases
