"""Rules spilling, unmanaged-memory and killed-workers."""

import pytest

MB = 10**6


def test_spilling(apply_each, worker, task, run, sample):
    def records(seconds, **memory):
        phases = [("disk-read", 1.0, 1.0 + seconds), ("compute", 1.0 + seconds, 8.0)]
        return [
            *(worker("w1"), task("a-1"), *run("a-1", 1.0, 8.0, phases=phases)),
            sample(2.0, memory_limit=1000 * MB, **memory),
        ]

    spilled = {"managed_bytes": 800 * MB, "spilled_memory": 300 * MB}
    found, none, [(_, without_sample, _)] = apply_each(
        "spilling",
        records(4.0, **spilled),
        records(0.05, **spilled),
        records(4.0, spilled_memory=0),
        columns="core_seconds, sentence, change",
    )
    assert found == [
        (
            pytest.approx(4.0),
            (
                "Writing results to disk and reading them back took 4.0 core-seconds;"
                " results of up to 286 MiB were on disk."
            ),
            (
                "Give each worker about 1.49 GiB (now 954 MiB), release results earlier, or"
                " keep smaller results (partitions, arrays). Spill to a fast local disk."
            ),
        )
    ]
    assert none == []
    assert without_sample.endswith("took 4.0 core-seconds.")


def test_results_that_only_a_client_keeps(apply_each, worker, task, run, sample):
    """Most is on disk at 6 s, when ``a-1`` has been used, and ``a-2`` has not."""
    spilled = {"spilled_memory": 300 * MB, "spilled_disk": 300 * MB, "memory_limit": 1000 * MB}
    phases = [("disk-write", 1.0, 2.0), ("compute", 2.0, 3.0)]

    def records(keys, until=None, client="c", of="w1"):
        changes = [{"t": 1.0, "action": "desires", "keys": keys}]
        changes += [{"t": until, "action": "releases", "keys": keys}] if until else []
        return [
            worker("w1", nthreads=2), worker("w2", nthreads=2),
            *(task(key) for key in ("a-1", "a-2", "b-1")),
            task("use-1", dependencies=["a-1"]), task("use-2", dependencies=["a-2"]),
            *run("b-1", 0.0, 3.0, phases=phases),
            *run("a-1", 1.0, 3.0, of, nbytes=200 * MB),
            *run("a-2", 1.0, 3.0, nbytes=200 * MB),
            *run("use-1", 3.0, 4.0), *run("use-2", 5.0, 8.0),
            {"kind": "wanted_keys", "t": 9.0, "client": client, "changes": changes},
            sample(6.0, **spilled), sample(6.0, "w2", memory_limit=1000 * MB),
        ]  # fmt: skip

    rows = apply_each(
        "spilling",
        records(["a-1", "a-2", "use-1", "use-2"]),
        records(["a-2", "use-1"]),
        records(["a-1"], until=5.0),
        # It is kept on purpose, or on a worker that spills nothing.
        records(["a-1"], client="published-x"),
        records(["a-1"], of="w2"),
        columns="sentence, change",
    )

    [[(held, delete)], *others] = rows
    assert held.endswith(
        " When worker w1 had most there, clients kept 1 of its results (191 MiB, such as of a) "
        "on which no task depended any longer."
    )
    assert delete.startswith("Delete futures of results that are no longer needed")
    assert all(sentence.endswith("on disk.") for [(sentence, _)] in others)


@pytest.mark.exhaustive
def test_results_that_are_slow_to_store(apply_each, worker, task, run):
    """Workers report slow accesses as disk time; fine metrics show if the disk was used."""

    def records(activity):
        phases = [("compute", 1.0, 4.0), ("disk-write", 4.0, 8.0)]
        metric = {
            "kind": "fine_metric",
            "t": 9.0,
            "worker": "w1",
            "server_id": "id-w1-0.0",
            "context": "execute",
            "prefix": "a",
            "unit": "seconds",
            "delta": 1.0,
            "activity": activity,
        }
        return [worker("w1"), task("a-1"), *run("a-1", 1.0, 8.0, phases=phases), metric]

    assert apply_each(
        "spilling", records("disk-write"), records("thread-cpu"), columns="core_seconds"
    ) == [[(4.0,)], []]


