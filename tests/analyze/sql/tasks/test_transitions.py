"""View transitions."""


def test_columns_of_a_transition(rows, move):
    part = {"action": "compute", "start": 1.0, "stop": 2.0}

    assert rows(
        "SELECT * EXCLUDE (seq) FROM transitions",
        move(
            2.5,
            "a",
            "processing>erred",
            "task-erred-2.5",
            worker="w1",
            run_id=3,
            thread=4,
            nbytes=5,
            typename="int",
            startstops=[part],
            cause="a",
            exception="E()",
            traceback="line",
        ),
    ) == [
        (
            2.5, "a", "processing", "erred", "task-erred-2.5", "w1", 3, 4, 5, "int",
            [{**part, "source": None}], "a", "E()", "line", "T",
        )
    ]  # fmt: skip


def test_seq_is_the_order_of_the_file(rows, move):
    assert rows(
        "SELECT key, seq FROM transitions ORDER BY seq",
        move(2.0, "b", "released>waiting"),
        move(1.0, "a", "released>waiting"),
        move(2.0, "c", "released>waiting"),
    ) == [("b", 0), ("a", 1), ("c", 2)]
