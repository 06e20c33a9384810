"""Rules gil, blocked-event-loop and version-mismatch."""

from itertools import starmap

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


def profile(prefix: str, seconds: float, parents: list[int | None]) -> dict:
    """Return samples of a function, with the parents of its two nodes."""
    count = round(seconds / 0.01)
    tree = {
        "frames": [{"name": "call", "filename": "a.py", "line_number": 1}],
        "parents": parents,
        "node_frames": [None, 0],
        "line_numbers": [None, 2],
        "slices": [{"start_t": 0.0, "stop_t": 50.0, "nodes": [0, 1], "counts": [count, count]}],
    }
    return {
        "kind": "profile", "t": 50.0, "worker": "w1", "server_id": "id-w1-0.0",
        "start_t": 0.0, "stop_t": 50.0, "interval_seconds": 0.01,
        "prefix": prefix, "tree": tree,
    }  # fmt: skip


MACHINE = {"host": "h", "cores": 8, "usable_cores": 8}


def scheduler(interval_seconds: float | None, process_facts) -> list[dict]:
    """Return samples of a scheduler on the host of the workers, or nothing."""
    if interval_seconds is None:
        return []
    sample = {"kind": "scheduler_sample", "server_id": "s"}
    return [
        *process_facts("scheduler", machine=MACHINE),
        *(
            {**sample, "t": float(t), "metrics": {"event_loop_interval": interval_seconds}}
            for t in range(0, 50, 10)
        ),
    ]


#: CPU use, CPU time and waiting of four threads in 50 s; interval of the event loop of the
#: worker and of the scheduler.
GIL = {"cpu": 100.0, "seconds": (50.0, 150.0), "late": 0.1, "others": 0.02}
MS = 0.001


def test_threads_that_wait_for_the_gil(apply_each, worker, process_facts, sample):
    """Four threads use one core for 50 s: four processes need 12.5 s."""

    def trace(cpu, seconds, late, others, nthreads=4):
        return [
            worker("w1", nthreads=nthreads),
            *process_facts("worker", worker="w1", machine=MACHINE),
            *scheduler(others, process_facts),
            *metrics(*seconds),
            *(
                sample(t, cpu=cpu, executing=4, nthreads=nthreads, event_loop_interval=late)
                for t in range(0, 50, 10)
            ),
        ]

    change = "Use 4 workers with 1 thread (now 1 with 4), or code that releases the GIL."
    sure = [pytest.approx(("high", 150.0, 0.4 * 37.5, 50.0, change))]
    unsure = [pytest.approx(("medium", 150.0, 0.4 * 37.5, 50.0, change))]
    cases = {
        "four threads use one core": (trace(**GIL), sure),
        "threads are rarely without the CPU": (trace(**{**GIL, "seconds": (50.0, 20.0)}), []),
        "ticks are on time, as beside threads that sleep or wait for a lock": (
            trace(**{**GIL, "late": 0.02}),
            [],
        ),
        "ticks are a little late": (trace(**{**GIL, "late": 0.025}), sure),
        "so are those of the scheduler, since the host lacks cores": (
            trace(**{**GIL, "late": 0.025, "others": 0.023}),
            [],
        ),
        "ticks are much later than those of a loaded host": (
            trace(**{**GIL, "others": 0.023}),
            unsure,
        ),
        "no other process of the host was recorded": (
            trace(**{**GIL, "others": None}),
            [
                pytest.approx(
                    ("low", *sure[0].expected[1:4], f"If calls hold the GIL, u{change[1:]}")
                )
            ],
        ),
        "a few late ticks without another process prove nothing": (
            trace(**{**GIL, "late": 0.025, "others": None}),
            [],
        ),
        "a single thread has nobody to wait for": (trace(**GIL, nthreads=1), []),
        "calls hold the GIL without using the CPU": (
            trace(**{**GIL, "cpu": 4.0, "seconds": (2.0, 198.0)}),
            unsure,
        ),
    }
    rows = apply_each(
        "gil",
        *(records for records, _ in cases.values()),
        columns="confidence, core_seconds, wall_seconds_min, wall_seconds_max, change",
        stop_t=50.0,
    )
    assert dict(zip(cases, rows, strict=True)) == {
        case: expected for case, (_, expected) in cases.items()
    }


