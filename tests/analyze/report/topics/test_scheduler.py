"""Scheduler load, task submissions and work stealing."""

import polars as pl
import pytest

from analyze.report.contexts import context_of
from analyze.report.reading import plain
from roast_analyze.algorithms.outcomes import OUTCOMES
from roast_analyze.figures.layout import TimeAxis
from roast_analyze.report.topics import scheduler
from roast_analyze.report.topics.scheduler import SchedulerLoad, figure, submission_figure

AXIS = TimeAxis(100.0, 104.0)
#: Outcomes of attempts without phases.
NO_PHASES = ("lost", "cancelled", "rescheduled", "unfinished")


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
    found = query(
        worker("w1", nthreads=2),
        task("a-1", t=1.0),
        *(task(f"b-{i}", t=8.0) for i in range(4)),
        task("c-1", t=8.001),
        move(1.0, "a-1", "released>queued"),
        move(3.0, "a-1", "queued>processing", worker="w1"),
        tick(3.0, 0.02),
        tick(3.01, 0.7),
        {"kind": "event", "t": 1.0, "topic": "stealing", "payload": ["request", [[0, "a-1"]]]},
        steal(2.0, "confirm"),
        steal(2.01, "confirm"),
        steal(3.0, "already-computing"),
        steal(4.0, "already-aborted"),
    )

    load = found.load
    moved = load.filter(pl.col("transitions_per_second") > 0)
    assert moved["t"].to_list() == pytest.approx([1.0, 3.0])
    assert (moved["transitions_per_second"] * moved["seconds"]).to_list() == [1.0, 1.0]
    assert moved["slowest_loop_seconds"].to_list() == [None, 0.7]
    assert (load["ready"] * load["seconds"]).sum() == pytest.approx(2.0)
    # Tasks submitted at the same time are one batch.
    assert (found.batches, found.tasks, found.largest) == (3, 6, 4)
    submitted = load.filter(pl.col("tasks") > 0).select("t", "batches", "tasks").rows()
    assert submitted == [(pytest.approx(1.0), 1, 1), (pytest.approx(8.0), 2, 5)]
    assert (found.has_events, found.stolen, found.too_late) == (True, 2, 2)
    assert load["stolen"].sum() == 2


@pytest.mark.exhaustive
def test_ready_tasks_wait_for_a_free_thread(sentences, worker, task, move, run):
    waits = [(task(f"a-{n}"), move(2.0, f"a-{n}", "waiting>queued")) for n in range(3)]

    text = sentences(
        "scheduler", worker("w1"), *run("b", 1.0, 19.0), *sum(waits, ()), stop_t=20.0
    )

    assert "On average over 50 ms, up to 3 ready tasks waited for a free thread." in text
    shortly = (task("a"), move(2.0, "a", "waiting>queued"), move(2.002, "a", "queued>released"))
    assert "ready" not in sentences("scheduler", worker("w1"), *shortly, stop_t=20.0)


@pytest.mark.parametrize("outcome", [*OUTCOMES])
@pytest.mark.exhaustive
def test_threads_that_compute_do_not_lack_tasks(sentences, worker, task, move, run, outcome):
    """Workers report no phases of attempts that were lost, cancelled or rescheduled."""
    waits = [(task(f"a-{n}"), move(2.0, f"a-{n}", "waiting>queued")) for n in range(3)]
    ends = {} if outcome in NO_PHASES else {"phases": [("compute", 1.0, 19.0)]}
    stop = None if outcome == "unfinished" else 19.0

    text = sentences(
        "scheduler",
        worker("w1"),
        *run("b", 1.0, stop, outcome=outcome, **ends),
        *sum(waits, ()),
        stop_t=20.0,
    )

    assert "3 ready tasks waited for a free thread." in text


def test_a_short_last_bucket_is_no_peak(sentences, task, move):
    early = [move(1.0, f"a-{n}", "released>waiting") for n in range(3)]
    late = [move(10.001, f"b-{n}", "released>waiting") for n in range(2)]

    assert sentences("scheduler", task("a-0"), *early, *late, stop_t=10.001).startswith(
        "The scheduler made 5 transitions, with a peak of 60 transitions/s over 50 ms."
    )


