"""View prefixes."""


def test_totals_in_order_of_cost(rows, task, run, move):
    assert rows(
        "SELECT prefix, tasks, task_runs, memory, erred, retried, lost, cancelled, unfinished, "
        "compute_seconds, mean_compute_seconds, median_compute_seconds, max_compute_seconds, "
        "output_bytes FROM prefixes",
        *(task(key) for key in ("add-1", "add-2", "add-3", "sub-1")),
        *run("add-1", 1.0, 2.0),
        *run("add-2", 1.0, 3.0),
        move(1.0, "add-3", "waiting>processing", worker="w1"),
        move(2.0, "add-3", "processing>released", "handle-worker-cleanup-2.0"),
        *run("add-3", 3.0, 9.0),
        move(1.0, "sub-1", "waiting>processing", worker="w1"),
    ) == [
        ("add", 3, 4, 3, 0, 0, 1, 0, 0, 9.0, 3.0, 2.0, 6.0, 24),
        ("sub", 1, 1, 0, 0, 0, 0, 0, 1, None, None, None, None, None),
    ]


def test_attempts_by_outcome(rows, task, move):
    ends = [
        ("memory", "task-finished-2.0"),
        ("erred", "task-erred-2.0"),
        ("released", "reschedule-2.0"),
        ("released", "handle-worker-cleanup-2.0"),
        ("released", "client-releases-keys-2.0"),
    ]

    assert rows(
        "SELECT task_runs, memory, erred, retried, lost, rescheduled, cancelled, unfinished "
        "FROM prefixes",
        *(task(f"add-{n}") for n in range(len(ends))),
        *(move(1.0, f"add-{n}", "waiting>processing", worker="w1") for n in range(len(ends))),
        *(move(2.0, f"add-{n}", f"processing>{to}", why) for n, (to, why) in enumerate(ends)),
    ) == [(5, 1, 1, 0, 1, 1, 1, 0)]


def test_prefix_without_attempts_and_attempts_without_prefix(rows, task, run):
    assert rows(
        "SELECT prefix, tasks, task_runs FROM prefixes",
        task("add-1"),
        *run("nameless", 1.0, 2.0),
    ) == [(None, 0, 1), ("add", 1, 0)]


def test_resubmitted_key_is_one_task(rows, task, run):
    assert rows(
        "SELECT tasks, task_runs FROM prefixes",
        task("add-1", 0.0),
        *run("add-1", 1.0, 2.0),
        task("add-1", 3.0),
        *run("add-1", 4.0, 5.0),
    ) == [(1, 2)]
