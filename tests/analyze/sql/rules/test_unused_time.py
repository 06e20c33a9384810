"""Rules late-start and unused-cluster."""

import pytest


def did(activity: str, start_t: float, stop_t: float, client: str = "c", name="f") -> dict:
    period = {"start_t": start_t, "stop_t": stop_t, "name": name}
    return {
        "kind": "client_activity", "t": stop_t, "client": client, "activity": activity, **period
    }  # fmt: skip


@pytest.mark.parametrize(
    ("activity", "words", "change"),
    [
        ("dask", "in functions of Dask, such as those that make graphs", "Make smaller graphs"),
        ("own", "of its own work", "Move this work into tasks"),
        (
            "wait",
            "of waits for Dask, as for workers or for data that it sent to them",
            "If the client sends data",
        ),
    ],
)
def test_workers_without_tasks_before_the_first_one(
    apply, worker, task, run, activity, words, change
):
    """Workers are there from 10 s on, and the first task from 40 s on."""
    [(sentence, least, most, advice)] = apply(
        "late-start",
        worker("w1", t=10.0),
        did(activity, 5.0, 40.0),
        *(task("a-1", t=40.0, client="c"), *run("a-1", 40.0, 90.0)),
        columns="sentence, wall_seconds_min, wall_seconds_max, change",
    )

    assert sentence == (
        "Workers were there before the first task was submitted, while the client spent "
        f"30.0 s: 30.0 s {words}."
    )
    assert (least, most) == (7.5, 30.0)
    assert advice.startswith(change)


def test_data_that_the_client_sends_before_the_first_task(apply_each, worker, task, run):
    payload = {"action": "scatter"}

    def trace(calls):
        sent = [
            {"kind": "event", "t": 20.0 + n, "topic": topic, "payload": payload}
            for n in range(calls)
            for topic in ("all", "c")
        ]
        work = [task("a-1", t=40.0, client="c"), *run("a-1", 40.0, 90.0)]
        return [worker("w1", t=10.0), did("wait", 5.0, 40.0), *sent, *work]

    [[(once,)], [(often,)]] = apply_each("late-start", trace(1), trace(2), columns="change")

    assert once == "Let tasks load the data that the client sent to workers (client.scatter)."
    assert often.endswith("or send it in one call (client.scatter with a list).")


def test_blocked_event_loops_before_the_first_task(apply, worker, task, run):
    """As by the setup of a plugin of the workers, for which the client waits."""
    stalls = [
        {"kind": "stall", "t": stop_t, "worker": address, "server_id": f"id-{address}-10.0",
         "start_t": 12.0, "stop_t": stop_t}
        for address, stop_t in (("w1", 32.0), ("w2", 35.0))
    ]  # fmt: skip
    [(sentence, change)] = apply(
        "late-start",
        *(worker("w1", t=10.0), worker("w2", t=10.0), did("wait", 5.0, 40.0), *stalls),
        *(task("a-1", t=40.0, client="c"), *run("a-1", 40.0, 90.0)),
        columns="sentence, change",
    )

    blocked = " For up to 23.0 s of the waits, the event loop of a worker was blocked."
    assert sentence.endswith(blocked)
    assert change.startswith("Look for what blocks the event loops of workers then, such as")


def test_an_early_first_task_and_late_workers(apply_each, worker, task, run):
    early = [worker("w1"), did("own", 0.0, 9.0), task("a-1", t=9.0), *run("a-1", 9.0, 90.0)]
    # The workers joined just before the first task.
    late = [did("own", 0.0, 40.0), worker("w1", t=38.0), task("a-1", t=40.0)]

    assert apply_each("late-start", early, [*late, *run("a-1", 40.0, 90.0)]) == [[], []]


def test_a_cluster_that_nobody_used(apply_each, worker, gone, task, run):
    def client(kind, t):
        return {"kind": kind, "t": t, "client": "c"}

    work = [client("client_added", 0.0), worker("w1"), task("a-1"), *run("a-1", 0.0, 40.0)]

    def other(kind, t):
        return {"kind": kind, "t": t, "client": "other"}

    unused, left, shared = apply_each(
        "unused-cluster",
        [*work, client("client_removed", 55.0)],
        [*work, gone("w1", 41.0, "retire-workers-1"), client("client_removed", 55.0)],
        # Another program used it later.
        [*work, client("client_removed", 41.0), other("client_added", 99.0)],
        columns="sentence, core_seconds",
    )

    sentence = (
        "Workers were there and unused for 60.0 of 100.0 s: 45.0 s without a client that "
        "submitted tasks; 15.0 s after the last task."
    )
    assert unused == [(sentence, None)]
    assert left == shared == []


def test_a_client_that_works_on_results(apply_each, worker, task, run):
    """The last task ends at 40 s of 100 s."""
    work = [worker("w1"), task("a-1", client="c"), *run("a-1", 0.0, 40.0)]

    found, waits = apply_each(
        "unused-cluster",
        [*work, did("wait", 0.0, 30.0), did("own", 30.0, 90.0)],
        [*work, did("wait", 0.0, 90.0)],
        columns="sentence, core_seconds, change",
    )

    [(sentence, core_seconds, change)] = found
    assert sentence == (
        "Workers were there and unused for 60.0 of 100.0 s: 50.0 s in which the client worked "
        "after the last task, 50.0 s of them in f; 10.0 s more after the last task."
    )
    assert core_seconds is None
    assert change.startswith("If the client works on results, let tasks do this work")
    assert waits == []


def test_clients_that_only_watch(apply_each, worker, task, run):
    """A client that submitted nothing has neither work on results nor a program."""
    work = [worker("w1"), task("a-1", client="c"), *run("a-1", 0.0, 40.0)]
    plots = [did("own", 40.0, 60.0, name="analyze"), did("own", 60.0, 90.0, name="plot")]
    joined, left = ({"kind": f"client_{it}", "client": "c"} for it in ("added", "removed"))
    watch = [
        {"kind": "client_added", "t": 10.0, "client": "m1"},
        {"kind": "client_removed", "t": 15.0, "client": "m1"},
        {"kind": "client_added", "t": 95.0, "client": "m2"},
    ]

    [[(works,)], [(leaves,)]] = apply_each(
        "unused-cluster",
        [*work, *plots, did("own", 40.0, 90.0, client="m1", name="watch")],
        [*work, {**joined, "t": 0.0}, {**left, "t": 42.0}, *watch],
        columns="sentence",
    )

    assert (
        "50.0 s in which the client worked after the last task, 30.0 s of them in plot;"
        in works
    )
    assert "58.0 s without a client that submitted tasks" in leaves


def test_a_client_of_tasks_that_are_older_than_the_recording(apply, worker, task, run):
    """Another client submits one task and leaves; the first still wants its results."""
    wants = [{"t": 0.0, "action": "desires", "keys": ["old-1"]}]

    [(sentence,)] = apply(
        "unused-cluster",
        worker("w1"), task("b-1", t=10.0, client="second"), *run("b-1", 10.0, 20.0),
        {"kind": "client_added", "t": 0.0, "client": "first"},
        {"kind": "wanted_keys", "t": 0.0, "client": "first", "changes": wants},
        {"kind": "client_added", "t": 0.0, "client": "second"},
        {"kind": "client_removed", "t": 20.0, "client": "second"},
        did("own", 20.0, 90.0, client="first", name="analyze"),
        columns="sentence",
    )  # fmt: skip

    assert (
        "70.0 s in which the client worked after the last task, 70.0 s of them in an"
        in sentence
    )
