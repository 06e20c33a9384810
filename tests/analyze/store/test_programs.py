"""Programs of runs: of the recording client, or of the clients of a recorded scheduler."""

from roast_analyze import Store


def client(of: str, t: float, program: str | None = None, **fields) -> list[dict]:
    """Return a client that connects and, with a program, reports it."""
    added = {"kind": "client_added", "t": t, "client": of}
    about = {"kind": "client_program", "t": t, "client": of, "name": program, "host": "h"}
    return [added, {**about, "value": {"user_name": "ada"}, **fields}] if program else [added]


def left(of: str, t: float) -> dict:
    return {"kind": "client_removed", "t": t, "client": of}


def test_the_program_of_a_scheduler(store: Store, write_traces, worker, task, run):
    def work(key: str, of: str, t: float) -> list[dict]:
        return [task(key, t=t, client=of), *run(key, t, t + 6.0)]

    two = [
        *client("c", 10.0, "fit.py", pid=1), *work("a-1", "c", 10.0), left("c", 20.0),
        *client("d", 60.0, "hist.py", pid=2), *work("b-1", "d", 60.0), left("d", 70.0),
    ]  # fmt: skip
    one = [*client("c", 10.0, "fit.py", pid=1), *client("d", 10.0, "fit.py", pid=1)]
    facts = [("id", "r"), ("program", "mine.py"), ("git commit", "abc")]
    environment = [
        {"kind": "environment", "t": 1.0, "section": "client", "name": name, "value": value}
        for name, value in facts
    ]
    traces = [
        [worker("w1"), *two],
        # Two clients of one process, and one that submits nothing.
        [worker("w1"), *one, *client("e", 5.0, "other.py"), *work("a-1", "c", 10.0),
         *work("a-2", "d", 20.0)],
        [worker("w1"), *client("c", 10.0), *work("a-1", "c", 10.0)],
        # The program that records, and another one.
        [worker("w1"), *environment, *client("r", 0.0), *work("a-1", "r", 10.0),
         *client("c", 10.0, "fit.py", pid=3), *work("b-1", "c", 30.0)],
        # One of two programs is known.
        [worker("w1"), *client("c", 10.0, "fit.py", pid=1), *work("a-1", "c", 10.0),
         *client("d", 20.0), *work("b-1", "d", 30.0)],
        # One program, twice.
        [worker("w1"), *client("c", 10.0, "fit.py", pid=1), *work("a-1", "c", 10.0),
         *client("d", 20.0, "fit.py", pid=2), *work("b-1", "d", 30.0)],
    ]  # fmt: skip
    store.add(write_traces(*traces))

    runs = store.sql(
        "SELECT trace_id, program, user_name, is_shared FROM runs ORDER BY trace_id"
    ).fetchall()
    assert runs == [
        ("T0", "fit.py, hist.py", "ada", True),
        ("T1", "fit.py", "ada", False),
        ("T2", None, None, False),
        ("T3", "mine.py", None, False),
        ("T4", "fit.py, unknown", None, True),
        ("T5", "fit.py", "ada", True),
    ]
    history = store.sql(
        "SELECT trace_id, program, user_name, git_commit, wall_seconds, core_hours * 3600, "
        "compute_hours * 3600 FROM program_history ORDER BY ALL"
    ).fetchall()
    assert [(*row[:5], *map(round, row[5:])) for row in history] == [
        ("T0", "fit.py", "ada", None, 10.0, 10, 6),
        ("T0", "hist.py", "ada", None, 10.0, 10, 6),
        ("T1", "fit.py", "ada", None, 100.0, 100, 12),
        ("T3", "fit.py", "ada", None, 90.0, 90, 6),
        ("T3", "mine.py", None, "abc", 100.0, 100, 6),
        ("T4", "fit.py", "ada", None, 90.0, 90, 6),
        ("T5", "fit.py", "ada", None, 80.0, 80, 6),
        ("T5", "fit.py", "ada", None, 90.0, 90, 6),
    ]
