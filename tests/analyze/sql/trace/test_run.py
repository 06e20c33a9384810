"""View run."""


def test_all_columns_of_a_small_run(open_trace, worker, gone, task, run, move, chunk, sample):
    measured = {
        "start_t": 21.0,
        "stop_t": 29.0,
        "open_seconds": 1.5,
        "process_seconds": 6.0,
        "read_seconds": 2.0,
        "cpu_seconds": 5.0,
        "branches": [{"branch": "x", "compressed_bytes": 200, "uncompressed_bytes": 500}],
    }
    trace = open_trace(
        worker("w1", 0.0, nthreads=2),
        worker("w2", 10.0, nthreads=4),
        *(task(key) for key in "abcdefg"),
        *(chunk(key, entry_start=0, entry_stop=100) for key in "ab"),
        *run("a", 20.0, 30.0, run_id=1, nbytes=5),
        move(20.0, "b", "waiting>processing", worker="w2", run_id=2),
        move(40.0, "b", "processing>erred", "task-erred-40.0", worker="w2"),
        chunk("a", run_id=1, bytes_read=1000, **measured),
        move(22.0, "c", "waiting>processing", worker="w2"),
        move(41.0, "c", "processing>released", "task-erred-41.0", worker="w2"),
        move(22.0, "d", "waiting>processing", worker="w2"),
        move(60.0, "d", "processing>released", "handle-worker-cleanup-60.0"),
        move(22.0, "e", "waiting>processing", worker="w2"),
        move(61.0, "e", "processing>released", "reschedule-61.0"),
        move(22.0, "f", "waiting>processing", worker="w2"),
        move(62.0, "f", "processing>released", "client-releases-keys-62.0"),
        move(22.0, "g", "waiting>processing", worker="w1"),
        sample(1.0, "w1", memory=10),
        sample(11.0, "w1", memory=10),
        sample(11.0, "w2", memory=20),
        gone("w2", 60.0, "handle-worker-cleanup-60.0"),
        stop_t=100.0,
    )

    assert trace.view("run").to_dicts() == [
        {
            "start_t": 0.0,
            "stop_t": 100.0,
            "wall_seconds": 100.0,
            "busy_seconds": 42.0,
            "workers": 2,
            "peak_workers": 2,
            "peak_nthreads": 6,
            "core_seconds": 2 * 100.0 + 4 * 50.0,
            "compute_seconds": 10.0,
            "core_efficiency": 10.0 / 400.0,
            "tasks": 7,
            "task_runs": 7,
            "memory": 1,
            "erred": 1,
            "retried": 1,
            "lost": 1,
            "rescheduled": 1,
            "cancelled": 1,
            "unfinished": 1,
            "failures": 4,
            "chunks": 1,
            "chunk_attempts": 2,
            "events": 100,
            "events_per_second": 100 / 20.0,
            "chunk_wall_seconds": 20.0,
            "bytes_read": 1000,
            "output_bytes": 5,
            "transfer_seconds": 0.0,
            "peak_memory_bytes": 30,
            "lost_records": 0,
            "failed_chunks": 1,
            "skipped": 0,
            "checkpointed_chunks": 0,
            "chunk_seconds": 10.0,
            "merge_seconds": None,
            "process_seconds": 6.0,
            "mean_process_seconds": 6.0,
            "open_seconds": 1.5,
            "read_seconds": 2.0,
            "cpu_seconds": 5.0,
            "wait_seconds": 3.0,
            "events_per_process_second": 100 / 6.0,
            "events_per_core_second": 100 / 400.0,
            "bytes_per_second": 1000 / 20.0,
            "compressed_bytes": 200,
            "uncompressed_bytes": 500,
            "compression_ratio": 2.5,
            "speedup": 10.0 / 42.0,
            "mean_workers": (100.0 + 50.0) / 100.0,
            "mean_nthreads": 400.0 / 100.0,
            "peak_worker_memory_bytes": 20,
            "mean_worker_memory_bytes": 13,
            "kept_seconds": 10.0,
            "skipped_files": 0,
            "trace_id": "T",
        }
    ]


