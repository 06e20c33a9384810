"""The section on the kinds of work inside tasks."""

import polars as pl
import pytest

from analyze.report.reading import plain, texts
from roast_analyze.algorithms.work_kinds import load_kinds
from roast_analyze.figures import palette
from roast_analyze.report.topics import inside_tasks

#: Functions of the profiles: own code, which calls numpy and waits for a queue.
FRAMES = [
    {"name": "work", "filename": "/home/ana/script.py", "line_number": 7},
    {"name": "sort", "filename": "/x/site-packages/numpy/core.py", "line_number": 1},
    {"name": "get", "filename": "/usr/lib/python3.11/queue.py", "line_number": 1},
]


def cycle(start, own=0, numpy=0, queue=0):
    """Return a profiling cycle of a second, with the samples that ended in each function."""
    return {
        "start_t": start, "stop_t": start + 1.0, "nodes": [0, 1, 2, 3],
        "counts": [own + numpy + queue, numpy + queue, 0, 0],
        "innermost": [0, own, numpy, queue],
    }  # fmt: skip


def profile(*cycles, prefix="a"):
    tree = {
        "frames": FRAMES, "parents": [None, 0, 1, 1], "node_frames": [None, 0, 1, 2],
        "line_numbers": [None, 8, 2, 2], "slices": list(cycles),
    }  # fmt: skip
    return {
        "kind": "profile", "t": 4.5, "worker": "w1", "server_id": "id-w1-0.0",
        "prefix": prefix, "start_t": 0.0, "stop_t": 9.0, "interval_seconds": 0.01, "tree": tree,
    }  # fmt: skip


@pytest.fixture
def records(worker, task, run):
    """Return records of a task that computes from 2 s to 4.5 s, without samples."""
    return [worker("w1"), task("a-1"), *run("a-1", 2.0, 4.5)]


def test_kinds_over_time(section, records):
    found = section(
        "inside-tasks",
        *records,
        profile(cycle(2.0, numpy=80, queue=20), cycle(3.0, own=100), cycle(4.0, own=50)),
        stop_t=4.5,
    )
    [plot], [table] = found.plots, found.tables

    # Each kind begins with its bucket; the last bucket ends with the recording.
    assert [
        (bar.name, bar.x, bar.y, bar.width, bar.customdata, bar.marker.pattern.shape)
        for bar in plot.figure.data
    ] == [
        ("Python loops", (3.0, 4.0), (1.0, 1.0), (1.0, 0.5), ([1.0, 1.0], [0.5, 1.0]), ""),
        ("array kernels", (2.0,), (0.8,), (1.0,), ([0.8, 0.8],), ""),
        ("queue or event", (2.0,), (0.2,), (1.0,), ([0.2, 0.2],), "/"),
    ]
    assert {bar.offset for bar in plot.figure.data} == {0}
    assert plain(plot.note).startswith("Estimated from about 250 samples.")
    assert plain(" ".join(found.sentences)) == (
        "Tasks computed for 2.5 s. The largest kinds of work, as samples show: Python loops "
        "(1.5 s, 60 %), array kernels (800 ms, 32 %) and queue or event (200 ms, 8 %)."
    )
    assert texts(table) == [
        ["Python loops", "work (script.py:7)", "a", "1.50", "60"],
        ["queue or event", "work (script.py:7)", "a", "0.20", "8"],
    ]


def test_own_functions_that_can_have_waited(section, worker, task, run):
    """Of 2 s, half in own code and half in numpy, threads were on the CPU for 1.1 s."""
    about = {
        "kind": "fine_metric", "t": 4.0, "worker": "w1", "context": "execute",
        "server_id": "id-w1-0.0", "prefix": "a", "unit": "seconds",
    }  # fmt: skip
    found = section(
        "inside-tasks", worker("w1"), task("a-1"), *run("a-1", 2.0, 4.0),
        profile(cycle(2.0, own=50, numpy=50), cycle(3.0, own=50, numpy=50)),
        {**about, "activity": "thread-cpu", "delta": 1.1},
        {**about, "activity": "thread-noncpu", "delta": 0.9},
        stop_t=4.5,
    )  # fmt: skip

    assert texts(found.tables[0]) == [
        ["not on the CPU", "work (script.py:7)", "a", "0.900", "45"],
        ["Python loops", "work (script.py:7)", "a", "0.100", "5"],
    ]


