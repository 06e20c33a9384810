"""Spans over time: their order, and the shares of the thread time."""

import pytest

from analyze.report.reading import plain, texts
from roast_analyze import Trace
from roast_analyze.report.topics import spans


def span(span_id, *path, t=0.0, parent_id=None):
    names = {"span_id": span_id, "parent_id": parent_id, "span_name": list(path)}
    return {"kind": "span", "t": t, **names}


def computed(span_id, seconds):
    """Return a fine metric of the tasks of a span."""
    known = {"worker": "w1", "context": "execute", "prefix": "a", "activity": "thread-cpu"}
    return {"kind": "fine_metric", "t": 9.0, **known, "span_id": span_id, "unit": "seconds",
            "delta": seconds}  # fmt: skip


def test_the_section(section, worker, task, run):
    built = section(
        "spans",
        worker("w1", nthreads=1),
        span("o", "outer"),
        span("i", "outer", "inner", parent_id="o"),
        span("l", "later"),
        *(task("i-1", t=2.0, span_id="i"), *run("i-1", 2.0, 5.0)),
        *(task("l-1", t=7.0, span_id="l"), *run("l-1", 7.0, 8.0)),
        *(task("o-1", t=1.0, span_id="o"), *run("o-1", 1.0, 2.0)),
        computed("o", 1.5),
        computed("i", 3.0),
    )

    assert plain(built.sentences[0]) == (
        "The tasks were submitted in 3 spans. The one with the most compute time, outer, took "
        "4 s: 100 % of the thread time was spent computing its tasks, 0 % was idle or spent on "
        "other spans."
    )
    (table,) = built.tables
    assert [column.title for column in table.columns][:7] == [
        "span", "start", "wall time", "compute time", "thread time", "computing",
        "idle or other spans",
    ]  # fmt: skip
    assert [row[:7] for row in texts(table)] == [
        ["outer", "1.000", "4.00", "4.00", "4.00", "100", "0"],
        ["outer / inner", "2.000", "3.00", "3.00", "3.00", "100", "0"],
        # Without metrics it is unknown whether the rest was idle.
        ["later", "7.000", "1.00", "1.00", "1.00", "100", ""],
    ]
    computing, overhead, idle = built.plots[0].figure.data
    assert built.plots[0].figure.layout.yaxis.ticktext == ("outer", "› inner", "later")
    assert (computing.base, computing.x) == ((1.0, 2.0, 7.0), (4.0, 3.0, 1.0))
    assert overhead.x == idle.x == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("compute", "idle", "parts"),
    [
        (0.5, 0.25, (0.5, 0.25, 0.25)),
        (0.5, None, (0.5, 0.0, 0.5)),
        (0.75, 0.5, (0.75, 0.0, 0.25)),
        (1.5, 0.0, (1.0, 0.0, 0.0)),
    ],
)
def test_parts_of_a_bar_fill_it(compute, idle, parts):
    row = {"path": "a", "name": "a", "level": 0, "start_t": 2.0, "stop_t": 4.0}
    axis = spans.layout.TimeAxis(0.0, 10.0)

    bars = spans.figure([{**row, "compute_share": compute, "idle_share": idle}], axis).data

    assert tuple(bar.x[0] / 2 for bar in bars) == parts
    assert [bar.base[0] for bar in bars] == [
        2.0, 2 + 2 * parts[0], 2 + 2 * (parts[0] + parts[1]),
    ]  # fmt: skip


def test_computing_on_a_lost_worker_is_not_idle(sentences, worker, task, run, gone):
    # Of 10 s, 9 s were spent computing; the metrics of 5 s were lost with the worker.
    assert "90 % of the thread time was spent computing its tasks, 10 % was idle" in sentences(
        "spans",
        worker("w1", nthreads=1),
        span("a", "a"),
        *(task("a-1", t=0.0, span_id="a"), *run("a-1", 0.0, 5.0)),
        gone("w1", 5.0, "handle-worker-cleanup-1.0"),
        worker("w2", 5.0, nthreads=1),
        *(task("a-2", t=0.0, span_id="a"), *run("a-2", 6.0, 10.0, worker="w2")),
        computed("a", 4.0),
    )


def test_spans_of_a_cycle_are_drawn_once(section, worker, task, run):
    built = section(
        "spans",
        worker("w1"),
        span("a", "fits", parent_id="b"),
        span("b", "fits", parent_id="a"),
        span("unused", "fits"),
        task("x-1", t=1.0, span_id="a"),
        *run("x-1", 1.0, 2.0),
    )

    assert len(built.plots[0].figure.layout.yaxis.ticktext) == 2
    assert [row[0] for row in texts(built.tables[0])] == ["fits"] * 3


@pytest.mark.exhaustive
def test_spans_of_dask_are_listed_only_beside_those_of_the_user(section, worker, task, run):
    records = [
        worker("w1"),
        span("a", "default"),
        span("b", "default"),
        *(task("x-1", t=1.0, span_id="a"), *run("x-1", 1.0, 2.0)),
        *(task("y-1", t=3.0, span_id="b"), *run("y-1", 3.0, 4.0)),
    ]

    alone = section("spans", *records)
    beside = section("spans", *records, span("c", "fits"))

    assert not alone.tables
    assert alone.empty.startswith("The program named no spans")
    assert alone.hint == 'with distributed.span("reading"): …'
    assert [row[0] for row in texts(beside.tables[0])] == ["default", "default", "fits"]
    assert beside.sentences[0].endswith(
        "default is Dask's name for work outside of the user's spans."
    )


def test_a_span_begins_with_the_time_range(write_trace, worker, task, run):
    records = (worker("w1"), span("a", "a"), task("x-1", t=1.0, span_id="a"))
    path = write_trace(*records, *run("x-1", 2.0, 8.0), stop_t=10.0)

    with Trace(path, start=5.0) as trace:
        rows = spans.query(trace).rows

    assert rows.select("start_t", "stop_t", "wall_seconds", "thread_seconds").rows() == [
        (5.0, 8.0, 3.0, 3.0)
    ]


def test_the_clock_of_a_worker_is_behind_that_of_the_scheduler(section, worker, task, run):
    late = task("x-1", t=5.0, span_id="a")

    built = section("spans", worker("w1"), span("a", "a"), late, *run("x-1", 1.0, 2.0))

    assert not built.plots
    assert texts(built.tables[0])[0][0] == "a"
    assert "wall_seconds" not in [column.name for column in built.tables[0].columns]
    assert "took" not in built.sentences[0]
