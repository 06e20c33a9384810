"""View task_runs."""

import pytest

COMPUTED = [{"action": "compute", "start": 2.0, "stop": 4.5}]


@pytest.mark.parametrize(
    ("states", "stimulus_id", "fields", "expected"),
    [
        (
            "processing>memory", "task-finished-4.6",
            {"worker": "w1", "startstops": COMPUTED, "nbytes": 8, "typename": "int"},
            ("memory", "w1", 2.5, 8, None),
        ),
        (
            "processing>erred", "task-erred-4.6",
            {"worker": "w1", "startstops": COMPUTED, "exception": "KeyError('x')"},
            ("erred", "w1", 2.5, None, "KeyError('x')"),
        ),
        (  # the task killed its workers: no times, but a verdict
            "processing>erred", "handle-worker-cleanup-4.6",
            {"worker": "w1", "exception": "KilledWorker('a')"},
            ("erred", "w1", None, None, "KilledWorker('a')"),
        ),
        (
            "processing>released", "task-erred-4.6",
            {"worker": "w1", "startstops": COMPUTED, "exception": "OSError()"},
            ("retried", "w1", 2.5, None, "OSError()"),
        ),
        (
            "processing>waiting", "task-erred-4.6", {"exception": "OSError()"},
            ("retried", "w1", None, None, "OSError()"),
        ),
        (
            "processing>released", "handle-worker-cleanup-4.6", {},
            ("lost", "w1", None, None, None),
        ),
        ("processing>released", "retire-workers-4.6", {}, ("lost", "w1", None, None, None)),
        ("processing>released", "check-worker-ttl-4.6", {}, ("lost", "w1", None, None, None)),
        ("processing>released", "reschedule-4.6", {}, ("rescheduled", "w1", None, None, None)),
        (
            "processing>released", "client-releases-keys-4.6", {},
            ("cancelled", "w1", None, None, None),
        ),
        (
            "processing>forgotten", "remove-client-4.6", {},
            ("cancelled", "w1", None, None, None),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_outcome(rows, task, move, states, stimulus_id, fields, expected):
    assert rows(
        "SELECT outcome, worker, compute_seconds, nbytes, exception FROM task_runs",
        task("a"),
        move(1.0, "a", "waiting>processing", worker="w1", run_id=7),
        move(4.6, "a", states, stimulus_id, **fields),
    ) == [expected]


def test_unfinished_attempt(rows, move):
    assert rows(
        "SELECT outcome, worker, end_t FROM task_runs",
        move(1.0, "a", "waiting>processing", worker="w1"),
    ) == [("unfinished", "w1", None)]


def test_lost_with_a_worker_removed_for_an_unknown_reason(rows, move, worker, gone):
    assert rows(
        "SELECT key, outcome FROM task_runs ORDER BY key",
        worker("w1"),
        worker("w2"),
        move(1.0, "a", "waiting>processing", worker="w1"),
        move(1.0, "b", "waiting>processing", worker="w2"),
        move(2.0, "a", "processing>released", "meteorite-2.0"),
        move(2.0, "b", "processing>released", "meteorite-2.0"),
        gone("w1", 2.0, "meteorite-2.0"),
    ) == [("a", "lost"), ("b", "cancelled")]


def test_attempts_of_a_key_in_order(rows, move, task):
    assert rows(
        "SELECT attempt, outcome, worker, run_id, processing_t, end_t FROM task_runs",
        task("a"),
        move(0.0, "a", "released>waiting"),
        move(1.0, "a", "waiting>processing", worker="w1", run_id=1),
        move(2.0, "a", "processing>released", "task-erred-2.0", worker="w1", run_id=1),
        move(2.0, "a", "released>waiting", "task-erred-2.0"),
        move(3.0, "a", "waiting>processing", worker="w2", run_id=2),
        move(4.0, "a", "processing>released", "handle-worker-cleanup-4.0"),
        move(4.0, "a", "released>waiting", "handle-worker-cleanup-4.0"),
        move(5.0, "a", "queued>processing", worker="w1", run_id=3),
        move(6.0, "a", "processing>memory", "task-finished-6.0", worker="w1", run_id=3),
    ) == [
        (1, "retried", "w1", 1, 1.0, 2.0),
        (2, "lost", "w2", 2, 3.0, 4.0),
        (3, "memory", "w1", 3, 5.0, 6.0),
    ]


def test_start_of_a_lost_attempt_is_that_of_an_earlier_heartbeat(rows, move):
    died = {"stimulus_id": "handle-worker-cleanup-9.0", "worker": "w1"}
    records = [
        move(1.0, "a", "waiting>processing", worker="w1"),
        move(4.0, "a", "processing>released", start_t=2.5, **died),
        move(5.0, "a", "waiting>processing", worker="w1"),
        move(6.0, "a", "processing>released", start_t=4.5, **died),  # that of another attempt
        move(7.0, "a", "waiting>processing", worker="w1"),
        move(8.0, "a", "processing>released", **died),
    ]

    assert rows("SELECT outcome, execute_start_t FROM task_runs", *records) == [
        ("lost", 2.5),
        ("lost", None),
        ("lost", None),
    ]


def test_recomputed_result_is_another_attempt(rows, run, move):
    assert rows(
        "SELECT attempt, outcome, worker FROM task_runs",
        *run("a", 1.0, 2.0, worker="w1"),
        move(3.0, "a", "memory>released", "handle-worker-cleanup-3.0"),
        move(3.0, "a", "released>waiting", "handle-worker-cleanup-3.0"),
        *run("a", 4.0, 5.0, worker="w2"),
    ) == [(1, "memory", "w1"), (2, "memory", "w2")]


def test_resubmitted_key_continues_numbers_and_has_a_new_span(rows, run, task):
    assert rows(
        "SELECT attempt, prefix, span_id FROM task_runs",
        task("a", 0.5, span_id="first"),
        *run("a", 1.0, 2.0),
        task("a", 5.0, span_id="second"),
        *run("a", 6.0, 7.0),
    ) == [(1, "a", "first"), (2, "a", "second")]


def test_late_task_record_describes_its_attempt(rows, run, task):
    assert rows(
        "SELECT prefix, span_id FROM task_runs",
        *run("a-1", 1.0, 2.0),
        task("a-1", 3.0, span_id="s"),
    ) == [("a", "s")]


def test_attempt_without_a_task_record(rows, run):
    assert rows("SELECT key, prefix FROM task_runs", *run("a", 1.0, 2.0)) == [("a", None)]


def test_missing_end_is_not_taken_from_another_attempt(rows, run, move):
    assert rows(
        "SELECT attempt, outcome FROM task_runs",
        move(1.0, "a", "waiting>processing", worker="w1"),
        *run("a", 2.0, 3.0),
    ) == [(1, "unfinished"), (2, "memory")]


def test_interleaved_keys(rows, run):
    a, b = run("a", 1.0, 3.0, worker="w1"), run("b", 2.0, 4.0, worker="w2")

    assert rows(
        "SELECT key, worker, compute_seconds FROM task_runs", a[0], b[0], b[1], a[1]
    ) == [("a", "w1", 2.0), ("b", "w2", 2.0)]


def test_stolen_task_ran_on_the_worker_that_reported(rows, move):
    assert rows(
        "SELECT worker, run_id FROM task_runs",
        move(1.0, "a", "waiting>processing", worker="victim", run_id=1),
        move(2.0, "a", "processing>memory", "task-finished-2.0", worker="thief", run_id=1),
    ) == [("thief", 1)]


def test_seconds_by_action(rows, move):
    parts = [
        {"action": "transfer", "start": 1.0, "stop": 1.5, "source": "w2"},
        {"action": "transfer", "start": 1.0, "stop": 1.25, "source": "w3"},
        {"action": "disk-read", "start": 1.5, "stop": 1.75},
        {"action": "disk-write", "start": 1.75, "stop": 2.0},
        {"action": "deserialize", "start": 2.0, "stop": 2.125},
        {"action": "compute", "start": 3.0, "stop": 4.0},
        {"action": "compute", "start": 5.0, "stop": 7.0},
    ]

    assert rows(
        "SELECT compute_start_t, compute_stop_t, compute_seconds, transfer_seconds, "
        "deserialize_seconds, disk_seconds FROM task_runs",
        move(1.0, "a", "waiting>processing", worker="w1"),
        move(8.0, "a", "processing>memory", worker="w1", startstops=parts),
    ) == [(3.0, 7.0, 3.0, 0.75, 0.125, 0.5)]


@pytest.mark.parametrize(
    ("startstops", "expected"),
    [
        (None, (None, None, None)),
        ([], (None, None, None)),
        ([{"action": "transfer", "start": 1.0, "stop": 2.0}], (None, 0.0, 1.0)),
    ],
    ids=["absent", "empty", "no compute"],
)
def test_seconds_without_phases_are_null_and_without_action_zero(
    rows, move, startstops, expected
):
    assert rows(
        "SELECT compute_start_t, compute_seconds, transfer_seconds FROM task_runs",
        move(1.0, "a", "waiting>processing", worker="w1"),
        move(3.0, "a", "processing>memory", worker="w1", startstops=startstops),
    ) == [expected]


def test_queued_seconds_from_the_latest_waiting(rows, move):
    assert rows(
        "SELECT attempt, queued_seconds FROM task_runs",
        move(1.0, "a", "released>waiting"),
        move(1.5, "a", "waiting>waiting"),
        move(1.5, "a", "waiting>queued"),
        move(4.0, "a", "queued>processing", worker="w1"),
        move(5.0, "a", "processing>released", "reschedule-5.0"),
        move(5.0, "a", "released>waiting", "reschedule-5.0"),
        move(5.25, "a", "waiting>processing", worker="w1"),
    ) == [(1, 2.5), (2, 0.25)]


def test_queued_seconds_without_waiting(rows, run):
    assert rows("SELECT queued_seconds FROM task_runs", *run("a", 1.0, 2.0)) == [(None,)]


def test_tasks_released_by_another_failure_are_cancelled(rows, move):
    """Dask releases all tasks of a client with the stimulus of the failed one."""
    assert rows(
        "SELECT key, outcome FROM task_runs ORDER BY key",
        move(1.0, "bad", "waiting>processing", worker="w1"),
        move(1.0, "good", "waiting>processing", worker="w2"),
        move(2.0, "bad", "processing>erred", "task-erred-2.0", worker="w1", exception="E()"),
        move(2.0, "good", "processing>released", "task-erred-2.0"),
        move(2.0, "good", "released>forgotten", "task-erred-2.0"),
    ) == [("bad", "erred"), ("good", "cancelled")]


def test_attempt_that_began_before_the_recording(rows, task, move):
    """The start is unknown, the values of the end are recorded."""
    there = {**task("a"), "state": "processing", "worker": "w1", "run_id": 7, "t": 0.5}
    parts = [{"action": "compute", "start": 0.1, "stop": 1.0}]

    assert rows(
        "SELECT attempt, worker, outcome, processing_t, compute_seconds, prefix FROM task_runs "
        "ORDER BY attempt",
        there,
        move(1.0, "a", "processing>memory", worker="w1", run_id=7, startstops=parts),
        move(1.1, "a", "memory>released"),
        move(1.2, "a", "released>waiting"),
        move(1.3, "a", "waiting>processing", worker="w2", run_id=8),
    ) == [
        (1, "w1", "memory", None, 0.9, "a"),
        (2, "w2", "unfinished", 1.3, None, "a"),
    ]


def test_negative_durations_count_as_zero(rows, worker, task, run, passage):
    assert rows(
        "SELECT runs.compute_seconds, seconds, run.compute_seconds, busy_seconds "
        "FROM task_runs AS runs, sections, run",
        worker("w1"),
        task("a-1"),
        *run("a-1", 60.0, 3.0),
        passage(3.0, "a-1", "jets", start_t=61.0, stop_t=2.0),
    ) == [(0.0, 0.0, 0.0, 0.0)]


@pytest.mark.parametrize(
    ("used_until", "resubmitted", "kept"),
    [
        (None, False, [False, True]),
        (4.0, False, [True, True]),
        (None, True, [True, True]),
    ],
    ids=[
        "lost before any use",
        "lost after use by a dependent",
        "submitted again by the client",
    ],
)
def test_kept_results(rows, task, move, run, used_until, resubmitted, kept):
    lost = move(5.0, "a", "memory>released", "handle-worker-cleanup-5.0")
    use = run("b", 3.0, used_until) if used_until else []

    found = rows(
        "SELECT kept FROM task_runs WHERE key = 'a' ORDER BY attempt",
        task("a"),
        task("b", dependencies=["a"]),
        *run("a", 1.0, 2.0),
        *use,
        lost,
        *([task("a", t=6.0)] if resubmitted else []),
        *run("a", 7.0, 8.0, worker="w2"),
    )

    assert [is_kept for (is_kept,) in found] == kept


def test_compute_time_of_kept_results(rows, task, move, run):
    assert rows(
        "SELECT compute_seconds, kept_seconds FROM run",
        task("a"),
        *run("a", 1.0, 2.0),
        move(5.0, "a", "memory>released", "handle-worker-cleanup-5.0"),
        *run("a", 7.0, 10.0, worker="w2"),
    ) == [(4.0, 3.0)]
