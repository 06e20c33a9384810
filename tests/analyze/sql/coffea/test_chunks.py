"""View chunks: task attempts, chunk identities and measurements combined."""

import pytest

IDENTITY = {
    "dataset": "DY",
    "filename": "f.root",
    "treename": "Events",
    "entry_start": 100,
    "entry_stop": 150,
    "file_uuid": "u",
    "usermeta": {"xsec": 1.5},
}


MEASURED = {
    **{name: value for name, value in IDENTITY.items() if name != "usermeta"},
    "run_id": 7,
    "worker": "w1",
    "thread": 11,
    "start_t": 1.25,
    "stop_t": 2.75,
    "until": "processed",
    "source": "TTree",
    "events": 50,
    "open_seconds": 0.25,
    "process_seconds": 1.0,
    "read_seconds": 0.75,
    "cpu_seconds": 0.5,
    "bytes_read": 1000,
    "requests": 9,
    "columns": ["x-data", "y-data", "y-offsets"],
    "branches": [
        {"branch": "x", "compressed_bytes": 100, "uncompressed_bytes": 300},
        {"branch": "y", "compressed_bytes": 50, "read_seconds": 0.5},
    ],
    "file_branches": 8,
    "file_bytes": 4000,
    "memory_before": 10,
    "memory_after": 30,
    "memory_peak": 40,
}


def test_chunk_with_measurement(open_trace, chunk, run):
    [row] = (
        open_trace(
            chunk("a", **IDENTITY), *run("a", 1.0, 3.0, run_id=7), chunk("a", **MEASURED)
        )
        .view("chunks")
        .pl()
        .to_dicts()
    )

    assert {name: value for name, value in row.items() if value is not None} == {
        "key": "a",
        "attempt": 1,
        "dataset": "DY",
        "filename": "f.root",
        "treename": "Events",
        "entry_start": 100,
        "entry_stop": 150,
        "events": 50,
        "bytes_read": 1000,
        "columns_read": 3,
        "branches_read": 2,
        "process_seconds": 1.0,
        "open_seconds": 0.25,
        "cpu_seconds": 0.5,
        "worker": "w1",
        "outcome": "memory",
        "output_bytes": 8,
        "events_per_second": 25.0,
        "compute_seconds": 2.0,
        "processing_t": 1.0,
        "end_t": 3.0,
        "file_uuid": "u",
        "usermeta": '{"xsec":1.5}',
        "run_id": 7,
        "read_seconds": 0.75,
        "wait_seconds": 1.0,  # 1.5 s between start and stop, 0.5 s of CPU
        "transfer_seconds": 0.0,
        "start_t": 1.25,
        "stop_t": 2.75,
        "thread": 1,
        "bytes_per_second": 500.0,
        "requests": 9,
        "source": "TTree",
        "columns": ["x-data", "y-data", "y-offsets"],
        "file_branches": 8,
        "branch_share": 0.25,
        "file_bytes": 4000,
        "compressed_bytes": 150,
        "uncompressed_bytes": 300,
        "compression_ratio": 3.0,  # of x alone: nobody knows how large y became
        "memory_before_bytes": 10,
        "memory_after_bytes": 30,
        "memory_peak_bytes": 40,
        "from_checkpoint": False,
        "measured_until": "processed",
        "chunks_in_task": 1,
        "trace_id": "T",
    }


def test_repeated_identity_and_measurement_count_once(rows, chunk, run):
    assert rows(
        "SELECT key, attempt, events FROM chunks",
        chunk("a", **IDENTITY),
        chunk("a", **IDENTITY),
        *run("a", 1.0, 2.0, run_id=1),
        chunk("a", run_id=1, bytes_read=1),
        chunk("a", run_id=1, bytes_read=2),
    ) == [("a", 1, 50)]


def test_failed_chunk_has_an_exception_and_no_events(rows, chunk, move):
    assert rows(
        "SELECT outcome, events, events_per_second, exception FROM chunks",
        chunk("a", **IDENTITY),
        move(1.0, "a", "waiting>processing", worker="w1"),
        move(2.0, "a", "processing>erred", "task-erred-2.0", exception="OSError()"),
    ) == [("erred", None, None, "OSError()")]


def test_measurement_without_identity(rows, chunk, run):
    assert rows(
        "SELECT dataset, events FROM chunks",
        *run("a", 1.0, 2.0, run_id=1),
        chunk("a", run_id=1, dataset="DY", events=5),
    ) == [("DY", 5)]