def test_workers_after_one_another(apply_each, worker, process_facts, sample, gone):
    """Each of two workers has four threads for 25 s, on one host."""

    def trace(usable_cores, **names):
        records = [worker("w1", nthreads=4, **names), worker("w2", 25.0, nthreads=4, **names)]
        records += scheduler(0.02, process_facts)
        records.append(gone("w1", 25.0, "handle-worker-cleanup-1.0"))
        for address, start in (("w1", 0), ("w2", 25)):
            machine = {**MACHINE, "usable_cores": usable_cores}
            server = {"worker": address, "server_id": f"id-{address}-{start}.0"}
            records += process_facts("worker", worker=address, machine=machine)
            records += [{**record, **server} for record in metrics(25.0, 75.0)]
            records += [
                sample(
                    t, address, cpu=100.0, executing=4, nthreads=4, event_loop_interval=100 * MS
                )
                for t in range(start, start + 25, 5)
            ]
        return records

    [(change, *_)], [(remark, confidence, core_seconds, wall_seconds_max)] = apply_each(
        "gil",
        trace(8, name="A"),
        trace(1),
        columns="change, confidence, core_seconds, wall_seconds_max",
        stop_t=50.0,
    )
    # A worker and its replacement count once.
    assert change == (
        "Use 4 workers with 1 thread (now 1 with 4), or code that releases the GIL."
    )
    # Each of them has the core of the host, so that further processes save nothing.
    assert remark.startswith("Replace loops in Python")
    assert (confidence, core_seconds, wall_seconds_max) == ("low", None, None)


@pytest.mark.exhaustive
@pytest.mark.parametrize("addresses", [("w2", "w3"), ("w2", "w2")])
def test_a_worker_that_is_replaced_at_its_address(
    apply, worker, process_facts, sample, gone, addresses
):
    """Two workers have eight cores; one of them is replaced after 25 s."""
    first, second = addresses
    records = [{**gone(first, 25.0, "restart-1.0"), "server_id": "B"}]
    records += scheduler(0.02, process_facts)
    for address, start, stop, server_id in (
        ("w1", 0, 50, "A"), (first, 0, 25, "B"), (second, 25, 50, "C"),
    ):  # fmt: skip
        about = {"worker": address, "server_id": server_id}
        measured = metrics((stop - start) * 0.9, (stop - start) * 2.9)
        state = {"cpu": 100.0, "executing": 4, "nthreads": 4, "event_loop_interval": 100 * MS}
        records += [
            worker(address, t=float(start), nthreads=4, server_id=server_id),
            *({**fact, **about} for fact in process_facts("worker", machine=MACHINE)),
            *(sample(t, address, server_id=server_id, **state) for t in range(start, stop, 5)),
            *({**metric, **about} for metric in measured),
        ]

    [(change,)] = apply("gil", *records, columns="change", stop_t=50.0)

    assert change.startswith("Use 8 workers with 1 thread (now 2 with 4)")


@pytest.mark.parametrize(
    ("late", "now"),
    [
        ({"A": 4}, "Use 4 workers with 1 thread (now 1 of 3 workers with 4)"),
        ({"A": 4, "B": 2}, "Use 6 workers with 1 thread (now 2 of 3 workers with 2 to 4)"),
    ],
)
def test_workers_with_different_numbers_of_threads(
    apply, worker, process_facts, sample, late, now
):
    """Only workers with several threads, whose event loops are late, are counted."""
    records = [*scheduler(0.02, process_facts)]
    for name, nthreads in {"A": 4, "B": 2, "C": 1}.items():
        server = {"worker": name, "server_id": f"id-{name}"}
        interval_seconds = 0.1 if name in late else 0.02
        records += [
            worker(name, nthreads=nthreads, server_id=f"id-{name}"),
            *process_facts("worker", worker=name, machine={**MACHINE, "usable_cores": 32}),
            *({**metric, **server} for metric in metrics(50.0, 50.0 * (nthreads - 1))),
            *(
                sample(
                    t, name, cpu=100.0, executing=nthreads, nthreads=nthreads,
                    event_loop_interval=interval_seconds,
                )
                for t in range(0, 50, 10)
            ),
        ]  # fmt: skip
    [(change,)] = apply("gil", *records, columns="change", stop_t=50.0)
    assert change.startswith(now)


