import dataclasses

import polars as pl
import pytest
from roast_analyze.report.gathered.listing import Listing

from roast_analyze.report import data
from roast_analyze.report.data import Gap
from roast_schemas import SCHEMA_VERSION


def test_the_headline_is_the_view_run(open_trace, worker, task, run):
    trace = open_trace(worker("w1"), task("a-1"), *run("a-1", 1.0, 3.0), stop_t=10.0)

    gathered = data.gather(trace)

    (row,) = trace.frame("run").to_dicts()
    told = dataclasses.asdict(gathered.run)
    assert told == {name: row[name] for name in told}
    assert (gathered.run.tasks, gathered.run.compute_seconds) == (1, 2.0)


def test_the_recording(write_trace, task):
    from roast_analyze import Trace

    with Trace(write_trace(task("a-1"), stop_t=10.0, name="my run.jsonl")) as trace:
        gathered = data.gather(trace)

    recording = gathered.recording
    assert gathered.trace_name == "my run.jsonl"
    assert (recording.segments, recording.records, recording.clean_end) == (1, 3, True)
    assert (recording.dask_version, recording.schema_version) == ("2026.8.0", SCHEMA_VERSION)


def test_time_is_split_by_what_became_of_it(open_trace, worker, task, move, run):
    parts = [
        {"action": "transfer", "start": 4.0, "stop": 4.5},
        {"action": "compute", "start": 5.0, "stop": 8.0},
    ]
    trace = open_trace(
        worker("w1"),
        task("a-1"),
        task("a-2"),
        *run("a-1", 1.0, 3.0),
        move(4.0, "a-2", "waiting>processing", worker="w1", run_id=2),
        move(8.0, "a-2", "processing>erred", "task-erred-1.0", worker="w1", startstops=parts),
    )

    spent = data.gather(trace).time_spent

    assert (spent.kept_seconds, spent.wasted_seconds, spent.transfer_seconds) == (2.0, 3.0, 0.5)


def test_a_worker_that_vanished_is_lost_and_one_that_was_closed_is_not(
    open_trace, worker, gone
):
    trace = open_trace(
        worker("w1"),
        worker("w2"),
        gone("w1", 4.0, "handle-worker-cleanup-4.0"),
        gone("w2", 5.0, "retire-workers-5.0"),
    )

    workers = data.gather(trace).workers.rows

    assert dict(workers.select("worker", "lost").iter_rows()) == {"w1": True, "w2": False}


def test_what_went_on_in_each_stretch_of_time(open_trace, worker, task, move):
    def sample(t: float, interval: float) -> dict:
        metrics = {"event_loop_interval": interval}
        return {"kind": "worker_sample", "t": t, "worker": "w1", "metrics": metrics}

    trace = open_trace(
        worker("w1", nthreads=2),
        task("a-1"),
        move(1.0, "a-1", "released>queued"),
        move(3.0, "a-1", "queued>processing", worker="w1"),
        sample(3.0, 0.02),
        sample(3.01, 0.7),
        stop_t=10.0,
    )

    stretches = data.gather(trace).stretches

    assert stretches.columns == [
        "t", "seconds", "executing", "nthreads", "ready", "waiting", "slowest_loop_seconds",
        "transitions_per_second",
    ]  # fmt: skip
    moved = stretches.filter(pl.col("transitions_per_second") > 0)
    assert moved["t"].to_list() == pytest.approx([1.0, 3.0])
    assert (moved["transitions_per_second"] * moved["seconds"]).to_list() == [1.0, 1.0]
    assert moved["slowest_loop_seconds"].to_list() == [None, 0.7]
    assert (stretches["ready"] * stretches["seconds"]).sum() == pytest.approx(2.0)


def test_how_busy_workers_were(open_trace, worker, task, run):
    trace = open_trace(
        worker("w2", name="10", nthreads=1),
        worker("w1", name="9", nthreads=2),
        task("a-1"),
        *run("a-1", 1.0, 5.0, worker="w1"),
        stop_t=10.0,
    )

    gathered = data.gather(trace)

    busy = gathered.busy.join(
        gathered.stretches.select("t", pl.int_range(pl.len()).alias("stretch")), on="stretch"
    )
    assert busy.select("row", "worker", "name", "workers").unique().sort("row").rows() == [
        (0, "w1", "9", 1),
        (1, "w2", "10", 1),
    ]
    at_work = busy.filter(pl.col("share") > 0)
    assert at_work["share"].to_list() == pytest.approx([0.5] * at_work.height)
    assert (at_work["t"].min(), at_work["worker"].unique().to_list()) == (
        pytest.approx(1.0),
        ["w1"],
    )


def test_long_lists_are_cut_and_their_length_is_known(open_trace):
    events = [
        {"kind": "event", "t": float(i), "topic": "x", "payload": "y" * 1000}
        for i in range(250)
    ]

    listing = data.gather(open_trace(*events)).events

    assert (listing.rows.height, listing.total) == (data.EVENT_ROWS, 250)
    assert listing.rows["t"].to_list() == [float(i) for i in range(data.EVENT_ROWS)]
    assert listing.rows["payload"][0] == f'"{"y" * (data.VALUE_CHARACTERS - 2)}…'


def test_of_a_traceback_the_end_is_kept(open_trace, task, move):
    told = {"exception": "E" * 2000, "traceback": "first" + "line\n" * 1000 + "last"}
    failed = move(2.0, "a-1", "processing>erred", "task-erred-1.0", worker="w1", **told)

    rows = data.gather(open_trace(task("a-1"), move(1.0, "a-1", "a>processing"), failed))

    (failure,) = rows.failures.rows.to_dicts()
    assert failure["exception"] == "E" * (data.EXCEPTION_CHARACTERS - 1) + "…"
    assert (failure["traceback"][0], failure["traceback"][-5:]) == ("…", "\nlast")
    assert len(failure["traceback"]) == data.TRACEBACK_CHARACTERS


def test_the_query_of_a_listing_gives_its_rows(open_trace, worker, task, run):
    trace = open_trace(worker("w1"), task("a-1"), *run("a-1", 1.0, 3.0))
    gathered = data.gather(trace)
    listings = [value for value in vars(gathered).values() if isinstance(value, Listing)]
    listings += [gathered.stragglers.listing, gathered.movement.pairs]

    assert len(listings) == 21
    for listing in listings:
        assert trace.sql(listing.query).pl().equals(listing.rows), listing.query


def test_comments_come_from_the_views(open_trace, task):
    comments = data.gather(open_trace(task("a-1"))).comments

    assert comments["task_runs"]["key"] == "Key of the task."


@pytest.mark.parametrize(
    ("times", "gap"),
    [
        ([(0.0, 5.0), (1.0, 2.0), (6.0, 7.0), (8.5, 9.5)], Gap(7.0, 8.5)),
        ([(0.0, 5.0), (1.0, 6.0)], None),
        ([], None),
    ],
)
def test_the_longest_gap_is_found_across_threads(open_trace, run, times, gap):
    records = [
        line
        for number, (start, stop) in enumerate(times)
        for line in run(f"a-{number}", start, stop, thread=number)
    ]

    assert data.gather(open_trace(*records)).longest_gap == gap
