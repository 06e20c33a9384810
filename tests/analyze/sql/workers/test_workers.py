"""View workers."""


def test_totals_of_a_worker(rows, worker, gone, run, sample):
    """A worker is one row for each process, however often it is recorded."""
    fields = {"name": "one", "host": "h", "nthreads": 2, "memory_limit": 1000}

    assert rows(
        "SELECT worker, name, host, nthreads, memory_limit_bytes, added_t, removed_t, "
        "removal_reason, task_runs, compute_seconds, output_bytes, peak_memory_bytes, chunks, "
        "events, bytes_read, server_id, trace_id FROM workers",
        worker("w1", 1.0, server_id="id1", **fields),
        worker("w1", 1.5, server_id="id1"),
        *run("a", 2.0, 3.0, nbytes=5),
        *run("b", 3.0, 5.0, nbytes=6),
        *run("c", 5.0),
        *(sample(t, memory=memory) for t, memory in [(2.0, 10), (3.0, 30), (4.0, 20)]),
        gone("w1", 6.0, "retire-workers-6.25"),
        # A memory limit of 0 means no limit.
        worker("w2", 7.0, memory_limit=0),
        # Workers without a recorded start.
        *run("d", 1.0, 2.0, worker="ran"),
        sample(1.0, "sampled", memory=5),
    ) == [
        ("ran", *[None] * 7, 1, 1.0, 8, None, 0, 0, None, None, "T"),
        ("sampled", *[None] * 7, 0, 0.0, 0, 5, 0, 0, None, None, "T"),
        (
            "w1", "one", "h", 2, 1000, 1.0, 6.0, "retire-workers", 3, 3.0, 11, 30,
            0, 0, None, "id1", "T",
        ),
        (
            "w2", "w2", None, 1, None, 7.0, None, None, 0, 0.0, 0, None,
            0, 0, None, "id-w2-7.0", "T",
        ),
    ]  # fmt: skip


def test_removal_names_its_process(rows, worker, gone):
    """The clock was set back after the first process joined."""
    assert rows(
        "SELECT server_id, removed_t, removal_reason FROM workers",
        worker("w1", 1000.0, server_id="old"),
        {**gone("w1", 500.0, "retire-workers-500.0"), "server_id": "old"},
        worker("w1", 501.0, server_id="new"),
        {**gone("w1", 502.0, "handle-worker-cleanup-502.0"), "server_id": "new"},
    ) == [("old", 500.0, "retire-workers"), ("new", 502.0, "handle-worker-cleanup")]


def test_peak_memory_of_a_killed_worker(ask, worker, sample, gone):
    """The memory at which its nanny killed it is above that of any sample."""
    killed = {"worker": "w1", "pid": 7, "rss": 900}
    found = ask(
        worker("w1", memory_limit=1000),
        worker("w2", memory_limit=1000),
        sample(1.0, "w1", memory=300),
        sample(1.0, "w2", memory=400),
        {"kind": "event", "t": 4.9, "topic": "worker-restart-memory", "payload": killed},
        gone("w1", 5.0, "handle-worker-cleanup-5.0"),
    )

    assert found("SELECT worker, peak_memory_bytes FROM workers") == [("w1", 900), ("w2", 400)]
    peaks = "SELECT peak_worker_memory_bytes, peak_memory_bytes FROM run"
    assert found(peaks) == [(900, 900)]


def test_chunks_of_a_worker(ask, worker, run, chunk, sample):
    entries = {"entry_start": 0, "entry_stop": 10}
    found = ask(
        *map(worker, ("w1", "w2", "w3", "w4")),
        *(chunk(key, filename=f"{key}.root", **entries) for key in "abcde"),
        *run("a", 1.0, 2.0, run_id=1),
        *run("b", 2.0, 5.0, run_id=2),
        chunk("b", run_id=2, events=7, bytes_read=99, memory_peak=70),
        *run("c", 1.0, 4.0, "w2", run_id=3),
        *run("d", 6.0, 7.0, "w2", "erred"),
        *run("e", 1.0, 2.0, "w3", run_id=5),
        chunk("e", run_id=5, from_checkpoint=True, **entries),
        sample(1.0, "w1", memory=50),
        sample(1.0, "w2", memory=60),
    )

    assert found(
        "SELECT worker, task_runs, chunks, events, bytes_read, peak_memory_bytes, "
        "chunk_seconds, chunk_share, events_per_second, bytes_per_second, "
        "median_chunk_seconds, max_chunk_seconds, slowest_file, failed_chunks FROM workers"
    ) == [
        ("w1", 2, 2, 17, 99, 70, 4.0, 0.5, 4.25, 33.0, 2.0, 3.0, "b.root", 0),
        ("w2", 2, 1, 10, None, 60, 3.0, 0.375, 10 / 3, None, 3.0, 3.0, "c.root", 1),
        ("w3", 1, 1, None, None, None, 1.0, 0.125, None, None, 1.0, 1.0, None, 0),
        ("w4", 0, 0, 0, *[None] * 9, 0),
    ]
    assert found("SELECT peak_worker_memory_bytes FROM run") == [(70,)]
