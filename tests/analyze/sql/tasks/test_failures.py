"""View failures."""

import pytest


def test_failed_attempts_in_order_of_time(rows, task, move, run):
    assert rows(
        "SELECT t, what, key, worker, exception, attempt, prefix, detail FROM failures",
        task("a-1"),
        move(1.0, "a-1", "waiting>processing", worker="w1"),
        move(2.0, "a-1", "processing>released", "handle-worker-cleanup-2.0"),
        move(3.0, "a-1", "waiting>processing", worker="w2"),
        move(4.0, "a-1", "processing>released", "task-erred-4.0", exception="E(1)"),
        move(5.0, "a-1", "waiting>processing", worker="w2"),
        move(6.0, "a-1", "processing>erred", "task-erred-6.0", exception="E(2)"),
        *run("b", 1.0, 9.0),
    ) == [
        (
            2.0, "attempt lost", "a-1", "w1", None, 1, "a",
            "its worker went away: handle-worker-cleanup",
        ),
        (4.0, "attempt retried", "a-1", "w2", "E(1)", 2, "a", None),
        (6.0, "task erred", "a-1", "w2", "E(2)", 3, "a", None),
    ]  # fmt: skip


def test_task_given_up_by_dask(rows, move):
    assert rows(
        "SELECT what, exception, detail FROM failures",
        move(1.0, "a", "waiting>processing", worker="w1"),
        move(
            2.0, "a", "processing>erred", "handle-worker-cleanup-2.0", exception="KilledWorker"
        ),
    ) == [("task erred", "KilledWorker", "given up by Dask: handle-worker-cleanup")]


@pytest.mark.parametrize(
    ("stimulus_id", "expected", "failures"),
    [
        ("handle-worker-cleanup-5.0", None, [(5.0, "worker lost", "w1")]),
        ("retire-workers-5.0", None, []),
        ("check-worker-ttl-5.0", False, [(5.0, "worker lost", "w1")]),
        ("handle-worker-cleanup-5.0", True, []),
    ],
    ids=["connection broke", "retired", "Dask says unexpected", "Dask says expected"],
)
def test_worker_removals_that_are_failures(rows, worker, gone, stimulus_id, expected, failures):
    event = {"kind": "event", "t": 5.0, "topic": "all", "worker": "w1"}
    payload = {"action": "remove-worker", "stimulus_id": stimulus_id, "expected": expected}
    events = [] if expected is None else [{**event, "payload": payload}]

    found = rows(
        "SELECT t, what, worker FROM failures",
        worker("w1"),
        *events,
        gone("w1", 5.0, stimulus_id),
    )

    assert found == failures


def test_detail_of_a_lost_worker(rows, worker, gone):
    payload = {
        "action": "remove-worker",
        "stimulus_id": "handle-worker-cleanup-5.0",
        "expected": False,
        "processing-tasks": ["a", "b"],
        "lost-computed-tasks": ["c"],
        "lost-scattered-tasks": [],
        "worker": "w1",
    }

    assert rows(
        "SELECT detail FROM failures",
        worker("w1"),
        {"kind": "event", "t": 5.0, "topic": "all", "payload": payload},
        gone("w1", 5.0, "handle-worker-cleanup-5.0"),
    ) == [("handle-worker-cleanup, 2 tasks assigned, 1 results to recompute",)]


def test_payload_that_is_not_an_object(rows):
    assert rows(
        "SELECT * FROM failures",
        {"kind": "event", "t": 5.0, "topic": "all", "payload": "text"},
        {"kind": "event", "t": 5.0, "topic": "all", "payload": [1, {"action": "x"}]},
    ) == []  # fmt: skip
