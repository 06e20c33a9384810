"""Rules gil, blocked-event-loop and version-mismatch."""

import pytest


def metrics(cpu_seconds: float, noncpu_seconds: float, prefix: str = "a") -> list[dict]:
    """Return the CPU time of task threads."""
    delta = {"kind": "fine_metric", "t": 50.0, "worker": "w1", "server_id": "id-w1-0.0"}
    about = {"context": "execute", "prefix": prefix, "unit": "seconds"}
    return [
        {**delta, **about, "activity": "thread-cpu", "delta": cpu_seconds},
        {**delta, **about, "activity": "thread-noncpu", "delta": noncpu_seconds},
    ]


def stalls(*starts: float, seconds: float = 1.0, **process: str) -> list[dict]:
    """Return stalls of a worker, or of another process."""
    about = {
        "kind": "stall",
        "t": 9.0,
        **(process or {"server_id": "id-w1-0.0", "worker": "w1"}),
    }
    return [{**about, "start_t": start_t, "stop_t": start_t + seconds} for start_t in starts]


MACHINE = {"host": "h", "cores": 8, "usable_cores": 8}


@pytest.mark.parametrize(
    ("cpu_percent", "cpu_seconds", "noncpu_seconds", "found"),
    [
        (100.0, 50.0, 150.0, True),
        (100.0, 50.0, 20.0, False),
        (200.0, 100.0, 100.0, False),
        (10.0, 5.0, 195.0, False),
    ],
)
def test_threads_that_wait_for_the_gil(
    apply, worker, process_facts, sample, cpu_percent, cpu_seconds, noncpu_seconds, found
):
    # Four threads and one core for 50 s: four processes need 12.5 s.
    assert apply(
        "gil",
        worker("w1", nthreads=4),
        *process_facts("worker", worker="w1", machine=MACHINE),
        *metrics(cpu_seconds, noncpu_seconds),
        *(sample(t, cpu=cpu_percent, executing=4, nthreads=4) for t in range(0, 50, 10)),
        stop_t=50.0,
        columns="confidence, core_seconds, wall_seconds_min, wall_seconds_max, change",
    ) == (
        [
            (
                "high",
                pytest.approx(150.0),
                pytest.approx(0.4 * 37.5),
                50.0,
                "Use 4 workers with 1 thread (now 1 with 4), or code that releases the GIL.",
            )
        ]
        if found
        else []
    )


def test_a_worker_and_its_replacement_count_once(apply, worker, process_facts, sample, gone):
    records = [
        worker("w1", name="A", nthreads=4),
        gone("w1", 25.0, "handle-worker-cleanup-1.0"),
    ]
    records += [worker("w2", 25.0, name="A", nthreads=4)]
    for address, start in (("w1", 0), ("w2", 25)):
        server = {"worker": address, "server_id": f"id-{address}-{start}.0"}
        records += process_facts("worker", worker=address, machine=MACHINE)
        records += [{**record, **server} for record in metrics(25.0, 75.0)]
        records += [
            sample(t, address, cpu=100.0, executing=4, nthreads=4)
            for t in range(start, start + 25, 5)
        ]
    assert apply("gil", *records, columns="change", stop_t=50.0) == [
        ("Use 4 workers with 1 thread (now 1 with 4), or code that releases the GIL.",)
    ]


@pytest.mark.parametrize(("nthreads", "found"), [(4, True), (1, False)])
def test_threads_on_a_host_without_a_free_core(
    apply, worker, process_facts, sample, nthreads, found
):
    """Waiting for the GIL cannot be distinguished from waiting for a core."""
    assert apply(
        "gil",
        worker("w1", nthreads=nthreads),
        *process_facts("worker", worker="w1", machine={**MACHINE, "usable_cores": 1}),
        *metrics(50.0, 150.0),
        *(sample(t, cpu=100.0, executing=4, nthreads=nthreads) for t in range(0, 50, 10)),
        stop_t=50.0,
        columns="entity, confidence, core_seconds, wall_seconds_max",
    ) == ([("a", "low", None, None)] if found else [])


