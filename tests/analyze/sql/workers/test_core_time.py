"""View core_time: the use of every thread-second."""

import math

import pytest

from roast_analyze import Trace
from roast_analyze.computed import core_time

QUERY = """
    SELECT worker, category || ': ' || use, coalesce(prefix, ''), sum(seconds)
    FROM core_time
    GROUP BY ALL
    ORDER BY ALL
"""


def status(address, t, name):
    payload = {"action": "worker-status-change", "status": name, "worker": address}
    return {"kind": "event", "t": t, "topic": address, "worker": address, "payload": payload}


def test_an_attempt_from_dispatch_to_result(rows, worker, task, run):
    phases = [
        ("transfer", 12.0, 14.0, "w2"), ("transfer", 13.0, 17.0, "w3"),
        ("deserialize", 20.0, 21.0), ("disk-read", 21.0, 23.0), ("compute", 25.0, 40.0),
    ]  # fmt: skip
    assert rows(
        QUERY,
        worker("w1"),
        task("a", t=10.0),
        *run("a", 10.0, 40.0, phases=phases),
    ) == [
        ("w1", "assigned: dispatch", "a", 2.0 + 3.0 + 2.0),
        ("w1", "assigned: transfer", "a", 5.0),
        ("w1", "busy: deserialize", "a", 1.0),
        ("w1", "busy: disk", "a", 2.0),
        ("w1", "busy: kept result", "a", 15.0),
        ("w1", "idle: after last result", "", 60.0),
        ("w1", "idle: before first graph", "", 10.0),
    ]


def test_outcomes(rows, worker, task, run, move):
    """Only the end of the lost attempt is known: it counts as long as a thread is free."""
    assert rows(
        QUERY,
        worker("w1"),
        *(task(key) for key in ("erred", "lost", "open", "repeated")),
        *run("repeated", 0.0, 5.0),
        move(6.0, "repeated", "memory>released"),
        *run("repeated", 6.0, 10.0),
        *run("erred", 10.0, 30.0, outcome="erred", phases=[("compute", 10.0, 30.0)]),
        *run("lost", 25.0, 50.0, outcome="lost"),
        *run("open", 60.0),
    ) == [
        ("w1", "busy: failed attempt", "erred", 20.0),
        ("w1", "busy: kept result", "repeated", 4.0),
        ("w1", "busy: lost attempt", "lost", 20.0),
        ("w1", "busy: recomputed result", "repeated", 5.0),
        ("w1", "busy: unfinished attempt", "open", 40.0),
        ("w1", "idle: between graphs", "", 11.0),
    ]  # fmt: skip


def test_cancelled_attempts_that_went_on(rows, worker, task, run):
    """Three attempts are cancelled after 10 s; the worker finishes two of them after 30 s."""
    metric = {"worker": "w1", "prefix": "a", "context": "execute", "activity": "cancelled"}
    assert rows(
        QUERY,
        worker("w1", nthreads=2),
        *(task(f"a-{number}") for number in range(3)),
        *(step for n in range(3) for step in run(f"a-{n}", 0.0, 10.0, outcome="cancelled")),
        {"kind": "fine_metric", "t": 31.0, **metric, "unit": "seconds", "delta": 60.0},
    ) == [
        ("w1", "busy: cancelled attempt", "a", 60.0),
        ("w1", "idle: after last result", "", 140.0),
    ]


def test_attempts_that_were_queued_on_a_worker_and_cancelled(rows, worker, task, run):
    """The thread is in a task that never ends; no heartbeat reports the queued ones."""
    assert rows(
        QUERY,
        worker("w1"),
        *(task(key) for key in ("stuck", "a", "b")),
        *run("a", 1.0, 20.0, outcome="cancelled"),
        *run("b", 2.0, 30.0, outcome="cancelled"),
        *run("stuck", 5.0),
    ) == [
        # Until the other one begins, one of them can have computed.
        ("w1", "busy: cancelled attempt", "a", 4.0),
        ("w1", "busy: unfinished attempt", "stuck", 95.0),
        ("w1", "idle: before first graph", "", 1.0),
    ]


