"""Workers: the worker count, CPU usage, and sparklines in the table."""

import re

import polars as pl

from roast_analyze.figures.layout import TimeAxis
from roast_analyze.figures.samples import POINT_LIMIT
from roast_analyze.report import context
from roast_analyze.report.topics.workers import sparklines
from roast_analyze.report.topics.workers.worker_count import figure

AXIS = TimeAxis(0.0, 10.0)


def test_workers_are_ordered_by_number_and_marked_if_lost(opened, worker, gone):
    _, about = opened(
        worker("a", t=3.0, name="10"),
        worker("b", t=1.0, name="9"),
        worker("c", t=2.0, name="x"),
        gone("a", 4.0, "handle-worker-cleanup-4.0"),
        gone("b", 5.0, "retire-workers-5.0"),
    )

    assert about.workers.select("worker", "lost").rows() == [
        ("b", False), ("a", True), ("c", False),
    ]  # fmt: skip
    assert about.worker_names == {"b": "worker 9", "a": "worker 10", "c": "x"}


def test_samples_are_aggregated_by_bucket(opened, sample):
    _, about = opened(
        sample(1.0, server_id="i", cpu=10.0, memory=5, executing=1),
        sample(1.01, server_id="i", cpu=30.0, memory=9, executing=0),
        sample(7.0, server_id="i", cpu=50.0, memory=1, executing=0),
    )

    assert about.worker_samples.select(
        "t", "worker", "server_id", "samples", "cpu_percent", "memory_bytes", "executing"
    ).rows() == [(1.0, "w1", "i", 2, 20.0, 9, 0.5), (7.0, "w1", "i", 1, 50.0, 1, 0.0)]


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
        "The cluster had 3 worker processes. The busiest worker computed for 2 s, the least "
        "busy for 0 s. 1 worker was lost. 2 workers joined after the start and 1 worker left "
        "in order."
    )
    assert sentences("workers", worker("w1")) == "The cluster had 1 worker process."


def test_cpu_usage(section, worker, sample):
    _, plot = section("workers", worker("w1"), sample(1.0, cpu=100, nthreads=1)).plots

    assert plot.note.replace("\N{NO-BREAK SPACE}", " ").startswith(
        "The workers used 1 core on average and had 1 thread for tasks."
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
        ("w3", 2, 4.0, 6.0, True),
        ("w4", None, None, None, None),
    )

    steps = drawn.pop("workers")
    assert (steps.x, steps.y, steps.line.shape) == ((0, 4, 6, 8, 10), (2, 4, 3, 2, 2), "hv")
    assert "threads" not in drawn
    marks = {name: (mark.x, mark.y, mark.customdata) for name, mark in drawn.items()}
    assert marks == {
        "joined": ((4,), (4,), ([2, "w2, w3"],)),
        "left": ((8,), (2,), ([1, "w2"],)),
        "lost": ((6,), (3,), ([1, "w3"],)),
    }


def test_threads_are_drawn_only_if_workers_differ_in_them():
    assert "threads" not in counted(("w1", 2, 0.0, None, False), ("w2", 2, 5.0, None, False))
    assert counted(("w1", 2, 0.0, None, False), ("w2", 8, 5.0, None, False))["threads"].y == (
        2, 10, 10,
    )  # fmt: skip


def test_the_first_names_are_listed_and_escaped():
    drawn = counted(*((f"<b>{i}", 1, 5.0, None, False) for i in range(9)))

    assert drawn["joined"].customdata == ([9, "&lt;b&gt;0, &lt;b&gt;1, &lt;b&gt;2 and 6 more"],)


def test_the_figure_of_many_changes_is_small():
    rows = [(f"w{i}", 1, i / 500, 0.5 + i / 500, False) for i in range(3000)]

    drawn = counted(*rows, recorded_t=0.0)

    assert all(len(trace.x) <= POINT_LIMIT + 2 for trace in drawn.values())
    assert sum(n for n, _ in drawn["left"].customdata) == 3000


def processes(*rows):
    return pl.DataFrame(
        rows, schema={"worker": pl.String, "server_id": pl.String}, orient="row"
    )


def samples(*ticks, limit=100, spilled=0):
    """Samples from ``(t, worker, server_id, cpu, memory, executing)``."""
    schema = {
        "t": pl.Float64,
        "worker": pl.String,
        "server_id": pl.String,
        "cpu_percent": pl.Float64,
        "memory_bytes": pl.Int64,
        "executing": pl.Float64,
    }
    return pl.DataFrame(ticks, schema=schema, orient="row").with_columns(
        pl.lit(1).alias("samples"),
        pl.lit(limit, pl.Int64).alias("memory_limit_bytes"),
        pl.lit(spilled).alias("spilled_bytes"),
    )  # fmt: skip


def described(drawn, column):
    return [
        curve and curve.description.replace("\N{NO-BREAK SPACE}", " ")
        for curve in drawn.sparklines[column]
    ]


