"""View task_groups."""


def test_totals_in_order_of_cost(rows, task, run):
    phases = [
        ("transfer", 3.0, 3.5, "w1"),
        ("deserialize", 3.5, 3.75),
        ("disk-read", 3.75, 4.0),
        ("compute", 4.0, 10.0),
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
        *run("add-3", 2.0, 2.5, outcome="lost"),
        *run("add-3", 3.0, 11.0, "w2", nbytes=4, phases=phases),
        # An attempt counts in the group of its submission.
        task("sub-1", 0.0, group="first"),
        *run("sub-1", 1.0, 2.0),
        task("sub-1", 3.0, group="second"),
        *run("sub-1", 4.0, 8.0),
        task("mul-1"),
        *run("mul-1", 1.0, 1.5),
        *run("nameless", 1.0, 1.25),
    ) == [
        (
            "add-a", "add", 3, 4, 3, 1, 9.0, 3.0, 2.0, 6.0, 0.5, 0.25, 0.25, 20, 2,
            0.25, 1.0, 11.0, 10.0,
        ),
        ("second", "sub", 0, 1, 1, 0, *[4.0] * 4, 0.0, 0.0, 0.0, 8, 1, None, 4.0, 8.0, 4.0),
        ("first", "sub", 1, 1, 1, 0, *[1.0] * 4, 0.0, 0.0, 0.0, 8, 1, 0.0, 1.0, 2.0, 1.0),
        (
            None, "mul", 1, 2, 2, 0, 0.75, 0.375, 0.375, 0.5, 0.0, 0.0, 0.0, 16, 1,
            0.0, 1.0, 1.5, 0.5,
        ),
        ("add-b", "add", 1, 0, 0, 0, *[None] * 8, 0, 0.5, None, None, None),
    ]  # fmt: skip
