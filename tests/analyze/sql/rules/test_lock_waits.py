"""Rule lock-waits."""

import pytest

MACHINE = {"host": "h", "cores": 8, "usable_cores": 8}


def profile(
    *frames: tuple[str, str], samples: int, worker: str = "w1", prefix: str = "a"
) -> dict:
    """Return 1,000 samples of a task, of which `samples` are in the last of some frames."""
    names = [("task", "my.py"), *frames]
    nodes = [*range(len(names) + 1)]
    tree = {
        "frames": [
            {"name": name, "filename": filename, "line_number": 1} for name, filename in names
        ],
        "parents": [None, *nodes[:-1]],
        "node_frames": [None, *nodes[:-1]],
        "line_numbers": [None, *nodes[1:]],
        "slices": [
            {
                "start_t": 0.0,
                "stop_t": 50.0,
                "nodes": nodes,
                "counts": [1000, samples, *[samples] * (len(frames) - 1), 0],
                "innermost": [0, 1000 - samples, *[0] * (len(frames) - 1), samples],
            }
        ],
    }
    return {
        "kind": "profile", "t": 50.0, "worker": worker, "server_id": f"id-{worker}-0.0",
        "start_t": 0.0, "stop_t": 50.0, "interval_seconds": 0.01, "prefix": prefix,
        "tree": tree,
    }  # fmt: skip


XARRAY = [
    ("_getitem", "/x/site-packages/xarray/backends/netCDF4_.py"),
    ("__enter__", "/x/site-packages/xarray/backends/locks.py"),
    ("acquire", "/x/site-packages/xarray/backends/locks.py"),
]
FEWER_THREADS = "Use more workers with fewer threads, such as 4 with 1 (now 1 with 4): "
SHARED = "Hold the lock for less time"


@pytest.mark.parametrize(
    ("frames", "place", "change"),
    [
        (XARRAY, "__enter__ (xarray/backends/locks.py), called by _getitem", FEWER_THREADS),
        (
            [("acquire", r"C:\lib\threading.py")],
            "acquire (C:/lib/threading.py), called by task",
            FEWER_THREADS,
        ),
        (
            [("__enter__", "/x/dask/utils.py")],
            "__enter__ (x/dask/utils.py), called by task",
            FEWER_THREADS,
        ),
        (
            [
                ("__enter__", "/x/site-packages/distributed/lock.py"),
                ("wait", "/lib/threading.py"),
            ],
            "__enter__ (distributed/lock.py), called by task",
            SHARED,
        ),
        # A lock of the cluster within one of xarray.
        (
            [*XARRAY, ("__enter__", "/x/site-packages/distributed/lock.py")],
            "__enter__ (xarray/backends/locks.py), called by _getitem",
            SHARED,
        ),
        (
            [("acquire", "/x/site-packages/filelock/_api.py")],
            "acquire (filelock/_api.py), called by task",
            SHARED,
        ),
        # These wait for something else, or not at all.
        ([("wait", "/lib/threading.py")], None, None),
        ([("__enter__", "/lib/tempfile.py")], None, None),
        ([("reacquired", "my.py")], None, None),
        # These open a file, and take a connection from a pool.
        ([("acquire", "/x/site-packages/xarray/backends/file_manager.py")], None, None),
        ([("acquire_context", "/x/site-packages/xarray/backends/file_manager.py")], None, None),
        ([("acquire", "/x/site-packages/urllib3/connectionpool.py")], None, None),
        ([("acquire", "/x/site-packages/my/blocks.py")], None, None),
    ],
)
def test_locks(apply, worker, process_facts, frames, place, change):
    """Four of ten seconds are samples of a function that acquires a lock."""
    found = apply(
        "lock-waits",
        worker("w1", nthreads=4),
        *process_facts("worker", worker="w1", machine=MACHINE),
        profile(*frames, samples=400),
        columns="entity, sentence, core_seconds, change",
    )
    if place is None:
        assert found == []
        return
    [(entity, sentence, core_seconds, advice)] = found
    assert (entity, core_seconds) == ("a", pytest.approx(4.0))
    assert sentence == (f"For 4.0 of 10.0 sampled seconds, tasks wait for a lock in {place}.")
    assert advice.startswith(change)


def test_a_lock_of_the_cluster_and_a_lost_worker(apply, worker, task, run, gone):
    held = [("__enter__", "/x/site-packages/distributed/semaphore.py")]

    [(change,)] = apply(
        "lock-waits",
        *(worker("w1"), worker("w2"), task("b"), *run("b", 0.0, 20.0, "w2", outcome="lost")),
        gone("w2", 20.0, "handle-worker-cleanup-1.0"),
        profile(*held, samples=400),
        columns="change",
    )

    assert change.startswith("A worker was lost during the run: if it held the lock, ")


def test_threads_and_cores(apply_each, worker, process_facts):
    """The saving is limited by the cores of the host."""

    def trace(nthreads, cores, samples):
        machine = {**MACHINE, "cores": cores, "usable_cores": cores}
        return [
            worker("w1", nthreads=nthreads),
            *process_facts("worker", worker="w1", machine=machine),
            profile(*XARRAY, samples=samples),
        ]

    # Ten seconds in four threads take 2.5 s. Without the lock, six seconds in four processes
    # take 1.5 s, and in two processes 3 s.
    cases = {
        (4, 8, 400): [("high", pytest.approx(0.5), pytest.approx(1.5), "Use more")],
        (4, 2, 400): [("high", None, None, "Hold the")],
        (4, 2, 800): [("high", pytest.approx(0.75), pytest.approx(2.25), "Use more")],
        (1, 8, 400): [("medium", None, None, "Find out")],
        # Too few samples.
        (4, 8, 150): [],
    }
    rows = apply_each(
        "lock-waits",
        *(trace(*case) for case in cases),
        columns="confidence, wall_seconds_min, wall_seconds_max, change",
    )
    assert {
        case: [(*numbers, change[:8]) for *numbers, change in found]
        for case, found in zip(cases, rows, strict=True)
    } == cases


def test_only_workers_that_wait_are_counted(apply, worker, process_facts):
    records = []
    for name, nthreads, samples in (("w1", 4, 400), ("w2", 2, 400), ("w3", 8, 0)):
        records += [
            worker(name, nthreads=nthreads),
            *process_facts("worker", worker=name, machine={**MACHINE, "host": name}),
            profile(*XARRAY, samples=samples, worker=name),
        ]
    [(sentence, change)] = apply("lock-waits", *records, columns="sentence, change")
    assert "For 8.0 of 20.0 sampled seconds" in sentence
    assert "such as 6 with 1 (now 2 with 2 to 4)" in change