def test_cores_of_a_host_with_one_worker_after_another(
    apply, worker, process_facts, sample, gone
):
    """Each of two workers has the core of the host for 25 s."""
    records = [worker("w1", nthreads=4), gone("w1", 25.0, "restart-1.0")]
    records += [worker("w2", t=25.0, nthreads=4), *metrics(50.0, 150.0)]
    for address, start in (("w1", 0), ("w2", 25)):
        records += process_facts(
            "worker", worker=address, machine={**MACHINE, "usable_cores": 1}
        )
        records += [
            sample(t, address, cpu=100.0, executing=4, nthreads=4)
            for t in range(start, start + 25, 5)
        ]
    [(sentence,)] = apply("gil", *records, columns="sentence", stop_t=50.0)
    assert "their hosts have 1.0 cores for each worker" in sentence


@pytest.mark.exhaustive
@pytest.mark.parametrize("addresses", [("w2", "w3"), ("w2", "w2")])
def test_a_worker_that_is_replaced_at_its_address(
    apply, worker, process_facts, sample, gone, addresses
):
    """Two workers have eight cores; one of them is replaced after 25 s."""
    first, second = addresses
    records = [{**gone(first, 25.0, "restart-1.0"), "server_id": "B"}]
    for address, start, stop, server_id in (
        ("w1", 0, 50, "A"), (first, 0, 25, "B"), (second, 25, 50, "C"),
    ):  # fmt: skip
        about = {"worker": address, "server_id": server_id}
        measured = metrics((stop - start) * 0.9, (stop - start) * 2.9)
        records += [
            worker(address, t=float(start), nthreads=4, server_id=server_id),
            *({**fact, **about} for fact in process_facts("worker", machine=MACHINE)),
            *(
                sample(t, address, server_id=server_id, cpu=100.0, executing=4, nthreads=4)
                for t in range(start, stop, 5)
            ),
            *({**metric, **about} for metric in measured),
        ]

    [(change,)] = apply("gil", *records, columns="change", stop_t=50.0)

    assert change.startswith("Use 8 workers with 1 thread (now 2 with 4)")


@pytest.mark.parametrize(
    ("profiled_seconds", "stall_seconds", "cpu_seconds", "coroutine_seconds", "confidence"),
    [
        (20.0, 5.0, 1.0, 0.0, "medium"),
        # Stalls explain all missing samples.
        (60.0, 18.0, 1.0, 0.0, "low"),
        # Stalls also stop the profiler.
        (130.0, 5.0, 1.0, 0.0, None),
        (130.0, 0.1, 1.0, 0.0, "medium"),
        (180.0, 0.1, 1.0, 0.0, None),
        # On a busy machine, the profiler waits for a core.
        (130.0, 0.1, 20.0, 0.0, None),
        # Coroutines are not sampled, nor is a prefix whose profile is damaged.
        (180.0, 0.1, 1.0, 100.0, None),
    ],
)
def test_calls_that_hold_the_gil_without_using_the_cpu(
    apply,
    worker,
    sample,
    profiled_seconds,
    stall_seconds,
    cpu_seconds,
    coroutine_seconds,
    confidence,
):
    """The profiler samples only some of the 200 s that four threads compute."""
    profile = {
        "kind": "profile",
        "t": 50.0,
        "worker": "w1",
        "prefix": "a",
        "server_id": "id-w1-0.0",
        "start_t": 0.0,
        "stop_t": 50.0,
        "interval_seconds": 0.01,
        "tree": {
            "frames": [{"name": "call", "filename": "a.py", "line_number": 1}],
            "parents": [None, 0],
            "node_frames": [None, 0],
            "line_numbers": [None, 2],
            "slices": [
                {
                    "start_t": 0.0,
                    "stop_t": 50.0,
                    "nodes": [0, 1],
                    "counts": [round(profiled_seconds / 0.01)] * 2,
                }
            ],
        },
    }
    damaged = {**profile, "prefix": "b", "tree": {**profile["tree"], "parents": [None, 7]}}
    rows = apply(
        "gil",
        worker("w1", nthreads=4),
        *metrics(cpu_seconds, 200.0 - cpu_seconds),
        *metrics(0.0, coroutine_seconds, prefix="b"),
        *(sample(t, cpu=4.0, executing=4, nthreads=4) for t in range(0, 50, 10)),
        *stalls(2.0, 22.0, seconds=stall_seconds),
        profile,
        damaged,
        stop_t=50.0,
        columns="confidence, change",
    )
    change = "Use 4 workers with 1 thread (now 1 with 4), or code that releases the GIL."
    assert rows == ([(confidence, change)] if confidence else [])


