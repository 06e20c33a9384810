"""The verdict: sentences, tiles and the use of the core time."""

import polars as pl
import pytest

from analyze.report.contexts import NO_ROWS, NOTHING, context_of
from analyze.report.reading import plain
from roast_analyze import Trace
from roast_analyze.report import findings, unexplained
from roast_analyze.report.run import Run, WithoutWorkers, query_obstacle
from roast_analyze.report.topics import core_time, loss, verdict


@pytest.fixture
def built(opened):
    """Build the verdict of a trace of some records, with findings only if rules are applied."""

    def built(*records, apply_rules=False):
        trace, context = opened(*records)
        found = findings.query(trace) if apply_rules else ()
        return verdict.build(
            context,
            loss.query(trace),
            found,
            unexplained.query(trace, found),
            core_time.query(trace),
        )

    return built


def built_from(run, **recording):
    """Build the verdict of a run from its totals, without losses and findings."""
    uses = pl.DataFrame(schema={"use": pl.String, "seconds": pl.Float64})
    spent = core_time.CoreTime(uses, NO_ROWS, 1.0, NO_ROWS, NOTHING, WithoutWorkers())
    return verdict.build(
        context_of(run, **recording), NOTHING, (), unexplained.Unexplained(0.0, 0.0, {}), spent
    )


@pytest.mark.parametrize(
    ("run", "text"),
    [
        ({}, "No task ran during the 10 s of this recording."),
        (
            {"tasks": 3, "has_transitions": False},
            (
                "3 tasks were submitted. No transition was recorded, so it is not known "
                "whether they ran or failed."
            ),
        ),
        # One had not ended when the recording did, after 10 s.
        (
            {"task_runs": 2, "tasks": 2, "busy_seconds": 4.0, "unfinished": 1},
            "2 tasks in 10 s.",
        ),
        (
            {"task_runs": 1, "tasks": 1, "busy_seconds": 4.0, "workers": 1, "peak_workers": 1,
             "peak_nthreads": 2},
            "1 task in 4 s on 1 worker (2 threads).",
        ),
        ({"task_runs": 1, "tasks": 1, "workers": 1}, "1 task on 1 worker."),
        # The records of the tasks were lost.
        ({"task_runs": 2, "tasks": None, "workers": 1}, "2 attempts on 1 worker."),
        ({"task_runs": 2, "tasks": 1, "busy_seconds": 0.0}, "1 task, 2 attempts in 0 s."),
        (
            {"chunks": 1, "chunk_attempts": 1, "events": 1000, "chunk_wall_seconds": 4.0,
             "events_per_second": 250.0},
            "1 chunk, 1,000 events in 4 s: 250 events/s.",
        ),
        ({"chunks": 1, "chunk_attempts": 2, "busy_seconds": 4.0}, "1 chunk in 4 s."),
        (
            {"chunk_attempts": 1, "busy_seconds": 2.0, "workers": 1},
            "1 chunk attempt, none finished in 2 s on 1 worker.",
        ),
    ],
)  # fmt: skip
def test_the_summary_of_a_run(run, text):
    assert plain(verdict.summarize(Run(wall_seconds=10.0, **run))) == text


@pytest.mark.parametrize(
    ("run", "text"),
    [
        ({}, "Nothing failed."),
        ({"tasks": 3, "has_transitions": False}, ""),
        ({"failures": 2}, "2 failures."),
        (
            {"erred": 1, "lost": 1, "failures": 3, "task_runs": 2,
             "uses": {"kept result": 0.5, "lost attempt": 1.5, "disk": 1.0, "tail": 7.0}},
            ("Threads computed for 20 % of the core time, 5 % for results that were kept. 1 "
            "task failed and 1 attempt was lost with its worker."),
        ),
        (
            {"memory": 1, "task_runs": 1, "uses": {"kept result": 2.0, "tail": 8.0}},
            "Threads computed for 20 % of the core time. Nothing failed.",
        ),
        (
            {"retried": 2, "unfinished": 1, "skipped": 3, "skipped_files": 1,
             "core_efficiency": 0.2},
            ("2 attempts failed and were retried, 1 attempt did not finish, 3 chunks were "
            "skipped and 1 file was skipped: its events are missing."),
        ),
        (
            {"unattempted": {"waiting": 2}},
            "Nothing failed. 2 tasks were never attempted (waiting).",
        ),
        (
            {"unattempted": {"waiting": 2, "queued": 1}},
            "Nothing failed. 3 tasks were never attempted (2 waiting, 1 queued).",
        ),
    ],
)  # fmt: skip
def test_the_outcome_of_a_run(run, text):
    run = dict(run)
    uses = run.pop("uses", {})

    assert plain(verdict.describe_outcome(Run(**run), uses)) == text


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("the recorded block raised ValueError", "The recorded block raised ValueError."),
        ("the program raised ValueError", "The program raised ValueError."),
        (
            "the client disconnected",
            "Nothing failed. The recording ended because the client disconnected.",
        ),
        ("recording was stopped", "Nothing failed."),
        ("the scheduler closed", "Nothing failed."),
    ],
)
def test_the_end_of_the_recording(reason, text):
    outcome = verdict.describe_outcome(Run(task_runs=1, memory=1), {"tail": 8.0}, reason)

    assert plain(outcome) == f"Threads computed for 0 % of the core time. {text}"