def test_released_attempts_that_had_begun(rows, worker, task, run):
    """The cancelled one goes on for 5 s; a heartbeat before its end reported its start."""
    metric = {"worker": "w1", "prefix": "a", "context": "execute", "activity": "cancelled"}
    assert rows(
        QUERY,
        worker("w1"),
        *(task(key) for key in ("a", "b", "c")),
        *run("b", 0.0, 30.0, outcome="cancelled"),
        *run("a", 0.0, 30.0, outcome="cancelled", start_t=10.0),
        *run("c", 36.0, 50.0, outcome="rescheduled", start_t=40.0),
        {"kind": "fine_metric", "t": 35.5, **metric, "unit": "seconds", "delta": 25.0},
        stop_t=50.0,
    ) == [
        ("w1", "assigned: dispatch", "c", 4.0),
        ("w1", "busy: cancelled attempt", "a", 25.0),
        ("w1", "busy: cancelled attempt", "b", 10.0),
        ("w1", "busy: rescheduled attempt", "c", 10.0),
        ("w1", "idle: between graphs", "", 1.0),
    ]


def test_rescheduled_attempts_of_which_only_the_sum_is_reported(rows, worker, task, run):
    """As those of a shuffle, which wait on the worker and then raise at once."""
    metric = {"worker": "w1", "prefix": "a", "context": "execute", "activity": "cancelled"}
    attempts = [
        step
        for n in range(4)
        for step in run(f"a-{n}", 0.0, 20.0 + n / 2, outcome="rescheduled")
    ]
    assert rows(
        QUERY,
        worker("w1", nthreads=2),
        *(task(f"a-{n}") for n in range(4)),
        *attempts,
        {"kind": "fine_metric", "t": 22.0, **metric, "unit": "seconds", "delta": 2.0},
        stop_t=22.0,
    ) == [
        ("w1", "assigned: dispatch", "a", pytest.approx(40.5)),
        ("w1", "busy: rescheduled attempt", "a", pytest.approx(2.0)),
        ("w1", "idle: after last result", "", 1.0),
        ("w1", "idle: tail", "", 0.5),
    ]


def test_each_wave_of_cancelled_attempts_has_its_own_time(rows, worker, task, run):
    metric = {"worker": "w1", "prefix": "a", "context": "execute", "activity": "cancelled"}
    waves = [(0.0, 5.0, 12.0), (20.0, 25.0, 36.0)]
    assert rows(
        "SELECT sum(seconds) FROM core_time WHERE use = 'cancelled attempt'",
        worker("w1"),
        *(task(f"a-{n}") for n in range(2)),
        *(
            step
            for n, (start, stop, _) in enumerate(waves)
            for step in run(f"a-{n}", start, stop, outcome="cancelled")
        ),
        *(
            {"kind": "fine_metric", "t": t, **metric, "unit": "seconds", "delta": t - start}
            for start, _, t in waves
        ),
    ) == [(12.0 + 16.0,)]


def secession(t, key, address="w1"):
    states = {"start": "executing", "finish": "long-running"}
    return {"kind": "worker_transition", "t": t, "key": key, "worker": address, **states}


def test_seceded_tasks(ask, worker, task, run):
    """A task submits two others and waits for them, on the only thread of its worker."""
    query = ask(
        worker("w1"),
        *(task(key) for key in ("outer", "a", "b")),
        *run("outer", 0.0, 60.0),
        secession(10.0, "outer"),
        *run("a", 10.0, 30.0),
        *run("b", 40.0, 50.0),
        # Another worker has a task of this key later.
        secession(70.0, "outer", "w2"),
    )
    assert query(QUERY) == [
        ("w1", "busy: kept result", "a", 20.0),
        ("w1", "busy: kept result", "b", 10.0),
        ("w1", "busy: kept result", "outer", 10.0),
        ("w1", "idle: after last result", "", 40.0),
        ("w1", "unknown: seceded task", "outer", 20.0),
    ]
    assert query("SELECT compute_seconds, speedup, core_efficiency FROM run") == [
        (40.0, pytest.approx(40 / 60), 0.4)
    ]
    assert query("SELECT max(utilization) FROM utilization") == [(1.0,)]
    assert query("SELECT action, seconds FROM task_phases WHERE key = 'outer'") == [
        ("compute", 10.0),
        ("seceded", 50.0),
    ]
    assert query(
        "SELECT compute_seconds, compute_start_t, compute_stop_t "
        "FROM task_runs WHERE key = 'outer'"
    ) == [(10.0, 0.0, 60.0)]
    assert query(
        "SELECT cause, detail, sum(seconds) FROM critical_path GROUP BY ALL ORDER BY ALL"
    ) == [
        ("client", "after the last result", 40.0),
        ("compute", "seceded", 50.0),
        ("compute", None, 10.0),
    ]


