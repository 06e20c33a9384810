"""Parts of a chunk that the user named."""


def test_a_section(rows):
    assert rows(
        "SELECT * FROM sections",
        {
            "kind": "section",
            "t": 5.0,
            "key": "a",
            "run_id": 1,
            "name": "jets",
            "worker": "w1",
            "thread": 2,
            "start_t": 1.0,
            "stop_t": 3.5,
            "cpu_seconds": 2.0,
            "memory_delta": -10,
            "bytes_read": 7,
        },
    ) == [("a", "jets", 2.5, 2.0, -10, 7, 1.0, 3.5, "w1", 2, 1, "T")]
