import pytest

from roast_analyze.report import data


def steal(t: float, what: str) -> dict:
    """What came of a request to steal a task, as Dask logs it."""
    payload = [what, "a-1", "ready", "tcp://busy:1", "tcp://idle:1", "steal-1"]
    return {"kind": "event", "t": t, "topic": "stealing", "payload": payload}


def test_tasks_of_one_instant_are_a_batch(open_trace, task):
    trace = open_trace(
        *(task(f"a-{i}", t=1.0) for i in range(5)),
        *(task(f"b-{i}", t=8.0) for i in range(2)),
        task("c-1", t=8.001),
        stop_t=10.0,
    )

    came = data.gather(trace).submissions

    assert (came.batches, came.tasks, came.largest) == (3, 8, 5)
    there = came.stretches.filter(came.stretches["tasks"] > 0)
    assert there["t"].to_list() == pytest.approx([1.0, 8.0])
    assert there.select("batches", "tasks").rows() == [(1, 5), (2, 3)]


def test_tasks_that_were_stolen_and_those_that_were_not(open_trace, task):
    trace = open_trace(
        task("a-1"),
        {"kind": "event", "t": 1.0, "topic": "stealing", "payload": ["request", [[0, "a-1"]]]},
        steal(2.0, "confirm"),
        steal(2.01, "confirm"),
        steal(3.0, "already-computing"),
        steal(4.0, "already-aborted"),
        stop_t=10.0,
    )

    came = data.gather(trace).submissions

    assert (came.has_events, came.stolen, came.too_late) == (True, 2, 2)
    assert came.stretches["stolen"].sum() == 2


@pytest.mark.parametrize(("value", "stealing"), [(True, True), (False, False), (None, None)])
def test_whether_stealing_was_on(open_trace, value, stealing):
    name = "distributed.scheduler.work-stealing"
    fact = {"section": "dask configuration", "name": name, "value": value}

    came = data.gather(open_trace({"kind": "environment", "t": 0.0, **fact})).submissions

    assert (came.stealing, came.has_events) == (stealing, False)


def test_a_recording_of_one_instant(open_trace, task):
    came = data.gather(open_trace(task("a-1"), stop_t=0.0)).submissions

    assert (came.tasks, came.stretches.height) == (1, 0)