def test_file_metadata_is_not_a_chunk(rows, chunk, run):
    assert rows(
        "SELECT * FROM chunks",
        chunk("a", dataset="DY", filename="f.root", treename="Events"),
        *run("a", 1.0, 2.0),
    ) == []  # fmt: skip


@pytest.mark.parametrize(
    ("branches", "sizes"),
    [(None, (None, None, None)), ([], (0, 0, 0)), ([{"branch": "x"}], (1, None, None))],
    ids=["not measured", "nothing read", "sizes not known"],
)
def test_nothing_read_is_0_and_unknown_is_null(rows, chunk, run, branches, sizes):
    assert rows(
        "SELECT branches_read, compressed_bytes, uncompressed_bytes FROM chunks",
        *run("a", 1.0, 2.0, run_id=1),
        chunk("a", run_id=1, entry_start=0, entry_stop=1, branches=branches),
    ) == [sizes]


def test_worker_of_a_stolen_chunk_is_the_one_that_measured(rows, chunk, move):
    # Sent to w1, stolen by w2, and released by the client.
    assert rows(
        "SELECT worker, outcome FROM chunks",
        chunk("a", **IDENTITY),
        move(1.0, "a", "waiting>processing", worker="w1", run_id=1),
        chunk("a", run_id=1, worker="w2"),
        move(2.0, "a", "processing>released", "client-releases-keys-2.0"),
    ) == [("w2", "cancelled")]


def test_attempt_lost_with_its_worker_has_a_row(rows, chunk, move):
    assert rows(
        "SELECT attempt, outcome, worker, events, bytes_read, filename FROM chunks",
        chunk("a", **IDENTITY),
        move(1.0, "a", "waiting>processing", worker="w1", run_id=1),
        move(2.0, "a", "processing>released", "handle-worker-cleanup-2.0"),
        move(3.0, "a", "waiting>processing", worker="w2", run_id=2),
        move(4.0, "a", "processing>memory", worker="w2", run_id=2),
        chunk("a", run_id=2, worker="w2", bytes_read=5, events=50),
    ) == [
        (1, "lost", "w1", None, None, "f.root"),
        (2, "memory", "w2", 50, 5, "f.root"),
    ]


def test_identity_from_another_attempt(rows, chunk, run, move):
    """The identity record is missing."""
    assert rows(
        "SELECT attempt, outcome, filename, entry_start, bytes_read FROM chunks",
        move(1.0, "a", "waiting>processing", worker="w1", run_id=1),
        move(2.0, "a", "processing>released", "handle-worker-cleanup-2.0"),
        *run("a", 3.0, 4.0, run_id=2),
        chunk("a", run_id=2, filename="f.root", entry_start=0, entry_stop=10, bytes_read=9),
    ) == [(1, "lost", "f.root", 0, None), (2, "memory", "f.root", 0, 9)]


def test_measurement_counts_once_if_records_are_out_of_order(rows, chunk, move):
    """The end of the first attempt is recorded after the start of the second one."""
    assert rows(
        "SELECT attempt, outcome, bytes_read FROM chunks",
        chunk("a", **IDENTITY),
        move(1.0, "a", "waiting>processing", worker="w1", run_id=1),
        move(3.0, "a", "waiting>processing", worker="w1", run_id=2),
        move(2.0, "a", "processing>released", "task-erred-2.0", worker="w1", run_id=1),
        chunk("a", **{**MEASURED, "run_id": 1}),
    ) == [(1, "unfinished", 1000), (2, "retried", None)]


def test_suppressed_exception_makes_a_skipped_chunk(rows, chunk, run):
    assert rows(
        "SELECT chunks.outcome, task_runs.outcome, chunks.exception, chunks.events, "
        "files.chunks, files.events, files.failed_attempts, run.chunks, run.skipped, "
        "run.failed_chunks, failures.what, failures.exception "
        "FROM chunks, task_runs, files, run, failures",
        chunk("a", **IDENTITY),
        *run("a", 1.0, 2.0, run_id=1),
        chunk("a", run_id=1, events=50, exception="OSError('bad')"),
    ) == [
        (
            "skipped", "memory", "OSError('bad')", None, 0, 0, 1, 0, 1, 1, "chunk skipped",
            "OSError('bad')",
        )
    ]  # fmt: skip


def test_result_from_a_checkpoint_has_no_events(rows, chunk, run):
    assert rows(
        "SELECT chunks.from_checkpoint, chunks.events, files.chunks, files.events, "
        "files.checkpointed_chunks, files.compute_seconds, files.events_per_second, run.events "
        "FROM chunks, files, run",
        chunk("a", **IDENTITY),
        *run("a", 1.0, 2.0, run_id=1),
        chunk("a", run_id=1, from_checkpoint=True, **IDENTITY),
    ) == [(True, None, 1, None, 1, 1.0, None, None)]


