"""View transitions."""


def test_columns_of_a_transition(rows, move):
    part = {"action": "compute", "start": 1.0, "stop": 2.0}
    fields = {
        "worker": "w1", "run_id": 3, "thread": 4, "nbytes": 5, "typename": "int",
        "startstops": [part], "cause": "a", "exception": "E()", "traceback": "line",
    }  # fmt: skip

    assert rows(
        "SELECT * EXCLUDE (seq) FROM transitions",
        move(2.5, "a", "processing>erred", "task-erred-2.5", **fields),
    ) == [
        (
            2.5, "a", "processing", "erred", "task-erred-2.5", "w1", 3, 4, 5, "int",
            [{**part, "source": None}], "a", "E()", "line", "T",
        )
    ]  # fmt: skip


def test_seq_is_the_order_of_the_file(rows, move):
    moves = [
        move(t, key, "released>waiting") for t, key in [(2.0, "b"), (1.0, "a"), (2.0, "c")]
    ]

    found = rows("SELECT key, seq FROM transitions ORDER BY seq", *moves)
    assert found == [("b", 0), ("a", 1), ("c", 2)]
