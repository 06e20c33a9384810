"""Rules late-workers, no-workers, excess-workers, silent-worker and paused-workers."""

import pytest


@pytest.fixture
def naps(task, run):
    """Return tasks that a worker computes one after another, each for some `seconds`."""

    def naps(address, start, stop, seconds=1):
        records = []
        for begin in range(start, stop, seconds):
            key = f"nap-{address}-{begin - start}"
            end = float(begin + seconds)
            records += [task(key), *run(key, float(begin), end, worker=address)]
        return records

    return naps


def test_a_worker_that_joined_late_or_left_early(apply_each, worker, naps, gone):
    busy = [worker("w1"), *naps("w1", 0, 60)]
    late = [*busy, worker("w2", t=20.0), *naps("w2", 20, 60)]
    early = [*busy, worker("w2"), *naps("w2", 0, 20), gone("w2", 20.0, "retire-workers-1.0")]
    # Before the second worker joined, there was nothing to do for 15 of 20 s.
    idle = [worker("w1"), *naps("w1", 0, 5), *naps("w1", 20, 30)]
    idle += [worker("w2", t=20.0), *naps("w2", 20, 30)]
    # A worker that was replaced is not late.
    replaced = [
        *busy, worker("w2", name="b"), *naps("w2", 0, 20),
        gone("w2", 20.0, "handle-worker-cleanup-1.0"),
        worker("w3", t=30.0, name="b"), *naps("w3", 30, 60),
    ]  # fmt: skip

    of_late, of_early, [(_, core_seconds_of_idle)], of_replaced = apply_each(
        "late-workers", late, early, idle, replaced, columns="sentence, core_seconds"
    )
    after = "A worker joined late, 20.0 s after the first task was submitted."
    assert of_late == [(after, pytest.approx(20.0))]
    before = (
        "A worker left early, 40.0 s before the last task ended. It was retired on request."
    )
    assert of_early == [(before, pytest.approx(40.0))]
    assert core_seconds_of_idle == pytest.approx(5.0)
    assert of_replaced == []


@pytest.mark.parametrize(
    ("stimulus_id", "sentence"),
    [
        # The other worker had left as asked: its name is used for a new one.
        ("retire-workers-1.0", "2 workers joined late, up to 30.0 s"),
        # These are replaced, and other rules report them.
        ("handle-worker-cleanup-1.0", "A worker joined late, 20.0 s"),
        ("restart-workers-1.0", "A worker joined late, 20.0 s"),
    ],
)
def test_a_name_that_is_used_again(apply, worker, naps, gone, stimulus_id, sentence):
    """Worker w2 is there until 10 s, w3 from 20 s, and w4, with the name of w2, from 30 s."""
    [(text,)] = apply(
        "late-workers",
        *(worker("w1"), *naps("w1", 0, 60)),
        *(worker("w2", name="b"), *naps("w2", 0, 10), gone("w2", 10.0, stimulus_id)),
        *(worker("w3", t=20.0), *naps("w3", 20, 60)),
        *(worker("w4", t=30.0, name="b"), *naps("w4", 30, 60)),
        columns="sentence",
    )
    another = " Another one took the name of a worker that was lost or restarted."
    assert text == (
        f"{sentence} after the first task was submitted.{another * sentence.startswith('A')}"
    )


def test_time_without_any_worker(apply_each, worker, task, move, run, gone):
    lost = gone("w1", 30.0, "handle-worker-cleanup-1.0")
    first = [worker("w1"), task("a-1"), *run("a-1", 0.0, 30.0, "w1"), lost]
    second = [worker("w2", t=50.0), *run("a-2", 50.0, 90.0, "w2")]
    joined = [worker("w1", t=20.0), task("a-1"), *run("a-1", 20.0, 60.0, "w1")]
    left = [*first, task("a-2"), move(0.0, "a-2", "released>waiting")]
    # The second task was submitted when its worker was there.
    unneeded = [*first, *second, task("a-2", t=50.0)]

    of_joined, of_gap, of_left, of_unneeded = apply_each(
        "no-workers",
        joined,
        [*first, *second, task("a-2")],
        left,
        unneeded,
        columns="sentence, wall_seconds_max, change",
    )

    [(sentence, saved_seconds, change)] = of_joined
    text = "No worker was there for {} of 100.0 s, while tasks or the client waited: {}."
    assert sentence == text.format("20.0", "20.0 s before the first one joined")
    assert saved_seconds == 20.0
    assert change.startswith("Start the workers before the program waits for them")
    [(sentence, saved_seconds, change)] = of_gap
    between = "20.0 s after all had left and before another one joined"
    assert sentence == text.format("20.0", between)
    assert saved_seconds == 20.0
    assert change.startswith("Find out why all workers left")
    [(sentence, _, change)] = of_left
    assert sentence == text.format("70.0", "70.0 s after the last one had left")
    assert change.startswith("Find out why all workers left")
    assert of_unneeded == []


