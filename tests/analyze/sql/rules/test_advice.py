"""Advice that depends on what a run contains: conditions, and the changes that they lead to."""

import pytest

MB = 10**6


#: As made by dask.dataframe and dask.array of 2023 to 2026, with tasks, disk and p2p.
SHUFFLES = (
    "taskshuffle", "split-taskshuffle", "group-taskshuffle", "p2pshuffle", "diskshuffle",
    "shuffle-transfer", "shuffle-barrier", "shuffle-p2p", "shuffle-split",
    "shuffle-getitem", "shuffle-partition", "simple-shuffle", "split-shuffle",
    "hash-join-transfer", "hash-join-p2p", "hashjoinp2p", "rechunk-merge", "rechunk-split",
    "rechunk-transfer", "rechunk-p2p", "rechunk-split-rechunk-merge", "barrier",
)  # fmt: skip
#: Functions of users.
OTHERS = (
    "shuffle_cards", "reshuffle", "rechunker", "rechunk-fit", "sum-aggregate", "merge",
)  # fmt: skip


def test_prefixes_of_shuffles(ask):
    query = ask({"kind": "event", "t": 1.0, "topic": "x"})
    for prefixes, expected in ((SHUFFLES, True), (OTHERS, False)):
        calls = ", ".join(f"_is_shuffle('{prefix}')" for prefix in prefixes)
        assert query(f"SELECT {calls}") == [(expected,) * len(prefixes)]