def test_methods_of_actors(rows, worker, task, run):
    """Two methods are sampled for 6 and 2 of 10 s; a task occupies the thread for 5 s."""

    def profile(prefix, samples):
        cycle = {"start_t": 20.0, "stop_t": 30.0, "nodes": [0], "counts": [samples]}
        names = {"parents": [None], "node_frames": [None], "line_numbers": [None]}
        about = {"worker": "w1", "prefix": prefix, "interval_seconds": 0.01}
        return {
            "kind": "profile", "t": 30.0, "server_id": "id-w1-0.0", **about,
            "start_t": 20.0, "stop_t": 30.0, "tree": {"frames": [], **names, "slices": [cycle]},
        }  # fmt: skip

    assert rows(
        QUERY,
        worker("w1"),
        *(task("Band-1"), *run("Band-1", 0.0, 10.0)),
        *(task("a-1", t=25.0), *run("a-1", 25.0, 30.0)),
        profile("Band.step", 600),
        profile("Band.sum", 200),
        stop_t=30.0,
    ) == [
        ("w1", "busy: kept result", "Band", 10.0),
        ("w1", "busy: kept result", "a", 5.0),
        ("w1", "idle: between graphs", "", 10.0),
        ("w1", "unknown: actor method", "Band.step", pytest.approx(5.0)),
    ]


def test_chunks_without_a_cluster(rows, worker, chunk):
    """A second attempt at b succeeds; the last two chunks run in parallel."""
    on_w1 = {"worker": "w1", "dataset": "B"}
    assert rows(
        """
        SELECT worker, category || ': ' || use, coalesce(dataset, ''), sum(seconds)
        FROM core_time
        GROUP BY ALL
        ORDER BY ALL
        """,
        worker("w1"),
        worker("w2"),
        chunk("a", run_id=1, worker="w1", dataset="A", start_t=10.0, stop_t=30.0),
        chunk("b", run_id=2, **on_w1, start_t=40.0, stop_t=45.0, exception="OSError()"),
        chunk("b", run_id=3, **on_w1, start_t=50.0, stop_t=80.0),
        chunk("c", run_id=4, worker="w2", dataset="B", start_t=50.0, stop_t=70.0),
    ) == [
        ("w1", "busy: failed attempt", "B", 5.0),
        ("w1", "busy: kept result", "A", 20.0),
        ("w1", "busy: kept result", "B", 30.0),
        ("w1", "idle: after last result", "", 20.0),
        ("w1", "idle: before first graph", "", 10.0),
        ("w1", "idle: between graphs", "", 10.0 + 5.0),
        ("w2", "busy: kept result", "B", 20.0),
        ("w2", "idle: after last result", "", 20.0),
        ("w2", "idle: before first graph", "", 10.0),
        ("w2", "idle: between graphs", "", 10.0 + 5.0),
        # While w1 computes the only chunk.
        ("w2", "idle: tail", "", 20.0 + 5.0 + 10.0),
    ]


def test_lost_attempts_that_had_begun(rows, worker, task, run, gone, sample):
    """The paused w1 goes on computing; w2 computes until its last heartbeat."""
    assert rows(
        QUERY,
        worker("w1"),
        worker("w2"),
        task("a"),
        task("b"),
        status("w1", 30.0, "paused"),
        sample(41.0, "w2", last_seen=40.0),
        *run("a", 0.0, 50.0, outcome="lost", start_t=20.0),
        *run("b", 0.0, 60.0, worker="w2", outcome="lost", start_t=10.0),
        gone("w1", 50.0, "handle-worker-cleanup-50.0"),
        gone("w2", 60.0, "check-worker-ttl-60.0"),
    ) == [
        ("w1", "assigned: dispatch", "a", 20.0),
        ("w1", "busy: lost attempt", "a", 30.0),
        ("w2", "assigned: dispatch", "b", 10.0),
        ("w2", "busy: lost attempt", "b", 30.0),
        ("w2", "unknown: silent worker", "", 20.0),
    ]


def test_ready_tasks_wait_for_the_scheduler_or_on_another_worker(rows, worker, task, run, move):
    """While a computes, b waits behind it, and c waits on the scheduler for the second half."""
    assert rows(
        QUERY,
        worker("w1"),
        worker("w2"),
        worker("w3"),
        *(task(key) for key in ("a", "b", "c")),
        *run("a", 0.0, 80.0),
        *run("b", 0.0, 100.0, phases=[("compute", 80.0, 100.0)]),
        move(40.0, "c", "waiting>queued"),
        *run("c", 80.0, 100.0, worker="w2"),
    ) == [
        ("w1", "busy: kept result", "a", 80.0),
        ("w1", "busy: kept result", "b", 20.0),
        ("w2", "busy: kept result", "c", 20.0),
        # One of two free threads for b from 0 s, the other one for c from 40 s.
        ("w2", "idle: imbalance", "", 20.0 + 20.0),
        ("w2", "idle: scheduler", "", 20.0),
        ("w2", "idle: tail", "", 20.0),
        ("w3", "idle: imbalance", "", 20.0 + 20.0),
        ("w3", "idle: scheduler", "", 20.0),
        ("w3", "idle: tail", "", 20.0 + 20.0),
    ]