def test_sentences(sentences, worker, task, move):
    moves = [
        line
        for n in range(4)
        for line in (
            task(f"a-{n}"),
            move(1.0, f"a-{n}", "released>waiting"),
            move(2.0, f"a-{n}", "waiting>queued"),
            move(4.0 + n, f"a-{n}", "queued>processing", worker="w1"),
        )
    ]

    assert sentences("scheduler", worker("w1"), *moves, tick(3.0, 0.5), stop_t=20.0) == (
        "The scheduler made 12 transitions, with a peak of 80 transitions/s over 50 ms. On "
        "average over 50 ms, up to 4 ready tasks waited. While tasks were ready, 40 % of the "
        "threads computed nothing: a lack of threads does not explain the wait. The slowest "
        "event loop of a worker took 500 ms per iteration (20 ms when idle). 4 tasks "
        "were submitted in one batch."
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "1 task was submitted in one batch."),
        ({"stealing": True}, "1 task was submitted in one batch."),
        (
            {"batches": 2, "tasks": 3, "largest": 2},
            "3 tasks were submitted in 2 batches, such as graphs; the largest had 2 tasks.",
        ),
        ({"stealing": False}, "one batch. Work stealing was disabled."),
        ({"has_events": True}, "one batch. No task was stolen."),
        (
            {"has_events": True, "stolen": 2, "too_late": 1},
            (
                "2 tasks were stolen from busy workers by idle ones; "
                "1 request to steal came too late."
            ),
        ),
    ],
)
def test_submitted_and_stolen_tasks(changes, text):
    columns = ("ready", "waiting", "busy_share", "nthreads", "slowest_loop_seconds", "stolen")
    load = pl.DataFrame({"t": [0.0], "seconds": [0.1], "transitions": [1], "tasks": [1]})
    load = load.with_columns(transitions_per_second=10.0, **dict.fromkeys(columns, 0.0))
    counts = {"batches": 1, "tasks": 1, "largest": 1, "stolen": 0, "too_late": 0}
    found = SchedulerLoad(load, **{**counts, "stealing": None, "has_events": False, **changes})

    section = scheduler.section(found, context_of(load=load))
    assert plain(" ".join(section.sentences)).endswith(text)


@pytest.mark.exhaustive
def test_the_setting_and_the_events_of_work_stealing(opened, open_trace):
    other = {**steal(1.0, 1), "topic": "x"}
    trace, context = opened(setting(False), other)

    found = scheduler.query(trace, context)
    assert (found.stealing, found.has_events, found.stolen) == (False, True, 0)
    for value in (True, None):
        found = scheduler.query(open_trace(setting(value), stop_t=10.0), context)
        assert (found.stealing, found.has_events) == (value, False)


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
        "transitions_per_second": ("y", (0.0, 12.5)),
        "ready": ("y2", (5.0, 2.0)),
        "waiting": ("y2", (0.0, 1.0)),
        "slowest_loop_seconds": ("y3", (None, 0.02)),
    }
    assert all(curve.x == (0.0, 1.0) for curve in drawn.data)


def test_stems_of_submitted_and_stolen_tasks():
    times = {"t": [100.0, 101.0, 102.0]}
    submitted = pl.DataFrame({**times, "tasks": [0, 7, 2], "stolen": [0, 0, 0]})
    stolen = pl.DataFrame({**times, "tasks": [9, 0, 0], "stolen": [0, 0, 3]})

    alone = submission_figure(submitted, AXIS)
    (stems,) = alone.data
    assert not alone.layout.showlegend
    assert (stems.x, stems.y, stems.error_y.arrayminus) == ((1.0, 2.0), (7, 2), (7, 2))
    _, stems = submission_figure(stolen, AXIS).data
    assert (stems.x, stems.y, stems.yaxis) == ((2.0,), (3,), "y2")
