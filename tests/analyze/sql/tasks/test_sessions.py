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


def test_programs_of_clients(rows, worker):
    """A program has a name, and a host, as far as its client or Dask reported them."""
    ended = "-0a1b2c3d-ec57-11f1-853a-02fc00000001"

    def client(of: str, kind: str = "client_added", t: float = 1.0, **fields) -> dict:
        return {"kind": kind, "t": t, "client": of, **fields}

    def fact(name: str, value: object, section: str = "client") -> dict:
        return {
            "kind": "environment",
            "t": 1.0,
            "section": section,
            "name": name,
            "value": value,
        }

    reported = {"name": "fit.py", "host": "login1", "pid": 7, "value": {"user_name": "ada"}}
    machine = {"role": "client", "pid": 8, "machine": {"host": "login2"}}
    assert rows(
        "SELECT client, name, program, user_name, host, pid FROM sessions ORDER BY client",
        worker("w1"),
        client("Client" + ended, host="10.0.0.1"),
        client("Client" + ended, "client_program", t=1.1, **reported),
        client("Client-my-fit" + ended, host="10.0.0.2"),
        client("recording"),
        fact("id", "recording"), fact("program", "hist.py"),
        fact("client", machine, "process"),
    ) == [
        ("Client" + ended, None, "fit.py", "ada", "login1", 7),
        ("Client-my-fit" + ended, "my-fit", None, None, "10.0.0.2", None),
        ("recording", None, "hist.py", None, "login2", 8),
    ]  # fmt: skip


def test_amounts_of_sessions(rows, worker, task, run):
    """Thread time is that of the workers while a client was connected."""
    assert rows(
        "SELECT client, core_seconds, compute_seconds, kept_seconds, failures FROM sessions",
        worker("w1", nthreads=2), worker("w2", t=50.0, nthreads=1),
        {"kind": "client_added", "t": 10.0, "client": "a"},
        {"kind": "client_removed", "t": 20.0, "client": "a"},
        {"kind": "client_added", "t": 40.0, "client": "b"},
        {"kind": "client_removed", "t": 60.0, "client": "b"},
        task("a-1", t=10.0, client="a"), *run("a-1", 10.0, 14.0),
        task("b-1", t=41.0, client="b"),
        *run("b-1", 42.0, 44.0, outcome="erred", phases=[("compute", 42.0, 44.0)]),
    ) == [("a", 20.0, 4.0, 4.0, 0), ("b", 50.0, 2.0, None, 1)]  # fmt: skip


def test_a_task_of_several_chunks_is_one_attempt(rows, worker, task, chunk, run):
    file = {"dataset": "TT", "filename": "/d/1.root", "treename": "Events"}
    assert rows(
        "SELECT task_runs, compute_seconds, kept_seconds, events FROM sessions",
        worker("w1"),
        {"kind": "client_added", "t": 1.0, "client": "a"},
        task("a-1", t=10.0, client="a"),
        chunk("a-1", **file, entry_start=0, entry_stop=1000),
        chunk("a-1", **file, entry_start=1000, entry_stop=3000),
        *run("a-1", 10.0, 14.0),
    ) == [(1, 4.0, 4.0, 3000)]
