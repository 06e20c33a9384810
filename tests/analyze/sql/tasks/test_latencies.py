"""View latencies."""


def test_latencies_on_scheduler_and_worker(rows, move, run, task):
    """`queued` has all latencies, `direct` neither transfers nor a queue."""
    phases = [
        ("transfer", 4.0, 5.0, "w2"),
        ("transfer", 4.25, 4.5, "w3"),
        ("deserialize", 7.0, 7.25),
        ("compute", 7.5, 10.0),
    ]

    assert rows(
        "SELECT key, dependency_seconds, slot_seconds, dispatch_seconds, fetch_seconds, "
        "thread_wait_seconds, execute_seconds, report_seconds, processing_seconds "
        "FROM latencies ORDER BY key, attempt",
        # Each attempt has its own wait.
        move(0.0, "again", "released>waiting"),
        move(1.0, "again", "waiting>queued"),
        move(4.0, "again", "queued>processing", worker="w1"),
        move(5.0, "again", "processing>released", "handle-worker-cleanup-5.0"),
        move(5.0, "again", "released>waiting"),
        *run("again", 6.0, worker="w2"),
        move(0.0, "queued", "released>waiting"),
        move(1.0, "queued", "waiting>queued"),
        move(3.5, "queued", "queued>processing", worker="w1"),
        move(10.75, "queued", "processing>memory", worker="w1", phases=phases),
        move(0.5, "direct", "released>waiting"),
        *run("direct", 1.0, 5.0, phases=[("compute", 3.0, 4.5)]),
        # Waiting for a worker counts as slot time.
        move(0.0, "no-worker", "released>waiting"),
        move(0.25, "no-worker", "waiting>no-worker"),
        move(8.0, "no-worker", "no-worker>processing", worker="w1"),
        # A clock difference shows as a negative latency.
        *run("clocks", 1.0, 2.0, phases=[("compute", 1.25, 2.25)]),
        # What happened before the recording is unknown.
        {**task("was-queued"), "state": "queued", "t": 0.5},
        move(2.0, "was-queued", "queued>processing", worker="w1"),
        {**task("was-processing"), "state": "processing", "worker": "w1"},
        move(3.0, "was-processing", "processing>memory", worker="w1"),
    ) == [
        ("again", 1.0, 3.0, None, None, None, None, None, 1.0),
        ("again", 1.0, 0.0, None, None, None, None, None, None),
        ("clocks", None, None, 0.25, None, None, 1.0, -0.25, 1.0),
        ("direct", 0.5, 0.0, 2.0, None, None, 1.5, 0.5, 4.0),
        ("no-worker", 0.25, 7.75, None, None, None, None, None, None),
        ("queued", 1.0, 2.5, 0.5, 1.0, 2.0, 3.0, 0.75, 7.25),
        ("was-processing", None, None, None, None, None, None, None, None),
        ("was-queued", None, 1.5, None, None, None, None, None, None),
    ]
