"""Views critical_path and task_slack, on runs with a known critical path."""

import pytest


@pytest.fixture
def found(ask):
    """Return the steps of the path, and the slack of the attempts that are not on it."""

    def found(*records):
        query = ask(*records)
        slack = query(
            "SELECT key, attempt, slack_seconds FROM task_slack "
            "ANTI JOIN critical_path USING (key, attempt) ORDER BY ALL"
        )
        assert query(
            "SELECT coalesce(max(slack_seconds), 0) FROM task_slack "
            "SEMI JOIN critical_path USING (key, attempt)"
        ) == [(0.0,)]
        return query("SELECT start_t, stop_t, cause, detail, key FROM critical_path"), slack

    return found


@pytest.fixture
def path(found):
    return lambda *records: found(*records)[0]


def wants(t, *keys):
    change = {"t": t, "action": "desires", "keys": list(keys)}
    return {"kind": "wanted_keys", "t": t, "client": "C", "changes": [change]}


def test_times_without_workers_are_not_the_clients(path, worker, task, run, gone):
    """All workers leave 5 s after the last result; another one joins 20 s later, and stays."""
    assert path(
        worker("w1", t=3.0),
        task("a", t=10.0),
        *run("a", 10.0, 50.0),
        gone("w1", 55.0, "retire-workers-1.0"),
        worker("w2", t=75.0),
    ) == [
        (0.0, 3.0, "worker", "no worker", None),
        (3.0, 10.0, "client", "before the first graph", None),
        (10.0, 50.0, "compute", None, "a"),
        (50.0, 55.0, "client", "after the last result", None),
        (55.0, 75.0, "worker", "no worker", None),
        (75.0, 100.0, "client", "after the last result", None),
    ]


def test_a_dependency_on_another_worker(path, worker, task, run):
    """The task b fetches its input and computes; the scheduler needs time before and after."""
    fetching = [
        ("transfer", 24.0, 26.0, "w1"), ("transfer", 25.0, 28.0, "w1"),
        ("deserialize", 30.0, 31.0), ("disk-read", 31.0, 33.0), ("compute", 33.0, 50.0),
    ]  # fmt: skip
    assert path(
        worker("w1"),
        worker("w2"),
        task("a", t=10.0),
        task("b", t=10.0, dependencies=["a"]),
        *run("a", 11.0, 20.0, phases=[("compute", 12.0, 19.0)]),
        *run("b", 23.0, 52.0, worker="w2", phases=fetching),
    ) == [
        (0.0, 10.0, "client", "before the first graph", None),
        (10.0, 11.0, "scheduler", "assignment", "a"),
        (11.0, 12.0, "dispatch", None, "a"),
        (12.0, 19.0, "compute", None, "a"),
        (19.0, 20.0, "scheduler", "result", "a"),
        (20.0, 23.0, "scheduler", "assignment", "b"),
        (23.0, 24.0, "dispatch", None, "b"),
        (24.0, 28.0, "transfer", None, "b"),
        (28.0, 30.0, "dispatch", None, "b"),
        (30.0, 31.0, "deserialize", None, "b"),
        (31.0, 33.0, "disk", None, "b"),
        (33.0, 50.0, "compute", None, "b"),
        (50.0, 52.0, "scheduler", "result", "b"),
        (52.0, 100.0, "client", "after the last result", None),
    ]


def test_a_task_that_was_stolen(path, worker, task, move):
    """It waits on the first worker until the second one steals it and starts it at once."""
    assert path(
        worker("w1"),
        worker("w2"),
        task("a", t=10.0),
        move(10.0, "a", "waiting>processing", worker="w1"),
        move(
            50.0, "a", "processing>memory", "task-finished-1.0", worker="w2", thread=1,
            phases=[("deserialize", 30.0, 31.0), ("compute", 32.0, 50.0)],
        ),
    ) == [
        (0.0, 10.0, "client", "before the first graph", None),
        (10.0, 30.0, "dispatch", "until it was stolen", "a"),
        (30.0, 31.0, "deserialize", None, "a"),
        (31.0, 32.0, "dispatch", None, "a"),
        (32.0, 50.0, "compute", None, "a"),
        (50.0, 100.0, "client", "after the last result", None),
    ]  # fmt: skip


def test_a_task_follows_the_one_that_occupied_its_thread(found, worker, task, run):
    """The task b waits for the thread of `long`, not for its input or the other thread."""
    assert found(
        worker("w1", nthreads=2),
        worker("w2"),
        *(task(key) for key in ("long", "short", "x")),
        task("b", dependencies=["x"]),
        *run("long", 0.0, 61.0, thread=1, phases=[("compute", 0.0, 60.0)]),
        *run("short", 0.0, 59.0, thread=2),
        *run("x", 0.0, 20.0, worker="w2"),
        *run("b", 20.0, 100.0, thread=1, phases=[("compute", 62.0, 100.0)]),
    ) == (
        [
            (0.0, 60.0, "compute", None, "long"),
            (60.0, 62.0, "dispatch", None, "b"),
            (62.0, 100.0, "compute", None, "b"),
        ],
        [("short", 1, 41.0), ("x", 1, 40.0)],
    )


