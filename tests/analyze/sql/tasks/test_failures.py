"""View failures."""

import pytest


def test_failed_attempts_in_order_of_time(rows, task, run):
    assert rows(
        "SELECT t, what, key, worker, exception, attempt, prefix, detail FROM failures",
        task("a-1"),
        *run("a-1", 1.0, 2.0, outcome="lost"),
        *run("a-1", 3.0, 4.0, "w2", "retried", exception="E(1)"),
        *run("a-1", 5.0, 6.0, "w2", "erred", exception="E(2)"),
        *run("b", 1.0, 9.0),
    ) == [
        (
            2.0, "attempt lost", "a-1", "w1", None, 1, "a",
            "its worker went away: handle-worker-cleanup",
        ),
        (4.0, "attempt retried", "a-1", "w2", "E(1)", 2, "a", None),
        (6.0, "task erred", "a-1", "w2", "E(2)", 3, "a", None),
    ]  # fmt: skip


def test_worker_removals_that_are_failures(rows, worker, gone):
    """Failures are unexpected removals and, without an event of Dask, broken connections."""
    broke, retired = "handle-worker-cleanup-5.0", "retire-workers-5.0"
    removed = {"action": "remove-worker", "expected": False}
    lost = {"processing-tasks": ["a", "b"], "lost-computed-tasks": ["c"]}
    payloads = {
        "expected": {**removed, "stimulus_id": broke, "expected": True},
        "unexpected": {**removed, "stimulus_id": "check-worker-ttl-5.0", **lost},
        "other": "text",
        "others": [1, {"action": "remove-worker"}],
    }
    events = ({"kind": "event", "t": 5.0, "topic": "all", "worker": name, "payload": payload}
              for name, payload in payloads.items())  # fmt: skip

    assert rows(
        "SELECT t, what, worker, detail FROM failures ORDER BY worker",
        *(worker(name) for name in ("broke", "expected", "retired", "unexpected")),
        *events,
        gone("broke", 5.0, broke),
        gone("expected", 5.0, broke),
        gone("retired", 5.0, retired),
        gone("unexpected", 5.0, "check-worker-ttl-5.0"),
    ) == [
        (5.0, "worker lost", "broke", "handle-worker-cleanup"),
        (5.0, "worker lost", "unexpected",
         "check-worker-ttl, 2 tasks assigned, 1 result to recompute"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("last_t", "results", "lost"),
    [(10.0, [], []), (30.0, [], ["worker lost"]), (10.0, ["a"], ["worker lost"])],
)
def test_a_worker_that_is_no_longer_needed(rows, worker, run, gone, last_t, results, lost):
    """It leaves after the last task, and no result has to be computed again."""
    stimulus_id = "handle-worker-cleanup-20.0"
    payload = {
        "action": "remove-worker", "stimulus_id": stimulus_id, "expected": False,
        "processing-tasks": [], "lost-computed-tasks": results, "lost-scattered-tasks": [],
    }  # fmt: skip
    assert rows(
        "SELECT what FROM failures",
        worker("w1"),
        worker("w2"),
        *run("a", 1.0, last_t, worker="w2"),
        {"kind": "event", "t": 20.0, "topic": "all", "worker": "w1", "payload": payload},
        gone("w1", 20.0, stimulus_id),
    ) == [(what,) for what in lost]


def test_worker_killed_for_memory(rows, worker, run, move, gone):
    killed = {"worker": "w1", "pid": 7, "rss": 2_040_109_466}
    stimulus_id = "handle-worker-cleanup-5.0"
    assert rows(
        "SELECT what, key, detail FROM failures ORDER BY key",
        worker("w1", memory_limit=2 * 2**30),
        *run("a", 1.0),
        *run("b", 1.0),
        {"kind": "event", "t": 4.9, "topic": "worker-restart-memory", "payload": killed},
        move(5.0, "a", "processing>released", stimulus_id),
        move(5.0, "b", "processing>erred", stimulus_id, exception="KilledWorker"),
        gone("w1", 5.0, stimulus_id),
        *run("c", 1.0, worker="w2"),
        move(5.0, "c", "processing>erred", stimulus_id, exception="KilledWorker"),
    ) == [
        ("attempt lost", "a", "its worker was killed by its nanny at 1.9 of 2.0 GiB"),
        ("task erred", "b",
         "given up by Dask: its worker was killed by its nanny at 1.9 of 2.0 GiB"),
        ("task erred", "c", "given up by Dask: handle-worker-cleanup"),
        ("worker lost", None, "killed by its nanny at 1.9 of 2.0 GiB"),
    ]  # fmt: skip


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


#: Exceptions, and the error that coffea quotes in them.
CAUSES = {
    ValueError("no jets"): "ValueError('no jets')",
    Exception(
        "Failed processing file: WorkItem(a='f'). The error was: OSError('f\\n')."
    ): r"OSError('f\n')",
    Exception(
        "Failed processing file: WorkItem(a=1). The error was: Wrong(7, (8,))."
    ): "Wrong(7, (8,))",
    Exception(
        "Failed creating nanoevents: WorkItem(a='f'). The error was: KeyError(\"'pt'\")."
    ): "KeyError(\"'pt'\")",
    Exception(
        "Failed to open file: WorkItem(a='f'). The error was: "
        "PermissionError('[Errno 13] Permission denied: \"{'f': None}\"')."
    ): "PermissionError('[Errno 13] Permission denied: \"{'f': None}\"')",
    Exception("Failed processing file: WorkItem(…"): None,
}


def test_cause_of_an_exception_of_coffea(rows, run):
    erred = [
        record
        for number, error in enumerate(CAUSES)
        for record in run(str(number), 1.0, 2.0, outcome="erred", exception=repr(error))
    ]
    assert rows("SELECT cause FROM failures ORDER BY key", *erred) == [
        (cause or repr(error),) for error, cause in CAUSES.items()
    ]


@pytest.mark.parametrize(
    ("exception", "name"),
    [
        ("KeyError('pt')", "KeyError"),
        ("uproot.exceptions.KeyInFileError: x", "uproot.exceptions.KeyInFileError"),
        ("error('Error -5 while decompressing data')", "zlib.error"),
        ("error('unpack requires a buffer of 4 bytes')", "struct.error"),
        ("error('else')", "error"),
        (None, None),
    ],
)
def test_type_of_an_exception(rows, run, exception, name):
    erred = run("a", 1.0, 2.0, outcome="erred", exception=exception)
    assert rows("SELECT exception_type FROM failures", *erred) == [(name,)]


def test_what_an_error_of_reading_means(rows):
    """Only a damaged file is to blame itself."""
    faults = {
        "zlib.error": ("error('Error -3 while decompressing data: invalid code')", "damage"),
        "OSError": (
            "OSError('[ERROR] Server responded with an error: [3011] No file')",
            "absent",
        ),
        "PermissionError": ("PermissionError('VOMS: authentication failed')", "denied"),
        "FSTimeoutError": ("FSTimeoutError()", "timeout"),
        "TimeoutError": ("TimeoutError('5 s')", "timeout"),
        "ReadTimeout": ("ReadTimeout('https://host')", "timeout"),
        "OSError ": ("OSError('File did not open: [ERROR] Operation expired')", "timeout"),
        "OSError  ": ("OSError(110, 'Connection timed out')", "timeout"),
        "ServerDisconnectedError": ("ServerDisconnectedError()", "no connection"),
        "ConnectionResetError": ("ConnectionResetError(104, 'x')", "no connection"),
        "ClientConnectorError": ("ClientConnectorError('host:443')", "no connection"),
        "OSError   ": ("OSError('[FATAL] Connection error')", "no connection"),
        "OSError    ": ("OSError('[ERROR] Server responded: [3005] I/O')", "server error"),
        "ClientResponseError": (
            "ClientResponseError(503, 'Service Unavailable')",
            "server error",
        ),
        "KeyError": ("KeyError('pt')", None),
        "TypeError": ("TypeError(\"unexpected keyword argument 'timeout'\")", None),
        "IndexError": ("IndexError('index [3005] is out of bounds')", None),
    }
    values = ", ".join(
        f"('{name.strip()}', '{error.replace(chr(39), 2 * chr(39))}')"
        for name, (error, _) in faults.items()
    )
    found = rows(f"SELECT _read_fault(type, error) FROM (VALUES {values}) AS t (type, error)")
    assert [fault for (fault,) in found] == [fault for _, fault in faults.values()]


def test_a_task_that_the_scheduler_refused(rows, task, move, run):
    """It has no attempt, also if an earlier one succeeded. A lost begin is no refusal."""
    error = {"exception": "MemoryError: too large", "cause": "b", "worker": "w1"}
    lost = {"exception": "E()", "traceback": "File", "thread": 7, "worker": "w1"}
    assert rows(
        "SELECT t, what, key, attempt, worker, exception_type, detail FROM failures",
        task("b"),
        *run("b", 1.0, 2.0),
        move(5.0, "b", "processing>erred", **error),
        task("without-begin"),
        move(6.0, "without-begin", "waiting>erred", **lost),
    ) == [
        (
            5.0, "task refused", "b", None, "w1", "MemoryError",
            "by the scheduler, before it began",
        ),
    ]  # fmt: skip
