"""View task_groups."""


def test_totals_in_order_of_cost(rows, task, run, move):
    parts = [
        {"action": "transfer", "start": 3.0, "stop": 3.5, "source": "w1"},
        {"action": "deserialize", "start": 3.5, "stop": 3.75},
        {"action": "disk-read", "start": 3.75, "stop": 4.0},
        {"action": "compute", "start": 4.0, "stop": 10.0},
    ]

    assert rows(
        "SELECT task_group, prefix, tasks, task_runs, memory, lost, compute_seconds, "
        "mean_compute_seconds, median_compute_seconds, max_compute_seconds, transfer_seconds, "
        "deserialize_seconds, disk_seconds, output_bytes, workers, submitted_t, first_t, "
        "last_t, wall_seconds FROM task_groups",
        task("add-1", 0.5, group="add-a"),
        task("add-2", 0.25, group="add-a"),
        task("add-3", 0.75, group="add-a"),
        task("add-4", 0.5, group="add-b"),
        *run("add-1", 1.0, 2.0),
        *run("add-2", 1.5, 3.5),
        move(2.0, "add-3", "waiting>processing", worker="w1"),
        move(2.5, "add-3", "processing>released", "handle-worker-cleanup-2.5"),
        move(3.0, "add-3", "waiting>processing", worker="w2"),
        move(11.0, "add-3", "processing>memory", worker="w2", nbytes=4, startstops=parts),
    ) == [
        (
            "add-a", "add", 3, 4, 3, 1, 9.0, 3.0, 2.0, 6.0, 0.5, 0.25, 0.25, 20, 2,
            0.25, 1.0, 11.0, 10.0,
        ),
        (
            "add-b", "add", 1, 0, 0, 0, None, None, None, None, None, None, None, None, 0,
            0.5, None, None, None,
        ),
    ]  # fmt: skip


def test_attempt_counts_in_the_group_of_its_submission(rows, task, run):
    assert rows(
        "SELECT task_group, tasks, task_runs, compute_seconds FROM task_groups",
        task("add-1", 0.0, group="first"),
        *run("add-1", 1.0, 2.0),
        task("add-1", 3.0, group="second"),
        *run("add-1", 4.0, 7.0),
    ) == [("second", 0, 1, 3.0), ("first", 1, 1, 1.0)]


def test_tasks_without_a_group(rows, task, run):
    assert rows(
        "SELECT task_group, prefix, tasks, task_runs FROM task_groups",
        task("add-1"),
        *run("add-1", 1.0, 2.0),
        *run("nameless", 1.0, 2.0),
    ) == [(None, "add", 1, 2)]
