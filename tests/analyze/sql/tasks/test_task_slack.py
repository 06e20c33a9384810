"""View task_slack: how much later attempts could have ended."""

import pytest

QUERY = "SELECT key, attempt, slack_seconds FROM task_slack ORDER BY key, attempt"


def wants(t, *keys):
    change = {"t": t, "action": "desires", "keys": list(keys)}
    return {"kind": "wanted_keys", "t": t, "client": "C", "changes": [change]}


def test_dependencies_and_threads(rows, worker, task, run):
    """c-4 may end 10 s later, and so may c-1: the delay before c-4 stays the same."""
    chunks = [f"c-{n}" for n in (1, 2, 3, 4)]
    assert rows(
        QUERY,
        *(worker(f"w{n}") for n in (1, 2, 3)),
        *(task(key) for key in chunks),
        task("merge", dependencies=chunks),
        *run("c-1", 0.0, 10.0, worker="w1"),
        *run("c-2", 0.0, 90.0, worker="w2"),
        *run("c-3", 0.0, 20.0, worker="w3"),
        *run("c-4", 20.0, 80.0, worker="w1"),
        *run("merge", 90.0, 100.0, worker="w2"),
    ) == [
        ("c-1", 1, 10.0),
        ("c-2", 1, 0.0),
        ("c-3", 1, 70.0),
        ("c-4", 1, 10.0),
        ("merge", 1, 0.0),
    ]


def test_a_task_that_waits_for_its_thread(rows, worker, task, run):
    """b was there from 20 s on, while its thread computed a until 60 s."""
    assert rows(
        QUERY,
        worker("w1"),
        worker("w2"),
        task("a"),
        task("x"),
        task("b", dependencies=["x"]),
        *run("a", 0.0, 60.0),
        *run("x", 0.0, 20.0, worker="w2"),
        *run("b", 20.0, 100.0, phases=[("compute", 60.0, 100.0)]),
    ) == [("a", 1, 0.0), ("b", 1, 0.0), ("x", 1, 40.0)]


def test_the_client_waits_for_the_results_that_it_wants(rows, worker, task, run):
    """Before the second graph: for early and late, but not for unwanted."""
    assert rows(
        QUERY,
        *(worker(f"w{n}") for n in (1, 2, 3)),
        *(task(key) for key in ("early", "late", "unwanted")),
        wants(0.0, "early", "late", "b"),
        *run("early", 0.0, 20.0, worker="w1"),
        *run("late", 0.0, 30.0, worker="w2"),
        *run("unwanted", 0.0, 35.0, worker="w3"),
        task("b", t=40.0),
        *run("b", 40.0, 90.0, worker="w1"),
    ) == [("b", 1, 0.0), ("early", 1, 10.0), ("late", 1, 0.0), ("unwanted", 1, 90.0 - 35.0)]


def test_failed_and_unfinished_attempts(rows, worker, task, run):
    """The first attempt at lost has no end in the trace. The last one of open ends with it."""
    assert rows(
        QUERY,
        worker("w1"),
        worker("w2"),
        *(task(key) for key in ("lost", "open")),
        *run("open", 0.0, 30.0, outcome="retried", phases=[("compute", 0.0, 30.0)], thread=1),
        *run("lost", 0.0, worker="w2"),
        *run("lost", 50.0, 60.0, worker="w2"),
        *run("open", 40.0),
    ) == [
        ("lost", 1, None),
        ("lost", 2, pytest.approx(40.0)),
        ("open", 1, 0.0),
        ("open", 2, 0.0),
    ]
