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
            "add-1", "add", "add", "s", False, None, None, ["x", "y"], 2, [0.0, 1.5],
            '{"retries":2}', 3.0, "c", 3, None, "T",
        ),
        (
            "b", "b", None, None, False, None, None, None, None, None, None, 4.0, None, 1,
            None, "T",
        ),
    ]  # fmt: skip


def test_a_task_is_submitted_in_another_span_than_its_group(rows, task):
    inner = {"name": ["outer", "inner"], "ids": ["s1", "s2"]}

    assert rows(
        "SELECT key, span_id, is_other_span, submitted_span_path, submitted_span_id FROM tasks",
        task("a-1", span_id="s"),
        task("a-2", span_id="s", value={"submitted_span": inner}),
        task("a-3", span_id="s", value={"submitted_span": {"name": ["default"]}}),
    ) == [
        ("a-1", "s", False, None, None),
        ("a-2", "s", True, ["outer", "inner"], "s2"),
        ("a-3", "s", True, ["default"], None),
    ]