def test_missing_samples_of_the_profiler(apply_each, worker, process_facts, sample):
    """They are a sign only if other processes are punctual and threads use no CPU."""

    def trace(sampled, stalled=0.1, cpu=1.0, coroutines=0.0, late=0.02, others=0.02):
        return [
            worker("w1", nthreads=4),
            *process_facts("worker", worker="w1", machine=MACHINE),
            *scheduler(others, process_facts),
            *metrics(cpu, 200.0 - cpu),
            *metrics(0.0, coroutines, prefix="b"),
            *(
                sample(t, cpu=4.0, executing=4, nthreads=4, event_loop_interval=late)
                for t in range(0, 50, 10)
            ),
            *stalls(2.0, 22.0, seconds=stalled),
            profile("a", sampled, parents=[None, 0]),
            # This one is damaged.
            profile("b", sampled, parents=[None, 7]),
        ]

    change = "Use 4 workers with 1 thread (now 1 with 4), or code that releases the GIL."
    unsure = (
        f"If calls hold the GIL, u{change[1:]} If code blocks the event loops, move it to tasks"
        " or threads."
    )
    cases = {
        "few samples beside a punctual scheduler": (trace(130.0), [("low", unsure)]),
        "on a host without free cores": (trace(130.0, others=0.022, late=0.022), []),
        "without another process of the host": (trace(130.0, others=None), []),
        "threads use the CPU": (trace(130.0, cpu=20.0), []),
        "most samples": (trace(180.0), []),
        # Coroutines are not sampled, nor is a prefix whose profile is damaged.
        "coroutines": (trace(180.0, coroutines=100.0), []),
        "the event loop is late": (trace(20.0, stalled=5.0, late=0.1), [("medium", change)]),
        "its coroutines are not the cause": (
            trace(20.0, stalled=5.0, late=0.1, coroutines=500.0),
            [("medium", change)],
        ),
        "stalls explain all missing samples": (
            trace(60.0, stalled=18.0, late=0.1),
            [("low", unsure)],
        ),
    }
    rows = apply_each(
        "gil",
        *(records for records, _ in cases.values()),
        columns="confidence, change, entity",
        stop_t=50.0,
    )
    assert {entity for found in rows for *_, entity in found} == {"a"}
    assert {
        case: [(confidence, change) for confidence, change, _ in found]
        for case, found in zip(cases, rows, strict=True)
    } == {case: expected for case, (_, expected) in cases.items()}


def test_libraries_with_threads_of_their_own(apply_each, worker, process_facts, sample):
    """Processes use more CPU time than their task threads."""

    def trace(cpu_percent, usable_cores, task_seconds=20.0, transfer_seconds=0.0):
        machine = {**MACHINE, "usable_cores": usable_cores}
        facts = process_facts("worker", worker="w1", machine=machine) if usable_cores else []
        transfer = {"context": "get-data", "activity": "network", "delta": transfer_seconds}
        return [
            worker("w1"),
            *facts,
            *metrics(task_seconds, task_seconds),
            {**metrics(0.0, 0.0)[0], **transfer},
            *(sample(t, cpu=cpu_percent, executing=1, nthreads=1) for t in range(0, 50, 10)),
        ]

    expected = {
        (200.0, 2): [("medium", pytest.approx(20.0))],
        (60.0, 2): [],
        # With four cores, threads do not wait for a core.
        (200.0, 4): [],
        # Dask itself uses the CPU, for short tasks, or can use it for transfers.
        (200.0, None, 10.0): [],
        (200.0, 2, 20.0, 65.0): [],
    }
    traces = starmap(trace, expected)
    rows = apply_each("gil", *traces, columns="confidence, core_seconds", stop_t=50.0)
    assert rows == [*expected.values()]


def test_reading_is_not_waiting_for_other_threads(apply, worker, process, sample):
    chunks = [{"seconds": 10.0, "read_seconds": 8.0, "open_seconds": 0.0}] * 5

    assert (
        apply(
            "gil",
            worker("w1", nthreads=4),
            *process(*chunks),
            *metrics(50.0, 50.0),
            *(
                sample(t, cpu=100.0, executing=4, nthreads=4, event_loop_interval=0.1)
                for t in range(0, 50, 10)
            ),
        )
        == []
    )