def test_a_queued_task_follows_the_one_that_made_room(path, worker, task, run, move):
    assert path(
        worker("w1"),
        task("a"),
        task("b"),
        move(0.0, "b", "waiting>queued"),
        *run("a", 0.0, 52.0, phases=[("compute", 0.0, 50.0)]),
        *run("b", 53.0, 100.0),
    ) == [
        (0.0, 50.0, "compute", None, "a"),
        (50.0, 53.0, "scheduler", "assignment", "b"),
        (53.0, 100.0, "compute", None, "b"),
    ]


def test_a_final_merge_is_not_to_blame_for_the_tail(found, worker, task, run):
    """c-4 can end 10 s later, and so can c-1, since the delay between them stays the same."""
    chunks = [f"c-{n}" for n in (1, 2, 3, 4)]
    assert found(
        *(worker(f"w{n}") for n in (1, 2, 3)),
        *(task(key) for key in chunks),
        task("merge", dependencies=chunks),
        *run("c-1", 0.0, 10.0, worker="w1"),
        *run("c-2", 0.0, 90.0, worker="w2"),
        *run("c-3", 0.0, 20.0, worker="w3"),
        *run("c-4", 20.0, 80.0, worker="w1"),
        *run("merge", 90.0, 100.0, worker="w2"),
    ) == (
        [(0.0, 90.0, "compute", None, "c-2"), (90.0, 100.0, "compute", None, "merge")],
        [("c-1", 1, 10.0), ("c-3", 1, 70.0), ("c-4", 1, 10.0)],
    )


def test_a_transfer_that_ends_after_the_thread_is_free(path, worker, task, run):
    """The thread is free at 30 s; the transfer of the result of a ends at 70 s."""
    assert path(
        worker("w1"),
        worker("w2"),
        task("a"),
        task("other"),
        task("b", dependencies=["a"]),
        *run("a", 0.0, 20.0),
        *run("other", 0.0, 30.0, worker="w2"),
        *run("b", 20.0, 100.0, worker="w2",
             phases=[("transfer", 20.0, 70.0, "w1"), ("compute", 70.0, 100.0)]),
    ) == [
        (0.0, 20.0, "compute", None, "a"),
        (20.0, 70.0, "transfer", None, "b"),
        (70.0, 100.0, "compute", None, "b"),
    ]  # fmt: skip


def test_failed_and_lost_attempts(path, worker, task, run, gone):
    """The second attempt waits until the first one fails, the third one for a new worker."""
    assert path(
        worker("w1"),
        task("a"),
        *run("a", 0.0, 30.0, outcome="retried", phases=[("compute", 1.0, 29.0)]),
        *run("a", 31.0, 50.0, outcome="lost"),
        gone("w1", 50.0, "handle-worker-cleanup-1.0"),
        worker("w2", t=60.0),
        *run("a", 61.0, 100.0, worker="w2"),
    ) == [
        (0.0, 30.0, "retry", "retried", "a"),
        (30.0, 31.0, "scheduler", "assignment", "a"),
        (31.0, 50.0, "recompute", "lost", "a"),
        (50.0, 60.0, "worker", "joined late", "a"),
        (60.0, 61.0, "scheduler", "assignment", "a"),
        (61.0, 100.0, "compute", None, "a"),
    ]


def test_a_lost_result_is_computed_again(path, worker, task, run, move, gone):
    """The worker with the result of a is lost while it computes c."""
    assert path(
        worker("w1"),
        worker("w2"),
        *(task(key) for key in ("a", "c", "long")),
        task("b", dependencies=["a", "long"]),
        *run("a", 0.0, 10.0),
        *run("long", 0.0, 60.0, worker="w2"),
        *run("c", 10.0, 50.0, outcome="lost"),
        move(50.0, "a", "memory>released", "handle-worker-cleanup-1.0"),
        move(50.0, "a", "released>waiting", "handle-worker-cleanup-1.0"),
        gone("w1", 50.1, "handle-worker-cleanup-1.0"),
        *run("a", 51.0, 80.0, worker="w2", phases=[("compute", 60.0, 80.0)], thread=2),
        *run("b", 80.0, 100.0, worker="w2", thread=2),
    ) == [
        (0.0, 10.0, "compute", None, "a"),
        (10.0, 50.0, "recompute", "lost", "c"),
        (50.0, 51.0, "scheduler", "assignment", "a"),
        (51.0, 80.0, "recompute", "result was lost", "a"),
        (80.0, 100.0, "compute", None, "b"),
    ]


