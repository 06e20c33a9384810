"""Rule unfinished-tasks."""

import pytest

FRAMES = [
    {"name": name, "filename": filename, "line_number": 1}
    for name, filename in [
        ("__call__", "/x/site-packages/dask/_task_spec.py"),
        ("read", "/home/a/my.py"),
        ("recv", "/lib/python3.12/socket.py"),
    ]
]


def profile(start_t: float, samples: int, worker: str = "w1", prefix: str = "a") -> dict:
    """Return the samples of 10 s in which tasks of a prefix wait in a function of a library."""
    tree = {
        "frames": FRAMES,
        "parents": [None, 0, 1, 2],
        "node_frames": [None, 0, 1, 2],
        "line_numbers": [None, 1, 1, 1],
        "slices": [
            {
                "start_t": start_t,
                "stop_t": start_t + 10.0,
                "nodes": [0, 1, 2, 3],
                "counts": [samples, samples, samples, 0],
                "innermost": [0, 0, 0, samples],
            }
        ],
    }
    about = {"worker": worker, "server_id": f"id-{worker}-0.0", "prefix": prefix}
    times = {"t": start_t + 10.0, "start_t": start_t, "stop_t": start_t + 10.0}
    return {"kind": "profile", "interval_seconds": 0.01, "tree": tree, **about, **times}


PLACE = (
    "the stacks begin with read (home/a/my.py) and mostly end with recv "
    "(lib/python3.12/socket.py)."
)
LOOK = (
    "Find out what read computes or waits for there; with a timeout, what waits for ever ends "
    "with an error."
)


@pytest.fixture
def found(apply_each):
    """Return the sentence and the change of the finding of each trace, or None."""

    def found(*traces):
        rows = apply_each("unfinished-tasks", *traces, columns="sentence, change")
        return [of_trace[0] if of_trace else None for of_trace in rows]

    return found


def test_a_task_that_hangs(found, worker, task, run):
    """The last of three tasks is sampled for 40 s, on one of two workers."""
    ended = [worker("w1", name="one"), worker("w2"), task("a-1"), *run("a-1", 50.0, 51.0)]
    ended += [task("a-2"), *run("a-2", 51.0, 60.0)]
    hanging = [task("a-3"), *run("a-3", 60.0)]
    sampled, of_others = (
        [profile(t, 1000, prefix=prefix) for t in (60.0, 70.0, 80.0, 90.0)] for prefix in "ab"
    )

    hangs, ends, is_queued, is_usual = found(
        [*ended, *hanging, *sampled],
        [*ended, task("a-3"), *run("a-3", 60.0, 100.0), *sampled],
        # It waits behind a task of another prefix.
        [*ended, *hanging, *of_others],
        # It takes less than three times as long as another one.
        [*ended, task("a-4"), *run("a-4", 30.0, 50.0), *hanging, *sampled],
    )

    sentence = (
        "When the recording ended, a-3 had not ended 40.0 s after it was assigned to worker "
        f"one; 2 others of a took at most 9.0 s. In 40.0 sampled seconds, {PLACE} Meanwhile, "
        "threads were idle for 40.0 core-seconds."
    )
    assert hangs == (sentence, LOOK)
    assert ends is is_queued is is_usual is None


def test_tasks_that_wait_for_tasks(found, worker, task, run, move):
    nested = {"client": "Client-worker-1", "t": 1.0}
    both = [worker("w1"), worker("w2")]
    for number in (1, 2):
        both += [task(f"a-{number}"), *run(f"a-{number}", 0.0, worker=f"w{number}")]
        both += [profile(10.0 * n, 900, f"w{number}") for n in range(10)]

    long_running = {"kind": "worker_transition", "start": "executing", "finish": "long-running"}
    seceded = {**long_running, "t": 1.0, "key": "a-1", "worker": "w1"}
    waits, begun, left = found(
        [
            *both,
            task("b-1", **nested),
            *run("b-1", 1.0),
            task("b-2", **nested),
            move(1.0, "b-2", "released>waiting"),
        ],
        [*both, task("b-1", **nested), *run("b-1", 1.0, 2.0)],
        [*both, task("b-1", **nested), *run("b-1", 1.0), seceded],
    )

    sentence = (
        "When the recording ended, 2 tasks of a had not ended up to 100.0 s after they were "
        f"assigned to 2 workers; no result of a was recorded. In 180.0 sampled seconds, {PLACE}"
    )
    change = (
        "A task that waits for tasks that it submitted occupies a thread, which they may need: "
        "let it wait within worker_client(), or call secede() before it waits."
    )
    assert waits == (
        f"{sentence} 2 tasks that tasks had submitted meanwhile had no end either.",
        change,
    )
    assert begun == (sentence, LOOK)
    # They have left their threads.
    assert left[1] == LOOK


def waiting(start_t: float, worker: str) -> dict:
    """Return samples of 10 s: a task waits for an event, and a client starts for 0.2 s."""
    names = [
        ("__init__", "/x/distributed/client.py"),
        ("wait", "/lib/python3.12/threading.py"),
        ("__call__", "/x/dask/_task_spec.py"),
        ("consume", "/home/a/my.py"),
        ("wait", "/x/distributed/event.py"),
    ]
    record = profile(start_t, 1000, worker)
    return record | {
        "tree": {
            "frames": [
                {"name": name, "filename": file, "line_number": 1} for name, file in names
            ],
            # The client has nodes 1 and 2; the task has 3 to 6.
            "parents": [None, 0, 1, 0, 3, 4, 5],
            "node_frames": [None, 0, 1, 2, 3, 4, 1],
            "line_numbers": [None, 1, 1, 1, 1, 1, 1],
            "slices": [
                {
                    "start_t": start_t,
                    "stop_t": start_t + 10.0,
                    "nodes": [0, 1, 2, 3, 4, 5, 6],
                    "counts": [1000, 20, 0, 980, 980, 980, 0],
                    "innermost": [0, 0, 20, 0, 0, 0, 980],
                }
            ],
        }
    }


def test_all_threads_wait_while_other_tasks_have_none(found, worker, task, run, move):
    """Four tasks wait on two threads for an event that a fifth one sets."""
    records = [worker("w1"), worker("w2"), task("b-1"), *run("b-1", 1.0)]
    for number in range(4):
        on = f"w{1 + number % 2}"
        records += [task(f"a-{number}"), *run(f"a-{number}", 0.0, worker=on)]
    records += [waiting(10.0 * n, on) for n in range(10) for on in ("w1", "w2")]
    queued = [task("c-1"), move(1.0, "c-1", "released>queued")]

    assigned, some_queued, free = found(records, [*records, *queued], [*records, worker("w3")])

    stacks = (
        "In 200.0 sampled seconds, the stacks begin with consume (home/a/my.py) and mostly end "
        "with wait (lib/python3.12/threading.py)."
    )
    occupied = (
        " Tasks that had not ended occupied all 2 threads of the cluster, while {} had not "
        "begun."
    )
    assert assigned[0].endswith(
        stacks + occupied.format("3 other assigned tasks, such as b-1,")
    )
    assert assigned[1] == (
        "If they wait for a task such as b, it needs a thread: make it a task on which they "
        "depend, or call secede() before they wait. Otherwise, find out what consume computes "
        "or waits for there; with a timeout, what waits for ever ends with an error."
    )
    assert some_queued[0].endswith(
        occupied.format("3 other assigned tasks and 1 queued task, such as b-1,")
    )
    assert stacks in free[0]
    assert "occupied" not in free[0]
    assert free[1].startswith("Find out what consume computes or waits for there; ")