@pytest.fixture
def merged(worker, task, run):
    """Return 20 tasks, and one of a prefix that needs all of them and takes 30 s."""

    def merged(prefix):
        records = [worker("w1"), worker("w2")]
        for number in range(20):
            begin = float(number // 2)
            records += [
                task(f"part-{number}"),
                *run(f"part-{number}", begin, begin + 1.0, worker=f"w{1 + number % 2}"),
            ]
        parts = [f"part-{number}" for number in range(20)]
        return [
            *records,
            task(f"{prefix}-1", dependencies=parts),
            *run(f"{prefix}-1", 10.0, 40.0),
        ]

    return merged


def test_a_merge_or_a_part_of_a_shuffle(apply_each, merged):
    rows = apply_each(
        "low-parallelism",
        *(merged("total"), merged("shuffle-barrier"), merged("taskshuffle")),
        columns="change",
        stop_t=40.0,
    )
    assert ["split_every=" in change for [(change,)] in rows] == [True, False, False]
    assert "is a part of a shuffle" in rows[1][0][0]


def test_a_tree_whose_last_merge_has_two_inputs(apply_each, worker, task, chunk, run):
    """Its other merges, which have six, leave more threads idle together, but each fewer."""
    records = [worker(f"w{number}") for number in range(6)]
    chunks = [f"part-{number}" for number in range(12)]
    for number, key in enumerate(chunks):
        begin = float(number // 6)
        on = f"w{number % 6}"
        records += [task(key), *run(key, begin, begin + 1.0, worker=on, run_id=number)]
    merges = [("reduce-0", chunks[:6]), ("reduce-1", chunks[6:])]
    for number, (key, inputs) in enumerate(merges):
        records += [task(key, dependencies=inputs)]
        records += run(key, 2.0, 9.0, worker=f"w{number}", run_id=20 + number)
    records += [task("reduce-2", dependencies=["reduce-0", "reduce-1"])]
    records += run("reduce-2", 9.0, 13.0, worker="w0", run_id=30)
    entries = [
        chunk(key, filename="1.root", entry_start=number, entry_stop=number + 1)
        for number, key in enumerate(chunks)
    ]

    [(sentence, change)], [(_, of_coffea)] = apply_each(
        "low-parallelism",
        *(records, [*records, *entries]),
        columns="sentence, change",
        stop_t=13.0,
    )

    assert sentence.startswith("3 tasks of reduce, with 2 to 6 inputs, took up to 7.0 s, ")
    assert change == (
        "Merge in a tree with a fan-in of 2 instead of 6 (split_every=2), if reduce can "
        "combine partial results; otherwise split it into parts that run in parallel."
    )
    assert of_coffea == "Merge fewer results at once: treereduction=2 (now 6)."


def test_arrays_with_other_chunks(apply_each, worker, task, run):
    """Where arrays with different chunks are combined, Dask rechunks them by itself."""

    def short_tasks(prefix):
        records = [worker("w1")]
        for number in range(300):
            key, begin = f"{prefix}-{number}", 0.03 * number
            attempt = run(
                key, begin, begin + 0.03, phases=[("compute", begin + 0.02, begin + 0.03)]
            )
            records += [{**task(key), "prefix": prefix}, *attempt]
        return records

    rows = apply_each(
        "short-tasks",
        *map(short_tasks, ("fit", "shuffle-split", "rechunk-split-rechunk-merge")),
        columns="change",
    )
    hint = "Give arrays that are combined the same chunks"
    assert [hint in change for [(change,)] in rows] == [False, False, True]


@pytest.fixture
def left(worker, task, run):
    """Return a worker that is busy for 60 s, and one that leaves after 20 s."""

    def left(stimulus_id, *records):
        return [
            worker("w1"),
            worker("w2"),
            *(task("a"), *run("a", 0.0, 60.0), task("b"), *run("b", 0.0, 20.0, worker="w2")),
            {"kind": "worker_removed", "t": 20.0, "worker": "w2", "stimulus_id": stimulus_id},
            *records,
        ]

    return left


@pytest.mark.exhaustive
def test_workers_that_left_early(apply_each, left, worker, task, run, process_facts):
    """Longer jobs need jobs, a lifetime one that ended, and a program can retire workers."""
    fact = {"kind": "environment", "t": 1.0, "section": "cluster", "name": "adapts to minimum"}
    adaptive = {**fact, "value": 1}
    job = process_facts("worker", worker="w2", jobs=[{"system": "Slurm", "job_id": "7"}])
    ended = {"action": "closing-worker", "reason": "worker-lifetime-reached"}
    lifetime = {"kind": "event", "t": 19.9, "topic": "w2", "worker": "w2", "payload": ended}
    asked = {**lifetime, "payload": {"action": "closing-worker", "reason": "nanny-close"}}
    keep, start = "Keep the workers until the end", "Start the workers before the work: request"
    late = [worker("w1"), task("a"), *run("a", 0.0, 60.0), worker("w2", t=20.0)]
    late += [task("b"), *run("b", 20.0, 60.0, worker="w2")]
    cases = {
        "retired by the program": (left("retire-workers-1.0"), "Retire workers after the work"),
        "retired in jobs": (left("retire-workers-1.0", *job), "Retire workers after the work"),
        "adaptive": (
            left("retire-workers-1.0", adaptive),
            f"{keep}: cluster.adapt(minimum=2)",
        ),
        "lifetime": (left("worker-close-gracefully-1.0", lifetime), "Raise the --lifetime"),
        "job": (left("handle-worker-cleanup-1.0", *job, asked), f"{keep}: request"),
        "lost, in a job": (left("handle-worker-cleanup-1.0", *job), "Find out why the workers"),
        "neither": (left("handle-worker-cleanup-1.0", asked), f"{keep}. Why"),
        "late": (late, f"{start} them earlier, or wait"),
        "late jobs": ([*late, *job], f"{start} them earlier, in"),
        "late, adaptive": (
            [*late, adaptive],
            f"{start} them earlier, with cluster.adapt(minimum=2)",
        ),
    }  # fmt: skip
    rows = apply_each(
        "late-workers",
        *(records for records, _ in cases.values()),
        columns="change",
        stop_t=60.0,
    )
    found = dict(zip(cases, rows, strict=True))
    assert {
        case: change.startswith(expected)
        for (case, (_, expected)), [(change,)] in zip(
            cases.items(), found.values(), strict=True
        )
    } == dict.fromkeys(cases, True), found


def test_chunks_are_made_smaller_only_if_there_are_chunks(
    apply_each, worker, task, run, sample, chunk
):
    phases = [("disk-read", 1.0, 5.0), ("compute", 5.0, 8.0)]
    records = [
        *(worker("w1"), task("a-1"), *run("a-1", 1.0, 8.0, phases=phases)),
        sample(2.0, memory_limit=1000 * MB, managed_bytes=800 * MB, spilled_memory=300 * MB),
    ]
    rows = apply_each(
        "spilling",
        records,
        [*records, chunk("a-1", run_id=1, dataset="DY", filename="1.root")],
        columns="change",
    )
    assert ["smaller chunks" in change for [(change,)] in rows] == [False, True]


def test_words_of_an_executor_without_dask(apply_each, process, worker):
    """Six processes of a pool, of which two process chunks for most of the time."""

    def trace(names, *, is_dask):
        chunks = [{"seconds": 1.0, "worker": name} for name in names]
        chunks += [{"seconds": 40.0, "worker": name} for name in names[:2]]
        records = [*(worker(name) for name in names), *process(*chunks)]
        if is_dask:
            return records
        kinds = ("transition", "task")
        return [
            {**record, "run_id": number}
            for number, record in enumerate(records)
            if record["kind"] not in kinds
        ]

    rows = apply_each(
        "excess-workers",
        trace([f"w{number}" for number in range(6)], is_dask=True),
        trace([f"pid:{number}" for number in range(6)], is_dask=False),
        columns="change",
        stop_t=45.0,
    )
    assert [change[:14] for [(change,)] in rows] == ["Use n_workers=", "Use 2 workers "]
