"""View worker_transitions."""


def test_state_of_a_change_that_has_to_wait(rows):
    changed = {"kind": "worker_transition", "worker": "w1", "server_id": "id", "key": "a"}

    assert rows(
        "SELECT * FROM worker_transitions",
        {**changed, "t": 1.0, "start": "ready", "finish": "executing", "stimulus_id": "s-1"},
        {**changed, "t": 2.0, "start": "executing", "finish": "released", "state": "cancelled",
         "stimulus_id": "s-2"},
    ) == [
        (1.0, "w1", "a", "ready", "executing", "executing", "s-1", "id", 0, "T"),
        (2.0, "w1", "a", "executing", "released", "cancelled", "s-2", "id", 1, "T"),
    ]  # fmt: skip