def test_a_run_without_any_worker(apply_each, task, move):
    """The plan of the cluster is known if its client was created from a cluster object."""
    waits = [task("a-1", client="c"), move(0.0, "a-1", "waiting>no-worker")]
    size = {"kind": "cluster_size", "t": 0.0, "client": "c"}
    plans = [{**size, "value": {"planned": n, "requested": n}} for n in (0, 3)]

    unknown, none, three = apply_each(
        "no-workers", waits, *([*waits, plan] for plan in plans), columns="sentence, change"
    )

    sentence = (
        "No worker was there for 100.0 of 100.0 s, while tasks or the client waited: 100.0 s "
        "without a record of any."
    )
    find_out = (
        "Find out why none joined: batch jobs, containers or processes can wait to be started, "
        "end at once (see their logs), or not reach the scheduler."
    )
    assert unknown == [(sentence, find_out)]
    assert three == [(f"{sentence} The cluster planned 3.", find_out)]
    request = "Request workers: cluster.scale or cluster.adapt."
    assert none == [(f"{sentence} The cluster planned none.", request)]


@pytest.mark.parametrize(
    ("stimulus_id", "reason", "change"),
    [
        ("handle-worker-cleanup-1.0", None, "Find out why all workers left"),
        ("handle-worker-cleanup-1.0", "client-restart", "Restart the workers when no task"),
        ("retire-workers-1.0", None, "Workers were closed on request, as by adaptive"),
    ],
)
def test_why_no_worker_was_left(apply, worker, task, run, gone, stimulus_id, reason, change):
    closing = {"action": "closing-worker", "reason": reason}
    event = {"kind": "event", "t": 30.0, "topic": "w1", "worker": "w1", "payload": closing}
    left = {"action": "remove-worker", "worker": "w1", "stimulus_id": stimulus_id}
    left |= {"expected": stimulus_id.startswith("retire")}
    [(text,)] = apply(
        "no-workers",
        *(worker("w1"), task("a-1"), *run("a-1", 0.0, 30.0, "w1")),
        *([event] if reason else []),
        {"kind": "event", "t": 30.0, "topic": "all", "worker": "w1", "payload": left},
        gone("w1", 30.0, stimulus_id),
        *(worker("w2", t=50.0), task("a-2"), *run("a-2", 50.0, 90.0, "w2")),
        columns="change",
    )
    assert text.startswith(change)


def test_workers_that_were_killed_or_lost_before_none_was_left(
    apply_each, worker, task, run, move, gone, process_facts
):
    """Both are killed for memory, one is, or both are lost, also of a batch job."""

    def death(name):
        about = {"kind": "event", "topic": "worker-restart-memory", "worker": name}
        return {**about, "t": 29.0, "payload": {"worker": name, "rss": 10**9}}

    def records(killed="", others=()):
        lost = [task("a-3"), move(0.0, "a-3", "released>waiting"), *others]
        for n, name in enumerate("AB"):
            lost += [worker(name), task(f"a-{n}"), *run(f"a-{n}", 0.0, 30.0, name, "lost")]
            lost += [death(name)] if name in killed else []
            lost.append(gone(name, 30.0, f"handle-worker-cleanup-{n}.0"))
        return lost

    job = process_facts("worker", worker="A", variables={
        "SLURM_JOB_ID": "1", "SLURM_JOB_START_TIME": "1", "SLURM_JOB_END_TIME": "99",
    })  # fmt: skip

    [(both,)], [(one,)], [(lost,)], [(of_job,)] = apply_each(
        "no-workers",
        *(records("AB"), records("A"), records(), records(others=job)),
        columns="change",
    )

    prevent = "Prevent that workers are killed because of memory, as {} (rule killed-workers)."
    assert both == prevent.format("2 were")
    assert one == prevent.format("one was")
    assert lost == (
        "Find out why all workers left: 2 were lost for an unknown reason (rule "
        "killed-workers)."
    )
    assert of_job == (
        "Find out why all workers left (evidence), and let some remain, such as batch jobs "
        "that do not end at the same time."
    )