@pytest.mark.exhaustive
def test_threads_that_wait_while_a_worker_spills(apply_each, worker, task, run, sample):
    """The second task begins 10 s late, because the event loop of its worker is blocked."""

    def records(spilled_bytes):
        return [
            *[worker("w1"), task("a-1"), task("a-2")],
            *run("a-1", 1.0, 8.0, phases=[("disk-read", 1.0, 5.0), ("compute", 5.0, 8.0)]),
            *run("a-2", 10.0, 30.0, phases=[("compute", 20.0, 30.0)]),
            sample(9.0, memory_limit=1000 * MB, spilled_memory=0),
            sample(21.0, memory_limit=1000 * MB, spilled_memory=spilled_bytes),
            {
                "kind": "stall",
                "t": 20.0,
                "server_id": "id-w1-0.0",
                "worker": "w1",
                "start_t": 10.0,
                "stop_t": 20.0,
            },
        ]

    assert apply_each(
        "spilling", records(300 * MB), records(0), columns="wall_seconds_max", stop_t=30.0
    ) == [
        # One thread reads for 4 s, and waits for 10 s.
        [(pytest.approx(1.1 * (4.0 + 10.0), rel=0.1),)],
        [(pytest.approx(1.3 * 4.0, rel=0.1),)],
    ]


def test_data_of_the_client_that_are_spilled(apply_each, worker, task, run, sample):
    """The client waits for 6 s while a worker spills, before the first task or after it."""

    def records(begin):
        phases = [("disk-read", 10.0, 14.0), ("compute", 14.0, 30.0)]
        return [
            *[worker("w1"), task("a-1", t=10.0), *run("a-1", 10.0, 30.0, phases=phases)],
            sample(begin + 1.0, memory_limit=1000 * MB, spilled_memory=0),
            sample(begin + 5.0, memory_limit=1000 * MB, spilled_memory=300 * MB),
            {
                "kind": "stall", "t": begin + 4.0, "server_id": "id-w1-0.0", "worker": "w1",
                "start_t": begin + 2.0, "stop_t": begin + 4.0,
            },
            {
                "kind": "client_activity", "t": begin + 6.0, "client": "c", "activity": "wait",
                "name": "f", "start_t": begin, "stop_t": begin + 6.0,
            },
        ]  # fmt: skip

    assert apply_each(
        "spilling", records(0.0), records(11.0), columns="wall_seconds_max", stop_t=30.0
    ) == [[(pytest.approx(1.3 * 4.0 + 6.0),)], [(pytest.approx(1.3 * 4.0),)]]


def test_waits_of_other_workers_while_one_spills_a_little(apply, worker, task, run):
    """A worker reads from its disk ten times a second, and another one waits for 28 s."""
    phases = [
        part
        for t in range(10, 310)
        for part in (
            ("disk-read", t / 10, t / 10 + 0.01),
            ("compute", t / 10 + 0.01, t / 10 + 0.1),
        )
    ]
    records = [
        *[worker("w1"), worker("w2"), task("a-1"), task("a-2")],
        *run("a-1", 1.0, 31.0, "w1", phases=phases),
        *run("a-2", 1.0, 31.0, "w2", phases=[("compute", 29.0, 31.0)]),
    ]
    [(most,)] = apply("spilling", *records, columns="wall_seconds_max", stop_t=31.0)
    # Waits count up to four times the 3 s of reading, and both workers share the saving.
    assert most == pytest.approx(1.1 * (3.0 + 12.0) / 2)


def kill(t: float, address: str) -> dict:
    """Return the event of a nanny that kills its worker."""
    payload = {"worker": address, "rss": 960 * MB}
    return {
        "kind": "event",
        "t": t,
        "topic": "worker-restart-memory",
        "worker": address,
        "payload": payload,
    }


