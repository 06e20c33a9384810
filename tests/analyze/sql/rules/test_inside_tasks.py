"""Rule inside-tasks."""

import pytest

PACKAGES = "/x/site-packages"

#: Function within the task ``work`` of line 7, the kind of what it does, and what is said.
FUNCTIONS = {
    "numba": (
        ("compile", f"{PACKAGES}/numba/core/dispatcher.py"),
        "compiled functions (JIT), in numba",
        "Compile once instead of in each task: ",
    ),
    "an import": (
        ("_find_and_load", "<frozen importlib._bootstrap>"),
        "imported modules, in work (my.py:7)",
        "Import before the first task",
    ),
    "logging": (
        ("emit", "/usr/lib/python3.11/logging/__init__.py"),
        "logged or printed, in logging",
        "Log or print less within tasks",
    ),
    "a result of another task": (
        ("result", f"{PACKAGES}/distributed/client.py"),
        "waited for other tasks, in work (my.py:7)",
        "A task that waits for others occupies a thread",
    ),
    "a result of an actor": (
        ("result", f"{PACKAGES}/distributed/actor.py"),
        "waited for an actor, in work (my.py:7)",
        "The actors of a worker run one call at a time",
    ),
    "a queue": (
        ("get", f"{PACKAGES}/distributed/queues.py"),
        "waited for a queue or an event, in work (my.py:7)",
        "A thread that waits computes nothing else",
    ),
    "a socket": (
        ("recv_into", "/usr/lib/python3.11/socket.py"),
        "waited for the network or storage, in socket",
        "Threads that wait use no core",
    ),
    "another program": (
        ("wait", "/usr/lib/python3.11/subprocess.py"),
        "waited for other programs, in work (my.py:7)",
        "Start a program for many inputs at once",
    ),
    "its own loops": (
        ("fill", "/home/ana/my.py"),
        "ran own code in Python itself, in fill (my.py:1)",
        "If this code loops over events or elements",
    ),
}
#: These are stated with a saving: no task is there for them.
SAVED = ("numba", "an import", "logging")


@pytest.fixture
def trace(worker, task, run):
    """Return a trace of a task of some seconds, with samples of a function within it.

    The profiler takes 100 samples a second.
    """

    def trace(name, filename, samples, cycles=20, seconds=20.0):
        slices = [
            {
                "start_t": 10.0 + cycle, "stop_t": 11.0 + cycle, "nodes": [0, 1, 2, 3],
                "counts": [100, 100, 0, 0], "innermost": [0, 0, samples, 100 - samples],
            }
            for cycle in range(cycles)
        ]  # fmt: skip
        frames = [
            {"name": "work", "filename": "/home/ana/my.py", "line_number": 7},
            {"name": name, "filename": filename, "line_number": 1},
            {"name": "sort", "filename": f"{PACKAGES}/numpy/core.py", "line_number": 1},
        ]
        tree = {
            "frames": frames, "parents": [None, 0, 1, 1], "node_frames": [None, 0, 1, 2],
            "line_numbers": [None, 8, 2, 2], "calls": [], "slices": slices,
        }  # fmt: skip
        about = {"worker": "w1", "server_id": "id-w1-0.0", "prefix": "a"}
        times = {"t": 99.0, "start_t": 0.0, "stop_t": 100.0, "interval_seconds": 0.01}
        tasks = [task("a-1"), *run("a-1", 10.0, 10.0 + seconds)]
        return [worker("w1"), *tasks, {"kind": "profile", **about, **times, "tree": tree}]

    return trace


@pytest.mark.parametrize("case", FUNCTIONS)
def test_kinds_of_work(apply, trace, case):
    """Half of the samples are in the function, the others in numpy."""
    function, words, change = FUNCTIONS[case]

    [(entity, confidence, sentence, core_seconds, saved_seconds, advice)] = apply(
        "inside-tasks",
        *trace(*function, samples=50),
        columns="entity, confidence, sentence, core_seconds, wall_seconds_max, change",
    )

    assert (entity, confidence) == ("a", "high")
    assert sentence == f"For 10.0 of 20.0 sampled seconds, tasks of a {words}."
    assert advice.startswith(change)
    saving = (10.0, 10.0) if case in SAVED else (None, None)
    assert (core_seconds, saved_seconds) == pytest.approx(saving)