# -- dask-awkward: the task processes what it has read ---------------------------------


def read(key, start, stop, chunk, filename="f.root", **fields):
    """Return a measurement that ends with reading."""
    entries = {"entry_start": 0, "entry_stop": 10, "events": 10}
    about = {"dataset": "DY", "filename": filename, "treename": "Events", **entries}
    times = {"start_t": start, "stop_t": stop, "until": "read"}
    return chunk(key, run_id=1, **{**about, **times, **fields})


def test_dask_awkward_process_time_is_compute_minus_read_time(rows, chunk, run):
    assert rows(
        "SELECT attempt, compute_seconds, process_seconds, cpu_seconds, wait_seconds, events, "
        "events_per_second, measured_until FROM chunks",
        *run("a", 1.0, 5.0, run_id=1),
        read("a", 1.0, 2.5, chunk),
    ) == [(1, 4.0, 2.5, None, None, 10, 2.5, "read")]


def test_task_of_several_chunks_divides_its_totals(rows, chunk, run):
    records = (
        *run("a", 1.0, 5.0, run_id=1, nbytes=9),
        read("a", 1.0, 1.5, chunk, "1.root", bytes_read=100),
        read("a", 1.5, 2.5, chunk, "2.root", bytes_read=200),
    )

    assert rows(
        "SELECT filename, attempt, chunks_in_task, compute_seconds, process_seconds, "
        "output_bytes, events, bytes_read FROM chunks",
        *records,
    ) == [
        ("1.root", 1, 2, 2.0, None, 5, 10, 100),
        ("2.root", 1, 2, 2.0, None, 4, 10, 200),
    ]
    assert rows(
        "SELECT sum(datasets.compute_seconds), sum(datasets.output_bytes), sum(events), "
        "sum(chunks) FROM datasets",
        *records,
    ) == [(4.0, 9, 20, 2)]


def test_chunk_read_twice_by_its_task_is_one_row(rows, chunk, run):
    records = (
        *run("a", 1.0, 5.0, run_id=1),
        read("a", 1.0, 1.5, chunk, bytes_read=100, columns=["x", "y"], branches=[
            {"branch": "x", "compressed_bytes": 1}]),
        read("a", 2.0, 2.25, chunk, bytes_read=50, columns=["y", "z"], branches=[
            {"branch": "z", "compressed_bytes": 2}]),
    )  # fmt: skip

    assert rows(
        "SELECT chunks_in_task, events, bytes_read, columns, columns_read, branches_read, "
        "compressed_bytes, start_t, stop_t, process_seconds FROM chunks",
        *records,
    ) == [(1, 10, 150, ["x", "y", "z"], 3, 2, 3, 1.0, 2.25, 3.25)]
    assert rows(
        "SELECT branch, compressed_bytes FROM chunk_branches ORDER BY branch", *records
    ) == [("x", 1), ("z", 2)]


def test_unreached_chunks_of_a_failed_task_have_rows(rows, chunk, move):
    def identity(filename):
        return chunk("a", dataset="DY", filename=filename, entry_start=0, entry_stop=10)

    assert rows(
        "SELECT filename, attempt, outcome, worker, exception, start_t FROM chunks",
        *map(identity, ("1.root", "2.root", "3.root")),
        move(1.0, "a", "waiting>processing", worker="w1", run_id=1),
        read("a", 1.0, 1.5, chunk, "1.root"),
        read("a", 1.5, 2.0, chunk, "2.root", exception="OSError()"),
        move(2.0, "a", "processing>erred", "task-erred-2.0", worker="w1", exception="E()"),
    ) == [
        ("1.root", 1, "erred", "w1", "E()", 1.0),
        ("2.root", 1, "erred", "w1", "E()", 1.5),
        ("3.root", 1, "erred", "w1", "E()", None),
    ]


# -- without a cluster -------------------------------------------------------------------


def made(key, run_id, start, stop, chunk, worker="pid:1", **fields):
    """Return a measurement of a chunk without a cluster."""
    about = {"dataset": "DY", "filename": f"{key}.root", "treename": "Events"}
    entries = {"entry_start": 0, "entry_stop": 10}
    times = {"start_t": start, "stop_t": stop, "until": "processed"}
    who = {"worker": worker, "thread": 5}
    return chunk(key, run_id=run_id, **{**about, **entries, **times, **who, **fields})