def test_blocked_event_loop(apply_each, worker, task, run, sample):
    """A task waits for 5 s on its worker, which then computes it."""

    def trace(*records, compute_t=6.0):
        attempt = run("a-1", 1.0, 10.0, phases=[("compute", compute_t, 10.0)])
        return [worker("w1", name="A"), task("a-1"), *attempt, *records]

    def found(confidence, core_seconds, wall_seconds_max):
        return [pytest.approx(("A", confidence, core_seconds, wall_seconds_max))]

    times = [2.0, 3.0, 4.0, 5.0]
    scheduler = {"server_id": "s"}
    cases = {
        "four stalls of 1 s": (trace(*stalls(*times)), found("high", 4.0, 4.0)),
        # Imports block once.
        "one stall of 4 s": (trace(*stalls(2.0, seconds=4.0)), []),
        "one stall of 4.8 s": (trace(*stalls(1.2, seconds=4.8)), found("high", 4.8, 4.8)),
        "stalls of 0.4 s": (trace(*stalls(*times, seconds=0.4)), []),
        "the machine is overloaded, so that the scheduler stalls as well": (
            trace(*stalls(*times), *stalls(*times, **scheduler)),
            [],
        ),
        # Four stalls of 1 s can cost 4 s.
        "the scheduler stalls for half of one of four stalls": (
            trace(*stalls(*times), *stalls(2.2, seconds=0.5, **scheduler)),
            found("high", 3.5, 4.0),
        ),
        "the worker computes, so that stalls cost little": (
            trace(*stalls(*times), compute_t=2.5),
            found("low", 0.5, 0.75),
        ),
        "the worker does not spill": (
            trace(*stalls(*times), *(sample(t, spilled_memory=0) for t in (1.5, 7.0))),
            found("high", 4.0, 4.0),
        ),
        "the worker spills": (
            trace(
                *stalls(*times), sample(1.5, spilled_memory=0), sample(7.0, spilled_memory=100)
            ),
            [],
        ),
    }
    rows = apply_each(
        "blocked-event-loop",
        *(records for records, _ in cases.values()),
        columns="entity, confidence, core_seconds, wall_seconds_max",
        stop_t=20.0,
    )
    assert rows == [expected for _, expected in cases.values()]


def test_stalls_count_without_the_time_in_which_the_scheduler_is_blocked(
    apply, worker, task, run
):
    """A task waits on each worker; the scheduler stalls for 0.5 s of two stalls of w1."""
    [(entity, sentence, core_seconds)] = apply(
        "blocked-event-loop",
        worker("w1"),
        worker("w2"),
        task("a-1"),
        task("a-2"),
        *run("a-1", 1.0, 12.0, phases=[("compute", 11.0, 12.0)]),
        *run("a-2", 1.0, 12.0, worker="w2", phases=[("compute", 3.0, 12.0)]),
        *stalls(2.0, 4.0, 6.0, seconds=2.0),
        *stalls(1.0, 2.0, 14.0, worker="w2", server_id="id-w2-0.0"),
        *stalls(2.5, 5.5, seconds=0.25, server_id="s"),
        *stalls(5.75, seconds=0.5, server_id="s"),
        columns="entity, sentence, core_seconds",
        stop_t=20.0,
    )
    assert entity == "w1"
    assert sentence == (
        "The event loop of worker w1 was blocked 3 times, 6.0 s in all, 1.0 s of it while that "
        "of the scheduler was, too, which is not counted below. Meanwhile, free threads waited "
        "for 6.8 core-seconds."
    )
    # w2 waited for 2 s, of which the scheduler was blocked for 0.25 s.
    assert core_seconds == pytest.approx(6.0 - 1.0 + 2.0 - 0.25)


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


