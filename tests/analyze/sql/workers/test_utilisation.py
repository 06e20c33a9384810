"""View utilisation. Recordings begin at 0 s."""

SECONDS = "compute_seconds, failed_seconds, transfer_seconds, thread_seconds, idle_seconds"


def test_compute_failed_transfer_and_idle_seconds(rows, worker, gone, run):
    """Two threads from 2 s to 11 s."""
    succeeded = [
        ("transfer", 2.5, 3.0, "w2"),
        ("transfer", 2.5, 3.0, "w3"),
        ("deserialize", 2.5, 3.0),
        ("compute", 3.0, 8.0),
    ]

    assert rows(
        f"SELECT t, seconds, worker, name, {SECONDS}, utilisation FROM utilisation_by(5)",
        worker("w1", 2.0, nthreads=2, name="one"),
        *run("a", 2.0, 8.0, phases=succeeded),
        *run("b", 2.0, 6.0, outcome="erred", phases=[("compute", 4.0, 6.0)]),
        gone("w1", 11.0, "retire-workers-11.0"),
        stop_t=20.0,
    ) == [
        (0.0, 5.0, "w1", "one", 3.0, 1.0, 1.0, 6.0, 3.0, 0.5),
        (5.0, 5.0, "w1", "one", 4.0, 1.0, 0.0, 10.0, 6.0, 0.4),
        (10.0, 5.0, "w1", "one", 0.0, 0.0, 0.0, 2.0, 2.0, 0.0),
    ]


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


def test_threads_and_attempts_that_were_not_recorded(rows, worker, task, run, move):
    """The number of threads of `w1` is unknown, and `w3` joined before it was recorded."""
    there = {"state": "processing", "worker": "w2"}
    phases = [("compute", -1.0, 3.0)]

    assert rows(
        f"SELECT t, worker, {SECONDS}, utilisation FROM utilisation_by(5)",
        *run("a", 1.0, 3.0),
        worker("w2"),
        # It began before the recording.
        {**task("b"), **there},
        move(3.0, "b", "processing>memory", worker="w2", phases=phases),
        *run("c", 1.0, 3.0, "w3"),
        worker("w3", 8.0),
        # Seceded tasks occupy no thread.
        worker("w4", 0.5),
        *run("d", 0.5, 5.0, "w4"),
        *run("e", 0.5, 5.0, "w4"),
        stop_t=10.0,
    ) == [
        (0.0, "w1", 2.0, 0.0, 0.0, None, None, None),
        (0.0, "w2", 3.0, 0.0, 0.0, 5.0, 2.0, 0.6),
        (0.0, "w3", 2.0, 0.0, 0.0, 0.0, 0.0, None),
        (0.0, "w4", 9.0, 0.0, 0.0, 4.5, 0.0, 2.0),
        (5.0, "w1", 0.0, 0.0, 0.0, None, None, None),
        (5.0, "w2", 0.0, 0.0, 0.0, 5.0, 5.0, 0.0),
        (5.0, "w3", 0.0, 0.0, 0.0, 2.0, 2.0, 0.0),
        (5.0, "w4", 0.0, 0.0, 0.0, 5.0, 5.0, 0.0),
    ]


def test_default_buckets(ask, worker, run):
    found = ask(worker("w1"), *run("a", 1.0, 3.0), stop_t=100.0)

    for view in ("concurrency", "utilisation"):
        assert found(f"FROM {view}") == found(f"FROM {view}_by(0.5)")


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