def test_sparklines_of_each_process():
    drawn = sparklines.draw(
        # A restarted worker has the same address, but is another process.
        processes(("w1", "a"), ("w2", "b"), ("w1", "c"), ("w1", None)),
        samples(
            (1.0, "w1", "a", 20.0, 10, 1.0),
            (6.0, "w1", "a", 80.0, 50, 0.0),
            (1.0, "w2", "b", 40.0, 30, 2.0),
            (9.0, "w1", "c", 70.0, 1, 0.0),
        ),
        AXIS,
    )

    assert [field.title for field in drawn.fields] == [
        "CPU",
        "memory of limit",
        "executing tasks",
    ]
    assert described(drawn, "max_cpu_cores") == ["20 to 80 %", "40 to 40 %", "70 to 70 %", None]
    assert described(drawn, "max_memory_share") == [
        "10 to 50 %",
        "30 to 30 %",
        "1 to 1 %",
        None,
    ]
    assert described(drawn, "max_executing") == ["0 to 1", "2 to 2", "0 to 0", None]
    assert drawn.rows.select("max_cpu_cores", "max_memory_share").rows() == [
        (0.8, 0.5), (0.4, 0.3), (0.7, 0.01), (None, None),
    ]  # fmt: skip


def test_sparklines_of_a_column_have_one_scale_and_that_of_memory_ends_at_the_limit():
    drawn = sparklines.draw(
        processes(("w1", "a"), ("w2", "b")),
        samples((0.0, "w1", "a", 50.0, 100, 0.0), (0.0, "w2", "b", 100.0, 50, 0.0)),
        AXIS,
    )

    half, full = "M0 8h0", "M0 1h0"
    assert [curve.path for curve in drawn.sparklines["max_cpu_cores"]] == [half, full]
    assert [curve.path for curve in drawn.sparklines["max_memory_share"]] == [full, half]


def test_a_sparkline_repeats_values_until_the_last_sample():
    ticks = (2.0, "w1", "a", 100.0, 1, 0.0), (5.0, "w1", "a", 100.0, 1, 0.0)
    drawn = sparklines.draw(processes(("w1", "a")), samples(*ticks), AXIS)

    assert drawn.sparklines["max_cpu_cores"][0].path == "M12 1h18"


def test_columns_depend_on_limits_and_spilling():
    one, tick = processes(("w1", "a")), (1.0, "w1", "a", 10.0, 2048, 0.0)

    drawn = sparklines.draw(one, samples(tick, limit=None, spilled=1024), AXIS)
    assert [field.name for field in drawn.fields] == [
        "max_cpu_cores", "max_memory_bytes", "max_spilled_bytes",
    ]  # fmt: skip
    assert described(drawn, "max_memory_bytes") == ["2 to 2 KiB"]
    empty = sparklines.draw(one, samples(), AXIS)
    assert (empty.fields, empty.sparklines, empty.rows.rows()) == ((), {}, [("w1", "a")])


def test_the_sparklines_of_a_page_are_small():
    workers = [(f"w{i}", f"id{i}") for i in range(300)]
    ticks = [
        (t / 10, *process, (7 * i * t) % 97, (13 * i * t) % 89, (i * t) % 3)
        for i, process in enumerate(workers)
        for t in range(100)
    ]

    drawn = sparklines.draw(processes(*workers), samples(*ticks, spilled=5), AXIS)

    paths = [curve.path for column in drawn.sparklines.values() for curve in column]
    assert len(paths) == 4 * 300
    assert sum(map(len, paths)) < 8 * sparklines.POINTS_PER_PAGE


PATHS = [
    ([0.0, 1.0], 1.0, "M0 15l30-14"),
    ([1.0, 0.0, 0.5], 1.0, "M0 1l20 14l20-7"),
    ([5.0, 5.0, 5.0, 5.0], 10.0, "M0 8h45"),
    ([None, 1.0, None, 0.0, 0.0], 1.0, "M12 1h0M36 15h12"),
    ([9.0, -9.0], 1.0, "M0 1l30 14"),
    ([0.0, 0.0], 0.0, "M0 15h30"),
    ([None, None], 1.0, ""),
    ([], 1.0, ""),
]


def test_paths():
    paths = [(values, top, sparklines.path(values, top)) for values, top, _ in PATHS]

    assert paths == PATHS


def test_a_path_stays_within_its_size():
    values = [None, 3.0, 0.1, 7.0, 7.0, 2.0, None, None, 5.0, 1.0] * 6

    x = y = 0
    for letter, numbers in re.findall(r"([Mlh])([-0-9 ]+)", sparklines.path(values, 7.0)):
        steps = [int(number) for number in re.findall(r"-?[0-9]+", numbers)]
        right, down = [*steps, 0][:2]
        x, y = (right, down) if letter == "M" else (x + right, y + down)
        assert 0 <= x <= sparklines.WIDTH_PX
        assert 0 <= y <= sparklines.HEIGHT_PX


def test_more_sparklines_have_fewer_points():
    cases = {
        (9, 1000): 60,
        (9, 19): 15,
        (9, 0): 10,
        (300, 1000): 30,
        (900, 1000): 10,
        (0, 5): 10,
    }

    assert {case: sparklines.point_count(*case) for case in cases} == cases


def test_buckets_of_a_recording_without_load():
    assert context.Buckets().parameters == {"begin_t": 0.0, "width": 1.0, "last": 0}
