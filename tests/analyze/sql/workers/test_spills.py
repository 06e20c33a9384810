"""View spills."""


def test_result_is_spilled_and_read_back(rows):
    moved = {"kind": "spill", "worker": "w1", "key": "a"}

    assert rows(
        "SELECT * FROM spills",
        {**moved, "t": 1.0, "start": "memory", "finish": "disk", "nbytes": 10,
         "measured": {"disk_bytes": 7}},
        {**moved, "t": 2.0, "start": "disk", "finish": "memory", "nbytes": 10},
    ) == [
        (1.0, "w1", "a", "memory", "disk", 10, 7, "T"),
        (2.0, "w1", "a", "disk", "memory", 10, None, "T"),
    ]  # fmt: skip
