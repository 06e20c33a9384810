"""Hosts without free cores, and what rules conclude from them."""

import pytest

MACHINE = {"host": "h", "cores": 2, "usable_cores": 2}
LATE, PUNCTUAL = 0.023, 0.0201


@pytest.fixture
def loops(worker, process_facts, sample):
    """Return processes of a host with the intervals of their event loops.

    A worker has a number of tasks; `scheduler` is the interval of the scheduler's loop.
    """

    def loops(scheduler=None, machine=MACHINE, cpu_seconds=0.05, scheduler_cpu=10.0, **workers):
        records = []
        if scheduler is not None:
            records += process_facts("scheduler", machine=machine)
            for t in range(5, 95, 10):
                metrics = {
                    "event_loop_interval": scheduler,
                    "cpu": scheduler_cpu,
                    "loop_cpu_seconds": t * cpu_seconds,
                }
                about = {"kind": "scheduler_sample", "server_id": "s"}
                records.append({**about, "t": float(t), "metrics": metrics})
        for name, (interval_seconds, executing) in workers.items():
            state = {"cpu": 20.0, "executing": executing, "nthreads": 1}
            state["event_loop_interval"] = interval_seconds
            records += [
                worker(name, name=name),
                *process_facts("worker", worker=name, machine=machine),
                *(sample(t, name, **state) for t in range(5, 95, 10)),
            ]
        return records

    return loops


@pytest.mark.parametrize(
    ("processes", "is_loaded"),
    [
        ({"scheduler": LATE, "w1": (LATE, 1)}, True),
        ({"w1": (LATE, 0), "w2": (LATE, 1)}, True),
        ({"scheduler": LATE, "w1": (LATE, 4), "w2": (PUNCTUAL, 0)}, False),
        # Tasks that hold the GIL, and a plugin of the scheduler, delay one process.
        ({"scheduler": PUNCTUAL, "w1": (0.1, 4), "w2": (0.1, 4)}, False),
        ({"scheduler": 0.1, "w1": (PUNCTUAL, 1)}, False),
        # A scheduler that computes, and tasks that hold the GIL.
        ({"scheduler": 0.1, "scheduler_cpu": 90.0, "w1": (0.1, 4), "w2": (0.1, 4)}, False),
        # Without the scheduler and a worker without tasks, tasks can be the cause.
        ({"w1": (0.1, 4), "w2": (0.1, 1)}, False),
        # One process.
        ({"w1": (LATE, 0)}, None),
        ({"inproc://h/1": (LATE, 0), "scheduler": LATE}, None),
    ],
)
def test_loaded_hosts(rows, loops, processes, is_loaded):
    found = rows("SELECT host, is_loaded, cores FROM _host_load", *loops(**processes))
    assert found == ([] if is_loaded is None else [("h", is_loaded, 2.0)])


def test_samples_without_tasks_are_left_out(rows, loops, task, run):
    """The host was loaded before the run, but not while its task ran."""
    early = loops(scheduler=LATE, w1=(LATE, 0))
    late = [
        {**record, "t": record["t"] + 100, "metrics": {"event_loop_interval": 0.02}}
        for record in early
        if "metrics" in record
    ]
    records = [*early, *late, task("a", t=100.0), *run("a", 100.0, 200.0)]
    assert rows("SELECT is_loaded FROM _host_load", *records, stop_t=200.0) == [(False,)]


@pytest.fixture
def waiting(task, run):
    """Return 300 tasks whose threads wait for a scheduler that is blocked 90 times."""
    stalls = [{"kind": "stall", "t": t, "start_t": t, "stop_t": t + 0.6} for t in range(90)]
    records = [*stalls]
    for number in range(300):
        key, end = f"row-{number}", 0.3 * (number + 1)
        records += [task(key), *run(key, end - 0.3, end, phases=[("compute", end - 0.1, end)])]
    return records


