"""Rule seceded-tasks, and the other rules beside tasks that seceded."""

import pytest

PACKAGES = "/x/site-packages"
FRAMES = [
    {"name": "outer", "filename": "/home/ana/my.py", "line_number": 7},
    {"name": "gather", "filename": f"{PACKAGES}/distributed/client.py", "line_number": 1},
]


def profile(start_t: float, working: int, waiting: int, cycles: int = 10, prefix="outer"):
    """Return samples of tasks that compute in own code, or wait for others, in each second."""
    slices = [
        {
            "start_t": start_t + cycle, "stop_t": start_t + cycle + 1.0, "nodes": [0, 1, 2],
            "counts": [working + waiting, waiting, 0], "innermost": [0, working, waiting],
        }
        for cycle in range(cycles)
    ]  # fmt: skip
    tree = {
        "frames": FRAMES, "parents": [None, 0, 1], "node_frames": [None, 0, 1],
        "line_numbers": [None, 8, 2], "calls": [], "slices": slices,
    }  # fmt: skip
    about = {"worker": "w1", "server_id": "id-w1-0.0", "prefix": prefix}
    times = {"t": 99.0, "start_t": start_t, "stop_t": start_t + cycles}
    return {"kind": "profile", "interval_seconds": 0.01, "tree": tree, **about, **times}


def secession(t: float, key: str) -> dict:
    states = {"start": "executing", "finish": "long-running"}
    return {"kind": "worker_transition", "t": t, "key": key, "worker": "w1", **states}


@pytest.fixture
def outer(worker, task, run):
    """Return the records of five tasks that begin one after the other, and end together."""

    def outer(*samples, nthreads=1, secedes=True):
        keys = [f"outer-{number}" for number in range(5)]
        return [
            worker("w1", name="one", nthreads=nthreads),
            *(task(key) for key in keys),
            *(
                record
                for number, key in enumerate(keys)
                for record in run(key, 2.0 * number, 20.0)
            ),
            *(secession(2.0 * number + 2.0, key) for number, key in enumerate(keys) if secedes),
            *samples,
        ]

    return outer


def test_tasks_that_compute_after_they_seceded(apply_each, outer):
    """From 10 s to 20 s, five tasks are on a worker, and four fifths of the samples work."""
    cases = {
        "of one thread": (outer(profile(10.0, 80, 20)), True),
        # As after rejoin(), which is not recorded, no more than the threads compute.
        "of four threads": (outer(profile(10.0, 80, 20), nthreads=4), False),
        "which wait": (outer(profile(10.0, 20, 80)), False),
        "for a short time": (
            outer(profile(10.0, 80, 20, cycles=1), profile(11.0, 0, 100)),
            False,
        ),
        "without a sample": (outer(), False),
        "which did not secede": (outer(profile(10.0, 80, 20), secedes=False), False),
    }
    rows = apply_each(
        "seceded-tasks",
        *(records for records, _ in cases.values()),
        columns="entity, confidence, core_seconds, wall_seconds_max, sentence, change",
        stop_t=25.0,
    )
    assert {case: bool(found) for case, found in zip(cases, rows, strict=True)} == {
        case: is_found for case, (_, is_found) in cases.items()
    }
    [(*about, sentence, change)] = rows[0]
    assert about == ["outer", "medium", None, None]
    assert sentence == (
        "5 attempts of outer seceded. On worker one with 1 thread, about 4.0 of them computed "
        "at the same time during 10.0 s, and up to 4.0 on average of a profiling cycle, by "
        "samples of their stacks."
    )
    assert "call rejoin() after the wait" in change


def test_tasks_without_an_end(apply, worker, task, run):
    """Three tasks secede and still compute when the recording ends."""
    keys = [f"outer-{number}" for number in range(3)]
    [(sentence,)] = apply(
        "seceded-tasks",
        worker("w1", name="one"),
        *(task(key) for key in keys),
        *(record for key in keys for record in run(key, 1.0)),
        *(secession(5.0, key) for key in keys),
        profile(10.0, 100, 0),
        columns="sentence",
        stop_t=20.0,
    )
    assert "about 3.0 of them computed at the same time during 10.0 s" in sentence


def test_samples_of_seceded_tasks_are_not_those_of_threads(rows, outer, task, run):
    """Another prefix keeps its samples, and so do times before the first secession."""
    other = [task("a-1"), *run("a-1", 20.0, 22.0), profile(20.0, 100, 0, 2, prefix="a")]
    assert rows(
        "SELECT prefix, kind, sum(seconds) FROM busy_time GROUP BY ALL ORDER BY ALL",
        *outer(profile(0.0, 100, 0, 2), profile(2.0, 20, 80, 18), *other),
        stop_t=30.0,
    ) == [
        ("a", "Python loops", pytest.approx(2.0)),
        ("outer", "Python loops", pytest.approx(2.0)),
        ("outer", "mixed with seceded tasks", pytest.approx(8.0)),
    ]


def test_advice_for_waits_of_a_prefix_that_seceded(apply_each, outer):
    """Waits before the first secession occupied a thread; later ones need not have."""
    samples = profile(0.0, 0, 100, 2), profile(2.0, 0, 100, 18)
    seceded, threads = apply_each(
        "inside-tasks",
        outer(*samples),
        outer(*samples, secedes=False),
        columns="change",
        stop_t=25.0,
    )
    assert all("call secede()" not in change for (change,) in seceded)
    assert ["call secede()" in change for (change,) in threads] == [True]


def test_tasks_that_can_have_rejoined_are_no_free_threads(apply_each, worker, task, run):
    """A task waits on the worker from 2 s to 19 s, alone or beside one that has seceded."""
    waiting = [
        worker("w1"),
        *(task("a-1"), *run("a-1", 2.0, 20.0, phases=[("compute", 19.0, 20.0)])),
    ]
    outer = task("outer-1"), *run("outer-1", 0.0, 20.0), secession(1.0, "outer-1")
    alone, seceded = apply_each(
        "idle-threads", waiting, [*waiting, *outer], columns="sentence", stop_t=20.0
    )
    assert "waiting for an assigned task to begin" in alone[0][0]
    assert seceded == []