def test_libraries_that_can_have_waited_are_not_own_code(section, worker, task, run):
    """Of 2 s, a package of which nothing is known was on the CPU for 0.5 s."""
    package = {"name": "read", "filename": "/x/site-packages/engine/io.py", "line_number": 1}
    profiled = profile(cycle(2.0, numpy=100), cycle(3.0, numpy=100))
    profiled["tree"]["frames"] = [FRAMES[0], package, FRAMES[2]]
    about = {
        "kind": "fine_metric", "t": 4.0, "worker": "w1", "context": "execute",
        "server_id": "id-w1-0.0", "prefix": "a", "unit": "seconds",
    }  # fmt: skip
    found = section(
        "inside-tasks", worker("w1"), task("a-1"), *run("a-1", 2.0, 4.0), profiled,
        {**about, "activity": "thread-cpu", "delta": 0.5},
        {**about, "activity": "thread-noncpu", "delta": 1.5},
        stop_t=4.5,
    )  # fmt: skip

    assert "not on the CPU" in {bar.name for bar in found.plots[0].figure.data}
    assert list(found.tables) == []


def test_bars_between_which_nothing_computed(section, worker, task, run):
    """Their width is that of a bucket, not their distance."""
    found = section(
        "inside-tasks", worker("w1"), task("a-1"), task("a-2"),
        *run("a-1", 2.0, 3.0), *run("a-2", 8.0, 9.0),
        profile(cycle(2.0, own=100), cycle(8.0, own=100)),
    )  # fmt: skip
    [bar] = found.plots[0].figure.data

    assert (bar.x, bar.width) == ((2.0, 8.0), (1.0, 1.0))


def test_time_that_is_not_known(sentences, records):
    """Samples are missing in the first and in the last second."""
    assert sentences(
        "inside-tasks", *records, profile(cycle(2.0, own=25), cycle(3.0, numpy=25, own=50))
    ) == (
        "Tasks computed for 2.5 s. The largest kinds of work, as samples show: Python loops "
        "(1.17 s, 47 %) and array kernels (333 ms, 13 %). 40 % of the compute time is not "
        "known: 1 s in which samples are missing (a held GIL or a host without free cores can "
        "delay the profiler)."
    )


@pytest.mark.exhaustive
def test_few_samples_are_drawn_without_a_sentence(section, records):
    few = inside_tasks.LEAST_SAMPLES - 1
    found = section("inside-tasks", *records, profile(cycle(2.0, own=few)))

    assert (found.sentences, len(found.plots), len(found.tables)) == ((), 1, 1)
    assert section("inside-tasks", *records, profile(cycle(2.0, own=few + 1))).sentences


@pytest.mark.exhaustive
def test_without_samples_and_without_tasks(section, records, worker):
    found = section("inside-tasks", *records)

    assert found.empty.startswith("This trace contains no samples of tasks that computed.")
    assert "profile.enabled" in found.hint
    assert section("inside-tasks", worker("w1")).empty == (
        "No task computed while this was recorded."
    )


def spent(*rows):
    """Return a frame of ``(category, kind, seconds)``."""
    return pl.DataFrame(rows, schema=["category", "kind", "seconds"], orient="row")


def test_kinds_of_the_least_time_share_a_part():
    parts = inside_tasks.rank(
        spent(
            *(("working", f"k{n}", 100.0 - n) for n in range(10)),
            ("waiting", "<lock>", 200.0),
            ("not known", "no samples", 150.0),
            ("not known", "profiler starved", 0.001),
        )
    )

    assert [(*kind, names) for kind, names in parts.items()] == [
        ("&lt;lock&gt;", palette.RANKED[0], "/", ["<lock>"]),
        ("no samples", "#4C515A", "x", ["no samples"]),
        *((f"k{n}", palette.RANKED[n + 1], "", [f"k{n}"]) for n in range(7)),
        ("profiler starved", "#B9BDC5", "x", ["profiler starved"]),
        ("3\N{NO-BREAK SPACE}other kinds", palette.OTHER, "", ["k7", "k8", "k9"]),
    ]


def test_a_single_kind_of_little_time_keeps_its_name():
    parts = inside_tasks.rank(spent(("working", "imports", 1.0), ("waiting", "lock", 999.0)))

    assert [(kind.words, kind.color) for kind in parts] == [
        ("lock", palette.RANKED[0]), ("imports", palette.OTHER),
    ]  # fmt: skip


def test_kinds_of_the_table_and_reasons_are_those_of_the_view():
    categories = load_kinds(None).categories

    assert set(inside_tasks.OWN_KINDS) <= categories.keys()
    assert inside_tasks.REASONS.keys() == {
        kind for kind, category in categories.items() if category == "not known"
    }