def test_event_loop_that_waits_for_the_gil_on_a_busy_machine(apply, worker, sample):
    assert apply(
        "gil",
        worker("w1", nthreads=2),
        *metrics(20.0, 80.0),
        *(sample(t, cpu=40.0, executing=2, nthreads=2) for t in range(0, 50, 10)),
        *stalls(2.0, seconds=6.0),
        stop_t=50.0,
        columns="confidence, core_seconds",
    ) == [("medium", pytest.approx(50.0))]


@pytest.mark.parametrize(
    ("cpu_percent", "usable_cores", "found"),
    # With four cores, threads do not wait for a core.
    [(200.0, 2, True), (60.0, 2, False), (200.0, 4, False)],
)
def test_libraries_with_threads_of_their_own(
    apply, worker, process_facts, sample, cpu_percent, usable_cores, found
):
    assert apply(
        "gil",
        worker("w1"),
        *process_facts(
            "worker", worker="w1", machine={**MACHINE, "usable_cores": usable_cores}
        ),
        *metrics(20.0, 20.0),
        *(sample(t, cpu=cpu_percent, executing=1, nthreads=1) for t in range(0, 50, 10)),
        stop_t=50.0,
        columns="confidence, core_seconds",
    ) == ([("medium", pytest.approx(20.0))] if found else [])


def test_dask_itself_uses_the_cpu(apply, worker, sample):
    short_tasks = metrics(10.0, 10.0)

    assert (
        apply(
            "gil",
            worker("w1"),
            *short_tasks,
            *(sample(t, cpu=200.0, executing=1, nthreads=1) for t in range(0, 50, 10)),
            stop_t=50.0,
        )
        == []
    )


def test_reading_is_not_waiting_for_other_threads(apply, worker, process, sample):
    chunks = [{"seconds": 10.0, "read_seconds": 8.0, "open_seconds": 0.0}] * 5

    assert (
        apply(
            "gil",
            worker("w1", nthreads=4),
            *process(*chunks),
            *metrics(50.0, 50.0),
            *(sample(t, cpu=100.0, executing=4, nthreads=4) for t in range(0, 50, 10)),
        )
        == []
    )


@pytest.mark.parametrize(
    ("stalled", "wall_seconds_max"),
    [
        (stalls(2.0, 3.0, 4.0, 5.0), 4.0),
        # Imports block once.
        (stalls(2.0, seconds=4.0), None),
        (stalls(2.0, 3.0, 4.0, 5.0, seconds=0.4), None),
    ],
)
def test_blocked_event_loop(apply, worker, task, run, stalled, wall_seconds_max):
    # The task waits for 5 s on its worker.
    assert apply(
        "blocked-event-loop",
        worker("w1", name="A"),
        task("a-1"),
        *run("a-1", 1.0, 10.0, phases=[("compute", 6.0, 10.0)]),
        *stalled,
        columns="entity, confidence, core_seconds, wall_seconds_max",
        stop_t=20.0,
    ) == (
        [("A", "high", pytest.approx(4.0), pytest.approx(wall_seconds_max))]
        if wall_seconds_max
        else []
    )


def test_stalls_of_a_worker_without_tasks_are_counted(apply, worker, task, run):
    """It has a task during four of six stalls."""
    [(sentence, core_seconds)] = apply(
        "blocked-event-loop",
        worker("w1"),
        task("a-1"),
        *run("a-1", 1.0, 10.0, phases=[("compute", 6.0, 10.0)]),
        *stalls(2.0, 3.0, 4.0, 5.0, 15.0, 17.0),
        columns="sentence, core_seconds",
        stop_t=20.0,
    )
    assert "was blocked 6 times, 6.0 s in all. " in sentence
    assert core_seconds == pytest.approx(4.0)


