"""Rule actor-methods, and excess-workers beside it."""

import pytest


def profile(prefix: str, start_t: float, samples: int, worker: str = "w1") -> dict:
    """Return the samples of a function in a cycle of 10 s."""
    tree = {
        "frames": [{"name": "step", "filename": "my.py", "line_number": 1}],
        "parents": [None, 0],
        "node_frames": [None, 0],
        "line_numbers": [None, 2],
        "slices": [
            {
                "start_t": start_t,
                "stop_t": start_t + 10.0,
                "nodes": [0, 1],
                "counts": [samples, 0],
                "innermost": [0, samples],
            }
        ],
    }
    about = {"worker": worker, "server_id": f"id-{worker}-0.0", "prefix": prefix}
    times = {"t": start_t + 10.0, "start_t": start_t, "stop_t": start_t + 10.0}
    return {"kind": "profile", "interval_seconds": 0.01, "tree": tree, **about, **times}


@pytest.fixture
def actor(worker, task, run):
    """Return the records of an actor on one of two workers, and others."""

    def actor(*others):
        made = task("Band-1", t=0.0), *run("Band-1", 0.0, 1.0)
        return [worker("w1", name="one"), worker("w2"), *made, *others]

    return actor


def test_work_in_methods_of_actors(apply_rules, actor, task, run):
    """A method is sampled for 36 of 40 s, in which no task runs on two workers."""
    steps = [profile("Band.step", 10.0 * cycle, 900) for cycle in range(1, 5)]
    sums = [profile("Band.sum", 50.0, 900)]
    cases = {
        "one method": actor(*steps),
        "two methods": actor(*steps, *sums),
        "on two workers": actor(*steps, profile("Band.step", 50.0, 900, worker="w2")),
        # Another prefix with a dot.
        "a task": actor(*steps, task("Band.step-1"), *run("Band.step-1", 0.0, 1.0)),
        "of something unknown": actor(profile("Other.step", 10.0, 900)),
        "for a short time": actor(profile("Band.step", 10.0, 20)),
    }
    found, fewer = apply_rules(
        ["actor-methods", "excess-workers"],
        *cases.values(),
        columns="entity, confidence, core_seconds, sentence, change",
        stop_t=60.0,
    )
    sentence, change = found[0][0][3:]
    assert [row[:3] for row in found[0]] == [
        # The time of the cycles that was not sampled is not counted.
        pytest.approx(("Band.step", "medium", 36.0), abs=1.0)
    ]
    assert sentence == (
        "In 36.0 sampled seconds of the 60.0 s of the run, worker one ran method "
        "Band.step of an actor, which is no task. Meanwhile, threads without a task were idle "
        f"for {found[0][0][2]:.1f} core-seconds."
    )
    assert change.startswith("A worker computes the methods of its actors one at a time. If")
    assert "one ran methods of actors, Band.step for 36.0 s, which are" in found[1][0][3]
    by_two = (
        "In 45.0 sampled worker-seconds, in a run of 60.0 s, 2 workers ran method Band.step"
    )
    assert found[2][0][3].startswith(by_two)
    assert found[3:] == [[], [], []]
    # One of two workers would be enough for the tasks, but it is not known for the actors.
    assert [len(rows) for rows in fewer[:5]] == [0, 0, 0, 1, 1]


def test_methods_beside_tasks(apply, actor, task, run):
    """Tasks occupy all threads, so that no thread is idle."""
    busy = [
        record
        for address in ("w1", "w2")
        for record in (task(f"a-{address}"), *run(f"a-{address}", 1.0, 60.0, worker=address))
    ]
    steps = [profile("Band.step", 10.0 * cycle, 900) for cycle in range(1, 5)]
    [(core_seconds, sentence, change)] = apply(
        "actor-methods",
        *actor(*busy, *steps),
        columns="core_seconds, sentence, change",
        stop_t=60.0,
    )
    assert core_seconds is None
    assert sentence.endswith("of an actor, which is no task.")
    assert change == (
        "A worker computes the methods of its actors one at a time: times of tasks do not "
        "contain them."
    )