def test_a_restart_of_the_cluster(apply, worker, task, run, gone, move):
    """A task runs, one waits behind it, and two of three results are still in memory."""
    closing = {"action": "closing-worker", "reason": "client-restart-20.0"}
    stimulus = {"stimulus_id": "client-restart-20.0"}
    tasks = ("a-1", "a-2", "a-3", "b-1", "b-2", "c-1")
    [(sentence, core_seconds, change)] = apply(
        "killed-workers",
        worker("w1", name="A"),
        *(task(key) for key in tasks),
        *run("a-1", 0.0, 2.0),
        *run("a-2", 2.0, 5.0),
        *run("a-3", 5.0, 9.0),
        move(9.5, "a-1", "memory>forgotten"),
        *run("b-1", 10.0),
        *run("b-2", 11.0),
        *(move(20.0, key, "processing>released", **stimulus) for key in ("b-1", "b-2")),
        *(move(20.0, key, "memory>forgotten", **stimulus) for key in ("a-2", "a-3")),
        {"kind": "event", "t": 20.5, "topic": "w1", "worker": "w1", "payload": closing},
        gone("w1", 21.0, "handle-worker-cleanup-21.0"),
        worker("w2", 31.0, name="A"),
        *run("c-1", 31.0, 50.0, worker="w2"),
        columns="sentence, core_seconds, change",
    )
    assert sentence == (
        "One worker was restarted on request: 10.0 s of running attempts were lost, 2 results "
        "that had taken 7.0 s to compute were dropped, and missing threads cost 10.0 "
        "core-seconds."
    )
    assert core_seconds == 20.0
    assert change == "Restart workers between runs rather than during one."


def test_workers_that_were_asked_to_leave(ask, worker, task, run, gone):
    """One of each kind, while a task runs on another worker; two had something on them."""
    ends = {
        "nanny-close": (0, 0), "adaptive-deleted": (0, 0), "signal-15": (0, 0),
        "worker-close": (0, 3), "nanny-failed": (1, 0),
    }  # fmt: skip
    records = [worker("busy"), task("a"), *run("a", 0.0, 50.0, worker="busy")]
    for number, (reason, (tasks, results)) in enumerate(ends.items()):
        t, address = 10.0 + number, f"w-{reason}"
        about = {
            "action": "remove-worker", "worker": address, "expected": False,
            "stimulus_id": f"handle-worker-cleanup-{t}",
            "processing-tasks": ["x"] * tasks, "lost-computed-tasks": ["y"] * results,
            "lost-scattered-tasks": [],
        }  # fmt: skip
        closing = {"action": "closing-worker", "reason": reason}
        records += [
            worker(address),
            {"kind": "event", "t": t, "topic": address, "worker": address, "payload": closing},
            {"kind": "event", "t": t, "topic": "all", "worker": address, "payload": about},
            gone(address, t, f"handle-worker-cleanup-{t}"),
        ]
    lost = ask(*records)("SELECT worker FROM failures WHERE what = 'worker lost' ORDER BY t")
    assert lost == [("w-signal-15",), ("w-worker-close",), ("w-nanny-failed",)]


def test_worker_killed_for_its_memory(apply_each, worker, task, run, gone):
    limit = {"memory_limit": 1000 * MB, "name": "A"}
    killed = [
        worker("w1", **limit),
        task("a-1"),
        *run("a-1", 1.0, 6.0, "w1", "lost"),
        kill(6.0, "w1"),
        gone("w1", 6.0, "handle-worker-cleanup-1.0"),
        worker("w2", 8.0, **limit),
        *run("a-1", 8.0, 13.0, "w2"),
    ]
    retired = [
        *(worker("w1"), worker("w2"), task("a-1"), *run("a-1", 1.0, 6.0, "w1")),
        gone("w2", 6.0, "retire-workers-1.0"),
    ]

    assert apply_each(
        "killed-workers", killed, retired, columns="entity, core_seconds, confidence, change"
    ) == [
        [
            (
                "A",
                # Five seconds of computing, and two without a worker.
                pytest.approx(7.0),
                "medium",
                (
                    "Let a task need less memory (smaller partitions or arrays). Or give each "
                    "worker more than 954 MiB of memory; "
                    "how much more is not known."
                ),
            )
        ],
        [],
    ]


