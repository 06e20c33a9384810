"""View dependencies."""

EDGES = "SELECT key, dependency, bytes, worker, dependency_worker, is_moved, has_transfer"


def test_local_and_transferred_results(rows, task, run, move):
    parts = [
        {"action": "transfer", "start": 3.0, "stop": 3.5, "source": "w2"},
        {"action": "compute", "start": 4.0, "stop": 5.0},
    ]

    assert rows(
        EDGES + ", prefix, dependency_prefix FROM dependencies",
        task("load-1"),
        task("load-2"),
        task("sum-1", dependencies=["load-1", "load-2"]),
        *run("load-1", 1.0, 2.0, worker="w1", nbytes=100),
        *run("load-2", 1.0, 2.0, worker="w2", nbytes=200),
        move(2.5, "sum-1", "waiting>processing", worker="w1"),
        move(5.0, "sum-1", "processing>memory", worker="w1", startstops=parts),
    ) == [
        ("sum-1", "load-1", 100, "w1", "w1", False, False, "sum", "load"),
        ("sum-1", "load-2", 200, "w1", "w2", True, True, "sum", "load"),
    ]


def test_transfer_reported_by_another_task(rows, task, run):
    """`load-1` was fetched once to w2, for two tasks."""
    fetched = [
        {"action": "transfer", "start": 2.0, "stop": 2.5, "source": "w1"},
        {"action": "compute", "start": 3.0, "stop": 4.0},
    ]

    assert rows(
        "SELECT key, is_moved, has_transfer FROM dependencies",
        task("load-1"),
        task("sum-1", dependencies=["load-1"]),
        task("sum-2", dependencies=["load-1"]),
        *run("load-1", 1.0, 2.0, worker="w1"),
        *run("sum-1", 2.0, 4.0, worker="w2", startstops=fetched),
        *run("sum-2", 2.0, 4.0, worker="w2"),
    ) == [("sum-1", True, True), ("sum-2", True, False)]


def test_recomputed_result(rows, task, run, move):
    assert rows(
        EDGES + " FROM dependencies",
        task("load-1"),
        task("sum-1", dependencies=["load-1"]),
        task("sum-2", dependencies=["load-1"]),
        *run("load-1", 1.0, 2.0, worker="w1", nbytes=10),
        *run("sum-1", 2.0, 3.0, worker="w1"),
        move(3.0, "load-1", "memory>released", "handle-worker-cleanup-3.0"),
        *run("load-1", 4.0, 5.0, worker="w2", nbytes=20),
        *run("sum-2", 5.0, 6.0, worker="w1"),
    ) == [
        ("sum-1", "load-1", 10, "w1", "w1", False, False),
        ("sum-2", "load-1", 20, "w1", "w2", True, False),
    ]


def test_last_successful_attempt_is_used(rows, task, run, move):
    assert rows(
        "SELECT worker, is_moved FROM dependencies",
        task("load-1"),
        task("sum-1", dependencies=["load-1"]),
        *run("load-1", 1.0, 2.0, worker="w1"),
        *run("sum-1", 2.0, 3.0, worker="w1"),
        move(3.0, "sum-1", "memory>released"),
        *run("sum-1", 4.0, 5.0, worker="w2"),
        move(6.0, "sum-1", "waiting>processing", worker="w3"),
    ) == [("w2", True)]


def test_groups_and_graph_of_edges(rows, task):
    assert rows(
        "SELECT dependency, task_group, dependency_group, stimulus_id FROM dependencies",
        task("a-1", group="a", stimulus_id="u1"),
        task("b-1", group="b", stimulus_id="u1", dependencies=["a-1", "unknown"]),
    ) == [("a-1", "b", "a", "u1"), ("unknown", "b", None, "u1")]


def test_last_attempt_is_used_if_none_succeeded(rows, task, run, move):
    assert rows(
        "SELECT worker, is_moved, has_transfer FROM dependencies",
        task("load-1"),
        task("sum-1", dependencies=["load-1"]),
        *run("load-1", 1.0, 2.0, worker="w1"),
        move(3.0, "sum-1", "waiting>processing", worker="w1"),
        move(4.0, "sum-1", "processing>released", "handle-worker-cleanup-4.0"),
        move(5.0, "sum-1", "waiting>processing", worker="w3"),
    ) == [("w3", True, None)]


def test_tasks_that_never_ran_have_edges(rows, task, run):
    assert rows(
        EDGES + ", dependency_prefix FROM dependencies",
        task("load-1"),
        task("sum-1", dependencies=["load-1"]),
        task("sum-2", dependencies=["scattered", "sum-1"]),
        *run("load-1", 1.0, 2.0, worker="w1"),
    ) == [
        ("sum-1", "load-1", 8, None, "w1", None, None, "load"),
        ("sum-2", "scattered", None, None, None, None, None, None),
        ("sum-2", "sum-1", None, None, None, None, None, "sum"),
    ]