def test_attempts_without_a_cluster(rows, chunk):
    assert rows(
        "SELECT key, attempt, outcome, worker, thread, events, compute_seconds, processing_t, "
        "end_t, output_bytes, exception, events_per_second, queued_seconds FROM chunks",
        made("b", 4, 7.0, 8.0, chunk, events=10, nbytes=6),
        made("a", 1, 1.0, 2.0, chunk, exception="OSError(1)"),
        made("a", 3, 4.0, 6.0, chunk, "pid:2", events=10, nbytes=5),
        made("c", 2, 3.0, 4.0, chunk, exception="OSError(2)"),
    ) == [
        ("a", 1, "retried", "pid:1", 5, None, 1.0, 1.0, 2.0, None, "OSError(1)", None, None),
        ("c", 1, "erred", "pid:1", 5, None, 1.0, 3.0, 4.0, None, "OSError(2)", None, None),
        ("a", 2, "memory", "pid:2", 5, 10, 2.0, 4.0, 6.0, 5, None, 5.0, None),
        ("b", 1, "memory", "pid:1", 5, 10, 1.0, 7.0, 8.0, 6, None, 10.0, None),
    ]


def test_totals_without_a_cluster(open_trace, chunk, worker):
    trace = open_trace(
        worker("pid:1", 0.5),
        worker("pid:2", 0.5),
        made("a", 1, 1.0, 2.0, chunk, exception="OSError(1)", bytes_read=5),
        made("a", 2, 4.0, 6.0, chunk, "pid:2", events=10, bytes_read=50, nbytes=5),
        made("b", 3, 7.0, 8.0, chunk, events=10, bytes_read=50, nbytes=6),
        made("c", 4, 9.0, 10.0, chunk, exception="OSError(2)"),
        stop_t=20.0,
    )

    [run] = trace.view("run").pl().to_dicts()
    assert {
        name: run[name]
        for name in (
            "tasks", "task_runs", "workers", "chunks", "chunk_attempts", "failed_chunks",
            "events", "bytes_read", "output_bytes", "compute_seconds", "busy_seconds",
            "chunk_wall_seconds", "events_per_second", "failures",
        )
    } == {
        "tasks": 0, "task_runs": 0, "workers": 2, "chunks": 2, "chunk_attempts": 4,
        "failed_chunks": 2, "events": 20, "bytes_read": 105, "output_bytes": 11,
        "compute_seconds": 5.0, "busy_seconds": 9.0, "chunk_wall_seconds": 9.0,
        "events_per_second": 20 / 9, "failures": 2,
    }  # fmt: skip
    assert trace.sql(
        "SELECT worker, compute_seconds, output_bytes, chunks, events, failed_chunks, "
        "events_per_second, chunk_share FROM workers"
    ).fetchall() == [
        ("pid:1", 3.0, 6, 1, 10, 2, 10 / 3, 0.6),
        ("pid:2", 2.0, 5, 1, 10, 0, 5.0, 0.4),
    ]
    assert trace.sql("SELECT filename, chunks, failed_attempts FROM files").fetchall() == [
        ("a.root", 1, 1),
        ("b.root", 1, 0),
        ("c.root", 0, 1),
    ]
    assert trace.sql("SELECT t, what, key, attempt, detail FROM failures").fetchall() == [
        (2.0, "attempt retried", "a", 1, "DY, a.root, entries 0 to 10"),
        (10.0, "chunk erred", "c", 1, "DY, c.root, entries 0 to 10"),
    ]


def test_repeated_results_without_a_cluster_count_each(rows, chunk):
    assert rows(
        "SELECT chunk_attempts, chunks, events FROM datasets",
        made("a", 1, 1.0, 2.0, chunk, events=10),
        made("a", 2, 3.0, 4.0, chunk, events=10),
    ) == [(2, 2, 20)]


def test_read_only_measurement_without_a_cluster(rows, chunk):
    assert rows(
        "SELECT outcome, compute_seconds, process_seconds, events FROM chunks",
        made("a", 1, 1.0, 2.0, chunk, until="read", events=10),
    ) == [("memory", None, None, 10)]


def test_measurement_without_transitions_has_no_attempt_number(rows, chunk, run):
    assert rows(
        "SELECT run_id, attempt, outcome FROM chunks ORDER BY run_id",
        chunk("a", **IDENTITY),
        *run("a", 1.0, 2.0, run_id=1),
        made("a", 2, 3.0, 4.0, chunk),
    ) == [(1, 1, "memory"), (2, None, "memory")]