@pytest.mark.exhaustive
def test_late_workers_of_a_large_cluster(apply, worker, naps):
    """With 150 workers a time bucket of core_time is 1 s long."""
    records = []
    for n in range(75):
        records += [worker(f"a{n}"), *naps(f"a{n}", 0, 60, seconds=20)]
        records += [worker(f"b{n}", t=20.0), *naps(f"b{n}", 20, 60, seconds=20)]
    [(core_seconds,)] = apply("late-workers", *records, columns="core_seconds")
    assert core_seconds == pytest.approx(75 * 20.0)


def test_time_without_workers(apply_rules, worker, task, move, run, gone, naps):
    """There is no worker from 10 s until one joins at 30 s and runs a task.

    It is in one finding, and not in that of workers that joined late as well.
    """
    left = [worker("w1"), *naps("w1", 0, 10), gone("w1", 10.0, "retire-workers-1.0")]

    def submitted(t):
        joined = [worker("w2", t=30.0), *run("fit-1", 30.0, 40.0, worker="w2")]
        return [*left, task("fit-1", t=t), *joined]

    # A task that is cancelled at 5 s does not wait for workers.
    cancelled = [
        *left, task("dropped-1", t=1.0), move(5.0, "dropped-1", "waiting>released"),
        worker("w2", t=30.0), *(r | {"t": max(r["t"], 30.0)} for r in naps("w2", 30, 40)),
    ]  # fmt: skip

    late, without = apply_rules(
        ["late-workers", "no-workers"],
        *(submitted(30.0), submitted(10.0), cancelled),
        columns="core_seconds",
        stop_t=40.0,
    )
    assert late == [[], [], []]
    assert without == [[], [(pytest.approx(20.0, rel=0.05),)], []]


def test_workers_that_join_after_a_time_without_any(apply_rules, worker, naps):
    """Tasks wait from 0 s for a worker that joins at 20 s, and another one at 30 s."""
    first = [record | {"t": 0.0} for record in naps("w1", 20, 60) if record["kind"] == "task"]
    rest = [record for record in naps("w1", 20, 60) if record["kind"] != "task"]
    second = [worker("w2", t=30.0), *naps("w2", 30, 60)]

    [[(core_seconds, sentence)]], [[(without, _)]] = apply_rules(
        ["late-workers", "no-workers"],
        [*first, worker("w1", t=20.0), *rest, *second],
        columns="core_seconds, sentence",
        stop_t=60.0,
    )

    assert core_seconds == pytest.approx(10.0, rel=0.05)
    assert sentence == (
        "2 workers joined late, up to 30.0 s after the first task was submitted."
        " The 20.0 s without any worker (no-workers) are not counted here."
    )
    assert without == pytest.approx(2 * 20.0)


@pytest.mark.exhaustive
def test_many_workers_that_are_replaced_are_not_late(apply, worker, naps, gone):
    """DuckDB does not keep the order of so many processes; each gets a new address."""
    records = []
    for number in range(150):
        old, new = f"old-{number}", f"new-{number}"
        records += [
            worker(old, name=f"{number}"), *naps(old, 0, 2), gone(old, 2.0, "restart-1.0"),
            worker(new, t=3.0, name=f"{number}"), *naps(new, 3, 5),
        ]  # fmt: skip
    assert apply("late-workers", *records, stop_t=5.0) == []


def test_workers_that_the_work_cannot_use(apply_each, worker, naps):
    # Two of six threads are used.
    two = [*(worker(f"w{number}") for number in range(1, 7)), *naps("w1", 0, 100)]
    # All of three threads are used for a third of the time.
    three = [
        record
        for number in range(1, 4)
        for record in (worker(f"w{number}"), *naps(f"w{number}", 0, 30))
    ]
    assert apply_each(
        "excess-workers",
        [*two, *naps("w2", 0, 100)],
        [*three, *naps("w1", 30, 100)],
        columns="change, core_seconds",
    ) == [
        [
            (
                "Use n_workers=2 (now 6), or have more independent tasks in flight at a time.",
                pytest.approx(400.0),
            )
        ],
        [],
    ]


