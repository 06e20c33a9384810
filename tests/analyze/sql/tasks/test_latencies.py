"""View latencies."""

ON_SCHEDULER = "dependency_seconds, slot_seconds"
ON_WORKER = (
    "dispatch_seconds, fetch_seconds, thread_wait_seconds, execute_seconds, report_seconds, "
    "processing_seconds"
)


def test_all_latencies_of_an_attempt(rows, move):
    parts = [
        {"action": "transfer", "start": 4.0, "stop": 5.0, "source": "w2"},
        {"action": "transfer", "start": 4.25, "stop": 4.5, "source": "w3"},
        {"action": "deserialize", "start": 7.0, "stop": 7.25},
        {"action": "compute", "start": 7.5, "stop": 10.0},
    ]

    assert rows(
        f"SELECT {ON_SCHEDULER}, {ON_WORKER} FROM latencies",
        move(0.0, "a", "released>waiting"),
        move(1.0, "a", "waiting>queued"),
        move(3.5, "a", "queued>processing", worker="w1"),
        move(10.75, "a", "processing>memory", worker="w1", startstops=parts),
    ) == [(1.0, 2.5, 0.5, 1.0, 2.0, 3.0, 0.75, 7.25)]


def test_attempt_without_transfers(rows, move):
    assert rows(
        f"SELECT {ON_SCHEDULER}, {ON_WORKER} FROM latencies",
        move(0.5, "a", "released>waiting"),
        move(1.0, "a", "waiting>processing", worker="w1"),
        move(
            5.0, "a", "processing>memory", worker="w1",
            startstops=[{"action": "compute", "start": 3.0, "stop": 4.5}],
        ),
    ) == [(0.5, 0.0, 2.0, None, None, 1.5, 0.5, 4.0)]  # fmt: skip


def test_no_worker_counts_as_slot_time(rows, move):
    assert rows(
        f"SELECT {ON_SCHEDULER} FROM latencies",
        move(0.0, "a", "released>waiting"),
        move(0.25, "a", "waiting>no-worker"),
        move(8.0, "a", "no-worker>processing", worker="w1"),
    ) == [(0.25, 7.75)]


def test_waiting_time_of_each_attempt(rows, move):
    assert rows(
        f"SELECT attempt, outcome, {ON_SCHEDULER}, dispatch_seconds, processing_seconds "
        "FROM latencies",
        move(0.0, "a", "released>waiting"),
        move(1.0, "a", "waiting>queued"),
        move(4.0, "a", "queued>processing", worker="w1"),
        move(5.0, "a", "processing>released", "handle-worker-cleanup-5.0"),
        move(5.0, "a", "released>waiting"),
        move(6.0, "a", "waiting>processing", worker="w2"),
    ) == [(1, "lost", 1.0, 3.0, None, 1.0), (2, "unfinished", 1.0, 0.0, None, None)]


def test_unrecorded_states_are_null(rows, move, task):
    assert rows(
        f"SELECT key, {ON_SCHEDULER}, processing_seconds FROM latencies ORDER BY key",
        move(1.0, "ready", "waiting>processing", worker="w1"),
        {**task("slot"), "state": "queued", "t": 0.5},
        move(2.0, "slot", "queued>processing", worker="w1"),
        {**task("there"), "state": "processing", "worker": "w1"},
        move(3.0, "there", "processing>memory", worker="w1"),
    ) == [("ready", None, None, None), ("slot", None, 1.5, None), ("there", None, None, None)]


def test_clock_difference_is_visible(rows, move):
    assert rows(
        "SELECT dispatch_seconds, execute_seconds, report_seconds, processing_seconds "
        "FROM latencies",
        move(1.0, "a", "waiting>processing", worker="w1"),
        move(
            2.0, "a", "processing>memory", worker="w1",
            startstops=[{"action": "compute", "start": 1.25, "stop": 2.25}],
        ),
    ) == [(0.25, 1.0, -0.25, 1.0)]  # fmt: skip