@pytest.fixture
def deaths(worker, task, chunk, run, gone):
    """Return the records of workers that are killed with chunks: files and first entries."""

    def deaths(*assigned: list[tuple[str, int]]) -> list[dict]:
        names = {
            (file, entry): f"Hog-{file}-{entry}" for each in assigned for file, entry in each
        }
        names[("ok.root", 0)] = "ok"
        records = [worker("last"), *run("ok", 70.0, 80.0, "last")]
        for (file, entry), key in names.items():
            about = {"dataset": "DY", "filename": f"/d/{file}", "treename": "Events"}
            entries = {"entry_start": entry, "entry_stop": entry + 1000}
            records += [task(key), chunk(key, **about, **entries)]
        for number, chunks in enumerate(assigned):
            address, t = f"w{number}", 10.0 * number
            records += [worker(address, t, memory_limit=1000 * MB)]
            for place in chunks:
                records += run(names[place], t + 1.0, t + 6.0, address, "lost")
            records += [
                kill(t + 6.0, address),
                gone(address, t + 6.0, "handle-worker-cleanup-1.0"),
            ]
        return records

    return deaths


@pytest.mark.exhaustive
def test_the_chunk_of_killed_workers(apply_each, deaths):
    one = "had one chunk: 1.root (tree Events, entries 0 to 1,000, dataset DY)."
    same = "had the same chunk: 1.root (tree Events, entries 0 to 1,000, dataset DY)."
    of_file = "2 killed or lost workers had a chunk of 1.root (tree Events, dataset DY)."
    none = " s of running attempts were lost."
    # Files and first entries of each worker, end of the sentence, and whether the file is in
    # the recommended change.
    cases = {
        "one chunk": ([[("1.root", 0), ("2.root", 0)], [("1.root", 0)]], same, True),
        "one file": ([[("1.root", 0), ("2.root", 0)], [("1.root", 1000)]], of_file, True),
        "one worker": ([[("1.root", 0)]], one, False),
        "two files": ([[("1.root", 0)], [("2.root", 0)]], none, False),
        "two chunks of a file": ([[("1.root", 0), ("1.root", 1000)]] * 2, of_file, True),
        "two chunks": ([[("1.root", 0), ("2.root", 0)]] * 2, none, False),
    }

    found = apply_each(
        "killed-workers",
        *(deaths(*assigned) for assigned, _, _ in cases.values()),
        columns="sentence, change",
    )
    for case, [(sentence, change)] in zip(cases, found, strict=True):
        _, end, has_file = cases[case]
        assert sentence.endswith(end), case
        assert ("/d/1.root need" in change) == has_file, case
        assert "more than 954 MiB of memory; how much more is not known." in change, case


@pytest.mark.exhaustive
def test_unmanaged_memory_of_killed_workers(apply_each, deaths, task, run, sample):
    """The memory of each worker before the task with which it is killed; None for no task."""
    limit = {"memory_limit": 1000 * MB}

    def records(files, before_bytes):
        records = deaths(*([(file, 0)] for file in files))
        for number in range(len(files)):
            address, t = f"w{number}", 10.0 * number
            if before_bytes is not None:
                records += [task(f"a-{number}"), *run(f"a-{number}", t, t + 1.0, address)]
                records += [sample(t + 0.9, address, memory=before_bytes, **limit)]
            records += [sample(t + 5.0, address, memory=900 * MB, **limit)]
        return records

    cases = {
        "leak": records(["1.root", "2.root"], 500 * MB),
        "grown during the last task": records(["1.root", "2.root"], 300 * MB),
        "first task": records(["1.root", "2.root"], None),
        "one chunk": records(["1.root", "1.root"], 500 * MB),
    }
    found = apply_each("unmanaged-memory", *cases.values())
    assert [case for case, rows in zip(cases, found, strict=True) if rows] == ["leak"]


