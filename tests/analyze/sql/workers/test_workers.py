"""View workers."""


def test_totals_of_a_worker(rows, worker, gone, run, move, sample):
    assert rows(
        "SELECT worker, name, host, nthreads, memory_limit_bytes, added_t, removed_t, "
        "removal_reason, task_runs, compute_seconds, output_bytes, peak_memory_bytes, chunks, "
        "events, bytes_read, server_id, trace_id FROM workers",
        worker("w1", 1.0, name="one", host="h", nthreads=2, memory_limit=1000, server_id="id1"),
        *run("a", 2.0, 3.0, nbytes=5),
        *run("b", 3.0, 5.0, nbytes=6),
        move(5.0, "c", "waiting>processing", worker="w1"),
        sample(2.0, memory=10),
        sample(3.0, memory=30),
        sample(4.0, memory=20),
        gone("w1", 6.0, "retire-workers-6.25"),
    ) == [
        (
            "w1", "one", "h", 2, 1000, 1.0, 6.0, "retire-workers", 3, 3.0, 11, 30,
            0, 0, None, "id1", "T",
        )
    ]  # fmt: skip


def test_reused_address_is_another_process(rows, worker, gone, run, sample):
    assert rows(
        "SELECT server_id, added_t, removed_t, task_runs, peak_memory_bytes FROM workers",
        worker("w1", 0.0, server_id="old"),
        *run("a", 1.0, 2.0),
        sample(1.5, memory=100),
        gone("w1", 3.0, "handle-worker-cleanup-3.0"),
        worker("w1", 4.0, server_id="new"),
        *run("b", 5.0, 6.0),
        *run("c", 6.0, 7.0),
        sample(5.0, memory=50),
    ) == [("old", 0.0, 3.0, 1, 100), ("new", 4.0, None, 2, 50)]


def test_removal_names_its_process(rows, worker, gone):
    assert rows(
        "SELECT server_id, removed_t, removal_reason FROM workers",
        worker("w1", 1000.0, server_id="old"),
        {**gone("w1", 500.0, "retire-workers-500.0"), "server_id": "old"},
        worker("w1", 501.0, server_id="new"),
        {**gone("w1", 502.0, "handle-worker-cleanup-502.0"), "server_id": "new"},
    ) == [("old", 500.0, "retire-workers"), ("new", 502.0, "handle-worker-cleanup")]


def test_attempts_that_began_before_the_recording(rows, worker, task, move, chunk):
    """The first process of a reused address had it before."""
    there = {**task("a"), "state": "processing", "worker": "w1", "run_id": 7, "t": 0.5}
    parts = [{"action": "compute", "start": 0.0, "stop": 2.0}]
    end = {"worker": "w1", "run_id": 7, "startstops": parts, "nbytes": 5}

    assert rows(
        "SELECT server_id, task_runs, compute_seconds, output_bytes, chunks, chunk_seconds "
        "FROM workers",
        worker("w1", 0.5, server_id="old"),
        there,
        chunk("a", entry_start=0, entry_stop=10),
        move(2.0, "a", "processing>memory", "task-finished-2.0", **end),
        worker("w1", 9.0, server_id="new"),
    ) == [("old", 1, 2.0, 5, 1, 2.0), ("new", 0, 0.0, 0, 0, None)]


def test_repeated_worker_is_one_process(rows, worker):
    assert rows(
        "SELECT worker, added_t FROM workers",
        worker("w1", 1.0, server_id="id"),
        worker("w1", 2.0, server_id="id"),
    ) == [("w1", 1.0)]


def test_chunk_totals_of_a_worker(rows, worker, run, chunk, move):
    assert rows(
        "SELECT worker, task_runs, chunks, events, bytes_read FROM workers",
        worker("w1"),
        worker("w2"),
        *(chunk(key, entry_start=0, entry_stop=10) for key in "abc"),
        *run("a", 1.0, 2.0, run_id=1),
        *run("b", 2.0, 3.0, run_id=2),
        chunk("b", run_id=2, events=7, bytes_read=99),
        move(1.0, "c", "waiting>processing", worker="w2"),
    ) == [("w1", 2, 2, 17, 99), ("w2", 1, 0, 0, None)]


def test_chunk_rates_of_a_worker(rows, worker, run, chunk, move):
    entries = {"entry_start": 0, "entry_stop": 10}

    assert rows(
        "SELECT worker, chunk_seconds, chunk_share, events_per_second, bytes_per_second, "
        "median_chunk_seconds, max_chunk_seconds, slowest_file, failed_chunks FROM workers",
        worker("w1"),
        worker("w2"),
        *(chunk(key, filename=f"{key}.root", **entries) for key in "abcd"),
        *run("a", 1.0, 2.0, run_id=1),
        *run("b", 2.0, 5.0, run_id=2),
        chunk("b", run_id=2, bytes_read=99),
        *run("c", 1.0, 5.0, worker="w2", run_id=3),
        move(6.0, "d", "waiting>processing", worker="w2"),
        move(7.0, "d", "processing>erred", "task-erred-7.0", worker="w2"),
    ) == [
        ("w1", 4.0, 0.5, 5.0, 33.0, 2.0, 3.0, "b.root", 0),
        ("w2", 4.0, 0.5, 2.5, None, 4.0, 4.0, "c.root", 1),
    ]


def test_peak_memory_includes_chunks(rows, worker, sample, run, chunk):
    assert rows(
        "SELECT workers.worker, workers.peak_memory_bytes, peak_worker_memory_bytes "
        "FROM workers, run",
        worker("w1"),
        worker("w2"),
        *run("a", 1.0, 2.0, run_id=1),
        chunk("a", run_id=1, entry_start=0, entry_stop=1, memory_peak=70),
        sample(1.0, "w1", memory=50),
        sample(1.0, "w2", memory=60),
    ) == [("w1", 70, 70), ("w2", 60, 70)]


def test_events_of_results_from_checkpoints(rows, worker, run, chunk):
    assert rows(
        "SELECT worker, chunks, events FROM workers",
        worker("w1"),
        worker("w2"),
        *run("a", 1.0, 2.0, run_id=1),
        chunk("a", run_id=1, entry_start=0, entry_stop=10, from_checkpoint=True),
    ) == [("w1", 1, None), ("w2", 0, 0)]


def test_workers_without_a_start(rows, run, sample):
    assert rows(
        "SELECT worker, added_t, nthreads, task_runs, peak_memory_bytes FROM workers",
        *run("a", 1.0, 2.0, worker="ran"),
        sample(1.0, "sampled", memory=5),
    ) == [("ran", None, None, 1, None), ("sampled", None, None, 0, 5)]


def test_no_memory_limit_is_null(rows, worker):
    assert rows("SELECT memory_limit_bytes FROM workers", worker("w1", memory_limit=0)) == [
        (None,)
    ]
