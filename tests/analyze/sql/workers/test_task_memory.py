"""View task_memory."""


def heartbeat(
    sample, t: float, memory: float, managed: float = 0.0, worker: str = "w1"
) -> dict:
    """Return a sample that is taken 0.1 s after a heartbeat."""
    return sample(t + 0.1, worker, last_seen=t, memory=memory, managed_bytes=managed)


def test_memory_while_a_task_computed_alone_and_with_others(rows, task, run, worker, sample):
    assert rows(
        "SELECT prefix, attempts, samples, alone_samples, alone_peak_bytes, "
        "alone_unmanaged_bytes, peak_bytes, peak_attempts, peak_prefixes, peak_key, peak_t "
        "FROM task_memory",
        worker("w1", nthreads=2),
        *(task("load-1"), task("load-2"), task("sum-1")),
        *run("load-1", 1.0, 5.0),
        *run("load-2", 10.0, 14.0),
        *run("sum-1", 12.0, 13.9),
        heartbeat(sample, 0.5, 999.0),
        heartbeat(sample, 3.0, 300.0, managed=50.0),
        heartbeat(sample, 4.0, 250.0),
        heartbeat(sample, 13.0, 700.0),
        # Soon after the end of a task, memory can be that of its time.
        heartbeat(sample, 14.0, 800.0),
    ) == [
        ("load", 2, 4, 2, 300.0, 250.0, 800.0, 2, ["load", "sum"], "load-2", 14.0),
        ("sum", 1, 1, 0, None, None, 700.0, 2, ["load", "sum"], "sum-1", 13.0),
    ]


def test_a_heartbeat_counts_once_and_only_for_attempts_of_its_whole_time(
    rows, task, run, worker, sample
):
    late = {**heartbeat(sample, 2.0, 100.0), "t": 3.5}
    assert rows(
        "SELECT prefix, samples, alone_samples FROM task_memory",
        worker("w1"),
        *(task("long-1"), task("short-1")),
        *run("long-1", 1.0, 2.5),
        *run("short-1", 1.8, 2.4),
        heartbeat(sample, 2.0, 100.0),
        late,
    ) == [("long", 1, 0)]


def test_an_attempt_that_was_lost_with_its_worker(rows, task, run, worker, sample, gone):
    lost = run("big-1", 1.0, 6.0, outcome="lost", start_t=1.2)
    assert rows(
        "SELECT prefix, peak_bytes, peak_key FROM task_memory",
        worker("w1"),
        task("big-1"),
        *lost,
        gone("w1", 6.0, "handle-worker-cleanup-6.0"),
        heartbeat(sample, 5.0, 4000.0),
    ) == [("big", 4000.0, "big-1")]
