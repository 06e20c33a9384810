"""View transitions."""


def test_columns_of_a_transition(rows, move):
    part = {"action": "compute", "start": 1.0, "stop": 2.0}
    fields = {
        "worker": "w1", "run_id": 3, "thread": 4, "nbytes": 5, "typename": "int",
        "startstops": [part], "cause": "a", "exception": "E()", "traceback": "line",
    }  # fmt: skip

    # seq is the order of the file.
    assert rows(
        "FROM transitions ORDER BY seq",
        move(2.5, "a", "processing>erred", "task-erred-2.5", **fields),
        move(1.0, "b", "released>waiting"),
    ) == [
        (
            2.5, "a", "processing", "erred", "task-erred-2.5", "w1", 3, 4, 5, "int",
            [{**part, "source": None}], "a", "E()", "line", 0, "T",
        ),
        (1.0, "b", "released", "waiting", "x-1.0", *[None] * 9, 1, "T"),
    ]  # fmt: skip