def test_until_a_task_is_stolen_it_waits_on_another_worker(rows, worker, task, run, move):
    # Both tasks were sent to the first worker; the second one stole one of them at 30 s.
    assert rows(
        QUERY,
        worker("w1"),
        worker("w2"),
        task("a", t=10.0),
        task("b", t=10.0),
        *run("a", 10.0, 50.0),
        move(10.0, "b", "waiting>processing", worker="w1"),
        move(50.0, "b", "processing>memory", worker="w2", phases=[("compute", 30.0, 50.0)]),
        stop_t=50.0,
    ) == [
        ("w1", "busy: kept result", "a", 40.0),
        ("w1", "idle: before first graph", "", 10.0),
        ("w2", "busy: kept result", "b", 20.0),
        ("w2", "idle: before first graph", "", 10.0),
        ("w2", "idle: imbalance", "", 20.0),
    ]


def test_threads_without_tasks_are_divided_like_the_work(rows, worker, task, run, move):
    """A merge of 10 s waits for 50 s: its share is 10 / (10 + x), for x from 50 to 0."""
    dependencies = 10.0 * math.log((10.0 + 50.0) / 10.0)
    assert rows(
        QUERY,
        worker("w1"),
        worker("w2"),
        task("a"),
        task("merge", dependencies=["a"]),
        move(0.0, "merge", "released>waiting"),
        *run("a", 0.0, 50.0),
        *run("merge", 50.0, 60.0),
        stop_t=60.0,
    ) == [
        ("w1", "busy: kept result", "a", 50.0),
        ("w1", "busy: kept result", "merge", 10.0),
        ("w2", "idle: dependencies", "", pytest.approx(dependencies)),
        ("w2", "idle: tail", "", pytest.approx(50.0 - dependencies + 10.0)),
    ]


def test_paused_leaving_joining_and_silent_workers(rows, worker, task, run, move, gone, sample):
    """A task is queued for the whole run. At the end two free threads could take it.

    The new worker is joining for 5 s.
    """
    assert rows(
        QUERY.replace("GROUP BY", "WHERE use LIKE '% worker' GROUP BY"),
        worker("busy"),
        worker("paused"),
        worker("leaving"),
        worker("silent"),
        task("a"),
        task("b"),
        move(0.0, "b", "waiting>queued"),
        *run("a", 0.0, 100.0, worker="busy"),
        status("paused", 20.0, "paused"),
        sample(25.0, "silent", last_seen=24.0),
        status("paused", 30.0, "running"),
        status("leaving", 40.0, "closing_gracefully"),
        gone("leaving", 50.0, "retire-workers-50.0"),
        gone("silent", 60.0, "check-worker-ttl-60.0"),
        worker("new", t=90.0),
    ) == [
        ("leaving", "idle: leaving worker", "", 10.0),
        ("new", "idle: joining worker", "", 5.0 / 2),
        ("paused", "assigned: paused worker", "", 10.0),
        ("silent", "unknown: silent worker", "", 60.0 - 24.0),
    ]


def test_a_leaving_worker_starts_no_task(rows, worker, task, run, gone):
    """The attempt b waits for the thread of a; when a ends, the worker is leaving."""
    assert rows(
        QUERY,
        worker("w1"),
        task("a"),
        task("b"),
        *run("a", 0.0, 60.0),
        *run("b", 0.0, 100.0, outcome="lost"),
        status("w1", 50.0, "closing_gracefully"),
        gone("w1", 100.0, "retire-workers-100.0"),
    ) == [
        ("w1", "busy: kept result", "a", 60.0),
        ("w1", "idle: leaving worker", "", 40.0),
    ]


@pytest.mark.exhaustive
def test_attempts_are_read_in_parts(open_trace, worker, task, run, move, monkeypatch):
    """Parts do not change the times of repeated, unfinished and waiting tasks."""
    keys = [f"x-{number}" for number in range(6)]
    trace = open_trace(
        worker("w1"),
        *(task(key) for key in (*keys, "open")),
        *(move(0.0, key, "released>queued") for key in keys),
        *(
            record
            for number, key in enumerate(keys)
            for record in run(
                key, 10.0 * number, 10.0 * number + 8.0,
                phases=[("compute", 10.0 * number, 10.0 * number + 8.0)],
            )
        ),
        move(59.0, keys[0], "memory>released"),
        *run(keys[0], 60.0, 70.0, phases=[("compute", 62.0, 70.0)]),
        *run("open", 80.0),
    )  # fmt: skip
    assert trace.rows(QUERY) == [
        ("w1", "assigned: dispatch", "x", 2.0),
        ("w1", "busy: kept result", "x", 48.0),
        ("w1", "busy: recomputed result", "x", 8.0),
        ("w1", "busy: unfinished attempt", "open", 20.0),
        ("w1", "idle: between graphs", "", 2.0 + 10.0),
        ("w1", "idle: scheduler", "", 5 * 2.0),
    ]

    whole = core_time.query(trace)
    for transitions in (1, 5):
        monkeypatch.setattr(core_time, "_TRANSITIONS_PER_QUERY", transitions)
        assert core_time.query(trace).equals(whole)