@pytest.mark.exhaustive
def test_the_memory_of_an_idle_worker_is_not_a_leak(
    apply_each, worker, deaths, task, run, sample
):
    """Two workers are killed after tasks with which they had 450 MB; how much without tasks."""
    limit = {"memory_limit": 1000 * MB}

    def records(idle_bytes, joined_t=15.0):
        records = deaths([("1.root", 0)], [("2.root", 0)])
        for number in range(2):
            address, t = f"w{number}", 10.0 * number
            records += [task(f"a-{number}"), *run(f"a-{number}", t, t + 1.0, address)]
            records += [sample(t + 0.9, address, memory=450 * MB, **limit)]
        records += [worker("new", joined_t), *(task("b"), *run("b", 17.0, 18.0, "new"))]
        # The scheduler samples what the worker reported when it joined.
        return [*records, sample(18.0, "new", last_seen=15.0, memory=idle_bytes, **limit)]

    cases = {
        "small": records(50 * MB),
        "nearly all": records(400 * MB),
        "unknown: computed tasks before the recording": records(400 * MB, joined_t=0.0),
    }
    found = apply_each("unmanaged-memory", *cases.values())
    assert [bool(rows) for rows in found] == [True, False, True]


@pytest.mark.exhaustive
def test_several_killed_workers(apply_each, worker, task, run, gone):
    def records(workers):
        names = [f"w{number}" for number in range(1, workers + 1)]
        return [
            *(worker("last"), task("a")),
            *(
                record
                for name in names
                for record in (worker(name, name=name), kill(6.0, name))
            ),
            *(gone(name, 6.0, "handle-worker-cleanup-1.0") for name in names),
            *run("a", 1.0, 9.0, "last"),
        ]

    assert apply_each("killed-workers", records(3), records(4), columns="entity") == [
        [("w1, w2, w3",)],
        [(None,)],
    ]


def test_a_worker_that_was_closed_because_of_worker_ttl(apply_rules, worker, task, run, gone):
    """Dask decides at 20 s, the nanny ends the worker at 30 s, and Dask gives up its task."""
    decision = {"action": "worker-ttl-timed-out", "workers": ["w1"], "ttl": 5.0}
    seen = {"kind": "worker_sample", "worker": "w1", "server_id": "id-w1-0.0"}
    [[killed], [silent]] = (
        rows
        for [rows] in apply_rules(
            ["killed-workers", "silent-worker"],
            [
                worker("w1"),
                task("a"),
                *run("a", 5.0, 30.0, outcome="erred", exception="KilledWorker: …"),
                *({**seen, "t": 6.0 + t, "last_seen": 5.0 + min(t, 8)} for t in range(24)),
                {"kind": "event", "t": 20.0, "topic": "scheduler", "payload": decision},
                gone("w1", 30.0, "handle-worker-cleanup-30.0"),
            ],
            columns="sentence, change",
        )
    )

    assert killed[0].startswith(
        "One worker was closed because worker-ttl had passed without a heartbeat"
    )
    assert killed[1].startswith("Raise distributed.scheduler.worker-ttl above")
    assert silent[0].startswith("Worker w1 sent no heartbeat for")


def test_a_worker_that_was_stopped_by_a_signal(apply, worker, task, run, gone):
    closing = {"action": "closing-worker", "reason": "signal-15"}
    [(sentence, change)] = apply(
        "killed-workers",
        worker("w1"),
        *(task("a"), *run("a", 5.0, 30.0, outcome="lost"), *run("a", 40.0, 50.0, "w2")),
        {"kind": "event", "t": 30.0, "topic": "w1", "worker": "w1", "payload": closing},
        gone("w1", 30.0, "handle-worker-cleanup-30.0"),
        worker("w2", t=35.0),
        columns="sentence, change",
    )

    assert (
        sentence == "One worker was stopped by signal 15: 25.0 s of running attempts were lost."
    )
    assert change.startswith("Find out who sends the signal")


