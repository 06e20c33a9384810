"""View task_phases."""

PARTS = [
    {"action": "compute", "start": 3.0, "stop": 4.5},
    {"action": "transfer", "start": 1.5, "stop": 2.0, "source": "w2"},
    {"action": "transfer", "start": 1.0, "stop": 2.5, "source": "w3"},
]


def test_phases_in_order_of_time(rows, task, move):
    assert rows(
        "SELECT key, prefix, attempt, worker, thread, outcome, action, start_t, seconds, "
        "source "
        "FROM task_phases",
        task("a-1"),
        move(0.5, "a-1", "waiting>processing", worker="w1"),
        move(5.0, "a-1", "processing>memory", worker="w1", thread=7, startstops=PARTS),
    ) == [
        ("a-1", "a", 1, "w1", 7, "memory", "transfer", 1.0, 1.5, "w3"),
        ("a-1", "a", 1, "w1", 7, "memory", "transfer", 1.5, 0.5, "w2"),
        ("a-1", "a", 1, "w1", 7, "memory", "compute", 3.0, 1.5, None),
    ]


def test_attempt_without_phases(rows, move):
    assert (
        rows(
            "FROM task_phases",
            move(0.5, "a", "waiting>processing", worker="w1"),
            move(5.0, "a", "processing>released", "handle-worker-cleanup-5.0"),
        )
        == []
    )


def test_compute_phases_add_up(rows, run):
    assert rows(
        "SELECT sum(seconds), (SELECT sum(compute_seconds) FROM task_runs) FROM task_phases "
        "WHERE action = 'compute'",
        *run("a", 1.0, 3.0),
        *run("b", 2.0, 2.5),
    ) == [(2.5, 2.5)]
