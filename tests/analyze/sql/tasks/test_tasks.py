"""View tasks."""


def test_columns_of_a_task(rows, task):
    assert rows(
        "SELECT * FROM tasks",
        task(
            "add-1",
            3.0,
            group="add",
            dependencies=["x", "y"],
            priority=[0, 1.5],
            annotations={"retries": 2},
            span_id="s",
            client="c",
        ),
    ) == [
        (
            "add-1", "add", "add", "s", ["x", "y"], 2, [0.0, 1.5], '{"retries":2}',
            3.0, "c", 1, None, "T",
        )
    ]  # fmt: skip


def test_resubmitted_key_is_one_row(rows, task):
    assert rows(
        "SELECT key, submitted_t, client, submissions FROM tasks",
        task("a", 1.0, client="first"),
        task("b", 2.0),
        task("a", 3.0, client="second"),
        task("a", 4.0),
    ) == [("a", 1.0, "first", 3), ("b", 2.0, None, 1)]