def test_lost_transitions(rows, worker, task, move):
    """A task whose end is lost waits until its next transition, whatever that is."""
    lost = {"kind": "loss", "t": 20.0, "reason": "late", "record_kind": "transition"}
    assert rows(
        "SELECT use, sum(seconds) FROM core_time GROUP BY ALL ORDER BY ALL",
        worker("w1"),
        task("a", t=10.0),
        move(10.0, "a", "released>waiting"),
        {**lost, "records": 2},
        move(30.0, "a", "memory>released"),
    ) == [("after last result", 70.0), ("before first graph", 10.0), ("dependencies", 20.0)]


def test_a_time_range_without_tasks_is_between_the_graphs_of_the_run(
    write_trace, worker, task, run
):
    """The range is from 20 s to 30 s; two graphs compute for 10 s each."""
    starts = {
        "before first graph": (40.0, 70.0),
        "between graphs": (5.0, 40.0),
        "after last result": (0.0, 10.0),
    }
    paths = []
    for use, (a, b) in starts.items():
        records = [task("a", t=a), *run("a", a, a + 10.0)]
        records += [task("b", t=b), *run("b", b, b + 10.0)]
        paths.append(write_trace(worker("w1"), *records, name=use, trace_id=use))

    with Trace(*paths, start=20, stop=30) as trace:
        assert trace.rows(
            "SELECT trace_id, use, sum(seconds) FROM core_time GROUP BY ALL ORDER BY 1"
        ) == [(use, use, 10.0) for use in sorted(starts)]


def test_a_time_range_that_cuts_chunks_without_a_cluster(write_trace, worker, chunk):
    """The range is from 20 s to 50 s; the trace U has no chunk in it."""
    paths = []
    for trace_id, times in {
        "T": [(10.0, 30.0), (40.0, 60.0), (80.0, 90.0)],
        "U": [(10.0, 15.0), (80.0, 90.0)],
    }.items():
        records = [
            chunk(f"{n}", run_id=n, worker="w1", start_t=start, stop_t=stop)
            for n, (start, stop) in enumerate(times)
        ]
        about = {"name": f"{trace_id}.jsonl", "trace_id": trace_id}
        paths.append(write_trace(worker("w1"), *records, **about))

    with Trace(*paths, start=20, stop=50) as trace:
        assert trace.rows(
            "SELECT trace_id, use, sum(seconds) FROM core_time GROUP BY ALL ORDER BY ALL"
        ) == [
            ("T", "between graphs", 10.0),
            ("T", "kept result", 10.0),
            ("T", "unfinished attempt", 10.0),
            ("U", "between graphs", 30.0),
        ]


def test_a_chunk_of_a_task_counts_once(rows, worker, task, run, chunk):
    assert rows(
        "SELECT use, prefix, dataset, sum(seconds) FROM core_time GROUP BY ALL ORDER BY ALL",
        worker("w1", nthreads=2),
        task("a"),
        *run("a", 0.0, 100.0, run_id=1),
        chunk("a", run_id=1, worker="w1", dataset="A", start_t=0.0, stop_t=100.0),
    ) == [("kept result", "a", "A", 100.0), ("tail", None, None, 100.0)]


def test_time_buckets_add_up(rows, worker, task, run):
    assert rows(
        "SELECT floor(t / 40) * 40, use, sum(seconds) FROM core_time GROUP BY ALL ORDER BY ALL",
        worker("w1", t=10.0, nthreads=2),
        task("a", t=20.0),
        *run("a", 30.0, 90.0),
    ) == [
        (0.0, "before first graph", 20.0 * 2),
        (0.0, "kept result", 10.0),
        (0.0, "tail", 10.0),
        (40.0, "kept result", 40.0),
        (40.0, "tail", 40.0),
        (80.0, "after last result", 10.0 * 2),
        (80.0, "kept result", 10.0),
        (80.0, "tail", 10.0),
    ]
