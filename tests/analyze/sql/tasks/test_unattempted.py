"""View unattempted."""


def test_reason_of_each_task(rows, task, move, run):
    assert rows(
        "SELECT key, prefix, reason, last_state FROM unattempted",
        *(task(key) for key in ("ran-1", "late-1", "next-1", "dropped-1", "unused-1")),
        task("known-1", state="memory"),
        task("held-1", state="queued"),
        *run("ran-1", 1.0, 2.0),
        move(1.0, "late-1", "released>waiting"),
        move(1.0, "next-1", "released>waiting"),
        move(3.0, "next-1", "waiting>erred", "task-erred-3.0"),
        move(9.0, "next-1", "erred>forgotten"),
        move(1.0, "dropped-1", "released>waiting"),
        move(4.0, "dropped-1", "waiting>released", "client-releases-keys-4.0"),
    ) == [
        ("late-1", "late", "waiting at the end", "waiting"),
        ("next-1", "next", "a dependency failed", "forgotten"),
        ("dropped-1", "dropped", "cancelled", "released"),
        ("unused-1", "unused", "not needed", "released"),
        ("known-1", "known", "result known before", "memory"),
        ("held-1", "held", "waiting at the end", "queued"),
    ]


#: What the scheduler reports about a task that it does not send to a worker.
TOO_LARGE = (
    "MemoryError: Task 'sum-1' has 915.54 MiB worth of input dependencies, but worker w1 has "
    "memory_limit set to 667.57 MiB."
)


def test_tasks_that_the_scheduler_refused(rows, task, move, run):
    """A refused task has an error of its own; what depends on it has none."""
    refused = {"exception": TOO_LARGE, "cause": "sum-1", "worker": "w1"}
    no_worker = {"exception": "NoValidWorkerError: gpu-1", "cause": "gpu-1"}
    failed = {"exception": "ValueError()", "cause": "ran-1"}
    assert rows(
        "SELECT key, reason FROM unattempted",
        *(task(key) for key in ("sum-1", "next-1", "gpu-1", "ran-1", "after-1")),
        *(
            move(1.0, key, "released>waiting")
            for key in ("sum-1", "next-1", "gpu-1", "after-1")
        ),
        move(2.0, "sum-1", "processing>erred", "task-finished-2.0", **refused),
        move(2.0, "next-1", "waiting>erred", "task-finished-2.0"),
        move(3.0, "gpu-1", "no-worker>erred", "check-no-workers-3.0", **no_worker),
        *run("ran-1", 1.0, 4.0, outcome="erred", **failed),
        move(4.0, "after-1", "waiting>erred", "task-erred-4.0"),
    ) == [
        ("sum-1", "refused by the scheduler"),
        ("next-1", "a dependency failed"),
        ("gpu-1", "refused by the scheduler"),
        ("after-1", "a dependency failed"),
    ]
