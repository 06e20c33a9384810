"""View task_phases."""


def test_phases_in_order_of_time(rows, task, run):
    phases = [
        ("compute", 3.0, 4.5),
        ("transfer", 1.5, 2.0, "w2"),
        ("transfer", 1.0, 2.5, "w3"),
    ]

    assert rows(
        "SELECT key, prefix, attempt, worker, thread, outcome, action, start_t, seconds, "
        "source FROM task_phases",
        task("a-1"),
        *run("a-1", 0.25, 0.5, outcome="lost"),
        *run("a-1", 0.5, 5.0, thread=7, phases=phases),
    ) == [
        ("a-1", "a", 2, "w1", 7, "memory", "transfer", 1.0, 1.5, "w3"),
        ("a-1", "a", 2, "w1", 7, "memory", "transfer", 1.5, 0.5, "w2"),
        ("a-1", "a", 2, "w1", 7, "memory", "compute", 3.0, 1.5, None),
    ]
