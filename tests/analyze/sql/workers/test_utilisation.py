"""View utilisation. Recordings begin at 0 s."""

import pytest

SECONDS = "compute_seconds, failed_seconds, transfer_seconds, thread_seconds, idle_seconds"


def test_compute_failed_transfer_and_idle_seconds(rows, worker, gone, move):
    """Two threads from 2 s to 11 s."""
    assert rows(
        f"SELECT t, seconds, worker, name, {SECONDS}, utilisation FROM utilisation_by(5)",
        worker("w1", 2.0, nthreads=2, name="one"),
        move(2.0, "a", "waiting>processing", worker="w1"),
        move(2.0, "b", "waiting>processing", worker="w1"),
        move(
            6.0, "b", "processing>erred", worker="w1", exception="E()",
            startstops=[{"action": "compute", "start": 4.0, "stop": 6.0}],
        ),
        move(
            8.0, "a", "processing>memory", worker="w1",
            startstops=[
                {"action": "transfer", "start": 2.5, "stop": 3.0, "source": "w2"},
                {"action": "transfer", "start": 2.5, "stop": 3.0, "source": "w3"},
                {"action": "deserialize", "start": 2.5, "stop": 3.0},
                {"action": "compute", "start": 3.0, "stop": 8.0},
            ],
        ),
        gone("w1", 11.0, "retire-workers-11.0"),
        stop_t=20.0,
    ) == [
        (0.0, 5.0, "w1", "one", 3.0, 1.0, 1.0, 6.0, 3.0, 0.5),
        (5.0, 5.0, "w1", "one", 4.0, 1.0, 0.0, 10.0, 6.0, 0.4),
        (10.0, 5.0, "w1", "one", 0.0, 0.0, 0.0, 2.0, 2.0, 0.0),
    ]  # fmt: skip


def test_processes_with_the_same_address(rows, worker, gone, run):
    assert rows(
        "SELECT t, server_id, compute_seconds, thread_seconds FROM utilisation_by(5)",
        worker("w1", 0.0, server_id="first"),
        *run("a", 1.0, 3.0),
        gone("w1", 3.5, "handle-worker-cleanup-3.5"),
        worker("w1", 4.0, server_id="second"),
        *run("b", 4.5, 7.0),
        stop_t=10.0,
    ) == [
        (0.0, "first", 2.0, 3.5),
        (0.0, "second", 0.5, 1.0),
        (5.0, "second", 2.0, 5.0),
    ]


def test_rows_in_order_of_buckets(rows, worker, run):
    assert rows(
        "SELECT t, worker, compute_seconds FROM utilisation_by(5)",
        worker("w1"),
        worker("w2"),
        *run("a", 1.0, 6.0, worker="w2"),
        stop_t=10.0,
    ) == [(0.0, "w1", 0.0), (0.0, "w2", 4.0), (5.0, "w1", 0.0), (5.0, "w2", 1.0)]


def test_unknown_number_of_threads(rows, run):
    assert rows(
        f"SELECT {SECONDS}, utilisation FROM utilisation_by(5)", *run("a", 1.0, 3.0), stop_t=5.0
    ) == [(2.0, 0.0, 0.0, None, None, None)]


def test_seceded_tasks(rows, worker, run):
    assert rows(
        "SELECT compute_seconds, thread_seconds, idle_seconds, utilisation "
        "FROM utilisation_by(5)",
        worker("w1"),
        *run("a", 0.0, 5.0),
        *run("b", 0.0, 5.0),
        stop_t=5.0,
    ) == [(10.0, 5.0, 0.0, 2.0)]


def test_attempt_before_its_worker_was_recorded(rows, worker, run):
    assert rows(
        "SELECT t, compute_seconds, thread_seconds, idle_seconds FROM utilisation_by(5)",
        *run("a", 1.0, 3.0),
        worker("w1", 8.0),
        stop_t=10.0,
    ) == [(0.0, 2.0, 0.0, 0.0), (5.0, 0.0, 2.0, 2.0)]


def test_attempt_that_began_before_the_recording(rows, worker, task, move):
    assert rows(
        "SELECT compute_seconds FROM utilisation_by(5)",
        worker("w1"),
        {**task("a"), "state": "processing", "worker": "w1"},
        move(
            3.0, "a", "processing>memory", worker="w1",
            startstops=[{"action": "compute", "start": -1.0, "stop": 3.0}],
        ),
        stop_t=5.0,
    ) == [(3.0,)]  # fmt: skip


@pytest.mark.parametrize("view", ["concurrency", "utilisation"])
def test_default_buckets(open_trace, worker, run, view):
    trace = open_trace(worker("w1"), *run("a", 1.0, 3.0), stop_t=100.0)

    assert trace.view(view).fetchall() == trace.sql(f"FROM {view}_by(0.5)").fetchall()


def test_no_rows_while_a_process_was_absent(rows, worker, gone, run):
    """The clock was set back before the worker joined, so it was never present."""
    assert rows(
        "SELECT t, compute_seconds, thread_seconds FROM utilisation_by(5)",
        worker("w1", 90.0, server_id="first"),
        *run("a", 1.0, 2.0),
        *run("b", 41.0, 43.0),
        gone("w1", 20.0, "handle-worker-cleanup-20.0") | {"server_id": "first"},
        stop_t=100.0,
    ) == [(0.0, 1.0, 0.0), (40.0, 2.0, 0.0)]
