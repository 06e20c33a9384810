"""Rules missing-workers and adaptive-plan: fewer workers than were planned, or could be."""

import pytest


@pytest.fixture
def size():
    """Return the number of workers that the cluster plans from a time on."""

    def size(planned, t=0.0, client="c"):
        value = {"planned": planned, "requested": planned}
        return {"kind": "cluster_size", "t": t, "client": client, "value": value}

    return size


@pytest.fixture
def queue(worker, task, move, run):
    """Return 60 tasks of 1 s, which w1 computes one after another; all others are queued."""

    def queue(address="w1", count=60, states="queued"):
        records = []
        for number in range(count):
            key, begin = f"fit-{number}", float(number)
            entered = move(0.0, key, f"waiting>{states}")
            attempt = [
                {**record, "start": record["start"].replace("waiting", states)}
                for record in run(key, begin, begin + 1, worker=address)
            ]
            records += [task(key), entered, *attempt]
        return [worker(address), *sorted(records, key=lambda record: record["t"])]

    return queue


def test_planned_workers_that_never_joined(apply_each, size, queue, worker, gone, task, run):
    three = [size(3), *queue()]
    cases = {
        "two missing": three,
        "planned later": [size(1), size(2, t=30.0), *queue()],
        "all there": [size(1), *queue()],
        "joined late": [*three, worker("w2", t=50.0), worker("w3", t=55.0)],
        "joined and lost": [
            *three, worker("w2"), gone("w2", 1.0, "handle-worker-cleanup-1.0"),
            worker("w3"), gone("w3", 1.0, "handle-worker-cleanup-1.0"),
        ],
        "replaced": [
            *three, worker("w2"), gone("w2", 1.0, "handle-worker-cleanup-1.0"),
            worker("w4", t=2.0, name="w2"),
        ],
        "no queue": [size(3), *queue(count=1)],
        # A task that has not ended may compute.
        "unfinished": [size(3), worker("w1"), task("fit-0"), *run("fit-0", 0.0)],
        "two clients": [size(3), size(3, client="d"), *queue()],
    }  # fmt: skip
    found = apply_each(
        "missing-workers",
        *cases.values(),
        columns="sentence, core_seconds, wall_seconds_max",
        stop_t=60.0,
    )

    # With 3 threads, 59 s in which tasks were queued take a third; for the last of them one
    # task is left for two threads.
    sentence = (
        "2 of 3 workers that the cluster planned were not there during the recording, while "
    )
    two = [
        (
            f"{sentence}ready tasks waited for a thread for 59.0 s.",
            pytest.approx(58 * 2 + 1),
            pytest.approx(1.1 * (58 * 2 / 3 + 1 / 2)),
        )
    ]
    one = (
        "1 of 2 workers that the cluster planned was not there during the recording, while "
        "ready tasks "
    )
    rows = dict(zip(cases, found, strict=True))
    assert rows["two missing"] == rows["two clients"] == two
    assert rows["planned later"] == [
        (
            f"{one}waited for a thread for 29.0 s.",
            pytest.approx(29),
            pytest.approx(1.1 * 29 / 2),
        )
    ]
    assert rows["replaced"][0][0].startswith("1 of 3 workers that the cluster planned was ")
    assert rows["all there"] == rows["no queue"] == rows["unfinished"] == []
    assert rows["joined late"] == rows["joined and lost"] == []


def test_tasks_that_were_assigned_beyond_the_threads(apply, size, worker, task, run):
    """All 60 tasks are assigned at once, such as without queueing on the scheduler."""
    records = [size(2), worker("w1")]
    for number in range(60):
        key, stop_t = f"fit-{number}", number + 1.0
        phases = [("compute", stop_t - 1, stop_t)]
        records += [task(key), *run(key, 0.0, stop_t, phases=phases)]

    [(sentence,)] = apply("missing-workers", *records, columns="sentence", stop_t=60.0)
    assert sentence.endswith("waited for a thread for 59.0 s.")


@pytest.fixture
def limits():
    """Return the limits of a cluster that adapts to its work."""

    def limits(maximum):
        about = {"kind": "environment", "t": 1.0, "section": "cluster"}
        values = {"minimum": 1, "maximum": maximum}
        return [{**about, "name": f"adapts to {n}", "value": v} for n, v in values.items()]

    return limits


def test_a_plan_below_the_maximum(apply_each, size, queue, limits):
    cases = {
        "four": [*limits(4), size(1), *queue()],
        "no maximum": [*limits("inf"), size(1), *queue()],
        "at the maximum": [*limits(4), size(4), *queue()],
        # Late workers have a rule of their own.
        "planned late": [*limits(4), size(1), size(4, t=50.0), *queue()],
        "not adaptive": [size(1), *queue()],
        "no queue": [*limits(4), size(1), *queue(count=1)],
    }
    found = apply_each(
        "adaptive-plan",
        *cases.values(),
        columns="sentence, core_seconds",
        stop_t=60.0,
    )

    sentence = (
        "Ready tasks waited for a thread for 59.0 s, and adaptive scaling planned at most "
        "1 worker meanwhile, "
    )
    rows = dict(zip(cases, found, strict=True))
    # Three more threads; at the end, fewer tasks are left.
    assert rows["four"] == [(f"{sentence}of a maximum of 4.", pytest.approx(57 * 3 + 2 + 1))]
    assert rows["no maximum"] == [(f"{sentence}without a maximum.", pytest.approx(59 * 60 / 2))]
    assert [rows[name] for name in list(cases)[2:]] == [[], [], [], []]
