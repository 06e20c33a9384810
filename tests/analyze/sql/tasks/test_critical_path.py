"""View critical_path: runs whose longest path is known."""

from pathlib import Path

import pytest

from roast_analyze import Trace

SAMPLE_TRACES = Path(__file__).parents[4] / "sample_traces"
SAMPLES = ["coffea_failures", "shuffle_reduce"]
MORE_SAMPLES = ["coffea", "image_pipeline", "metadata_map"]


@pytest.fixture
def path(rows):
    """Return the steps of a trace: start, stop, cause, detail, key."""
    query = "SELECT start_t, stop_t, cause, detail, key FROM critical_path"
    return lambda *records: rows(query, *records)


def wants(t, *keys):
    change = {"t": t, "action": "desires", "keys": list(keys)}
    return {"kind": "wanted_keys", "t": t, "client": "C", "changes": [change]}


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


def test_waiting_for_a_thread_goes_on_with_what_it_computed(path, worker, task, run):
    """Of two threads, b waits for that of the long task."""
    assert path(
        worker("w1", nthreads=2),
        *(task(key) for key in ("long", "short", "b")),
        *run("long", 0.0, 61.0, thread=1, phases=[("compute", 0.0, 60.0)]),
        *run("short", 0.0, 59.0, thread=2),
        *run("b", 1.0, 100.0, thread=1, phases=[("compute", 62.0, 100.0)]),
    ) == [
        (0.0, 60.0, "compute", None, "long"),
        (60.0, 62.0, "dispatch", None, "b"),
        (62.0, 100.0, "compute", None, "b"),
    ]


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


def test_a_final_merge_is_not_to_blame_for_the_tail(path, worker, task, run):
    chunks = ["c-1", "c-2", "c-3"]
    assert path(
        *(worker(f"w{n}") for n in (1, 2, 3)),
        *(task(key) for key in chunks),
        task("merge", dependencies=chunks),
        *run("c-1", 0.0, 10.0, worker="w1"),
        *run("c-2", 0.0, 90.0, worker="w2"),
        *run("c-3", 0.0, 20.0, worker="w3"),
        *run("merge", 90.0, 100.0, worker="w1"),
    ) == [
        (0.0, 90.0, "compute", None, "c-2"),
        (90.0, 100.0, "compute", None, "merge"),
    ]


def test_a_transfer_that_ends_after_the_thread_is_free(path, worker, task, run):
    """The thread was free at 30 s; the inputs of b came at 70 s, from a."""
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
    """The second attempt of a waits for the failure, its third one for a new worker."""
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


def test_the_client_between_graphs(path, worker, task, run):
    """The client waited for a, and not for the task that ended later."""
    update = {
        "action": "update-graph", "stimulus_id": "second",
        "metrics": {"start_timestamp_seconds": 45.0},
    }  # fmt: skip
    assert path(
        worker("w1"),
        worker("w2"),
        task("a"),
        task("unwanted"),
        wants(0.0, "a"),
        *run("a", 0.0, 20.0),
        *run("unwanted", 0.0, 30.0, worker="w2"),
        {"kind": "event", "t": 50.0, "topic": "scheduler", "payload": update},
        task("b", t=50.0, stimulus_id="second"),
        wants(50.0, "b"),
        *run("b", 50.0, 90.0),
        task("unwanted too", t=90.0),
        *run("unwanted too", 90.0, 95.0),
    ) == [
        (0.0, 20.0, "compute", None, "a"),
        (20.0, 45.0, "client", "between graphs", None),
        (45.0, 50.0, "scheduler", "graph", "b"),
        (50.0, 90.0, "compute", None, "b"),
        (90.0, 100.0, "client", "after the last result", None),
    ]


def test_a_task_that_computes_when_the_trace_ends(path, worker, task, run):
    assert path(
        worker("w1"),
        worker("w2"),
        task("a"),
        task("b", dependencies=["a"]),
        *run("a", 0.0, 40.0),
        *run("b", 40.0, worker="w2"),
    ) == [
        (0.0, 40.0, "compute", None, "a"),
        (40.0, 100.0, "compute", "unfinished", "b"),
    ]


def test_a_worker_whose_clock_is_ahead(path, worker, task, run):
    """The phases are taken to be earlier by as much as they end after the result came."""
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


@pytest.mark.parametrize(
    "name",
    [*SAMPLES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in MORE_SAMPLES)],
)
def test_steps_are_contiguous_and_add_up(name):
    with Trace(SAMPLE_TRACES / f"{name}.jsonl.zst") as trace:
        steps = trace.critical_path()
        [(start_t, stop_t, wall_seconds)] = trace.rows(
            "SELECT start_t, stop_t, wall_seconds FROM run"
        )
        on_path = trace.rows(
            "SELECT max(slack_seconds) FROM task_slack "
            "SEMI JOIN critical_path USING (key, attempt)"
        )

    assert steps["seconds"].sum() == wall_seconds
    assert steps["seconds"].min() > 0
    assert steps["step"].to_list() == [*range(1, steps.height + 1)]
    assert [start_t, *steps["stop_t"]] == [*steps["start_t"], stop_t]
    assert on_path == [(0.0,)]
