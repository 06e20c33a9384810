"""View worker_transitions."""


def test_state_of_a_change_that_has_to_wait(rows):
    changed = {"kind": "worker_transition", "worker": "w1", "server_id": "id", "key": "a"}
    first = {"start": "ready", "finish": "executing", "stimulus_id": "s-1"}
    second = {"start": "executing", "finish": "released", "stimulus_id": "s-2"}

    assert rows(
        "SELECT * FROM worker_transitions",
        {**changed, **first, "t": 1.0},
        {**changed, **second, "t": 2.0, "state": "cancelled"},
    ) == [
        (1.0, "w1", "a", "ready", "executing", "executing", "s-1", "id", 0, "T"),
        (2.0, "w1", "a", "executing", "released", "cancelled", "s-2", "id", 1, "T"),
    ]
