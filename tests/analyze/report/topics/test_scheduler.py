"""Scheduler load, task submissions and work stealing."""

import polars as pl
import pytest

from roast_analyze.figures.layout import TimeAxis
from roast_analyze.report.topics import scheduler
from roast_analyze.report.topics.scheduler import figure, submission_figure

AXIS = TimeAxis(100.0, 104.0)


@pytest.fixture
def query(opened):
    """Query the scheduler load of a trace of some records."""
    return lambda *records, **options: scheduler.query(*opened(*records, **options))


def steal(t, outcome):
    payload = [outcome, "a-1", "ready", "tcp://busy:1", "tcp://idle:1", "steal-1"]
    return {"kind": "event", "t": t, "topic": "stealing", "payload": payload}


def setting(value):
    name = "distributed.scheduler.work-stealing"
    return {"kind": "environment", "t": 0.0, "section": "dask configuration", "name": name,
            "value": value}  # fmt: skip


def tick(t, interval):
    metrics = {"event_loop_interval": interval}
    return {"kind": "worker_sample", "t": t, "worker": "w1", "metrics": metrics}


def test_load_by_bucket(query, worker, task, move):
    load = query(
        worker("w1", nthreads=2),
        task("a-1"),
        move(1.0, "a-1", "released>queued"),
        move(3.0, "a-1", "queued>processing", worker="w1"),
        tick(3.0, 0.02),
        tick(3.01, 0.7),
    ).load

    moved = load.filter(pl.col("transitions_per_second") > 0)
    assert moved["t"].to_list() == pytest.approx([1.0, 3.0])
    assert (moved["transitions_per_second"] * moved["seconds"]).to_list() == [1.0, 1.0]
    assert moved["slowest_loop_seconds"].to_list() == [None, 0.7]
    assert (load["ready"] * load["seconds"]).sum() == pytest.approx(2.0)


def test_tasks_of_one_instant_are_a_batch(query, task):
    found = query(
        *(task(f"a-{i}", t=1.0) for i in range(5)),
        *(task(f"b-{i}", t=8.0) for i in range(2)),
        task("c-1", t=8.001),
    )

    assert (found.batches, found.tasks, found.largest) == (3, 8, 5)
    submitted = found.load.filter(pl.col("tasks") > 0).select("t", "batches", "tasks").rows()
    assert submitted == [(pytest.approx(1.0), 1, 5), (pytest.approx(8.0), 2, 3)]


def test_stolen_tasks_and_requests_that_came_too_late(query, task):
    found = query(
        task("a-1"),
        {"kind": "event", "t": 1.0, "topic": "stealing", "payload": ["request", [[0, "a-1"]]]},
        steal(2.0, "confirm"),
        steal(2.01, "confirm"),
        steal(3.0, "already-computing"),
        steal(4.0, "already-aborted"),
    )

    assert (found.has_events, found.stolen, found.too_late) == (True, 2, 2)
    assert found.load["stolen"].sum() == 2


def test_whether_stealing_was_enabled(query):
    assert [query(setting(v)).stealing for v in (True, False, None)] == [
        True, False, None,
    ]  # fmt: skip


def test_sentences(sentences, worker, task, move):
    def moves():
        for n in range(4):
            yield move(1.0, f"a-{n}", "released>waiting")
            yield move(2.0, f"a-{n}", "waiting>queued")
            yield move(4.0 + n, f"a-{n}", "queued>processing", worker="w1")

    tasks = [task(f"a-{n}") for n in range(4)]
    assert sentences(
        "scheduler", worker("w1"), *tasks, *moves(), tick(3.0, 0.5), stop_t=20.0
    ) == (
        "The scheduler made 12 transitions, at most 80 transitions/s within 50 ms. Up to 4 "
        "ready tasks waited for a free thread. The slowest event loop of a worker took 500 ms "
        "per iteration (20 ms when idle). 4 tasks were submitted in one batch."
    )


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ([], "1 task was submitted in one batch."),
        ([setting(False)], "1 task was submitted in one batch. Work stealing was disabled."),
        (
            [{**steal(1.0, 1), "topic": "x"}],
            "1 task was submitted in one batch. No task was stolen.",
        ),
        (
            [steal(1.0, "confirm"), steal(1.0, "confirm"), steal(1.0, "already-computing")],
            (
                "1 task was submitted in one batch. 2 tasks were stolen from busy workers "
                "by idle "
                "ones; 1 request came too late."
            ),
        ),
        (
            [{"kind": "task", "t": 5.0, "key": f"b-{i}"} for i in range(2)],
            "3 tasks were submitted in 2 batches, such as graphs; the largest had 2 tasks.",
        ),
    ],
)
def test_sentences_about_submissions_and_stealing(sentences, task, move, records, text):
    made = sentences("scheduler", task("a-1"), move(1.0, "a-1", "released>waiting"), *records)

    assert made.partition("within 50 ms. ")[2] == text


def test_a_recording_of_one_instant_has_no_rates(section, query, worker, task, run):
    records = worker("w1"), task("a-1"), *run("a-1", 0.0, 0.0)

    assert section("scheduler", *records, stop_t=0.0).empty == (
        "All records have the same time, so that there are no rates to show."
    )
    assert query(*records, stop_t=0.0).tasks == 1


def test_curves_of_the_load():
    load = pl.DataFrame(
        {
            "t": [100.0, 101.0],
            "transitions_per_second": [0.0, 12.5],
            "ready": [5.0, 2.0],
            "waiting": [0.0, 1.0],
            "slowest_loop_seconds": [None, 0.02],
        }
    )

    drawn = figure(load, AXIS)

    assert {curve.meta["columns"]["y"]: (curve.yaxis, curve.y) for curve in drawn.data} == {
        "transitions_per_second": ("y3", (0.0, 12.5)),
        "ready": ("y2", (5.0, 2.0)),
        "waiting": ("y2", (0.0, 1.0)),
        "slowest_loop_seconds": ("y", (None, 0.02)),
    }
    assert all(curve.x == (0.0, 1.0) for curve in drawn.data)


def test_stems_of_submitted_and_stolen_tasks():
    times = {"t": [100.0, 101.0, 102.0]}
    submitted = pl.DataFrame({**times, "tasks": [0, 7, 2], "stolen": [0, 0, 0]})
    stolen = pl.DataFrame({**times, "tasks": [9, 0, 0], "stolen": [0, 0, 3]})

    (stems,) = submission_figure(submitted, AXIS).data
    assert (stems.x, stems.y, stems.error_y.arrayminus) == ((1.0, 2.0), (7, 2), (7, 2))
    _, stems = submission_figure(stolen, AXIS).data
    assert (stems.x, stems.y, stems.yaxis) == ((2.0,), (3,), "y2")
