"""View task_runs."""

COMPUTED = {"worker": "w1", "startstops": [{"action": "compute", "start": 2.0, "stop": 4.5}]}

#: State, stimulus and fields of an end; outcome, compute_seconds, nbytes and exception.
ENDS = [
    ("memory", "task-finished-4.6", {**COMPUTED, "nbytes": 8}, ("memory", 2.5, 8, None)),
    ("erred", "task-erred-4.6", {**COMPUTED, "exception": "E()"}, ("erred", 2.5, None, "E()")),
    # The task killed its workers: no times, but an exception.
    ("erred", "handle-worker-cleanup-4.6", {"exception": "K()"}, ("erred", None, None, "K()")),
    ("released", "task-erred-4.6", {**COMPUTED, "exception": "E()"},
     ("retried", 2.5, None, "E()")),
    ("waiting", "task-erred-4.6", {"exception": "E()"}, ("retried", None, None, "E()")),
    # Dask releases all tasks of a client with the stimulus of the failed one.
    ("released", "task-erred-4.6", {}, ("cancelled", None, None, None)),
    ("released", "handle-worker-cleanup-4.6", {}, ("lost", None, None, None)),
    ("released", "retire-workers-4.6", {}, ("lost", None, None, None)),
    ("released", "check-worker-ttl-4.6", {}, ("lost", None, None, None)),
    ("released", "reschedule-4.6", {}, ("rescheduled", None, None, None)),
    ("released", "client-releases-keys-4.6", {}, ("cancelled", None, None, None)),
    ("forgotten", "remove-client-4.6", {}, ("cancelled", None, None, None)),
]  # fmt: skip


def test_outcomes(rows, move):
    records = []
    for number, (state, stimulus_id, fields, _) in enumerate(ENDS):
        key = f"{number:02}"
        records.append(move(1.0, key, "waiting>processing", worker="w1", run_id=7))
        records.append(move(4.6, key, f"processing>{state}", stimulus_id, **fields))

    assert rows(
        "SELECT outcome, compute_seconds, nbytes, exception, worker, run_id, end_t "
        "FROM task_runs ORDER BY key",
        *records,
    ) == [(*expected, "w1", 7, 4.6) for *_, expected in ENDS]


def test_lost_with_a_worker_removed_for_an_unknown_reason(rows, move, run, worker, gone):
    assert rows(
        "SELECT key, outcome, execute_start_t FROM task_runs ORDER BY key, attempt",
        worker("w1"),
        worker("w2"),
        *run("a", 1.0),
        *run("b", 1.0, worker="w2"),
        move(2.0, "a", "processing>released", "meteorite-2.0"),
        move(2.0, "b", "processing>released", "meteorite-2.0"),
        gone("w1", 2.0, "meteorite-2.0"),
        # The start of a lost attempt is from a heartbeat, unless that reports an earlier one.
        *run("c", 1.0, 4.0, outcome="lost", start_t=2.5),
        *run("c", 5.0, 6.0, outcome="lost", start_t=4.5),
        *run("c", 7.0, 8.0, outcome="lost"),
    ) == [
        ("a", "lost", None), ("b", "cancelled", None),
        ("c", "lost", 2.5), ("c", "lost", None), ("c", "lost", None),
    ]  # fmt: skip


def test_attempts_of_a_key(rows, move, run, task):
    a, b = run("interleaved 1", 1.0, 3.0), run("interleaved 2", 2.0, 4.0, worker="w2")

    assert rows(
        "SELECT key, attempt, outcome, worker, run_id, prefix, span_id, processing_t, end_t "
        "FROM task_runs ORDER BY key, attempt",
        a[0], b[0], b[1], a[1],
        task("known late-1", 3.0, span_id="s"),
        *run("known late-1", 1.0, 2.0),
        # A missing end is not taken from another attempt.
        *run("no end", 1.0),
        *run("no end", 2.0, 3.0),
        *run("recomputed", 1.0, 2.0),
        move(3.0, "recomputed", "memory>released", "handle-worker-cleanup-3.0"),
        move(3.0, "recomputed", "released>waiting", "handle-worker-cleanup-3.0"),
        *run("recomputed", 4.0, 5.0, worker="w2"),
        task("repeated"),
        *run("repeated", 1.0, 2.0, outcome="retried", run_id=1),
        move(2.0, "repeated", "released>waiting", "task-erred-2.0"),
        *run("repeated", 3.0, 4.0, worker="w2", outcome="lost", run_id=2),
        move(5.0, "repeated", "queued>processing", worker="w1", run_id=3),
        move(6.0, "repeated", "processing>memory", "task-finished-6.0", worker="w1", run_id=3),
        task("submitted again", 0.5, span_id="first"),
        *run("submitted again", 1.0, 2.0),
        task("submitted again", 5.0, span_id="second"),
        *run("submitted again", 6.0, 7.0),
    ) == [
        ("interleaved 1", 1, "memory", "w1", None, None, None, 1.0, 3.0),
        ("interleaved 2", 1, "memory", "w2", None, None, None, 2.0, 4.0),
        ("known late-1", 1, "memory", "w1", None, "known late", "s", 1.0, 2.0),
        ("no end", 1, "unfinished", "w1", None, None, None, 1.0, None),
        ("no end", 2, "memory", "w1", None, None, None, 2.0, 3.0),
        ("recomputed", 1, "memory", "w1", None, None, None, 1.0, 2.0),
        ("recomputed", 2, "memory", "w2", None, None, None, 4.0, 5.0),
        ("repeated", 1, "retried", "w1", 1, "repeated", None, 1.0, 2.0),
        ("repeated", 2, "lost", "w2", 2, "repeated", None, 3.0, 4.0),
        ("repeated", 3, "memory", "w1", 3, "repeated", None, 5.0, 6.0),
        ("submitted again", 1, "memory", "w1", None, "submitted again", "first", 1.0, 2.0),
        ("submitted again", 2, "memory", "w1", None, "submitted again", "second", 6.0, 7.0),
    ]  # fmt: skip


