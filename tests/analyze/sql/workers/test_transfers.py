"""Data moved between two workers."""


def test_a_transfer(rows):
    assert rows(
        "SELECT * FROM transfers",
        {
            "kind": "transfer",
            "t": 3.0,
            "start_t": 1.0,
            "stop_t": 2.0,
            "source": "w1",
            "destination": "w2",
            "nbytes": 30,
            "keys": {"a": 10, "b": 20},
        },
    ) == [(1.0, 2.0, "w1", "w2", 30, {"a": 10, "b": 20}, "T")]
