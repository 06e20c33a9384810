"""View spills."""


def test_result_is_spilled_and_read_back(rows):
    moved = {"kind": "spill", "worker": "w1", "key": "a", "nbytes": 10}
    out = {"start": "memory", "finish": "disk", "measured": {"disk_bytes": 7}}

    assert rows(
        "SELECT * FROM spills",
        {**moved, "t": 1.0, **out},
        {**moved, "t": 2.0, "start": "disk", "finish": "memory"},
    ) == [
        (1.0, "w1", "a", "memory", "disk", 10, 7, "T"),
        (2.0, "w1", "a", "disk", "memory", 10, None, "T"),
    ]