def test_overloaded_machine_stalls_the_scheduler_as_well(apply, worker, task, run):
    assert (
        apply(
            "blocked-event-loop",
            worker("w1"),
            task("a-1"),
            *run("a-1", 1.0, 10.0, phases=[("compute", 6.0, 10.0)]),
            *stalls(2.0, 3.0, 4.0, 5.0),
            *stalls(2.0, 3.0, 4.0, 5.0, server_id="s"),
            stop_t=20.0,
        )
        == []
    )


@pytest.mark.parametrize(
    ("host", "cpu_seconds", "lacks_cores"),
    [("h", 1.0, True), ("h", 3.0, False), ("another", 1.0, False)],
)
def test_event_loops_of_a_host_without_free_cores(
    apply, worker, task, run, process_facts, host, cpu_seconds, lacks_cores
):
    """The scheduler stalls at other times, and threads compute for 4 s."""
    about_worker = [
        *metrics(cpu_seconds, 4.0 - cpu_seconds),
        *process_facts("worker", worker="w1", machine=MACHINE),
    ]
    [(confidence, sentence, change)] = apply(
        "blocked-event-loop",
        worker("w1"),
        task("a-1"),
        *run("a-1", 1.0, 10.0, phases=[("compute", 6.0, 10.0)]),
        *stalls(2.0, 3.0, 4.0, 5.0),
        *stalls(11.0, 13.0, 15.0, server_id="s"),
        *({**record, "t": 9.0, "server_id": "id-w1-0.0"} for record in about_worker),
        *process_facts("scheduler", machine={**MACHINE, "host": host}),
        columns="confidence, sentence, change",
        stop_t=20.0,
    )
    assert confidence == ("low" if lacks_cores else "high")
    cause = (
        " Task threads were on the CPU for 25 % of the compute time, and the event loop of the"
        " scheduler, on the same host, was blocked for 3.0 s: a lack of free cores is a"
        " possible cause."
    )
    assert sentence.endswith(cause) == lacks_cores
    assert change.startswith("Check which other programs use the host. ") == lacks_cores


@pytest.mark.parametrize(("spilled_bytes", "found"), [(0, True), (100, False)])
def test_stalls_while_a_worker_spills(apply, worker, task, run, sample, spilled_bytes, found):
    assert (
        apply(
            "blocked-event-loop",
            worker("w1"),
            task("a-1"),
            *run("a-1", 1.0, 10.0, phases=[("compute", 6.0, 10.0)]),
            *stalls(2.0, 3.0, 4.0, 5.0),
            sample(1.5, spilled_memory=0),
            sample(7.0, spilled_memory=spilled_bytes),
            stop_t=20.0,
        )
        != []
    ) == found


def test_stall_beside_one_of_the_scheduler(apply, worker, task, run):
    """Four stalls of 1 s can cost 4 s; the scheduler stalls during one of them."""
    assert apply(
        "blocked-event-loop",
        worker("w1"),
        task("a-1"),
        *run("a-1", 1.0, 10.0, phases=[("compute", 6.0, 10.0)]),
        *stalls(2.0, 3.0, 4.0, 5.0),
        *stalls(2.2, seconds=0.5, server_id="s"),
        columns="core_seconds, wall_seconds_max",
        stop_t=20.0,
    ) == [(pytest.approx(3.0), pytest.approx(4.0))]


def test_stall_of_a_computing_worker_costs_little(apply, worker, task, run):
    assert apply(
        "blocked-event-loop",
        worker("w1"),
        task("a-1"),
        *run("a-1", 1.0, 10.0, phases=[("compute", 2.5, 10.0)]),
        *stalls(2.0, 3.0, 4.0, 5.0),
        columns="confidence, core_seconds",
        stop_t=20.0,
    ) == [("low", pytest.approx(0.5))]


@pytest.mark.parametrize(
    ("version", "found"),
    [
        (
            "2.1",
            [("numpy", "A package differs between processes: numpy 2.0 and 2.1.")],
        ),
        ("2.0", []),
    ],
)
def test_versions_that_differ(apply, worker, process_facts, version, found):
    assert (
        apply(
            "version-mismatch",
            worker("w1"),
            *process_facts("client", packages=[["numpy", "2.0"]]),
            *process_facts("worker", worker="w1", packages=[["numpy", version]]),
            columns="entity, sentence",
        )
        == found
    )
