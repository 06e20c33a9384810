"""Rule client-gaps: the workers wait for the next graph."""

import pytest


def test_gaps(apply_each, worker, task, run):
    """Two gaps of 10 s and 5 s; the 20 s before the first graph do not count."""
    records = [
        worker("w1", nthreads=2),
        task("a", t=20.0), *run("a", 20.0, 30.0),
        task("b", t=40.0), *run("b", 40.0, 50.0),
        task("c", t=55.0), *run("c", 55.0, 100.0),
    ]  # fmt: skip

    def did(activity):
        return [
            {"kind": "client_activity", "t": stop_t, "client": "c", "activity": activity,
             "name": "f", "start_t": start_t, "stop_t": stop_t}
            for start_t, stop_t in ((30.0, 40.0), (50.0, 55.0))
        ]  # fmt: skip

    savings = "wall_seconds_min, wall_seconds_max"
    rows = apply_each(
        "client-gaps",
        *(records, [*records, *did("own")], [*records, *did("wait")]),
        columns=f"core_seconds, {savings}, confidence, sentence, change",
    )

    text = (
        "The workers had nothing to do for 15.0 s in 2 gaps between graphs (the longest "
        "10.0 s)."
    )
    unknown, known, waited = (row for [row] in rows)
    seconds = (pytest.approx(30.0), pytest.approx(0.65 * 15.0), pytest.approx(15.0))
    assert {row[:3] == seconds for row in (unknown, known, waited)} == {True}
    not_known = f"{text} What the client did meanwhile is not known."
    assert unknown[3:5] == ("medium", not_known)
    assert known[3:5] == ("high", text)
    assert waited[4].startswith(f"{text} The client waited for Dask meanwhile, as for workers")
    assert waited[5].startswith("If the client waits for workers, submit tasks before all of")


def test_time_between_the_programs_of_two_clients(apply_each, worker, task, run):
    """A waits for 10 s between its graphs; B submits its only graph after another 20 s."""

    def records(*clients):
        found = [worker("w1")]
        for client, start, stop in zip(
            clients, (0.0, 20.0, 60.0), (10.0, 40.0, 70.0), strict=True
        ):
            key = f"t-{start}"
            found += [task(key, t=start, client=client), *run(key, start, stop)]
        return found

    found = apply_each(
        "client-gaps",
        records("A", "A", "B"),
        records("A", "B", "A"),
        records("A", "B", "C"),
        # A task of A submits tasks, too.
        records("A", "A", "Client-worker-1"),
        columns="core_seconds",
        stop_t=70.0,
    )
    assert found == [
        [(pytest.approx(10.0, abs=0.3),)],
        [(pytest.approx(30.0, abs=0.3),)],
        [],
        [(pytest.approx(10.0, abs=0.3),)],
    ]


def test_actors_compute_between_graphs(apply_each, worker, task, run):
    """Of a gap of 40 s, a method of an actor is profiled for 30 s."""
    records = [
        worker("w1"),
        task("a-1", t=0.0), *run("a-1", 0.0, 10.0),
        task("a-2", t=50.0), *run("a-2", 50.0, 60.0),
    ]  # fmt: skip

    def profile(prefix):
        tree = {"slices": [{"start_t": 12.0, "stop_t": 42.0, "nodes": [], "counts": []}]}
        return {"kind": "profile", "t": 50.0, "worker": "w1", "prefix": prefix, "tree": tree}

    found = apply_each(
        "client-gaps",
        [*records, profile("Counter.work")],
        [*records, profile("a")],
        columns="wall_seconds_max",
        stop_t=60.0,
    )
    # Before and after the actor's method.
    assert found == [[(pytest.approx(10.0, abs=0.5),)], [(pytest.approx(40.0, abs=0.5),)]]


def test_no_gap(apply_each, worker, task, run):
    def records(t, nbytes):
        update = {"kind": "graph_update", "t": t, "stimulus_id": "u", "nbytes": nbytes}
        return [
            worker("w1"),
            task("a"), *run("a", 0.0, 30.0),
            task("b", t=t, stimulus_id="u"), *run("b", t, 100.0), update,
        ]  # fmt: skip

    # Four gaps of 0.4 s do not add up.
    short = [worker("w1")]
    for number in range(5):
        key, t = f"a-{number}", 20.4 * number
        short += [task(key, t=t), *run(key, t, t + 20.0)]

    cases = {
        "a short one": records(t=30.4, nbytes=1_000),
        "a large graph": records(t=40.0, nbytes=50_000_000),
        "several short ones": short,
    }
    found = apply_each("client-gaps", *cases.values())
    assert {case: rows for case, rows in zip(cases, found, strict=True) if rows} == {}


@pytest.mark.exhaustive
def test_a_part_of_the_gap_is_due_to_the_client(apply_each, worker, gone, task, run):
    # The cluster has no worker from 35 s to 70 s; the next graph is submitted at 40 s.
    without_workers = [
        worker("w1"), gone("w1", 35.0, "retire-workers"), worker("w2", t=70.0),
        task("a", t=0.0), *run("a", 0.0, 30.0),
        task("b", t=40.0), *run("b", 70.0, 100.0, "w2"),
    ]  # fmt: skip

    # The program works for 6 of the 10 s between two graphs; the rest is due to the large one.
    own = {"kind": "client_activity", "t": 36.0, "client": "c", "activity": "own", "name": "f"}
    update = {"kind": "graph_update", "t": 40.0, "stimulus_id": "u", "nbytes": 50_000_000}
    before_a_large_graph = [
        worker("w1"),
        task("a"), *run("a", 0.0, 30.0), own | {"start_t": 30.0, "stop_t": 36.0},
        task("b", t=40.0, stimulus_id="u"), update, *run("b", 40.0, 100.0),
    ]  # fmt: skip

    assert apply_each("client-gaps", without_workers, before_a_large_graph) == [
        [(None, pytest.approx(5.0))],
        [(None, pytest.approx(6.0, rel=0.05))],
    ]


@pytest.mark.exhaustive
def test_tasks_that_are_submitted_one_by_one(apply_each, worker, task, run):
    """Of three threads, two have a task while the client prepares the next one."""

    def records(client_seconds):
        records = [worker("w1", nthreads=3)]
        for number in range(20):
            key, t = f"fit-{number}", 4.0 * number + client_seconds
            records += [task(key, t=t, stimulus_id=key), *run(key, t, 4.0 * (number + 2))]
        return records

    slow, fast = records(client_seconds=2.0), records(client_seconds=0.01)
    # Graphs of 6 MB, 120 MB in all: how long the client prepares their data is not known.
    large = [
        *slow,
        *(
            {
                "kind": "graph_update", "t": record["t"], "client": "c", "nbytes": 6_000_000,
                "stimulus_id": record["stimulus_id"], "value": {},
            }
            for record in slow
            if record["kind"] == "task"
        ),
    ]  # fmt: skip
    idle = [(None, pytest.approx(126.0, rel=0.01))]
    assert apply_each("client-gaps", slow, fast, large) == [idle, [], []]
    # No other task waits for them.
    assert apply_each("low-parallelism", slow, fast) == [[], []]