def test_attempts_at_tasks_that_were_there_when_recording_began(rows, move, run, task):
    """The existing tasks are recorded in steps, while transitions are recorded already."""

    def existing(key, t, run_id=None, state="processing"):
        return task(key, t, state=state, worker="w1", run_id=run_id)

    assert rows(
        "SELECT key, attempt, outcome, worker, run_id, processing_t, end_t "
        "FROM task_runs ORDER BY key, attempt",
        # The records of tasks precede or follow the transitions that began the same attempt.
        *run("began, id", 1.0, 3.0, run_id=1), existing("began, id", 0.5, 1),
        *run("began, no id", 1.0, 3.0), existing("began, no id", 1.0),
        # Work stealing changes the run id.
        *run("began, stolen", 1.0, 3.0, run_id=1), existing("began, stolen", 2.0, 2),
        move(1.0, "ended", "processing>memory", "task-finished-1.0", worker="w2", run_id=1),
        existing("ended", 2.0, state="memory"),
        move(1.0, "ended, again", "processing>released", "reschedule-1.0", run_id=1),
        move(1.5, "ended, again", "released>waiting"),
        *run("ended, again", 2.0, 4.0, run_id=2), existing("ended, again", 3.0, 2),
        existing("is running", 1.0, 1),
        existing("lost", 1.0, 1),
        move(2.0, "lost", "processing>released", "handle-worker-cleanup-2.0", run_id=1),
        *run("lost", 3.0, 4.0, worker="w2", run_id=2),
        existing("memory", 1.0, 1),
        move(2.0, "memory", "processing>memory", "task-finished-2.0", worker="w1", run_id=1),
        # Without the record of an existing task, an end alone is of a damaged trace.
        move(1.0, "unknown", "processing>memory", "task-finished-1.0", worker="w1"),
    ) == [
        ("began, id", 1, "memory", "w1", 1, 1.0, 3.0),
        ("began, no id", 1, "memory", "w1", None, 1.0, 3.0),
        ("began, stolen", 1, "memory", "w1", 1, 1.0, 3.0),
        ("ended", 1, "memory", "w2", 1, None, 1.0),
        ("ended, again", 1, "rescheduled", None, 1, None, 1.0),
        ("ended, again", 2, "memory", "w1", 2, 2.0, 4.0),
        ("is running", 1, "unfinished", "w1", 1, None, None),
        ("lost", 1, "lost", "w1", 1, None, 2.0),
        ("lost", 2, "memory", "w2", 2, 3.0, 4.0),
        ("memory", 1, "memory", "w1", 1, None, 2.0),
    ]  # fmt: skip


def test_times_of_phases(rows, run):
    """Null without phases, and 0 for an action that did not occur."""
    phases = {
        "all": [
            ("transfer", 1.0, 1.5, "w2"), ("transfer", 1.25, 1.5, "w3"),
            ("disk-read", 1.5, 1.75), ("disk-write", 1.75, 2.0), ("deserialize", 2.0, 2.125),
            ("compute", 3.0, 4.0), ("compute", 5.0, 7.0),
        ],
        "back": [("compute", 60.0, 3.0)],
        "empty": [],
        "none": None,
        "transfer": [("transfer", 1.0, 2.0)],
    }  # fmt: skip

    assert rows(
        "SELECT key, compute_start_t, compute_stop_t, compute_seconds, transfer_seconds, "
        "deserialize_seconds, disk_seconds FROM task_runs ORDER BY key",
        *(r for key, parts in phases.items() for r in run(key, 1.0, 8.0, phases=parts)),
    ) == [
        ("all", 3.0, 7.0, 3.0, 0.75, 0.125, 0.5),
        ("back", 60.0, 3.0, 0.0, 0.0, 0.0, 0.0),
        ("empty", *[None] * 6),
        ("none", *[None] * 6),
        ("transfer", None, None, 0.0, 1.0, 0.0, 0.0),
    ]


