"""View dependencies."""

EDGES = "SELECT key, dependency, bytes, worker, dependency_worker, is_moved, has_transfer"


def test_local_and_transferred_results(rows, task, run):
    """`sum-2` uses the results that `sum-1` fetched."""
    fetched = [("transfer", 3.0, 3.5, "w2"), ("compute", 4.0, 5.0)]

    assert rows(
        EDGES + ", prefix, dependency_prefix FROM dependencies",
        task("load-1"),
        task("load-2"),
        *(task(key, dependencies=["load-1", "load-2"]) for key in ("sum-1", "sum-2")),
        *run("load-1", 1.0, 2.0, nbytes=100),
        *run("load-2", 1.0, 2.0, "w2", nbytes=200),
        *run("sum-1", 2.5, 5.0, phases=fetched),
        *run("sum-2", 2.5, 5.0),
    ) == [
        ("sum-1", "load-1", 100, "w1", "w1", False, False, "sum", "load"),
        ("sum-1", "load-2", 200, "w1", "w2", True, True, "sum", "load"),
        ("sum-2", "load-1", 100, "w1", "w1", False, False, "sum", "load"),
        ("sum-2", "load-2", 200, "w1", "w2", True, False, "sum", "load"),
    ]


def test_the_attempts_that_an_edge_is_about(rows, task, run, move):
    keys = ["finished", "lost", "recomputed-1", "recomputed-2"]

    assert rows(
        EDGES + " FROM dependencies ORDER BY key",
        task("load-1"),
        *(task(key, dependencies=["load-1"]) for key in keys),
        *run("load-1", 1.0, 2.0, nbytes=10),
        # The last successful attempt.
        *run("finished", 2.0, 3.0, "w1"),
        move(3.0, "finished", "memory>released"),
        *run("finished", 3.5, 3.75, "w2"),
        *run("finished", 3.75, worker="w3"),
        # Without one, the last attempt.
        *run("lost", 3.0, 4.0, "w1", "lost"),
        *run("lost", 4.0, worker="w3"),
        # The result of the attempt at the dependency before it.
        *run("recomputed-1", 2.0, 3.0, "w1"),
        move(4.0, "load-1", "memory>released", "handle-worker-cleanup-4.0"),
        *run("load-1", 5.0, 6.0, "w2", nbytes=20),
        *run("recomputed-2", 6.0, 7.0, "w1"),
    ) == [
        ("finished", "load-1", 10, "w2", "w1", True, False),
        ("lost", "load-1", 10, "w3", "w1", True, None),
        ("recomputed-1", "load-1", 10, "w1", "w1", False, False),
        ("recomputed-2", "load-1", 20, "w1", "w2", True, False),
    ]


def test_edges_without_attempts(rows, task, run):
    assert rows(
        EDGES + ", dependency_prefix, task_group, dependency_group, stimulus_id "
        "FROM dependencies",
        task("load-1", group="load", stimulus_id="u1"),
        task("sum-1", group="sum", stimulus_id="u1", dependencies=["load-1"]),
        task("sum-2", group="sum", stimulus_id="u1", dependencies=["scattered", "sum-1"]),
        *run("load-1", 1.0, 2.0),
    ) == [
        ("sum-1", "load-1", 8, None, "w1", None, None, "load", "sum", "load", "u1"),
        ("sum-2", "scattered", None, None, None, None, None, None, "sum", None, "u1"),
        ("sum-2", "sum-1", None, None, None, None, None, "sum", "sum", "sum", "u1"),
    ]