def test_one_task_that_takes_most_of_the_run(apply_each, worker, task, run):
    """Another thread is used for 4 s only."""

    def trace(seconds):
        long = [task("write-1"), *run("write-1", 0.0, seconds)]
        return [
            worker("w1"), worker("w2"), *long, task("make-1"), *run("make-1", 0.0, 4.0, "w2"),
            *(task("rest-1"), *run("rest-1", seconds, 100.0)),
        ]  # fmt: skip

    [(long, split)], [(short, _)] = apply_each(
        "excess-workers", trace(90.0), trace(45.0), columns="sentence, change"
    )

    assert long.endswith(" One task of write took 90.0 s of the 100.0 s of the run.")
    assert split.startswith("Split the longest task of write into parts that run in parallel")
    assert "One task of rest took 55.0 s" in short


def test_workers_with_different_numbers_of_threads(apply, worker, naps):
    """Two of eight threads are used; the number of workers to leave out depends on which."""
    [(sentence, change)] = apply(
        "excess-workers",
        *(worker("w1", nthreads=1), worker("w2", nthreads=1), worker("w3", nthreads=6)),
        *(*naps("w1", 0, 100), *naps("w2", 0, 100)),
        columns="sentence, change",
    )
    assert sentence == (
        "The work used 2.0 of 8 threads on average; with 3 of them the run would hardly take"
        " longer."
    )
    assert change.startswith(
        "Use workers with 3 threads in all (now 8, on 3 workers with 1 to 6 each), or have"
    )


@pytest.fixture
def heartbeats(sample):
    """Return samples each second, with heartbeats each second except for a gap."""

    def heartbeats(gap_from, gap_to, worker="w1"):
        return [
            sample(t + 0.5, worker, last_seen=gap_from if gap_from < t < gap_to else float(t))
            for t in range(100)
        ]

    return heartbeats


def test_a_worker_that_stopped_responding(apply_each, worker, task, run, heartbeats):
    records = [worker("w1", nthreads=2), task("c-1"), *run("c-1", 5.0, 40.0)]
    records += [task("c-2"), *run("c-2", 40.0, 45.0)]
    assert apply_each(
        "silent-worker",
        [*records, *heartbeats(10.0, 30.0)],
        [*records, *heartbeats(10.0, 14.0)],
    ) == [[("w1", 40.0)], []]


def test_worker_ttl_is_raised_if_it_closed_silent_workers(
    apply_each, worker, task, run, gone, heartbeats, process_facts
):
    """A shorter time would close a worker whose task holds the GIL even earlier."""
    lost = [
        *(worker("w1"), task("c-1"), *run("c-1", 5.0, 30.0, outcome="lost")),
        *(*heartbeats(10.0, 30.0), *process_facts("scheduler", TTL)),
    ]
    [(closed, change)], [(silent, other)] = apply_each(
        "silent-worker",
        [*lost, gone("w1", 30.0, "check-worker-ttl-1.0")],
        [*lost, gone("w1", 30.0, "handle-worker-cleanup-1.0")],
        columns="sentence, change",
    )

    assert closed.endswith(
        " The scheduler closed one worker, because the 20s of worker-ttl had passed without a "
        "heartbeat: the tasks on it were lost."
    )
    assert change.startswith("Raise distributed.scheduler.worker-ttl (now 20s) above 30 s, or")
    assert "worker-ttl" not in silent + other


TTL = {"distributed.scheduler.worker-ttl": "20s"}


def test_a_worker_that_is_only_busy(apply_each, worker, task, run, naps, heartbeats):
    # Each task takes 20 s, with and without heartbeats.
    gil = [worker("w1")]
    for number in range(4):
        begin = 20.0 * number + 10.0
        gil += [task(f"c-{number}"), *run(f"c-{number}", begin, begin + 20.0)]
    # The first task begins after the silence.
    imports = [worker("w1")]
    for number in range(2):
        phases = [("compute", 31.0 + number, 32.0 + number)]
        end = run(f"c-{number}", 10.0, 32.0 + number, phases=phases)
        imports += [task(f"c-{number}"), *end]

    cases = {
        # Its event loop is blocked.
        "it computes": [worker("w1"), *naps("w1", 0, 60)],
        "long tasks hold the GIL": gil,
        "it imports modules": imports,
    }
    found = apply_each(
        "silent-worker", *([*records, *heartbeats(10.0, 30.0)] for records in cases.values())
    )
    assert {case: rows for case, rows in zip(cases, found, strict=True) if rows} == {}