def test_lost_attempts_computed(opened, worker, gone, task, run):
    """Verdict, tile, bar and section have the same shares."""
    trace, context = opened(
        worker("w1"),
        *(task("a-1"), *run("a-1", 0.0, 2.0)),
        *(task("b-1"), *run("b-1", 2.0, 8.0, outcome="lost")),
        gone("w1", 8.0, "worker-1"),
        worker("w2", t=8.0),
    )
    spent = core_time.query(trace)
    found = verdict.build(context, loss.query(trace), (), unexplained.query(trace, ()), spent)
    [computing] = [tile.hint for tile in found.tiles if tile.label == "Core-seconds"]

    assert plain(found.outcome).startswith(
        "Threads computed for 80 % of the core time, 20 % for results that were kept."
    )
    assert plain(computing) == "80 % computing"
    assert [plain(share.percent) for share in found.spent[:2]] == ["20 %", "60 %"]
    assert plain(core_time.section(spent, context).sentences[0]).startswith("20 % of the")


def test_every_second_of_the_core_time_has_one_use(built, worker, task, run):
    phases = [("transfer", 4.0, 4.5), ("compute", 5.0, 8.0)]
    found = built(
        worker("w1"),
        *(task("a-1"), *run("a-1", 1.0, 3.0)),
        *(task("a-2"), *run("a-2", 4.0, 8.0, outcome="erred", phases=phases, run_id=2)),
    )

    assert [(share.name, share.seconds, plain(share.percent)) for share in found.spent] == [
        ("computing, result kept", 2.0, "20 %"),
        ("computing, attempt failed", 3.0, "30 %"),
        ("waiting for a transfer", 0.5, "5 %"),
        ("waiting for an assigned task to begin", 0.5, "5 %"),
        ("before the first graph", 1.0, "10 %"),
        ("between graphs", 1.0, "10 %"),
        ("after the last result", 2.0, "20 %"),
    ]
    assert plain(found.spent_sentence) == (
        "The workers provided 10 core-seconds. Each second is counted once. Transfers took "
        "500 ms in total. Only threads that waited for them are counted: most transfers "
        "overlap with computing. Tasks were assigned to workers for 6 s of 10 s. The rest "
        "includes: 2 s after the last task, in which it is not known what the client did; 2 s "
        "in which tasks waited and none was assigned."
    )
    second = built_from(Run(core_seconds=1.0))
    assert second.spent_sentence.startswith("The workers provided 1 core-second. Each")


def test_findings_and_their_absence(built, open_trace, worker, task, run):
    failed = run("a-1", 1.0, 3.0, outcome="erred", exception="ValueError('no')",
                 phases=[("compute", 1.0, 3.0)])  # fmt: skip
    ill = built(worker("w1"), task("a-1"), *failed, apply_rules=True)
    assert [(found.id, found.entity) for found in ill.findings] == [("retries", "ValueError")]

    healthy = open_trace(worker("w1"), task("a-1"), *run("a-1", 0.0, 10.0), stop_t=10.0)
    assert (findings.query(healthy), query_obstacle(healthy)) == ((), "")
    assert built_from(Run()).rest.startswith("No rule found a change")


def test_a_run_that_cannot_be_judged(built, worker):
    end = {
        "kind": "trailer", "t": 9.0, "segment": 1, "records_by_kind": {},
        "dropped_by_kind": {}, "reason": "the program raised KeyError",
    }  # fmt: skip

    found = built(worker("w1"), end, apply_rules=True)

    assert (found.findings, found.is_explained) == ((), False)
    assert found.rest == (
        "Possible savings cannot be judged: no task ran before the program raised KeyError."
    )
    assert found.outcome == "The program raised KeyError."


