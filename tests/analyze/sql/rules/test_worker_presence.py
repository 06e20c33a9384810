"""Rules late-workers, excess-workers, silent-worker and paused-workers."""

import pytest


@pytest.fixture
def naps(task, run):
    """Return tasks of 1 s that a worker computes one after another."""

    def naps(address, start, stop):
        keys = [(f"nap-{address}-{number}", start + number) for number in range(stop - start)]
        return [
            record
            for key, begin in keys
            for record in (task(key), *run(key, float(begin), begin + 1.0, worker=address))
        ]

    return naps


def test_a_worker_that_joined_late(apply, worker, naps):
    records = [worker("w1"), *naps("w1", 0, 60), worker("w2", t=20.0), *naps("w2", 20, 60)]
    assert apply("late-workers", *records, columns="sentence, core_seconds") == [
        (
            "A worker joined late, 20.0 s after the first task was submitted.",
            pytest.approx(20.0),
        )
    ]


def test_late_workers_of_a_large_cluster(apply, worker, naps):
    """With 150 workers a time bucket of core_time is 1 s long."""
    records = [record for n in range(75) for record in (worker(f"a{n}"), *naps(f"a{n}", 0, 60))]
    for n in range(75):
        records += [worker(f"b{n}", t=20.0), *naps(f"b{n}", 20, 60)]
    [(core_seconds,)] = apply("late-workers", *records, columns="core_seconds")
    assert core_seconds == pytest.approx(75 * 20.0)


def test_a_worker_that_left_early(apply, worker, naps, gone):
    records = [worker("w1"), *naps("w1", 0, 60), worker("w2"), *naps("w2", 0, 20)]
    records.append(gone("w2", 20.0, "retire-workers-1.0"))
    assert apply("late-workers", *records, columns="sentence, core_seconds") == [
        ("A worker left early, 40.0 s before the last task ended.", pytest.approx(40.0))
    ]


def test_a_worker_that_joined_when_there_was_nothing_to_do(apply, worker, naps):
    records = [worker("w1"), *naps("w1", 0, 5), *naps("w1", 20, 30), worker("w2", t=20.0)]
    [(core_seconds,)] = apply(
        "late-workers", *records, *naps("w2", 20, 30), columns="core_seconds"
    )
    assert core_seconds == pytest.approx(5.0)


@pytest.mark.parametrize(("submitted_t", "core_seconds"), [(30.0, None), (10.0, 20.0)])
def test_time_without_workers(apply, worker, task, run, gone, naps, submitted_t, core_seconds):
    """There is no worker from 10 s until one joins at 30 s and runs a task."""
    records = [
        worker("w1"), *naps("w1", 0, 10), gone("w1", 10.0, "retire-workers-1.0"),
        task("fit-1", t=submitted_t),
        worker("w2", t=30.0), *run("fit-1", 30.0, 40.0, worker="w2"),
    ]  # fmt: skip
    found = apply("late-workers", *records, columns="core_seconds", stop_t=40.0)
    assert found == ([] if core_seconds is None else [(pytest.approx(core_seconds, rel=0.05),)])


def test_a_cancelled_task_does_not_wait_for_workers(apply, worker, task, move, gone, naps):
    """After it was cancelled at 5 s, nothing is submitted until a worker joins."""
    records = [
        worker("w1"), *naps("w1", 0, 10), gone("w1", 10.0, "retire-workers-1.0"),
        task("dropped-1", t=1.0), move(5.0, "dropped-1", "waiting>released"),
        worker("w2", t=30.0), *(r | {"t": max(r["t"], 30.0)} for r in naps("w2", 30, 40)),
    ]  # fmt: skip
    assert apply("late-workers", *records, stop_t=40.0) == []


def test_a_worker_that_was_replaced_is_not_late(apply, worker, naps, gone):
    records = [
        worker("w1"), *naps("w1", 0, 60),
        worker("w2", name="b"), *naps("w2", 0, 20),
        gone("w2", 20.0, "handle-worker-cleanup-1.0"),
        worker("w3", t=30.0, name="b"), *naps("w3", 30, 60),
    ]  # fmt: skip
    assert apply("late-workers", *records) == []


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


def test_workers_that_the_work_cannot_use(apply, worker, naps):
    """Two of six threads are used."""
    records = [*(worker(f"w{number}") for number in range(1, 7)), *naps("w1", 0, 100)]
    assert apply(
        "excess-workers", *records, *naps("w2", 0, 100), columns="change, core_seconds"
    ) == [
        (
            "Use n_workers=2 (now 6), or have more independent tasks in flight at a time.",
            pytest.approx(400.0),
        )
    ]


def test_workers_that_are_used_for_a_third_of_the_time(apply, worker, naps):
    records = [
        record
        for number in range(1, 4)
        for record in (worker(f"w{number}"), *naps(f"w{number}", 0, 30))
    ]
    assert apply("excess-workers", *records, *naps("w1", 30, 100)) == []


@pytest.fixture
def heartbeats(sample):
    """Return samples each second, with heartbeats each second except for a gap."""

    def heartbeats(gap_from, gap_to, worker="w1"):
        return [
            sample(t + 0.5, worker, last_seen=gap_from if gap_from < t < gap_to else float(t))
            for t in range(100)
        ]

    return heartbeats


def test_a_worker_that_stopped_responding(apply, worker, task, run, heartbeats):
    records = [worker("w1", nthreads=2), task("c-1"), *run("c-1", 5.0, 40.0)]
    records += [task("c-2"), *run("c-2", 40.0, 45.0)]
    assert apply("silent-worker", *records, *heartbeats(10.0, 30.0)) == [("w1", 40.0)]
    assert apply("silent-worker", *records, *heartbeats(10.0, 14.0)) == []


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


def test_a_worker_that_computes_without_heartbeats(apply, worker, naps, heartbeats):
    """Its event loop is blocked."""
    assert (
        apply("silent-worker", worker("w1"), *naps("w1", 0, 60), *heartbeats(10.0, 30.0)) == []
    )


def test_long_tasks_that_hold_the_gil(apply, worker, task, run, heartbeats):
    """Each task takes 20 s, with and without heartbeats."""
    records = [worker("w1")]
    for number in range(4):
        begin = 20.0 * number + 10.0
        records += [task(f"c-{number}"), *run(f"c-{number}", begin, begin + 20.0)]
    assert apply("silent-worker", *records, *heartbeats(10.0, 30.0)) == []


def test_a_worker_that_imports_modules(apply, worker, task, run, heartbeats):
    """Its first task begins after the silence."""
    records = [worker("w1")]
    for number in range(2):
        phases = [("compute", 31.0 + number, 32.0 + number)]
        end = run(f"c-{number}", 10.0, 32.0 + number, phases=phases)
        records += [task(f"c-{number}"), *end]
    assert apply("silent-worker", *records, *heartbeats(10.0, 30.0)) == []


def status(t, name):
    payload = {"action": "worker-status-change", "status": name, "worker": "w1"}
    return {"kind": "event", "t": t, "topic": "w1", "worker": "w1", "payload": payload}


def test_a_paused_worker(apply, worker, naps):
    """It was paused for 30 s, for 20 s of which there was work."""
    records = [worker("w1"), worker("w2"), *naps("w2", 0, 60), status(40.0, "paused")]
    assert apply("paused-workers", *records, status(70.0, "running")) == [
        ("w1", pytest.approx(20.0, rel=0.01))
    ]
    assert apply("paused-workers", *records, status(40.4, "running")) == []
