"""View chunks: task attempts combined with metadata and measurements of chunks."""

PLACE = {
    "dataset": "DY", "filename": "f.root", "treename": "Events", "entry_start": 100,
    "entry_stop": 150, "file_uuid": "u",
}  # fmt: skip
DESCRIBED = {**PLACE, "usermeta": {"xsec": 1.5}}
MEASURED = {
    **PLACE, "run_id": 7, "worker": "w1", "thread": 11, "start_t": 1.25, "stop_t": 2.75,
    "until": "processed", "source": "TTree", "events": 50, "open_seconds": 0.25,
    "process_seconds": 1.0, "read_seconds": 0.75, "cpu_seconds": 0.5, "bytes_read": 1000,
    "requests": 9, "columns": ["x-data", "y-data", "y-offsets"],
    "branches": [
        {"branch": "x", "compressed_bytes": 100, "uncompressed_bytes": 300},
        {"branch": "y", "compressed_bytes": 50, "read_seconds": 0.5},
    ],
    "file_branches": 8, "file_bytes": 4000, "memory_before": 10, "memory_after": 30,
    "memory_peak": 40,
}  # fmt: skip


def test_chunk_with_measurement(open_trace, chunk, run):
    trace = open_trace(
        chunk("a", **DESCRIBED), *run("a", 1.0, 3.0, run_id=7), chunk("a", **MEASURED)
    )

    [row] = trace.frame("chunks").to_dicts()
    assert {name: value for name, value in row.items() if value is not None} == {
        **PLACE, "key": "a", "attempt": 1, "usermeta": '{"xsec":1.5}', "run_id": 7,
        "worker": "w1", "thread": 1, "outcome": "memory", "output_bytes": 8,
        "processing_t": 1.0, "start_t": 1.25, "stop_t": 2.75, "end_t": 3.0,
        "compute_seconds": 2.0, "process_seconds": 1.0, "open_seconds": 0.25,
        "read_seconds": 0.75, "cpu_seconds": 0.5,
        "wait_seconds": 1.0,  # 1.5 s between start and stop, 0.5 s of CPU
        "transfer_seconds": 0.0,
        "events": 50, "events_per_second": 25.0, "bytes_read": 1000,
        "bytes_per_second": 500.0, "requests": 9, "source": "TTree",
        "columns": ["x-data", "y-data", "y-offsets"], "columns_read": 3, "branches_read": 2,
        "file_branches": 8, "branch_share": 0.25, "file_bytes": 4000,
        "compressed_bytes": 150, "uncompressed_bytes": 300,
        "compression_ratio": 3.0,  # of x alone: the size of y is unknown
        "memory_before_bytes": 10, "memory_after_bytes": 30, "memory_peak_bytes": 40,
        "from_checkpoint": False, "measured_until": "processed", "chunks_in_task": 1,
        "kept": True,
        "bytes_per_event": 20.0, "trace_id": "T",
    }  # fmt: skip