def test_what_is_lost_with_a_worker(apply, worker, task, run, gone):
    # "used" is computed again, too, but a task had used its first result.
    [(sentence,)] = apply(
        "killed-workers",
        worker("w1"),
        *(task("used"), task("unused"), task("last", dependencies=["used"])),
        *run("used", 1.0, 4.0),
        *run("unused", 4.0, 6.0),
        *run("last", 6.0, 7.0),
        gone("w1", 7.0, "handle-worker-cleanup-1.0"),
        worker("w2", 8.0),
        *run("used", 8.0, 11.0, "w2"),
        *run("unused", 11.0, 13.0, "w2"),
        columns="sentence",
    )

    assert sentence.partition(": ")[2] == (
        "2.0 s of results were lost before a kept result had used them, and computed again."
    )


def test_results_that_were_used_for_lost_results(apply, worker, task, run, gone):
    """Each of two workers is killed when it has the sum of `part`, which a third one keeps."""
    records = [task("part"), task("sum", dependencies=["part"])]
    for number in range(3):
        address, t = f"w{number}", 10.0 * number
        records += [worker(address, t, memory_limit=1000 * MB)]
        records += run("part", t, t + 5, address)
        records += run("sum", t + 5, t + 6, address, nbytes=800 * MB)
        if number < 2:
            records += [kill(t + 7, address), gone(address, t + 8, "handle-worker-cleanup-1.0")]

    [(sentence, change)] = apply("killed-workers", *records, columns="sentence, change")

    assert sentence == (
        "2 workers were killed because of memory: 12.0 s of results were lost before a kept "
        "result had used them, and computed again. Each had computed a result of sum, up to "
        "763 MiB."
    )
    assert change.startswith("Let sum return less, such as by reducing or writing the data ")
    # Two other workers computed such a result, and were not killed.
    others = [worker(f"x{n}", memory_limit=1000 * MB) for n in range(2)]
    for number in range(2):
        key = f"sum-{number}"
        sums = run(key, 1.0, 2.0, f"x{number}", nbytes=800 * MB)
        others += [{**task(key), "prefix": "sum"}, *sums]
    [(sentence, change)] = apply(
        "killed-workers", *records, *others, columns="sentence, change"
    )
    assert "had computed" not in sentence
    assert change.startswith("Let a task need less memory")


def removal(t, worker, stimulus_id="handle-worker-cleanup-1.0", **amounts):
    """Return the event of a worker that was removed unexpectedly."""
    about = {"action": "remove-worker", "worker": worker, "expected": False}
    payload = {**about, "stimulus_id": stimulus_id, **amounts}
    return {"kind": "event", "t": t, "topic": "all", "payload": payload}


@pytest.fixture
def losses(worker, task, run, gone):
    """Return records of workers that were lost with an attempt each, and of one that stayed."""

    def losses(*times, stimulus_id="handle-worker-cleanup-1.0"):
        records = [worker("stays"), task("last")]
        for number, (joined_t, left_t) in enumerate(times):
            name, key = f"w{number}", f"a-{number}"
            records += [
                worker(name, t=joined_t),
                task(key, t=joined_t),
                *run(key, left_t - 1.0, left_t, name, outcome="lost"),
                removal(left_t, name, stimulus_id),
                gone(name, left_t, stimulus_id),
                *run(key, left_t, left_t + 2.0, "stays"),
            ]
        return [*records, *run("last", 40.0, 50.0, "stays")]

    return losses


