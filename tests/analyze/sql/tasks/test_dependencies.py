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
