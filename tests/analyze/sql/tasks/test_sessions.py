"""View sessions."""

SESSIONS = """
SELECT client, start_t, stop_t, first_submitted_t, last_submitted_t, last_end_t,
    tasks, task_runs, compute_seconds
FROM sessions
"""


def test_programs_of_a_scheduler(rows, worker, task, run):
    def client(kind: str, t: float, name: str) -> dict:
        return {"kind": kind, "t": t, "client": name}

    assert rows(
        SESSIONS,
        worker("w1"),
        client("client_added", 5.0, "first"),
        task("a-1", t=10.0, client="first"), *run("a-1", 10.0, 20.0),
        task("a-2", t=15.0, client="first"), *run("a-2", 20.0, 21.0, outcome="cancelled"),
        client("client_removed", 30.0, "first"),
        client("client_added", 60.0, "second"),
        # A task that submits tasks is no program.
        client("client_added", 62.0, "Client-worker-1"),
        task("b-1", t=62.0, client="Client-worker-1"), *run("b-1", 62.0, 63.0),
        # When it connected is not recorded.
        task("c-1", t=70.0, client="third"), *run("c-1", 70.0, 80.0),
    ) == [
        ("third", 0.0, 100.0, 70.0, 70.0, 80.0, 1, 1, 10.0),
        ("first", 5.0, 30.0, 10.0, 15.0, 21.0, 2, 2, 10.0),
        ("second", 60.0, 100.0, None, None, None, 0, 0, None),
    ]  # fmt: skip
