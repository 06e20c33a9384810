"""Rules long-tail and low-parallelism: threads are idle while few tasks compute."""

from itertools import starmap

import pytest


@pytest.fixture
def cluster(worker, task, run):
    """Return tasks of 1 s, on w1 until 20 s and w2 until 10 s, then `durations` on w2."""

    def cluster(*durations, is_chain=False, prefix="fit", inputs=None):
        records = [worker("w1"), worker("w2")]
        for address, stop in (("w1", 20), ("w2", 10)):
            for number in range(stop):
                key = f"nap-{address}-{number}"
                dispatch = 0.0 if number % 2 else float(number)
                phases = [("compute", float(number), number + 1.0)]
                end = run(key, dispatch, number + 1.0, worker=address, phases=phases)
                records += [task(key), *end]
        begin = 10.0
        for number, seconds in enumerate(durations):
            key = f"{prefix}-{number}"
            needed = inputs or ([f"{prefix}-{number - 1}"] if number else ["nap-w2-9"])
            phases = [("compute", begin, begin + seconds)]
            ready = begin if is_chain else 0.0
            records += [
                task(key, dependencies=needed if is_chain else []),
                *run(key, ready, begin + seconds, worker="w2", phases=phases),
            ]
            begin += seconds
        return records

    return cluster


def test_a_few_tasks_more_than_threads(apply_each, worker, task, run):
    """Tasks of 10 s in each of two graphs, on four threads."""

    def trace(*starts):
        records = [worker("w1", nthreads=4)]
        for graph in range(2):
            for number, start in enumerate(starts):
                key, t = f"fit-{graph}-{number}", 50.0 * graph
                begin = t + start
                records += [
                    task(key, t=t, stimulus_id=f"g{graph}"),
                    *run(key, t, begin + 10.0, phases=[("compute", begin, begin + 10.0)]),
                ]
        return records

    sentence = (
        "The tasks of fit, up to 5 in each of 2 graphs, run in two rounds on 4 threads. "
        "The second round leaves most of them idle: 60.0 core-seconds."
    )
    expected = {
        # The fifth one leaves three threads idle.
        (0.0, 0.0, 0.0, 0.0, 10.0): [("fit", pytest.approx(60.0), sentence)],
        # As many tasks as threads in both rounds, or in one.
        (0.0, 0.0, 0.0, 0.0, 10.0, 10.0, 10.0, 10.0): [],
        (0.0, 0.0, 0.0, 0.0): [],
        # They run one after another.
        (0.0, 10.0, 20.0, 30.0, 40.0): [],
    }
    columns = "entity, core_seconds, sentence"
    rows = apply_each("low-parallelism", *starmap(trace, expected), columns=columns)
    assert rows == [*expected.values()]


def test_a_long_task_that_started_last(apply_rules, cluster, sample):
    """The fit of 30 s ends 20 s after the last other task."""

    def restricted(**annotations):
        records = cluster(30.0)
        [fit] = [r for r in records if r["kind"] == "task" and r["key"] == "fit-0"]
        fit["annotations"] = annotations
        return records

    # The fit needs the last nap of w2, which was ready at 0 s and began at 9 s.
    late_chain = cluster(30.0, is_chain=True)
    naps = cluster(30.0, prefix="nap")
    heartbeats = [sample(t + 0.5, "w2", last_seen=min(t, 11.0)) for t in range(38)]
    cases = {
        "a task": (cluster(30.0), [("fit", pytest.approx(20.0, rel=0.02))]),
        "a chain that began late": (late_chain, [("fit", pytest.approx(20.0, rel=0.02))]),
        "a task that needs a GPU": (restricted(resources={"GPU": 1}), []),
        "a task that needs its worker": (restricted(workers=["w2"]), []),
        # The last tasks take 1.5 s, the others 1 s.
        "tasks that are not longer": (cluster(*[1.5] * 8), []),
        "a worker that responds": (naps, [("nap", pytest.approx(20.0, rel=0.02))]),
        "a worker that stopped responding": ([*naps, *heartbeats], []),
    }
    tails, chains = apply_rules(
        ("long-tail", "low-parallelism"), *(records for records, _ in cases.values())
    )
    assert tails == [expected for _, expected in cases.values()]
    assert chains[:2] == [[], []]


def test_a_long_task_that_started_first(apply_rules, worker, task, run):
    """w2 computes 10 naps of 1 s, while w1 computes a task of 30 s."""
    naps = [worker("w1"), worker("w2"), task("fit-0"), *run("fit-0", 0.0, 30.0)]
    for number in range(10):
        key, t = f"nap-{number}", float(number)
        naps += [task(key), *run(key, 0.0, t + 1, "w2", phases=[("compute", t, t + 1)])]
    last = [task("last", dependencies=["fit-0"]), *run("last", 30.0, 30.1)]

    [alone, needed], [_, low_parallelism] = apply_rules(
        ["long-tail", "low-parallelism"],
        *(naps, [*naps, *last]),
        columns="entity, core_seconds, sentence",
        stop_t=31.0,
    )
    sentence = (
        "A task of fit took 30.0 s, longer than the others. During that time, other threads "
        "were idle for 20.0 core-seconds."
    )
    assert alone == [("fit", pytest.approx(20.0), sentence)]
    # The rest of the graph waits for it.
    assert needed == []
    assert sorted(entity for entity, *_ in low_parallelism) == ["fit", "last"]