def test_empty_trace_is_one_row_of_zeros_and_nulls(open_trace):
    [row] = open_trace(stop_t=5.0).view("run").to_dicts()

    zeros = {name for name, value in row.items() if value == 0}
    nulls = {name for name, value in row.items() if value is None}
    assert zeros == {
        "start_t", "workers", "peak_workers", "peak_nthreads", "tasks", "task_runs", "memory",
        "erred", "retried", "lost", "rescheduled", "cancelled", "unfinished", "failures",
        "chunks", "chunk_attempts", "events", "lost_records", "failed_chunks", "skipped",
        "checkpointed_chunks", "skipped_files",
    }  # fmt: skip
    assert nulls == {
        "busy_seconds", "core_seconds", "compute_seconds", "core_efficiency",
        "events_per_second", "chunk_wall_seconds", "bytes_read", "output_bytes",
        "transfer_seconds", "peak_memory_bytes", "chunk_seconds", "merge_seconds",
        "process_seconds", "mean_process_seconds", "open_seconds", "read_seconds",
        "cpu_seconds", "wait_seconds", "events_per_process_second", "events_per_core_second",
        "bytes_per_second", "compressed_bytes", "uncompressed_bytes", "compression_ratio",
        "speedup", "mean_workers", "mean_nthreads", "peak_worker_memory_bytes",
        "mean_worker_memory_bytes", "kept_seconds",
    }  # fmt: skip


def test_the_number_of_tasks_is_unknown_without_their_records(ask, worker, run):
    found = ask(worker("w1"), *run("a", 1.0, 2.0), stop_t=10.0)
    assert found("SELECT tasks, task_runs FROM run") == [(None, 1)]
    found = ask(worker("w1"), stop_t=10.0)
    assert found("SELECT tasks, task_runs FROM run") == [(0, 0)]


def test_tasks_that_ran_when_recording_began_count_from_its_start(ask, worker, task, move):
    was_there = {"state": "processing", "worker": "w1"}
    done = {"worker": "w1", "phases": [("compute", -995.0, 5.0)]}
    found = ask(
        worker("w1"),
        task("a-1", **was_there),
        move(5.0, "a-1", "processing>memory", "task-finished-1.0", **done),
        stop_t=10.0,
    )

    assert found(
        "SELECT busy_seconds, compute_seconds, kept_seconds, core_efficiency, speedup FROM run"
    ) == [(5.0, 5.0, 5.0, 0.5, 1.0)]
    assert found("SELECT round(sum(compute_seconds), 9) FROM utilization") == [(5.0,)]
    # The duration of the attempt is that of all of it.
    assert found("SELECT compute_seconds, max_compute_seconds FROM prefixes") == [(5.0, 1000.0)]


def test_threads_of_the_cluster(ask, worker, gone, run, sample):
    query = (
        "SELECT workers, peak_workers, peak_nthreads, core_seconds, core_efficiency FROM run"
    )
    replaced = gone("w1", 50.0, "handle-worker-cleanup-50.0")
    for records, expected in [
        # A replacement of a worker does not raise the peak.
        ([worker("w1", nthreads=3), replaced, worker("w2", 50.0, nthreads=3)],
         (2, 1, 3, 300.0, None)),
        # A worker without a recorded start counts from the start of the run.
        ([sample(50.0, nthreads=2)], (1, 1, 2, 200.0, None)),
        ([worker("w1", nthreads=0), *run("a", 1.0, 2.0)], (1, 1, 0, 0.0, None)),
        ([worker("w1", nthreads=None), *run("a", 1.0, 2.0)], (1, 1, 0, None, None)),
    ]:  # fmt: skip
        assert ask(*records)(query) == [expected]
