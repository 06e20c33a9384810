"""View utilization. Recordings begin at 0 s."""

import pytest

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
        f"SELECT t, seconds, worker, name, {SECONDS}, utilization FROM utilization_by(5)",
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


def test_default_buckets(ask, worker, run):
    found = ask(worker("w1"), *run("a", 1.0, 3.0), stop_t=100.0)

    for view in ("concurrency", "utilization"):
        assert found(f"FROM {view}") == found(f"FROM {view}_by(0.5)")


def test_buckets_are_wider_if_all_workers_may_have_more_than_a_million(ask, worker):
    """Of 395 buckets of 1 s; most of these workers join in the last few seconds."""
    workers = [worker(f"w{n}", 390.0 if n else 0.0) for n in range(2_600)]
    found = ask(*workers, stop_t=395.0)

    assert found("SELECT count(*), max(seconds), sum(thread_seconds) FROM utilization") == [
        (198 + 3 * 2_599, 2.0, 395.0 + 5.0 * 2_599)
    ]
    assert found("SELECT max(seconds) FROM concurrency") == [(1.0,)]


@pytest.mark.exhaustive
def test_wider_buckets_of_many_workers(ask, worker, run):
    """With the buckets of concurrency, 200 of 0.5 s, there would be 1.5 million rows."""
    workers = [worker(f"w{n}", n % 50) for n in range(10_000)]
    found = ask(*workers, *run("a", 1.5, 98.0, worker="w1"), stop_t=100.0)
    seconds = sum(100 - n % 50 for n in range(10_000))

    assert found(
        "SELECT count(*), max(seconds), sum(thread_seconds), sum(compute_seconds) "
        "FROM utilization"
    ) == [(seconds, 1.0, seconds, 96.5)]
    assert found("SELECT max(seconds), sum(thread_seconds) FROM concurrency") == [
        (0.5, seconds)
    ]
