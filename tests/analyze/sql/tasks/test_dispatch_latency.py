"""View dispatch_latency."""

import pytest

PARTS = (
    "dispatch_seconds, transfer_wait_seconds, queue_seconds, deserialize_seconds, "
    "disk_seconds, other_seconds, dispatch_latency_seconds"
)


@pytest.fixture
def change():
    """Return a state change of a task on a worker."""

    def change(t: float, key: str, states: str, stimulus_id: str, worker: str = "w1") -> dict:
        start, finish = states.split(">")
        return {
            "kind": "worker_transition", "t": t, "worker": worker, "server_id": worker,
            "key": key, "start": start, "finish": finish, "stimulus_id": stimulus_id,
        }  # fmt: skip

    return change


@pytest.fixture
def came(change):
    """Return the state changes of a task that arrives at a worker and executes."""

    def came(key, sent, arrived, ready, executing, worker="w1") -> list[dict]:
        stimulus_id = f"compute-task-{sent}"
        return [
            change(arrived, key, "released>waiting", stimulus_id, worker),
            change(ready, key, "waiting>ready", "gather-dep-success-1.0", worker),
            change(executing, key, "ready>executing", "task-finished-1.0", worker),
        ]

    return came


def computed(start: float, stop: float) -> dict:
    return {"action": "compute", "start": start, "stop": stop}


def test_parts_add_up_to_the_latency(rows, move, came):
    parts = [
        {"action": "transfer", "start": 1.25, "stop": 2.0, "source": "w2"},
        {"action": "disk-read", "start": 5.0, "stop": 5.25},
        {"action": "deserialize", "start": 5.25, "stop": 5.75},
        computed(6.0, 9.0),
    ]

    assert rows(
        f"SELECT {PARTS}, stimulus_id, worker_stimulus_id, clocks_disagree, is_stolen "
        "FROM dispatch_latency",
        move(1.0, "a", "waiting>processing", "task-finished-0.9", worker="w1"),
        *came("a", 0.99, 1.125, 2.125, 4.75),
        move(10.0, "a", "processing>memory", worker="w1", startstops=parts),
    ) == [
        (
            *(0.125, 1.0, 2.625, 0.5, 0.25, 0.5, 5.0),
            *("task-finished-0.9", "compute-task-0.99", False, False),
        )
    ]


def test_latency_of_each_attempt(rows, move, came):
    assert rows(
        f"SELECT attempt, worker, {PARTS} FROM dispatch_latency",
        move(1.0, "a", "waiting>processing", worker="w1"),
        *came("a", 0.99, 1.5, 1.5, 1.5),
        move(3.0, "a", "processing>released", "task-erred-3.0", worker="w1", exception="E",
             startstops=[computed(2.0, 2.5)]),
        move(3.0, "a", "released>waiting"),
        move(3.0, "a", "waiting>processing", worker="w1"),
        *came("a", 3.01, 3.25, 3.5, 4.0),
        move(6.0, "a", "processing>memory", worker="w1", startstops=[computed(5.0, 5.5)]),
    ) == [
        (1, "w1", 0.5, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0),
        (2, "w1", 0.25, 0.25, 0.5, 0.0, 0.0, 1.0, 2.0),
    ]  # fmt: skip


def test_stolen_task(rows, move, came, change):
    assert rows(
        f"SELECT worker, is_stolen, worker_stimulus_id, {PARTS} FROM dispatch_latency",
        move(1.0, "a", "waiting>processing", worker="w1"),
        change(1.25, "a", "released>waiting", "compute-task-0.99", "w1"),
        change(1.25, "a", "waiting>ready", "compute-task-0.99", "w1"),
        change(2.5, "a", "ready>released", "steal-2.0", "w1"),
        *came("a", 3.0, 3.5, 3.5, 4.0, worker="w2"),
        move(6.0, "a", "processing>memory", worker="w2", startstops=[computed(5.0, 5.5)]),
    ) == [("w2", True, "compute-task-3.0", 2.5, 0.0, 0.5, 0.0, 0.0, 1.0, 4.0)]


def test_fetched_dependency_is_not_an_arrival(rows, move, change):
    assert rows(
        "SELECT arrived_t FROM dispatch_latency",
        move(1.0, "a", "waiting>processing", worker="w1"),
        change(2.0, "a", "released>fetch", "compute-task-0.99", "w1"),
        change(2.0, "a", "fetch>flight", "compute-task-0.99", "w1"),
    ) == [(None,)]


def test_attempt_that_never_computed(rows, move, change):
    assert rows(
        f"SELECT outcome, {PARTS} FROM dispatch_latency",
        move(1.0, "a", "waiting>processing", worker="w1"),
        change(1.25, "a", "released>waiting", "compute-task-0.99"),
        change(2.0, "a", "waiting>constrained", "compute-task-0.99"),
        move(4.0, "a", "processing>released", "handle-worker-cleanup-4.0"),
    ) == [("lost", 0.25, 0.75, None, None, None, None, None)]


def test_arrival_that_was_not_reported(rows, came, run):
    told_of_another = came("b", 0.5, 0.5, 0.5, 0.5)

    assert rows(
        f"SELECT {PARTS} FROM dispatch_latency WHERE key = 'a'",
        *told_of_another,
        *run("a", 1.0, 2.0),
    ) == [(None, None, None, 0.0, 0.0, 0.0, 0.0)]


def test_clocks_that_disagree(rows, move, came):
    assert rows(
        f"SELECT clocks_disagree, {PARTS} FROM dispatch_latency",
        move(1.0, "a", "waiting>processing", worker="w1"),
        *came("a", 0.99, 0.75, 1.0, 1.0),
        move(4.0, "a", "processing>memory", worker="w1", startstops=[computed(2.0, 3.0)]),
    ) == [(True, -0.25, 0.25, 0.0, 0.0, 0.0, 1.0, 1.0)]


def test_empty_without_worker_transitions(rows, run):
    assert rows("FROM dispatch_latency", *run("a", 1.0, 2.0)) == []