def test_records_that_are_repeated_incomplete_or_out_of_order(rows, chunk, run, move):
    entries = {"entry_start": 0, "entry_stop": 1}
    metadata = {"dataset": "DY", "filename": "f.root", "treename": "Events"}

    assert rows(
        "SELECT key, attempt, outcome, worker, dataset, events, bytes_read, exception "
        "FROM chunks ORDER BY key, attempt",
        # An attempt without transitions has no number.
        chunk("attempt", **DESCRIBED),
        *run("attempt", 1.0, 2.0, run_id=1),
        chunk("attempt", **{**MEASURED, "run_id": 2}),
        chunk("erred", **DESCRIBED),
        *run("erred", 1.0, 2.0, outcome="erred", exception="OSError()"),
        # The dataset is known only from the measurement of another attempt.
        *run("lost", 1.0, 2.0, outcome="lost", run_id=1),
        *run("lost", 3.0, 4.0, "w2", run_id=2),
        chunk("lost", **{**MEASURED, "run_id": 2, "worker": "w2"}),
        # File metadata is not a chunk.
        chunk("metadata", **metadata),
        *run("metadata", 1.0, 2.0),
        *run("not described", 1.0, 2.0, run_id=1),
        chunk("not described", run_id=1, dataset="QCD", events=5),
        # The end of the first attempt is recorded after the start of the second one.
        chunk("order", **DESCRIBED),
        move(1.0, "order", "waiting>processing", worker="w1", run_id=1),
        move(3.0, "order", "waiting>processing", worker="w1", run_id=2),
        move(2.0, "order", "processing>released", "task-erred-2.0", worker="w1", run_id=1),
        chunk("order", **{**MEASURED, "run_id": 1}),
        chunk("repeated", **entries),
        chunk("repeated", **entries),
        *run("repeated", 1.0, 2.0, run_id=1),
        chunk("repeated", run_id=1, bytes_read=2),
        chunk("repeated", run_id=1, bytes_read=2),
        # Sent to w1, stolen by w2, and released by the client.
        chunk("stolen", **DESCRIBED),
        *run("stolen", 1.0, 2.0, outcome="cancelled", run_id=1),
        chunk("stolen", run_id=1, worker="w2"),
    ) == [
        ("attempt", 1, "memory", "w1", "DY", 50, None, None),
        ("attempt", None, "memory", "w1", "DY", 50, 1000, None),
        ("erred", 1, "erred", "w1", "DY", None, None, "OSError()"),
        ("lost", 1, "lost", "w1", "DY", None, None, None),
        ("lost", 2, "memory", "w2", "DY", 50, 1000, None),
        ("not described", 1, "memory", "w1", "QCD", 5, None, None),
        ("order", 1, "unfinished", "w1", "DY", None, 1000, None),
        ("order", 2, "retried", "w1", "DY", None, None, None),
        ("repeated", 1, "memory", "w1", None, 1, 2, None),
        ("stolen", 1, "cancelled", "w2", "DY", None, None, None),
    ]


def test_nothing_read_is_0_and_unknown_is_null(rows, chunk, run):
    branches = {"not measured": None, "nothing read": [], "sizes unknown": [{"branch": "x"}]}
    entries = {"run_id": 1, "entry_start": 0, "entry_stop": 1}

    assert rows(
        "SELECT key, branches_read, compressed_bytes, uncompressed_bytes FROM chunks",
        *(record for key in branches for record in run(key, 1.0, 2.0, run_id=1)),
        *(chunk(key, branches=read, **entries) for key, read in branches.items()),
    ) == [
        ("not measured", None, None, None),
        ("nothing read", 0, 0, 0),
        ("sizes unknown", 1, None, None),
    ]


def test_chunks_without_events(ask, chunk, run):
    """A chunk with a suppressed exception is skipped; a checkpoint has no event count."""
    loaded = {**DESCRIBED, "filename": "loaded.root"}
    found = ask(
        chunk("bad", **DESCRIBED),
        *run("bad", 1.0, 2.0, run_id=1),
        chunk("bad", run_id=1, events=50, exception="E()"),
        chunk("loaded", **loaded),
        *run("loaded", 1.0, 2.0, run_id=1),
        chunk("loaded", run_id=1, from_checkpoint=True, **loaded),
    )

    assert found(
        "SELECT chunks.outcome, task_runs.outcome, from_checkpoint, events, chunks.exception "
        "FROM chunks INNER JOIN task_runs USING (key) ORDER BY key"
    ) == [("skipped", "memory", False, None, "E()"), ("memory", "memory", True, None, None)]
    assert found(
        "SELECT chunks, events, checkpointed_chunks, compute_seconds, events_per_second, "
        "failed_attempts FROM files ORDER BY filename"
    ) == [(0, 0, 0, 1.0, None, 1), (1, None, 1, 1.0, None, 0)]
    assert found("SELECT chunks, events, skipped, failed_chunks FROM run") == [(1, None, 1, 1)]
    assert found("SELECT what, exception FROM failures") == [("chunk skipped", "E()")]


# -- dask-awkward: a task reads and processes its chunks -------------------------------


def read(chunk, key, filename, start, stop, **fields):
    """Return a measurement that ends after reading."""
    entries = {"entry_start": 0, "entry_stop": 10, "events": 10}
    about = {"dataset": "DY", "filename": filename, "treename": "Events", **entries}
    times = {"start_t": start, "stop_t": stop, "until": "read"}
    return chunk(key, run_id=1, **about, **times, **fields)


