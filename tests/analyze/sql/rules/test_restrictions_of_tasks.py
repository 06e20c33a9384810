"""Rules unplaceable-tasks and scarce-resources: workers lack what tasks need."""

import pytest


def test_tasks_that_no_worker_may_run(apply_each, worker, task, run, move):
    """Two tasks wait from 10 s on, until a worker joins or the trace ends at 30 s."""

    def trace(annotations, placed_t):
        records = [worker("w1"), worker("w2"), task("other-1"), *run("other-1", 0.0, 10.0)]
        for number in range(2):
            key = f"fit-{number}"
            records += [
                task(key, annotations=annotations),
                move(10.0, key, "waiting>no-worker"),
            ]
            if placed_t is not None:
                records += run(key, placed_t, 30.0, worker="w3")
        if placed_t is not None:
            records.append(worker("w3", t=placed_t))
        return records

    gpu, elsewhere = {"resources": {"GPU": 1}}, {"workers": ["tcp://elsewhere:1"]}
    rows = apply_each(
        "unplaceable-tasks",
        *(trace(gpu, placed_t) for placed_t in (None, 15.0, 10.5)),
        *(trace(elsewhere, placed_t) for placed_t in (None, 15.0, 10.5)),
        columns="entity, sentence",
        stop_t=30.0,
    )

    text = "2 tasks of fit waited up to {} s for a worker that may run them, {}."
    resources = 'with the resources {"GPU":1}'
    assert rows == [
        [("fit", text.format(20.0, resources) + " They never ran.")],
        [("fit", text.format(5.0, resources))],
        [],
        [("fit", text.format(20.0, "on tcp://elsewhere:1") + " They never ran.")],
        [("fit", text.format(5.0, "on tcp://elsewhere:1"))],
        [],
    ]


def test_lost_results_that_no_worker_may_compute_again(
    apply_each, worker, task, run, move, gone
):
    """At 10 s the only worker for a result is lost, and w1 computes until 30 s or 14 s."""

    def records(busy_t, placed_t=None):
        return [
            *[worker("w1"), worker("w2")],
            task("fit-1", annotations={"workers": ["w2"]}),
            *run("fit-1", 1.0, 2.0, worker="w2"),
            *[task("other-1"), *run("other-1", 1.0, busy_t)],
            gone("w2", 10.0, "handle-worker-cleanup-1.0"),
            move(10.0, "fit-1", "memory>released", "handle-worker-cleanup-1.0"),
            move(10.0, "fit-1", "released>waiting"),
            move(10.0, "fit-1", "waiting>no-worker"),
            *(run("fit-1", placed_t, 30.0) if placed_t else []),
        ]

    traces = records(30.0), records(14.0), records(15.0, placed_t=15.0)
    rows = apply_each(
        "unplaceable-tasks", *traces, columns="sentence, wall_seconds_max", stop_t=30.0
    )

    text = "1 task of fit waited up to {} s for a worker that may run it, on w2."
    not_again = text.format("20.0") + " It had run before, but did not run again."
    assert rows == [
        [(not_again, pytest.approx(0.0, abs=0.2))],
        [(not_again, pytest.approx(16.0, abs=0.2))],
        [(text.format("5.0"), pytest.approx(5.0))],
    ]


def test_tasks_with_different_restrictions(apply, worker, task, run, move):
    """What is true of one task is not stated of all."""
    records = [worker("w1"), task("other-1"), *run("other-1", 0.0, 30.0)]
    for key, annotations in (
        ("fit-1", {"resources": {"GPU": 1}}), ("plot-1", {"workers": ["w9"]}),
    ):  # fmt: skip
        records += [task(key, annotations=annotations), move(10.0, key, "waiting>no-worker")]

    [(sentence, change)] = apply(
        "unplaceable-tasks", *records, columns="sentence, change", stop_t=30.0
    )

    assert sentence.endswith(
        " waited up to 20.0 s for a worker that may run them. They never ran."
    )
    assert sentence.startswith("2 tasks (such as ")
    assert change.startswith("Correct workers= and resources=")


def test_workers_are_not_in_excess_if_tasks_wait_for_others(
    apply_each, worker, task, run, move
):
    """w2 to w4 are idle for 30 s, since a task needs a GPU."""
    idle = [worker(f"w{number}") for number in range(1, 5)]
    idle += [task("other-1"), *run("other-1", 0.0, 30.0)]
    waiting = [
        task("fit-1", annotations={"resources": {"GPU": 1}}),
        move(1.0, "fit-1", "waiting>no-worker"),
    ]
    rows = apply_each("excess-workers", idle, [*idle, *waiting], stop_t=30.0)
    assert [len(found) for found in rows] == [1, 0]


def test_tasks_that_wait_for_any_worker_can_be_placed(apply_each, worker, task, run, move):
    waits, ran = move(1.0, "fit-1", "waiting>no-worker"), run("fit-1", 20.0, 30.0)
    # Dask holds tasks without restrictions in the same state if all workers are paused.
    paused = [worker("w1"), task("fit-1"), waits, *ran]
    # There is no worker until 20 s.
    restricted = task("fit-1", annotations={"workers": ["w1"]})
    late = [restricted, waits, worker("w1", t=20.0), *ran]
    assert apply_each("unplaceable-tasks", paused, late, stop_t=30.0) == [[], []]


@pytest.mark.parametrize(("gpus", "found"), [(1, True), (2, False)])
def test_scarce_resources(apply, worker, task, run, gpus, found):
    """20 s of work on two threads needs a GPU, which one or both have."""
    records = [
        worker(f"w{number}", resources={"GPU": 1} if number <= gpus else None)
        for number in (1, 2)
    ]
    for number in range(20):
        key, begin = f"fit-{number}", number // gpus * 1.0
        records += [
            task(key, annotations={"resources": {"GPU": 1}}),
            *run(key, begin, begin + 1.0, worker=f"w{number % gpus + 1}"),
        ]
    sentence = (
        "20 attempts, such as those of fit, need the resource GPU, of which the workers have 1:"
        " they take at least 20.0 s, whereas evenly divided work takes 10.0 s."
    )
    rows = apply("scarce-resources", *records, columns="entity, sentence", stop_t=20.0 / gpus)
    assert rows == ([("GPU", sentence)] if found else [])


@pytest.mark.exhaustive
def test_a_single_task_that_needs_a_resource_cannot_be_divided(apply, worker, task, run):
    records = [
        worker("w1", resources={"GPU": 1}), worker("w2"),
        task("fit-1", annotations={"resources": {"GPU": 1}}), *run("fit-1", 0.0, 20.0),
        task("other-1"), *run("other-1", 0.0, 1.0, worker="w2"),
    ]  # fmt: skip
    assert apply("scarce-resources", *records, stop_t=20.0) == []


@pytest.mark.exhaustive
def test_a_worker_with_a_resource_that_is_replaced_counts_once(apply, worker, task, run, gone):
    records = [
        worker("w1", resources={"GPU": 1}), gone("w1", 10.0, "retire-workers-1.0"),
        worker("w3", t=10.0, resources={"GPU": 1}), worker("w2"),
    ]  # fmt: skip
    for number in range(20):
        key, address = f"fit-{number}", "w1" if number < 10 else "w3"
        records += [
            task(key, annotations={"resources": {"GPU": 1}}),
            *run(key, 1.0 * number, number + 1.0, worker=address),
        ]

    [(sentence,)] = apply("scarce-resources", *records, columns="sentence", stop_t=20.0)

    assert "of which the workers have 1: they take at least 20.0 s" in sentence
