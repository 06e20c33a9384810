"""View prefixes."""


def test_totals_in_order_of_cost(rows, task, run):
    outcomes = ["memory", "erred", "lost", "rescheduled", "cancelled"]

    assert rows(
        "SELECT prefix, tasks, task_runs, memory, erred, retried, lost, rescheduled, "
        "cancelled, unfinished, compute_seconds, mean_compute_seconds, "
        "median_compute_seconds, max_compute_seconds, output_bytes FROM prefixes",
        *(task(key) for key in ("add-1", "add-2", "add-3", "sub-1")),
        *run("add-1", 1.0, 2.0),
        *run("add-2", 1.0, 3.0),
        *run("add-3", 1.0, 2.0, outcome="lost"),
        *run("add-3", 3.0, 9.0),
        *run("sub-1", 1.0),
        *(task(f"end-{outcome}") for outcome in outcomes),
        *(move for o in outcomes for move in run(f"end-{o}", 1.0, 1.5, outcome=o)),
        # A key that is submitted twice is one task.
        task("twice-1", 1.0),
        *run("twice-1", 1.0, 1.25),
        task("twice-1", 3.0),
        *run("twice-1", 4.0, 4.125),
        task("never-1"),
        *run("nameless", 1.0, 1.0625),
    ) == [
        ("add", 3, 4, 3, 0, 0, 1, 0, 0, 0, 9.0, 3.0, 2.0, 6.0, 24),
        ("end", 5, 5, 1, 1, 0, 1, 1, 1, 0, 0.5, 0.5, 0.5, 0.5, 8),
        ("twice", 1, 2, 2, 0, 0, 0, 0, 0, 0, 0.375, 0.1875, 0.1875, 0.25, 16),
        (None, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0.0625, 0.0625, 0.0625, 0.0625, 8),
        ("never", 1, *[0] * 8, *[None] * 5),
        ("sub", 1, 1, 0, 0, 0, 0, 0, 0, 1, *[None] * 5),
    ]