def test_a_worker_that_stopped_responding_twice(apply, worker, task, run, sample):
    """Its silences are not added: a shorter worker-ttl would not have ended them."""
    seen = [0, 1, 1, 1, 1, 1, 1, 1, 1, 9, 10, 10, 10, 10, 10, 10, 10, 17, 18, 19, 20]
    records = [sample(t + 0.5, "w1", last_seen=float(s)) for t, s in enumerate(seen)]

    [(sentence, core_seconds)] = apply(
        "silent-worker", worker("w1"), task("c-1"), *run("c-1", 0.5, 20.0), *records,
        task("c-2"), *run("c-2", 20.0, 20.5), columns="sentence, core_seconds", stop_t=21.0,
    )  # fmt: skip

    assert sentence.startswith("2 times, worker w1 sent no heartbeat for up to 8.0 s")
    assert core_seconds == 15.0


@pytest.mark.exhaustive
def test_the_next_process_of_an_address_is_not_silent_before_it_joins(
    apply, worker, task, run, gone, sample
):
    first = [sample(t + 0.5, "w1", server_id="A", last_seen=min(t, 3.0)) for t in range(5)]
    second = [sample(t + 0.5, "w1", server_id="B", last_seen=float(t)) for t in range(60, 99)]
    records = [
        worker("w1", server_id="A"), task("a-1"), *run("a-1", 1.0, 5.0, outcome="lost"),
        {**gone("w1", 5.0, "handle-worker-cleanup-1.0"), "server_id": "A"},
        worker("w1", t=60.0, server_id="B"), task("a-2"), *run("a-2", 61.0, 80.0),
    ]  # fmt: skip
    assert apply("silent-worker", *records, *first, *second) == []


def test_workers_that_stopped_responding_at_the_same_time(apply, worker, task, run, heartbeats):
    """One from 10 to 30 s, the other from 20 to 45 s: 45 thread-seconds in 35 s."""
    records = [worker("w1"), task("c-1"), *run("c-1", 5.0, 40.0)]
    records += [worker("w2"), task("c-2"), *run("c-2", 5.0, 60.0, "w2")]
    records += [task("c-3"), *run("c-3", 40.0, 45.0)]
    records += [task("c-4"), *run("c-4", 60.0, 61.0, "w2")]
    [(*found, sentence)] = apply(
        "silent-worker",
        *records,
        *heartbeats(10.0, 30.0),
        *heartbeats(20.0, 45.0, "w2"),
        columns="entity, core_seconds, wall_seconds_max, sentence",
    )
    assert found == ["w2, w1", 45.0, 35.0]
    assert sentence.startswith("2 workers sent no heartbeat for up to 25.0 s each")


def status(t, name):
    payload = {"action": "worker-status-change", "status": name, "worker": "w1"}
    return {"kind": "event", "t": t, "topic": "w1", "worker": "w1", "payload": payload}


def test_a_paused_worker(apply_each, worker, naps):
    """It was paused for 30 s, for 20 s of which there was work."""
    records = [worker("w1"), worker("w2"), *naps("w2", 0, 60), status(40.0, "paused")]
    assert apply_each(
        "paused-workers",
        [*records, status(70.0, "running")],
        [*records, status(40.4, "running")],
    ) == [[("w1", pytest.approx(20.0, rel=0.01))], []]


def test_a_worker_that_may_not_spill_more(
    apply_each, worker, task, naps, process_facts, sample
):
    """It is paused, and has spilled 96 MB of at most 100 MB, 190 MiB, or any number."""
    waits = {"kind": "transition", "t": 1.0, "key": "left-1"}
    waits |= {"start": "released", "finish": "waiting"}

    def trace(most_spilled, *records):
        config = {"distributed.worker.memory.max-spill": most_spilled}
        return [
            worker("w1"), worker("w2"), *naps("w2", 0, 60), status(40.0, "paused"),
            task("left-1"), waits, *process_facts("worker", config, worker="w1"),
            sample(39.0, "w1", spilled_disk=96_000_000), *records,
        ]  # fmt: skip

    paused = "Worker w1 was paused because of memory: {:.1f} core-seconds while there was work."
    lasting = " It was paused until the recording ended, when 1 task was without a result."
    limit = " A worker may spill 100MB (distributed.worker.memory.max-spill), and had spilled "
    found = apply_each(
        "paused-workers",
        trace("100MB"),
        trace("190.5 MiB"),
        trace("false", status(70.0, "running")),
        columns="sentence, change",
    )

    [[(full, raise_it)], [(without_limit, _)], [(ended, usual)]] = found
    assert full == paused.format(60.0) + lasting + limit + "up to 96 MB."
    assert (
        raise_it == f"Raise distributed.worker.memory.max-spill if the disk has room. {usual}"
    )
    assert without_limit == paused.format(60.0) + lasting
    assert ended == paused.format(30.0)