def test_tasks_of_one_or_several_chunks(ask, chunk, run):
    """Process time is the compute minus the read time; several chunks share the totals.

    A chunk that its task reads twice is one row.
    """
    first, second = {"columns": ["x", "y"]}, {"columns": ["y", "z"]}
    first["branches"] = [{"branch": "x", "compressed_bytes": 1}]
    second["branches"] = [{"branch": "z", "compressed_bytes": 2}]

    found = ask(
        *run("one", 1.0, 5.0, run_id=1),
        read(chunk, "one", "1.root", 1.0, 2.5),
        *run("several", 1.0, 5.0, run_id=1, nbytes=9),
        read(chunk, "several", "2.root", 1.0, 1.5, bytes_read=100),
        read(chunk, "several", "3.root", 1.5, 2.5, bytes_read=200),
        *run("twice", 1.0, 5.0, run_id=1),
        read(chunk, "twice", "4.root", 1.0, 1.5, bytes_read=100, **first),
        read(chunk, "twice", "4.root", 2.0, 2.25, bytes_read=50, **second),
    )

    assert found(
        "SELECT filename, attempt, chunks_in_task, compute_seconds, process_seconds, "
        "cpu_seconds, wait_seconds, output_bytes, events, events_per_second, bytes_read, "
        "start_t, stop_t, measured_until FROM chunks ORDER BY filename"
    ) == [
        ("1.root", 1, 1, 4.0, 2.5, None, None, 8, 10, 2.5, None, 1.0, 2.5, "read"),
        ("2.root", 1, 2, 2.0, None, None, None, 5, 10, 5.0, 100, 1.0, 1.5, "read"),
        ("3.root", 1, 2, 2.0, None, None, None, 4, 10, 5.0, 200, 1.5, 2.5, "read"),
        ("4.root", 1, 1, 4.0, 3.25, None, None, 8, 10, 2.5, 150, 1.0, 2.25, "read"),
    ]
    assert found(
        "SELECT columns, columns_read, branches_read, compressed_bytes FROM chunks "
        "WHERE filename = '4.root'"
    ) == [(["x", "y", "z"], 3, 2, 3)]
    assert found(
        "SELECT branch, compressed_bytes FROM chunk_branches ORDER BY branch"
    ) == [("x", 1), ("z", 2)]  # fmt: skip
    assert found(
        "SELECT datasets.compute_seconds, datasets.output_bytes, events, chunks FROM datasets"
    ) == [(12.0, 25, 40, 4)]


def test_unreached_chunks_of_a_failed_task_have_rows(rows, chunk, run):
    entries = {"dataset": "DY", "entry_start": 0, "entry_stop": 10}
    files = ("1.root", "2.root", "3.root")

    assert rows(
        "SELECT filename, attempt, outcome, worker, exception, start_t FROM chunks",
        *(chunk("a", filename=filename, **entries) for filename in files),
        *run("a", 1.0, 2.0, outcome="erred", exception="E()", run_id=1),
        read(chunk, "a", "1.root", 1.0, 1.5),
        read(chunk, "a", "2.root", 1.5, 2.0, exception="OSError()"),
    ) == [
        ("1.root", 1, "erred", "w1", "E()", 1.0),
        ("2.root", 1, "erred", "w1", "E()", 1.5),
        ("3.root", 1, "erred", "w1", "E()", None),
    ]


# -- without a cluster -------------------------------------------------------------------


def made(chunk, key, run_id, start, stop, worker="pid:1", **fields):
    """Return a measurement of a chunk without a cluster."""
    place = {**PLACE, "filename": f"{key}.root", "entry_start": 0, "entry_stop": 10}
    times = {"start_t": start, "stop_t": stop, "until": "processed"}
    fields = {"thread": 5, **place, **times, **fields}
    return chunk(key, run_id=run_id, worker=worker, **fields)