def test_the_change_depends_on_the_cause_of_the_loss(apply_each, losses, process_facts):
    limits = process_facts("worker", worker="w0", variables={
        "SLURM_JOB_ID": "1", "SLURM_JOB_START_TIME": "1", "SLURM_JOB_END_TIME": "19",
    })  # fmt: skip
    ttl = process_facts("scheduler", {"distributed.scheduler.worker-ttl": "4s"})
    lost = losses((0, 18))
    cases = {
        "worker-ttl": [*losses((0, 18), stimulus_id="check-worker-ttl-1.0"), *ttl],
        "a time limit": [*lost, *limits],
        "the same age": losses((0, 18), (10, 28)),
        "the same time": losses((0, 18), (0, 18)),
        "different ages": losses((0, 18), (10, 20)),
    }
    found = apply_each("killed-workers", *cases.values(), columns="change")

    starts = {
        case: change.partition(",")[0][:60]
        for case, [(change,)] in zip(cases, found, strict=True)
    }
    assert starts == {
        "worker-ttl": "Raise distributed.scheduler.worker-ttl (now 4s) above the lo",
        "a time limit": "Request batch jobs that are longer than the run (the shortes",
        "the same age": "Look for a time limit: all of these workers were lost at the",
        "the same time": "Look for the cause in the logs of the workers and of the bat",
        "different ages": "Look for the cause in the logs of the workers and of the bat",
    }


def test_workers_that_left_after_the_last_task(apply_each, worker, task, run, gone):
    """A program that ends takes its workers with it; one that goes on lacks what is lost."""

    def records(left_t, processing, results):
        amounts = {"processing-tasks": processing, "lost-computed-tasks": results}
        return [
            *(worker("w1"), task("a"), *run("a", 1.0, 9.0)),
            removal(left_t, "w1", **amounts),
            gone("w1", left_t, "handle-worker-cleanup-1.0"),
        ]

    assert [
        len(rows)
        for rows in apply_each(
            "killed-workers",
            records(19.0, ["b"], ["a"]),  # 1 s before the end
            records(10.0, [], []),
            records(10.0, [], ["a"]),
            records(10.0, ["b"], []),
            stop_t=20.0,
        )
    ] == [0, 0, 1, 1]


@pytest.mark.exhaustive
def test_own_work_of_the_client_while_lost_results_are_computed_again(
    apply_each, worker, task, run, move, gone
):
    """The client still holds a result of 8 s, which is lost at 10 s and there again at 18 s."""

    def records(own_t, client="c", *, waits=True):
        def activity(activity, start_t, stop_t):
            about = {"client": "c", "activity": activity, "name": "f"}
            return {
                "kind": "client_activity", "t": stop_t, "start_t": start_t, "stop_t": stop_t,
                **about,
            }  # fmt: skip

        return [
            *[worker("w1"), worker("w2"), task("a", client=client)],
            *run("a", 1.0, 9.0),
            gone("w1", 10.0, "handle-worker-cleanup-1.0"),
            move(10.0, "a", "memory>released", "handle-worker-cleanup-1.0"),
            *run("a", 10.0, 18.0, "w2"),
            *(task("b", t=30.0, client=client), *run("b", 30.0, 31.0, "w2")),
            *([activity("wait", 1.0, own_t)] if waits else []),
            activity("own", own_t, 30.0),
        ]

    cases = {
        "works since it has the result": (records(9.0), 0.0),
        "waits for the result again": (records(15.0), 5.0),
        "waits until the end": (records(18.1), 8.0),
        "submitted nothing": (records(9.0, client="other"), 8.0),
        "never waits in the main thread": (records(9.0, waits=False), 8.0),
    }
    found = apply_each(
        "killed-workers",
        *(trace for trace, _ in cases.values()),
        columns="wall_seconds_max",
        stop_t=31.0,
    )
    for case, [(most,)] in zip(cases, found, strict=True):
        assert most == pytest.approx(cases[case][1], abs=0.1), case


