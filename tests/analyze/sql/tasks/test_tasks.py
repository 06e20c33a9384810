"""View tasks."""


def test_a_key_is_one_row(rows, task):
    fields = {
        "group": "add", "dependencies": ["x", "y"], "priority": [0, 1.5],
        "annotations": {"retries": 2}, "span_id": "s", "client": "c",
    }  # fmt: skip

    assert rows(
        "SELECT * FROM tasks",
        task("add-1", 3.0, **fields),
        task("b", 4.0),
        task("add-1", 5.0, client="second"),
        task("add-1", 6.0),
    ) == [
        (
            "add-1", "add", "add", "s", ["x", "y"], 2, [0.0, 1.5], '{"retries":2}',
            3.0, "c", 3, None, "T",
        ),
        ("b", "b", None, None, None, None, None, None, 4.0, None, 1, None, "T"),
    ]  # fmt: skip