def test_phases_of_earlier_attempts_that_are_reported_again(rows, run):
    # A worker that still has the key reports them with those of the new attempt.
    first, second, third = ("compute", 1.0, 2.0), ("compute", 4.0, 5.5), ("compute", 7.0, 7.5)

    assert rows(
        "SELECT attempt, worker, compute_start_t, compute_seconds FROM task_runs",
        *run("a", 1.0, 2.0, phases=[first]),
        *run("a", 3.0, 6.0, phases=[first, second]),
        *run("a", 6.5, 8.0, worker="w2", phases=[third]),
        # The new phase was lost, so that its time is unknown.
        *run("a", 9.0, 9.5, phases=[first, second]),
    ) == [
        (1, "w1", 1.0, 1.0),
        (2, "w1", 4.0, 1.5),
        (3, "w2", 7.0, 0.5),
        (4, "w1", None, None),
    ]


def test_stolen_tasks(rows, run, move):
    assert rows(
        "SELECT key, worker, stolen_from FROM task_runs",
        *run("a", 1.0, 2.0),
        move(1.0, "b", "waiting>processing", worker="w1"),
        move(2.0, "b", "processing>memory", worker="w2"),
        *run("c", 1.0, 2.0, outcome="lost"),
    ) == [("a", "w1", None), ("b", "w2", "w1"), ("c", "w1", None)]


def test_queued_seconds_from_the_latest_waiting(rows, move, run):
    assert rows(
        "SELECT key, attempt, queued_seconds FROM task_runs ORDER BY key, attempt",
        move(1.0, "a", "released>waiting"),
        move(1.5, "a", "waiting>waiting"),
        move(1.5, "a", "waiting>queued"),
        move(4.0, "a", "queued>processing", worker="w1"),
        move(5.0, "a", "processing>released", "reschedule-5.0"),
        move(5.0, "a", "released>waiting", "reschedule-5.0"),
        move(5.25, "a", "waiting>processing", worker="w1"),
        *run("without", 1.0, 2.0),
    ) == [("a", 1, 2.5), ("a", 2, 0.25), ("without", 1, None)]


def test_attempt_that_began_before_the_recording(rows, task, move, run):
    """Its start is unknown; the values at its end are recorded."""
    _, end = run("a", 0.0, 1.0, run_id=7, phases=[("compute", 0.1, 1.0)])

    assert rows(
        "SELECT attempt, worker, outcome, processing_t, compute_seconds, prefix FROM task_runs "
        "ORDER BY attempt",
        {**task("a"), "state": "processing", "worker": "w1", "run_id": 7, "t": 0.5},
        end,
        move(1.1, "a", "memory>released"),
        move(1.2, "a", "released>waiting"),
        move(1.3, "a", "waiting>processing", worker="w2", run_id=8),
    ) == [
        (1, "w1", "memory", None, 0.9, "a"),
        (2, "w2", "unfinished", 1.3, None, "a"),
    ]


def test_negative_durations_count_as_zero(rows, worker, task, run, passage):
    assert rows(
        "SELECT seconds, run.compute_seconds, busy_seconds FROM sections, run",
        worker("w1"),
        task("a-1"),
        *run("a-1", 60.0, 3.0),
        passage(3.0, "a-1", "jets", start_t=61.0, stop_t=2.0),
    ) == [(0.0, 0.0, 0.0)]


def test_kept_results(ask, task, move, run):
    """A result is kept if a dependent used it, or if the client submitted the key again."""
    keys = ("lost", "resubmitted", "used")
    found = ask(
        *(task(key) for key in keys),
        task("dependent", dependencies=["used"]),
        *(record for key in keys for record in run(key, 1.0, 2.0)),
        *run("dependent", 3.0, 4.0),
        *(move(5.0, key, "memory>released", "handle-worker-cleanup-5.0") for key in keys),
        task("resubmitted", t=6.0),
        *(record for key in keys for record in run(key, 7.0, 10.0, worker="w2")),
    )

    assert found(
        "SELECT key, list(kept ORDER BY attempt) FROM task_runs GROUP BY 1 ORDER BY 1"
    ) == [
        ("dependent", [True]),
        ("lost", [False, True]),
        ("resubmitted", [True, True]),
        ("used", [True, True]),
    ]
    assert found("SELECT compute_seconds, kept_seconds FROM run") == [(13.0, 12.0)]