@pytest.mark.exhaustive
def test_tasks_without_a_name(apply, worker, move, run):
    """The trace has no task records; the last task takes longer than the others."""
    records = [worker("w1"), worker("w2")]
    times = [(f"w{1 + n % 2}", 1.0 + n // 2, 2.0 + n // 2) for n in range(16)]
    for number, (address, start, stop) in enumerate([*times, ("w1", 9.0, 30.0)]):
        key = f"fit-{number}"
        assigned, *rest = run(key, start, stop, worker=address)
        records += [move(0.5, key, "waiting>queued"), {**assigned, "start": "queued"}, *rest]
    assert apply("long-tail", *records, stop_t=31.0) == []


def test_long_tasks_of_several_prefixes(apply, cluster, worker, task, run):
    records = [*cluster(30.0), worker("w3"), worker("w4"), task("scan-1")]
    records += run("scan-1", 0.0, 26.0, worker="w3", phases=[("compute", 10.0, 26.0)])
    [(sentence,)] = apply("long-tail", *records, columns="sentence")
    assert sentence.startswith(
        "2 tasks, such as those of fit, took up to 30.0 s, "
        "and started up to 10.0 s after they were ready."
    )


def test_a_chain(apply_rules, cluster):
    """Each fit of 3 s needs the previous one: from 20 s to 40 s, one thread is idle."""
    chain = cluster(*[3.0] * 10, is_chain=True)
    # Three merges of four results each.
    end_of_a_tree = cluster(*[7.0] * 3, is_chain=True, inputs=[f"nap-w1-{n}" for n in range(4)])

    tails, chains = apply_rules(("long-tail", "low-parallelism"), chain, end_of_a_tree)
    assert chains == [[("fit", pytest.approx(20.0, rel=0.05))], []]
    assert tails[0] == []


@pytest.mark.exhaustive
def test_parallel_chains(apply_each, worker, task, run):
    """Chains of ten tasks occupy some of four workers during the whole run."""

    def trace(chains):
        records = [worker(f"w{number}") for number in range(1, 5)]
        for chain in range(chains):
            for step in range(10):
                key, begin = f"step-{chain}-{step}", 10.0 * step
                phases = [("compute", begin, begin + 10.0)]
                needed = [f"step-{chain}-{step - 1}"] if step else []
                records += [
                    task(key, dependencies=needed),
                    *run(key, begin, begin + 10.0, worker=f"w{chain + 1}", phases=phases),
                ]
        return records

    rows = apply_each(
        "low-parallelism", trace(2), trace(1), columns="confidence, wall_seconds_min"
    )
    assert [(confidence, least > 0.0) for [(confidence, least)] in rows] == [
        ("low", False),
        ("medium", True),
    ]


@pytest.mark.exhaustive
def test_a_long_task_between_others(apply_rules, cluster):
    """Tasks after a fit of 30 s form a chain with it if they take at least a tenth as long."""
    traces = [cluster(30.0, *[seconds] * 5, is_chain=True) for seconds in (1.0, 4.0)]
    tails, chains = apply_rules(("long-tail", "low-parallelism"), *traces)
    assert [bool(rows) for rows in tails] == [True, False]
    assert chains[1] != []


@pytest.mark.exhaustive
def test_a_task_after_a_merge(apply_rules, worker, task, run):
    """One partition is left after the merge; the other thread is idle while it is written."""
    reads = [f"read-{number}" for number in range(20)]
    records = [worker("w1"), worker("w2")]
    for number, key in enumerate(reads):
        begin = float(number // 2)
        phases = [("compute", begin, begin + 1.0)]
        records += [
            task(key),
            *run(key, begin, begin + 1.0, f"w{number % 2 + 1}", phases=phases),
        ]
    records += [
        task("merge-0", dependencies=reads), *run("merge-0", 10.0, 10.01),
        task("write-0", dependencies=["merge-0"]), *run("write-0", 10.01, 40.0),
    ]  # fmt: skip

    [tails], [chains] = apply_rules(("long-tail", "low-parallelism"), records)
    assert chains[0] == ("write", pytest.approx(30.0, rel=0.05))
    assert tails == []


def test_a_long_chunk_that_started_first(apply_each, process, worker, chunk):
    """The chunk of 40 s ends 30 s after ten others."""
    on_workers = process(
        {"seconds": 40.0, "worker": "w1", "dataset": "TT"},
        *[{"seconds": 1.0, "worker": "w2"}] * 10,
    )

    def made(number, dataset, process, start, stop):
        key, about = f"chunk-{number}", {"dataset": dataset, "filename": f"{number}.root"}
        times = {"run_id": number, "start_t": start, "stop_t": stop}
        return chunk(key, **about, **times, worker=process, events=1000)

    # Two processes of a pool, without a cluster.
    in_pool = [
        made(0, "TT", "pid:1", 0.0, 40.0),
        *(made(n, "DY", "pid:2", n - 1.0, float(n)) for n in range(1, 11)),
    ]
    rows = apply_each(
        "long-tail",
        [worker("w1"), worker("w2"), *on_workers],
        [worker("pid:1"), worker("pid:2"), *in_pool],
        columns="entity, core_seconds, sentence, change",
    )
    for [(entity, core_seconds, sentence, change)] in rows:
        assert (entity, core_seconds) == ("TT", pytest.approx(30.0, rel=0.05))
        assert sentence == (
            "A chunk of TT took 40.0 s, longer than the others. During that time, other "
            "threads were idle for 30.0 core-seconds."
        )
        assert change.startswith("Use smaller chunks for dataset TT")


def test_a_merge(apply, cluster):
    """Merging 20 results, 1.5 s each, on two threads is fastest with a fan-in of 4."""
    inputs = [f"nap-w1-{number}" for number in range(20)]
    records = cluster(30.0, is_chain=True, prefix="merge", inputs=inputs)
    [(entity, change)] = apply("low-parallelism", *records, columns="entity, change")
    assert entity == "merge"
    assert change.startswith(
        "Merge in a tree with a fan-in of 4 instead of 20 (split_every=4), if"
    )
