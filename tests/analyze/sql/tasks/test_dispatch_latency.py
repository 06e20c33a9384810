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
def arrival(change):
    """Return the state changes of a task that arrives at a worker and executes."""

    def arrival(key, sent, arrived, ready, executing, worker="w1") -> list[dict]:
        stimulus_id = f"compute-task-{sent}"
        return [
            change(arrived, key, "released>waiting", stimulus_id, worker),
            change(ready, key, "waiting>ready", "gather-dep-success-1.0", worker),
            change(executing, key, "ready>executing", "task-finished-1.0", worker),
        ]

    return arrival


def test_latency_of_each_attempt(rows, run, move, arrival, change):
    """The parts of an attempt add up to its latency."""
    phases = [
        ("transfer", 1.25, 2.0, "w2"), ("disk-read", 5.0, 5.25), ("deserialize", 5.25, 5.75),
        ("compute", 6.0, 9.0),
    ]  # fmt: skip
    assert rows(
        f"SELECT key, attempt, worker, is_stolen, clocks_disagree, {PARTS} "
        "FROM dispatch_latency ORDER BY key, attempt",
        *run("all parts", 1.0, 10.0, phases=phases),
        *arrival("all parts", 0.99, 1.125, 2.125, 4.75),
        *run("clocks", 1.0, 4.0, phases=[("compute", 2.0, 3.0)]),
        *arrival("clocks", 0.99, 0.75, 1.0, 1.0),
        # The dependency `fetched` is fetched, not executed.
        *run("fetched", 1.0),
        change(2.0, "fetched", "released>fetch", "compute-task-0.99"),
        change(2.0, "fetched", "fetch>flight", "compute-task-0.99"),
        *run("lost", 1.0, 4.0, outcome="lost"),
        change(1.25, "lost", "released>waiting", "compute-task-0.99"),
        change(2.0, "lost", "waiting>constrained", "compute-task-0.99"),
        *run("retried", 1.0, 3.0, outcome="retried", phases=[("compute", 2.0, 2.5)]),
        *arrival("retried", 0.99, 1.5, 1.5, 1.5),
        *run("retried", 4.0, 7.0, phases=[("compute", 6.0, 6.5)]),
        *arrival("retried", 3.99, 4.25, 4.5, 5.0),
        *run("stolen", 1.0),
        change(1.25, "stolen", "released>waiting", "compute-task-0.99"),
        change(1.25, "stolen", "waiting>ready", "compute-task-0.99"),
        change(2.5, "stolen", "ready>released", "steal-2.0"),
        *arrival("stolen", 3.0, 3.5, 3.5, 4.0, worker="w2"),
        move(6.0, "stolen", "processing>memory", worker="w2", phases=[("compute", 5.0, 5.5)]),
        *run("unreported", 1.0, 2.0),
    ) == [
        ("all parts", 1, "w1", False, False, 0.125, 1.0, 2.625, 0.5, 0.25, 0.5, 5.0),
        ("clocks", 1, "w1", False, True, -0.25, 0.25, 0.0, 0.0, 0.0, 1.0, 1.0),
        ("fetched", 1, "w1", False, False, *[None] * 7),
        ("lost", 1, "w1", False, False, 0.25, 0.75, *[None] * 5),
        ("retried", 1, "w1", False, False, 0.5, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0),
        ("retried", 2, "w1", False, False, 0.25, 0.25, 0.5, 0.0, 0.0, 1.0, 2.0),
        ("stolen", 1, "w2", True, False, 2.5, 0.0, 0.5, 0.0, 0.0, 1.0, 4.0),
        ("unreported", 1, "w1", False, False, None, None, None, 0.0, 0.0, 0.0, 0.0),
    ]


def test_empty_without_worker_transitions(rows, run):
    assert rows("FROM dispatch_latency", *run("a", 1.0, 2.0)) == []
