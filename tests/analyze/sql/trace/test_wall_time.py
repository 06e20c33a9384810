"""View wall_time."""

import pytest

from roast_analyze import Trace
from roast_analyze.report import wall_time

#: State of a run and its end, from the end of the state before.
STATES = "SELECT state, stop_t FROM wall_time"


def did(activity: str, start_t: float, stop_t: float) -> dict:
    period = {"start_t": start_t, "stop_t": stop_t, "name": "f"}
    return {
        "kind": "client_activity",
        "t": stop_t,
        "client": "c",
        "activity": activity,
        **period,
    }


def client(kind: str, t: float) -> dict:
    return {"kind": kind, "t": t, "client": "c"}


def test_each_state(rows, worker, gone, task, run):
    assert rows(
        STATES,
        client("client_added", 0.0),
        worker("w1"),
        did("dask", 5.0, 14.0),
        task("a-1", t=14.0, client="c"),
        *run("a-1", 15.0, 20.0),
        did("own", 20.0, 30.0),
        task("b-1", t=30.0, client="c"),
        gone("w1", 31.0, "retire-workers-1"),
        worker("w2", t=40.0),
        *run("b-1", 42.0, 50.0, "w2"),
        did("wait", 50.0, 51.0),
        # Nothing is known of the client from 51 to 60, and after 70.
        task("c-1", t=60.0, client="c"),
        *run("c-1", 60.0, 70.0, "w2"),
        client("client_removed", 90.0),
    ) == [
        ("starting", 5.0),
        ("client makes graphs", 14.0),
        ("tasks not assigned", 15.0),
        ("working", 20.0),
        ("client computes", 30.0),
        ("tasks not assigned", 31.0),
        ("no worker", 40.0),
        ("tasks not assigned", 42.0),
        ("working", 50.0),
        ("client waits", 51.0),
        ("client not known", 60.0),
        ("working", 70.0),
        ("ending", 90.0),
        ("no client", 100.0),
    ]


def test_a_client_that_only_records(rows, worker, task, run, process_facts):
    """It is connected and sleeps while those that submit tasks come and go."""

    def of(client, kind, t):
        return {"kind": kind, "t": t, "client": client}

    records = [
        *(of("c", "client_added", 0.0), worker("w1"), did("own", 0.0, 100.0)),
        of("first", "client_added", 10.0),
        *(task("a-1", t=20.0, client="first"), *run("a-1", 20.0, 30.0)),
        of("first", "client_removed", 30.0),
        of("second", "client_added", 40.0),
        *(task("b-1", t=50.0, client="second"), *run("b-1", 50.0, 60.0)),
    ]
    expected = [
        ("no client", 10.0),
        ("starting", 20.0),
        ("working", 30.0),
        ("no client", 40.0),
        ("client not known", 50.0),
        ("working", 60.0),
        ("ending", 100.0),
    ]
    assert rows(STATES, *records) == expected

    # The second client is another one of the program that records.
    place = {"host": "h", "pid": 7}
    fact = {"kind": "environment", "t": 1.0, "section": "client", "name": "id", "value": "c"}
    same_program = [
        fact,
        *process_facts("client", pid=7, machine={"host": "h"}),
        {"kind": "client_program", "t": 40.0, "client": "second", "name": "p.py", **place},
    ]
    assert rows(STATES, *records, *same_program) == [
        ("client computes", 20.0),
        ("working", 30.0),
        ("client computes", 50.0),
        ("working", 60.0),
        ("client computes", 100.0),
    ]


def test_work_without_an_end_lasts_until_the_end(rows, worker, task, run):
    assert rows(STATES, worker("w1"), task("a-1"), *run("a-1", 10.0), task("b-1", t=20.0)) == [
        ("tasks not assigned", 10.0),
        ("working", 100.0),
    ]


def test_tasks_that_were_never_assigned_wait(rows, worker, task, move):
    waiting = task("a-1", t=10.0), move(10.0, "a-1", "released>waiting")
    assert rows(STATES, worker("w1"), *waiting) == [
        ("starting", 10.0),
        ("tasks not assigned", 100.0),
    ]


def test_a_client_that_waits_for_workers(rows, worker, task, run):
    """Nothing is submitted before they are there."""
    assert rows(
        STATES, did("wait", 0.0, 60.0), worker("w1", t=60.0), task("a-1", t=60.0),
        *run("a-1", 60.0, 100.0),
    ) == [("no worker", 60.0), ("working", 100.0)]  # fmt: skip


def test_nothing_but_the_recording(rows):
    assert rows(STATES) == [("starting", 100.0)]


def test_a_time_range(write_trace, worker, task, run):
    path = write_trace(worker("w1"), task("a-1", t=20.0), *run("a-1", 30.0, 60.0))
    with Trace(path, start=25.0, stop=70.0) as trace:
        assert trace.rows(f"{STATES} UNION ALL SELECT 'all', sum(seconds) FROM wall_time") == [
            ("tasks not assigned", 30.0),
            ("working", 60.0),
            ("ending", 70.0),
            ("all", pytest.approx(45.0)),
        ]


def test_prefixes_of_unrecorded_tasks_are_no_actors(rows, worker, task, run):
    """A method of an actor is profiled, but no task."""
    names = {"name": "f", "filename": "f.py", "line": 1}
    slices = [{"start_t": 40.0, "stop_t": 50.0, "nodes": [0], "counts": [9]}]
    tree = {"frames": [names], "parents": [-1], "node_frames": [0], "slices": slices}
    about = {"worker": "w1", "prefix": "method", "interval_seconds": 0.01, "tree": tree}
    profile = {"kind": "profile", "t": 50.0, **about}

    without_tasks = rows(STATES, worker("w1"), *run("a-1", 10.0, 20.0), profile)
    with_tasks = rows(STATES, worker("w1"), task("a-1"), *run("a-1", 10.0, 20.0), profile)
    assert ("working", 50.0) not in without_tasks
    assert ("working", 50.0) in with_tasks


def test_chunks_without_dask(open_trace, chunk, worker):
    place = {"filename": "f.root", "entry_start": 0, "entry_stop": 10, "until": "processed"}
    times = {"start_t": 40.0, "stop_t": 60.0, "thread": 5}
    trace = open_trace(worker("pid:1"), chunk("c", run_id=1, worker="pid:1", **place, **times))

    assert trace.rows(STATES) == [("starting", 40.0), ("working", 60.0), ("ending", 100.0)]
    # Its words are those of Dask.
    assert wall_time.query(trace) == {}