def test_a_scheduler_on_a_loaded_host(apply_each, loops, waiting):
    """Only a blocked event loop on a host with free cores is blamed on the scheduler's code."""
    machine = {**MACHINE, "host": "other"}
    cases = {
        "loaded": ([*loops(scheduler=LATE, w1=(LATE, 1)), *waiting], ("low", "Check")),
        "free cores": ([*loops(scheduler=LATE, w1=(PUNCTUAL, 1)), *waiting], ("high", "Look ")),
        "the loop is on the CPU": (
            [*loops(scheduler=LATE, cpu_seconds=0.9, w1=(LATE, 1)), *waiting],
            ("high", "Look "),
        ),
        "another host is loaded": (
            [
                *loops(scheduler=PUNCTUAL),
                *loops(machine=machine, w1=(LATE, 0), w2=(LATE, 0)),
                *waiting,
            ],
            ("high", "Look "),
        ),
    }
    rows = apply_each(
        "scheduler-saturated",
        *(records for records, _ in cases.values()),
        columns="confidence, change, sentence",
    )
    found = {
        case: (confidence, change[:5])
        for case, [(confidence, change, _)] in zip(cases, rows, strict=True)
    }
    assert found == {case: expected for case, (_, expected) in cases.items()}
    [[(_, _, sentence)], *_] = rows
    assert sentence.endswith(
        "The event loops of all processes on its host (h) were late, every 23 ms or less often,"
        " and its own was on the CPU for 5 % of the time: the cores of the host were in use."
    )


def test_a_slow_worker_on_a_loaded_host(apply_each, loops, task, run):
    """Worker w2 takes 3 s for what w1 does in 1 s."""
    work = []
    for name, seconds in (("w1", 1.0), ("w2", 3.0)):
        for number in range(int(60 / seconds)):
            key, begin = f"nap-{name}-{number}", number * seconds
            work += [task(key), *run(key, begin, begin + seconds, worker=name)]
    rows = apply_each(
        "slow-worker",
        [*loops(scheduler=LATE, w1=(LATE, 1), w2=(LATE, 1)), *work],
        [*loops(scheduler=PUNCTUAL, w1=(LATE, 1), w2=(LATE, 1)), *work],
        columns="confidence, change",
    )
    assert [
        [(confidence, change.split()[0]) for confidence, change in row] for row in rows
    ] == [
        [("low", "Check")],
        [("high", "Look")],
    ]


def test_a_late_first_task_on_a_loaded_host(apply_each, loops, task, run):
    """The client computed for 3 of 40 s. In functions of Dask, it waited for a core otherwise.

    Of its own work, it can also be a wait for files.
    """
    activity = {"kind": "client_activity", "t": 40.0, "client": "c", "activity": "dask"}
    activity |= {"start_t": 0.0, "stop_t": 40.0, "measured": {"cpu_seconds": 3.0}, "name": "f"}
    work = [task("a-1", t=40.0), *run("a-1", 40.0, 90.0)]
    own = {**activity, "activity": "own"}

    loaded, free, [(most, confidence, sentence)] = apply_each(
        "late-start",
        [*loops(LATE, w1=(LATE, 1)), activity, *work],
        [*loops(PUNCTUAL, w1=(PUNCTUAL, 1)), activity, *work],
        [*loops(LATE, w1=(LATE, 1)), own, *work],
        columns="wall_seconds_max, confidence, sentence",
    )

    assert loaded == []
    assert [most for most, *_ in free] == [most] == [40.0]
    assert confidence == "low"
    assert "Its own work took 3.0 s of CPU time, on a host without free cores" in sentence


def test_blocked_event_loops_on_a_loaded_host(apply_each, loops, task, run):
    """A task waits for 5 s on its worker, which then computes it."""
    records = [
        *(task("a"), *run("a", 1.0, 90.0, worker="w1", phases=[("compute", 60.0, 90.0)])),
        *(
            {"kind": "stall", "t": 9.0, "worker": "w1", "server_id": "id-w1-0.0",
             "start_t": t, "stop_t": t + 5.0}
            for t in (10.0, 20.0, 30.0)
        ),
    ]  # fmt: skip
    rows = apply_each(
        "blocked-event-loop",
        [*loops(scheduler=LATE, w1=(LATE, 1)), *records],
        [*loops(scheduler=PUNCTUAL, w1=(LATE, 1)), *records],
        columns="confidence, change",
    )
    assert [
        [(confidence, change.split()[0]) for confidence, change in row] for row in rows
    ] == [
        [("low", "Check")],
        [("high", "Look")],
    ]


@pytest.mark.exhaustive
def test_short_tasks_on_a_loaded_host(apply_each, loops, task, run):
    """The overhead of 0.29 s a task includes waiting for a core."""
    work = []
    for number in range(300):
        key, end = f"row-{number}", 0.3 * (number + 1)
        work += [
            task(key),
            *run(key, end - 0.3, end, worker="w1", phases=[("compute", end - 0.01, end)]),
        ]
    rows = apply_each(
        "short-tasks",
        [*loops(scheduler=LATE, w1=(LATE, 1)), *work],
        [*loops(scheduler=LATE, w1=(PUNCTUAL, 1)), *work],
        columns="confidence",
    )
    assert rows == [[("medium",)], [("high",)]]
