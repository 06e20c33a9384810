"""Progress of a run from its records."""

import pytest

from roast_analyze.algorithms.progress import Progress


def followed(*records: dict) -> Progress:
    progress = Progress()
    for record in records:
        progress.add(record)
    return progress


def chunk(key: str, dataset: str, start: int, stop: int) -> dict:
    entries = {"entry_start": start, "entry_stop": stop}
    return {"kind": "chunk", "t": 0.0, "key": key, "dataset": dataset, **entries}


def test_tasks_and_the_expected_end(task, run):
    """Two of four tasks took 10 s, so the others take 10 s more."""
    tasks = [task(f"a-{n}") for n in range(3)] + [task("b-1")]
    progress = followed(
        *tasks, *run("a-0", 0.0, 5.0), *run("a-1", 5.0, 10.0), *run("a-2", 10.0)
    )

    assert (progress.tasks.total, progress.tasks.done) == (4, 2)
    assert progress.prefixes["a"].total == 3
    assert progress.tasks.rates(10.0, 0.0) == (0.2, 0.0)
    assert progress.tasks.left_seconds(10.0, 0.0) == 10.0
    assert progress.prefixes["b"].left_seconds(10.0, 0.0) is None
    assert progress.processing == {"a-2": 10.0}


def test_a_key_that_is_computed_again_counts_once(task, run):
    progress = followed(task("a-0"), *run("a-0", 0.0, 5.0), *run("a-0", 6.0, 7.0))
    assert (progress.tasks.total, progress.tasks.done) == (1, 1)


def test_rates_are_those_of_the_last_minute(task, run):
    early = [line for n in range(50) for line in (task(f"a-{n}"), *run(f"a-{n}", n, n + 1.0))]
    progress = followed(*early)
    assert progress.tasks.rates(50.0, 0.0)[0] == 1.0
    assert progress.tasks.rates(90.0, 0.0)[0] == 21 / 60
    assert progress.tasks.rates(200.0, 0.0)[0] == 0.0


def test_events_of_datasets(task, run):
    progress = followed(
        task("p-1"), chunk("p-1", "ttbar", 0, 100),
        task("p-2"), chunk("p-2", "ttbar", 100, 150),
        *run("p-1", 0.0, 10.0),
    )  # fmt: skip
    found = progress.datasets["ttbar"]
    assert (found.total, found.done, found.events, found.done_events) == (2, 1, 150, 100)
    assert found.rates(10.0, 0.0) == (0.1, 10.0)


def test_failures_workers_and_losses(task, run, worker, gone):
    progress = followed(
        worker("w1", nthreads=2), worker("w2"), gone("w1", 4.0, "x"),
        task("a-1"), *run("a-1", 0.0, 1.0, outcome="erred"),
        {"kind": "loss", "t": 5.0, "record_kind": "event", "records": 7},
    )  # fmt: skip
    assert (progress.joined, progress.left, [*progress.workers]) == (2, 1, ["w2"])
    assert progress.tasks.failed == 1
    assert [key for _, key, _ in progress.failures] == ["a-1"]
    assert progress.lost == {"event": 7}


def test_records_that_cannot_be(task):
    odd = [{}, {"t": "x"}, {"t": 1.0}, {"t": 1.0, "kind": "transition"}]
    odd += [{"t": 1.0, "kind": "chunk", "key": "a-1", "dataset": "d", "entry_stop": "x"}]
    odd += [{"t": 1.0, "kind": kind} for kind in ("trailer", "worker_removed", "__init__", 5)]
    assert followed(task("a-1"), *odd).tasks.total == 1


@pytest.mark.parametrize("t", [2.0**33 + 1, 1.8e17, -1e10, True, "1.0", None, [1.0]])
def test_a_time_that_check_rejects_is_none(task, t, write_trace, analyze):
    """One definition: the declaration of the field."""
    odd = {"kind": "event", "t": t, "topic": "x"}
    progress = followed(task("a-1", 5.0), odd, {**odd, "kind": "unknown"}, task("a-2", 6.0))
    assert (progress.start_t, progress.now, progress.tasks.total) == (5.0, 6.0, 2)
    if isinstance(t, float):
        code, printed, _ = analyze("check", write_trace(task("a-1", 5.0), odd))
        assert (code, " t cannot be" in " ".join(printed.split())) == (1, True)


def test_amounts_that_cannot_be_are_not_known(worker):
    sample = {"kind": "worker_sample", "t": 2.0, "worker": "w1"}
    progress = followed(
        worker("w1", nthreads=2),
        {**sample, "nthreads": 2**60, "memory_limit": -1, "metrics": {"memory": 2**60}},
    )
    [found] = progress.workers.values()
    assert (found.nthreads, found.memory, found.memory_limit) == (2, 0, 0)


def test_programs_of_a_shared_scheduler(task):
    reports = [
        {"kind": "client_program", "t": 1.0, "client": client, "name": name}
        for client, name in (("c", "hist.py"), ("d", "fit.py"), ("e", "idle.py"), ("f", None))
    ]
    work = [task(f"{client}-1", 1.0, client=client) for client in "dcf"]
    own = {"kind": "environment", "t": 1.0, "section": "client", "name": "program"}
    assert followed(*reports).program is None
    assert followed(*reports, *work).program == "fit.py, hist.py"
    assert followed(*reports, *work, {**own, "value": "mine.py"}).program == "mine.py"