def test_coroutines_that_block_event_loops(apply_each, worker, task, run):
    """Three coroutines take 4 s each, and wait for each other; the loop stalls meanwhile."""

    def trace(*others, times=((2, 6), (6, 10), (10, 14)), thread=7, activity="other"):
        execute = {"kind": "fine_metric", "t": 15.0, "worker": "w1", "server_id": "id-w1-0.0",
                   "context": "execute", "prefix": "fetch", "unit": "seconds"}  # fmt: skip
        attempts = [
            record
            for number, (start, stop) in enumerate(times)
            for record in (
                task(f"fetch-{number}"),
                *run(f"fetch-{number}", 1.0, 14.5, phases=[("compute", start, stop)],
                     thread=thread + number * (activity == "executor")),
            )
        ]  # fmt: skip
        return [
            worker("w1", name="A", nthreads=4),
            *attempts,
            *({**execute, "activity": name, "delta": 12.0}
              for name in ("thread-noncpu", activity)),
            *stalls(2.0, 6.0, 10.0, seconds=4.0),
            *others,
        ]  # fmt: skip

    block = "The coroutines of fetch block the event loop"
    about = (
        "The event loop of worker A was blocked 3 times, 12.0 s in all. Meanwhile, free threads"
        " waited for 24.0 core-seconds."
    )
    runs_in_loop = " Tasks of fetch are coroutines (async def), which run in the event loop: "
    gil = "Check whether tasks hold the GIL"
    cases = {
        "one after another": (
            trace(),
            ("fetch", "high", runs_in_loop + "they computed one after another during 12.0 s of"
             " the stalls.", block),
        ),
        # Those that await overlap: each of them, or something else, can block the loop.
        "all at once": (
            trace(times=((2, 13), (2, 13), (2, 13))),
            ("A", "high", runs_in_loop + "some had begun and not ended during 11.0 s of the"
             " stalls.", "Check whether coroutines of fetch compute or wait without await"),
        ),
        "hardly at any time of the stalls": (trace(times=((2, 3), (3, 4), (4, 5))),
            ("A", "high", "", "Look for plugins, async tasks")),
        # Tasks in threads have a time of their executor.
        "in threads": (trace(activity="executor"), ("A", "low", "", gil)),
        "in several threads": (
            trace(*run("fetch-x", 1.0, 1.5, thread=8), task("fetch-x")), ("A", "low", "", gil),
        ),
        "with samples": (
            trace(profile("fetch", 1.0, parents=[None, 0])), ("A", "low", "", gil),
        ),
    }  # fmt: skip
    rows = apply_each(
        "blocked-event-loop",
        *(records for records, _ in cases.values()),
        columns="entity, confidence, sentence, change",
        stop_t=20.0,
    )
    for (case, (_, expected)), [found] in zip(cases.items(), rows, strict=True):
        entity, confidence, sentence, change = expected
        assert (case, *found[:2]) == (case, entity, confidence)
        assert found[2].endswith(sentence or "core-seconds."), case
        assert found[3].startswith(change), case
    [(_, _, sentence, change)] = rows[0]
    assert sentence.startswith(about)
    assert "GIL" not in change
    assert "other programs" not in change


def test_event_loops_of_a_host_without_free_cores(apply_each, worker, task, run, process_facts):
    """The scheduler stalls at other times, and threads compute for 4 s."""

    def trace(host, cpu_seconds):
        about_worker = [
            *metrics(cpu_seconds, 4.0 - cpu_seconds),
            *process_facts("worker", worker="w1", machine=MACHINE),
        ]
        return [
            worker("w1"),
            task("a-1"),
            *run("a-1", 1.0, 10.0, phases=[("compute", 6.0, 10.0)]),
            *stalls(2.0, 3.0, 4.0, 5.0),
            *stalls(11.0, 13.0, 15.0, server_id="s"),
            *({**record, "t": 9.0, "server_id": "id-w1-0.0"} for record in about_worker),
            *process_facts("scheduler", machine={**MACHINE, "host": host}),
        ]

    cause = (
        " Task threads were on the CPU for 25 % of the compute time, and the event loop of the"
        " scheduler, on the same host, was blocked for 3.0 s: a lack of free cores is a"
        " possible cause."
    )
    check = "Check which other programs use the host. "
    expected = {
        ("h", 1.0): ("low", True, True),
        ("h", 3.0): ("high", False, False),
        ("another", 1.0): ("high", False, False),
    }
    rows = apply_each(
        "blocked-event-loop",
        *starmap(trace, expected),
        columns="confidence, sentence, change",
        stop_t=20.0,
    )
    assert [
        (confidence, sentence.endswith(cause), change.startswith(check))
        for [(confidence, sentence, change)] in rows
    ] == [*expected.values()]


def test_versions_that_differ(apply_each, worker, process_facts):
    def trace(version):
        return [
            worker("w1"),
            *process_facts("client", packages=[["numpy", "2.0"]]),
            *process_facts("worker", worker="w1", packages=[["numpy", version]]),
        ]

    columns = "entity, sentence"
    assert apply_each("version-mismatch", trace("2.1"), trace("2.0"), columns=columns) == [
        [("numpy", "A package differs between processes: numpy 2.0 and 2.1.")],
        [],
    ]
