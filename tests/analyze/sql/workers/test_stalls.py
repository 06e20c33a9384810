"""View stalls."""


def test_stalls_of_the_scheduler_and_of_a_worker(rows):
    stall = {"kind": "stall", "t": 9.0}

    assert rows(
        "SELECT * FROM stalls",
        {**stall, "server_id": "s", "start_t": 2.0, "stop_t": 2.5},
        {**stall, "server_id": "a", "worker": "w1", "start_t": 1.0, "stop_t": 3.0},
    ) == [
        ("worker", "w1", 1.0, 3.0, 2.0, "a", "T"),
        ("scheduler", None, 2.0, 2.5, 0.5, "s", "T"),
    ]