def test_programs_on_a_host_without_free_cores(apply_each, trace, process_facts, sample):
    """Other processes than those of the run use 1.8 or 0.5 of two cores."""
    function, *_ = FUNCTIONS["another program"]

    def with_host(others):
        machine = {"host": "h", "cores": 2, "usable_cores": 2}
        records = [*trace(*function, samples=50)]
        records += process_facts("worker", worker="w1", machine=machine)
        records += process_facts("scheduler", machine=machine)
        records += [sample(float(t), "w1", cpu=10.0, executing=1) for t in range(35)]
        for t in range(35):
            records += [
                {"kind": "scheduler_sample", "t": float(t), "metrics": {"cpu": 10.0}},
                {
                    "kind": "host_sample", "t": float(t), "host": "h", "worker": "w1",
                    "server_id": "id-w1-0.0",
                    "metrics": {
                        "clock_seconds": float(t), "cores": 2, "usable_cores": 2,
                        "host_busy_seconds": (0.2 + others) * t,
                        "host_idle_seconds": (1.8 - others) * t,
                    },
                },
            ]  # fmt: skip
        return records

    [[full], [free]] = apply_each(
        "inside-tasks", with_host(1.8), with_host(0.5), columns="sentence, change"
    )

    sentence = "For 10.0 of 20.0 sampled seconds, tasks of a waited for other programs, in work"
    assert full[0] == (
        f"{sentence} (my.py:7). No core of host h was free for 100 % of the sampled time with"
        " tasks, and processes other than those of the run used 1.8 of 2 cores."
    )
    assert full[1].startswith(
        "If these are processes that the tasks start, they share the cores"
    )
    assert free[0] == f"{sentence} (my.py:7)."
    assert free[1].startswith("Start a program for many inputs at once")


def test_objects_that_each_task_loads(apply, trace):
    """The function ``work`` calls ``pickle.load``, which is compiled."""
    records = trace("work", "/home/ana/my.py", samples=50)
    tree = records[-1]["tree"]
    tree["calls"] = ["_pickle.load"]
    for cycle in tree["slices"]:
        cycle |= {"call_nodes": [2], "call_names": [0], "call_samples": [50]}
    [(sentence, change)] = apply("inside-tasks", *records, columns="sentence, change")
    assert "in _pickle.load" in sentence
    assert change.startswith("If each of these tasks loads the same object, load it once")


def test_little_time_and_few_samples(apply_each, trace):
    numba, *_ = FUNCTIONS["numba"]

    little, few, some = apply_each(
        "inside-tasks",
        trace(*numba, samples=19),
        trace(*numba, samples=100, cycles=0),
        trace(*numba, samples=30, cycles=3, seconds=6.0),
        columns="confidence, sentence",
    )

    assert little == few == []
    # Nothing is said of the time without samples.
    sentence = "For 0.9 of 3.0 sampled seconds, tasks of a compiled functions (JIT), in numba."
    assert some == [("medium", sentence)]


def test_time_that_waits_for_a_core_counts_for_what_it_would_compute(apply, trace):
    """By their metrics, the threads computed for 5 of the 20 s."""
    cpu = {
        "kind": "fine_metric", "t": 90.0, "worker": "w1", "context": "execute",
        "server_id": "id-w1-0.0", "prefix": "a", "unit": "seconds",
    }  # fmt: skip
    metrics = [
        {**cpu, "activity": "thread-cpu", "delta": 5.0},
        {**cpu, "activity": "thread-noncpu", "delta": 15.0},
    ]

    [(sentence,)] = apply(
        "inside-tasks",
        *trace(*FUNCTIONS["numba"][0], samples=50),
        *metrics,
        columns="sentence",
    )

    assert sentence == (
        "For 10.0 of 20.0 sampled seconds, tasks of a compiled functions (JIT), in numba; "
        "they waited for the GIL or a core in 7.5 s of it."
    )