@pytest.mark.parametrize(
    ("record", "obstacle"),
    [
        ({"kind": "task", "key": "a"}, "no transition was recorded"),
        (
            {"kind": "loss", "reason": "disk full", "records": 96},
            "at least 96 of 100 records are missing",
        ),
    ],
)
@pytest.mark.exhaustive
def test_records_without_which_a_run_cannot_be_judged(open_trace, worker, record, obstacle):
    trace = open_trace(worker("w1"), {**record, "t": 1.0})

    assert (query_obstacle(trace), findings.query(trace)) == (obstacle, ())


@pytest.mark.exhaustive
def test_a_time_range_before_the_first_task(write_trace, worker, task, run):
    path = write_trace(worker("w1"), task("a-1"), *run("a-1", 5.0, 6.0))
    with Trace(path, start=0.0, stop=2.0) as trace:
        assert query_obstacle(trace) == "no task ran in the time range"


@pytest.mark.exhaustive
def test_a_remark_has_no_saving(open_trace, worker, task, run, chunk):
    """Events of TT take three times as long, which is not a fault."""
    records = [worker("w1")]
    for number, (dataset, seconds) in enumerate([("DY", 0.5), ("TT", 1.5)] * 4):
        key, start = f"P-{number}", 2.5 * (number // 2) + 0.5 * (number % 2)
        entries = {"dataset": dataset, "filename": f"{dataset}.root", "entry_start": 0}
        records += [
            task(key),
            chunk(key, run_id=number, entry_stop=1000, events=1000, **entries),
            *run(key, start, start + seconds, run_id=number),
        ]

    judged = findings.query(open_trace(*records, stop_t=10.0))

    [found] = [found for found in judged if found.id == "expensive-dataset"]
    assert (found.entity, found.severity, found.saving) == ("TT", "note", "")


def test_tiles_and_completeness(built, worker, task, run, gone, chunk):
    found = built(
        worker("w1", nthreads=2),
        worker("w2", t=6.0),
        gone("w1", 5.0, "retire-workers-5.0"),
        task("P-1"),
        chunk("P-1", dataset="Z", entry_start=0, entry_stop=400),
        *run("P-1", 1.0, 3.0, nbytes=2048),
        *(task("a-2"), *run("a-2", 4.0, 5.0, outcome="erred")),
        {"kind": "loss", "t": 2.0, "reason": "buffer <full>", "records": 3},
    )
    assert {t.label: (plain(t.value), plain(t.hint), t.tone) for t in found.tiles} == {
        "Wall time": ("10 s", "4 s from first to last task", ""),
        "Workers": ("1", "at once, 2 threads; 2 in total", ""),
        # The failed attempt reported no time: its thread is assumed to have computed.
        "Core-seconds": ("14", "21 % computing", ""),
        "Tasks": ("2", "attempts: 1 succeeded, 1 failed", ""),
        "Chunks": ("1", "in 1 attempt", ""),
        "Events": ("400", "in finished chunks", ""),
        "Events per second": ("200", "of the whole cluster", ""),
        "Results": ("2 KiB", "size of all task results", ""),
        "Peak memory": ("–", "sum of all workers", ""),
        "Failures": ("1", "listed below", "bad"),
        "Trace": ("incomplete", "13 records", "bad"),
    }
    assert (plain(found.completeness), found.is_complete) == (
        "The trace is incomplete: buffer <full>. At least 3 records are missing.", False,
    )  # fmt: skip


def test_a_worker_without_tasks_and_one_that_was_lost():
    alone = Run(workers=1, peak_workers=1, peak_nthreads=1, core_seconds=10.0)

    _, workers, core_time, *_ = built_from(alone).tiles
    assert (plain(workers.hint), core_time.hint) == ("at once, 1 thread", "nothing computed")
    _, _, core_time, *_ = built_from(Run(task_runs=1, lost=1, core_seconds=10.0)).tiles
    assert core_time.hint == "compute time not reported"


def test_a_complete_trace():
    whole = built_from(Run(), records=3)

    assert (plain(whole.completeness), whole.is_complete) == (
        "The trace is complete: it contains 3 records, and no loss was detected.", True,
    )  # fmt: skip