def test_unmanaged_memory_pauses_a_worker(apply_each, worker, task, run, sample):
    def changed(t, status):
        payload = {"action": "worker-status-change", "prev-status": "running"}
        payload |= {"status": status}
        return {"kind": "event", "t": t, "topic": "w1", "worker": "w1", "payload": payload}

    def records(managed_bytes):
        memory = {"memory_limit": 1000 * MB, "memory": 850 * MB}
        return [
            worker("w1", name="A"),
            task("a-1"),
            changed(2.0, "paused"),
            *run("a-1", 3.0, 10.0, phases=[("compute", 8.0, 10.0)], thread=1),
            changed(8.0, "running"),
            sample(4.0, managed_bytes=managed_bytes, **memory),
        ]

    assert apply_each(
        "unmanaged-memory",
        *(records(100 * MB), records(500 * MB)),
        columns="entity, core_seconds, sentence",
    ) == [
        [
            (
                "A",
                pytest.approx(6.0),
                (
                    "Up to 715 MiB of the 954 MiB of memory of a worker is not used by results "
                    "of tasks: pauses cost 6.0 core-seconds."
                ),
            )
        ],
        [],
    ]


def test_results_whose_size_dask_does_not_know(apply_each, worker, task, run, sample):
    """Results of 56 bytes by Dask's count take 200 MB on disk, or have their true size."""

    def records(nbytes):
        phases = [("disk-write", 1.0, 5.0), ("compute", 5.0, 8.0)]
        return [
            worker("w1"), task("a-1"), task("b-1"),
            *run("a-1", 1.0, 8.0, phases=phases, nbytes=nbytes, typename="mine.Data"),
            *run("b-1", 8.0, 9.0, nbytes=24, typename="float"),
            sample(
                2.0, memory_limit=1000 * MB, memory=800 * MB, managed_bytes=nbytes,
                spilled_memory=nbytes, spilled_disk=200 * MB,
            ),
        ]  # fmt: skip

    # Those of another worker explain nothing of this one.
    elsewhere = [
        worker("w2"), task("c-1"), *run("c-1", 1.0, 2.0, "w2", nbytes=56, typename="mine.Data"),
        sample(2.0, "w2", memory_limit=1000 * MB, memory=100 * MB, managed_bytes=56,
               spilled_memory=56, spilled_disk=60 * MB),
    ]  # fmt: skip
    [[(unknown, advice)], [(known, leaks)], [(of_another, others)]] = apply_each(
        "unmanaged-memory",
        records(56),
        records(200 * MB),
        [*records(200 * MB), *elsewhere],
        columns="sentence, change",
    )

    assert unknown == (
        "Up to 763 MiB of the 954 MiB of memory of a worker is not counted as results of "
        "tasks: writing results to disk cost 4.0 core-seconds. Dask does not know the size of "
        "some results: on the disk of a worker, they took 191 MiB, and Dask counted 56 B for "
        "them. The largest of them, by its count, are of type mine.Data."
    )
    assert advice.startswith("Give the class of these results a method __sizeof__")
    assert known.endswith(
        "is not used by results of tasks: writing results to disk cost 4.0 core-seconds."
    )
    assert leaks.startswith("Look for caches and leaks")
    assert (of_another, others) == (known, leaks)


def test_spilling_because_of_unmanaged_memory(apply_rules, worker, task, run, sample):
    """Without 600 MB of unmanaged memory, 400 MB of results would not be spilled."""

    def records(managed_bytes):
        return [
            worker("w1", name="A"),
            task("a-1"),
            *run("a-1", 1.0, 8.0, phases=[("disk-read", 1.0, 5.0), ("compute", 5.0, 8.0)]),
            sample(
                2.0,
                memory_limit=1000 * MB,
                memory=600 * MB + managed_bytes - 300 * MB,
                managed_bytes=managed_bytes,
                spilled_memory=300 * MB,
            ),
        ]

    few, many = records(400 * MB), records(700 * MB)
    found = [(pytest.approx(4.0),)]
    assert apply_rules(("unmanaged-memory", "spilling"), few, many, columns="core_seconds") == [
        [found, []],
        [[], found],
    ]