def test_late_and_paused_workers(path, worker, task, run):
    def status(t, name):
        payload = {"action": "worker-status-change", "status": name, "worker": "w1"}
        return {"kind": "event", "t": t, "topic": "w1", "worker": "w1", "payload": payload}

    assert path(
        task("a"),
        worker("w1", t=30.0),
        status(40.0, "paused"),
        status(60.0, "running"),
        *run("a", 35.0, 100.0, phases=[("compute", 61.0, 100.0)]),
    ) == [
        (0.0, 30.0, "worker", "joined late", "a"),
        (30.0, 35.0, "scheduler", "assignment", "a"),
        (35.0, 40.0, "dispatch", None, "a"),
        (40.0, 60.0, "worker", "paused", "a"),
        (60.0, 61.0, "dispatch", None, "a"),
        (61.0, 100.0, "compute", None, "a"),
    ]


def test_the_client_between_graphs(found, worker, task, run):
    """The client waits for early and late, not for the tasks that end later."""
    update = {
        "action": "update-graph", "stimulus_id": "second",
        "metrics": {"start_timestamp_seconds": 45.0},
    }  # fmt: skip
    assert found(
        *(worker(f"w{n}") for n in (1, 2, 3)),
        *(task(key) for key in ("early", "late", "unwanted")),
        wants(0.0, "early", "late"),
        *run("early", 0.0, 10.0, worker="w3"),
        *run("late", 0.0, 20.0),
        *run("unwanted", 0.0, 30.0, worker="w2"),
        {"kind": "event", "t": 50.0, "topic": "scheduler", "payload": update},
        task("b", t=50.0, stimulus_id="second"),
        wants(50.0, "b"),
        *run("b", 50.0, 90.0),
        task("unwanted too", t=90.0),
        *run("unwanted too", 90.0, 95.0),
    ) == (
        [
            (0.0, 20.0, "compute", None, "late"),
            (20.0, 45.0, "client", "between graphs", None),
            (45.0, 50.0, "scheduler", "graph", "b"),
            (50.0, 90.0, "compute", None, "b"),
            (90.0, 100.0, "client", "after the last result", None),
        ],
        [("early", 1, 10.0), ("unwanted", 1, 90.0 - 30.0), ("unwanted too", 1, 100.0 - 95.0)],
    )


def test_a_task_that_computes_when_the_trace_ends(found, worker, task, run):
    """The first attempt at lost has no end in the trace."""
    assert found(
        worker("w1"),
        worker("w2"),
        *(task(key) for key in ("a", "lost")),
        task("b", dependencies=["a"]),
        *run("a", 0.0, 40.0),
        *run("lost", 0.0, worker="w2"),
        *run("lost", 10.0, 35.0, worker="w2"),
        *run("b", 40.0, worker="w2"),
    ) == (
        [(0.0, 40.0, "compute", None, "a"), (40.0, 100.0, "compute", "unfinished", "b")],
        [("lost", 1, None), ("lost", 2, pytest.approx(5.0))],
    )


def test_a_worker_whose_clock_is_ahead(path, worker, task, run):
    """The phases are shifted back so that they end when the result arrives."""
    assert path(
        worker("w1"),
        task("a"),
        task("b", dependencies=["a"]),
        *run("a", 0.0, 40.0, phases=[("compute", 15.0, 45.0)]),
        *run("b", 40.0, 100.0, phases=[("compute", 45.0, 105.0)]),
    ) == [
        (0.0, 10.0, "dispatch", None, "a"),
        (10.0, 40.0, "compute", None, "a"),
        (40.0, 100.0, "compute", None, "b"),
    ]


def test_a_submission_that_was_not_recorded(path, worker, run):
    assert path(worker("w1"), *run("a", 40.0, 100.0)) == [
        (0.0, 40.0, "unknown", "no submission was recorded", "a"),
        (40.0, 100.0, "compute", None, "a"),
    ]


def test_chunks_without_a_cluster(path, chunk):
    """Two processes; the second one ends last."""

    def measured(key, start_t, stop_t, worker):
        return chunk(
            key, run_id=1, t=stop_t, worker=worker, start_t=start_t, stop_t=stop_t,
            entry_start=0, entry_stop=1, seconds=stop_t - start_t,
        )  # fmt: skip

    assert path(
        measured("a", 10.0, 40.0, "p1"),
        measured("b", 10.0, 50.0, "p2"),
        measured("c", 41.0, 60.0, "p1"),
        measured("d", 51.0, 90.0, "p2"),
    ) == [
        (0.0, 10.0, "client", "before the first graph", None),
        (10.0, 50.0, "compute", None, "b"),
        (50.0, 51.0, "dispatch", None, "d"),
        (51.0, 90.0, "compute", None, "d"),
        (90.0, 100.0, "client", "after the last result", None),
    ]


def test_nothing_was_computed(path, worker):
    assert path(worker("w1")) == [(0.0, 100.0, "client", "nothing was computed", None)]