def test_attempts_and_totals_without_a_cluster(ask, chunk, worker):
    found = ask(
        worker("pid:1", 0.5),
        worker("pid:2", 0.5),
        made(chunk, "b", 4, 7.0, 8.0, events=10, nbytes=6, bytes_read=50),
        made(chunk, "a", 1, 1.0, 2.0, exception="OSError(1)", bytes_read=5),
        made(chunk, "a", 3, 4.0, 6.0, "pid:2", events=10, nbytes=5, bytes_read=50),
        made(chunk, "c", 2, 3.0, 4.0, exception="OSError(2)"),
        stop_t=20.0,
    )

    assert found(
        "SELECT key, attempt, outcome, worker, thread, events, compute_seconds, processing_t, "
        "end_t, output_bytes, exception, events_per_second, queued_seconds FROM chunks"
    ) == [
        ("a", 1, "retried", "pid:1", 5, None, 1.0, 1.0, 2.0, None, "OSError(1)", None, None),
        ("c", 1, "erred", "pid:1", 5, None, 1.0, 3.0, 4.0, None, "OSError(2)", None, None),
        ("a", 2, "memory", "pid:2", 5, 10, 2.0, 4.0, 6.0, 5, None, 5.0, None),
        ("b", 1, "memory", "pid:1", 5, 10, 1.0, 7.0, 8.0, 6, None, 10.0, None),
    ]
    assert found(
        "SELECT tasks, task_runs, workers, chunks, chunk_attempts, failed_chunks, events, "
        "bytes_read, output_bytes, compute_seconds, busy_seconds, chunk_wall_seconds, "
        "events_per_second, failures FROM run"
    ) == [(0, 0, 2, 2, 4, 2, 20, 105, 11, 5.0, 7.0, 7.0, 20 / 7, 2)]
    assert found(
        "SELECT worker, compute_seconds, output_bytes, chunks, events, failed_chunks, "
        "events_per_second, chunk_share FROM workers"
    ) == [
        ("pid:1", 3.0, 6, 1, 10, 2, 10 / 3, 0.6),
        ("pid:2", 2.0, 5, 1, 10, 0, 5.0, 0.4),
    ]
    assert found("SELECT filename, chunks, failed_attempts FROM files") == [
        ("a.root", 1, 1),
        ("b.root", 1, 0),
        ("c.root", 0, 1),
    ]
    assert found("SELECT t, what, key, attempt, detail FROM failures") == [
        (2.0, "attempt retried", "a", 1, "DY, a.root, entries 0 to 10"),
        (4.0, "chunk erred", "c", 1, "DY, c.root, entries 0 to 10"),
    ]


def test_threads_of_a_process_without_a_cluster(ask, chunk, worker):
    found = ask(
        worker("pid:1", 0.0, nthreads=1),
        worker("pid:2", 0.0, nthreads=1),
        # Two threads of a pool, and a thread of a later one.
        made(chunk, "a", 1, 0.0, 5.0, thread=1),
        made(chunk, "b", 2, 0.0, 5.0, thread=2),
        made(chunk, "c", 3, 5.0, 10.0, thread=3),
        # One thread on an inaccurate clock.
        made(chunk, "d", 4, 0.0, 5.0, "pid:2"),
        made(chunk, "e", 5, 4.9, 10.0, "pid:2"),
        stop_t=10.0,
    )

    assert found("SELECT worker, nthreads FROM workers") == [("pid:1", 2), ("pid:2", 1)]
    assert found("SELECT peak_nthreads, core_seconds FROM run") == [(3, 30.0)]


def test_repeated_and_read_only_results_without_a_cluster(ask, chunk):
    found = ask(
        made(chunk, "a", 1, 1.0, 2.0, events=10),
        made(chunk, "a", 2, 3.0, 4.0, events=10),
        made(chunk, "b", 3, 4.0, 5.0, until="read", events=10),
    )

    assert found("SELECT chunk_attempts, chunks, events FROM datasets") == [(3, 3, 30)]
    assert found(
        "SELECT outcome, compute_seconds, process_seconds, events FROM chunks WHERE key = 'b'"
    ) == [("memory", None, None, 10)]


def test_measurements_without_run_ids_are_joined_by_time(rows, chunk, run):
    """A Dask whose run ids cannot be read, on the scheduler or on workers."""
    query = "SELECT attempt, outcome, start_t, stop_t, events FROM chunks ORDER BY attempt"

    def attempts(in_task, on_worker):
        places = ((1.0, "retried"), (2.0, "memory"))
        return [
            chunk("a", **DESCRIBED),
            *(
                record
                for (t, outcome), run_id in zip(places, in_task, strict=True)
                for record in run("a", t, t + 1, outcome=outcome, run_id=run_id)
            ),
            *(
                chunk("a", **{**MEASURED, "start_t": t, "stop_t": t + 0.5, "run_id": run_id})
                for t, run_id in zip((1.25, 2.25), on_worker, strict=True)
            ),
        ]

    expected = rows(query, *attempts((7, 8), (7, 8)))
    assert [row[:4] for row in expected] == [
        (1, "retried", 1.25, 1.75),
        (2, "memory", 2.25, 2.75),
    ]
    assert rows(query, *attempts((None, None), (7, 8))) == expected
    assert rows(query, *attempts((7, 8), (-1_000, -2_000))) == expected
