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


def test_worker_killed_for_memory(rows, worker, move, gone):
    killed = {"worker": "w1", "pid": 7, "rss": 2_040_109_466}
    stimulus_id = "handle-worker-cleanup-5.0"
    assert rows(
        "SELECT what, key, detail FROM failures ORDER BY key",
        worker("w1", memory_limit=2 * 2**30),
        move(1.0, "a", "waiting>processing", worker="w1"),
        move(1.0, "b", "waiting>processing", worker="w1"),
        {"kind": "event", "t": 4.9, "topic": "worker-restart-memory", "payload": killed},
        move(5.0, "a", "processing>released", stimulus_id),
        move(5.0, "b", "processing>erred", stimulus_id, exception="KilledWorker"),
        gone("w1", 5.0, stimulus_id),
    ) == [
        ("attempt lost", "a", "its worker was killed by its nanny at 1.9 of 2.0 GiB"),
        (
            "task erred",
            "b",
            "given up by Dask: its worker was killed by its nanny at 1.9 of 2.0 GiB",
        ),
        ("worker lost", None, "killed by its nanny at 1.9 of 2.0 GiB"),
    ]


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


@pytest.mark.parametrize(
    ("has_task", "goes_on", "what"),
    [
        (True, False, "file skipped"),
        (False, True, "file skipped"),
        (False, False, "file unreadable"),
    ],
    ids=["on a cluster", "without a cluster", "without a cluster, at the end"],
)
def test_file_whose_entries_cannot_be_read(open_trace, chunk, run, has_task, goes_on, what):
    file = {"dataset": "DY", "filename": "bad.root", "treename": "Events"}
    failed = {"until": "metadata", "start_t": 1.0, "stop_t": 2.0, "worker": "w1"}
    good = {"dataset": "DY", "filename": "good.root", "entry_start": 0, "entry_stop": 9}
    trace = open_trace(
        *([chunk("m", **file), *run("m", 1.0, 3.0, run_id=1)] if has_task else []),
        chunk("m", run_id=1, exception="OSError('first')", **file, **failed | {"start_t": 0.5}),
        chunk("m", run_id=1, exception="OSError()", **file, **failed),
        *([chunk("c", run_id=2, **good, start_t=4.0, stop_t=5.0)] if goes_on else []),
    )

    assert trace.rows(
        "SELECT t, what, key, worker, exception, detail FROM failures"
    ) == [
        (
            3.0 if has_task else 2.0, what, "m", "w1", "OSError()",
            "DY, bad.root, its events are missing",
        )
    ]  # fmt: skip
    assert trace.rows(
        "SELECT filename, chunks, events, failed_attempts FROM files ORDER BY chunks"
    ) == [("bad.root", 0, 0, 1)] + goes_on * [("good.root", 1, 9, 0)]
    [(skipped,)] = trace.rows("SELECT skipped_files FROM run")
    assert skipped == (what == "file skipped")


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ValueError("no jets"), "ValueError('no jets')"),
        (
            Exception(
                "Failed processing file: WorkItem(a='f'). The error was: OSError('f\\n')."
            ),
            r"OSError('f\n')",
        ),
        (
            Exception("Failed processing file: WorkItem(a=1). The error was: Wrong(7, (8,))."),
            "Wrong(7, (8,))",
        ),
        (Exception("Failed processing file: WorkItem(…"), None),
    ],
)
def test_cause_of_an_exception_of_coffea(rows, move, error, cause):
    [found] = rows(
        "SELECT cause FROM failures",
        move(1.0, "a", "waiting>processing", worker="w1"),
        move(2.0, "a", "processing>erred", "task-erred-2.0", exception=repr(error)),
    )

    assert found == (cause or repr(error),)
