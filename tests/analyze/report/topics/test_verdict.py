"""The verdict: sentences, tiles and the use of the core time."""

import pytest

from roast_analyze.report import findings
from roast_analyze.report.topics import core_time, loss, verdict


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture
def built(opened):
    """The verdict of a trace of some records."""

    def built(*records, stop_t=10.0):
        trace, context = opened(*records, stop_t=stop_t)
        return verdict.build(
            context, loss.query(trace), findings.query(trace), core_time.query(trace)
        )

    return built


@pytest.fixture
def text(built):
    def text(*records, stop_t=10.0):
        found = built(*records, stop_t=stop_t)
        return plain(f"{found.summary} {found.outcome}")

    return text


def test_tasks(text, worker, task, run, move):
    done = worker("w1", nthreads=2), task("a-1"), *run("a-1", 1.0, 5.0)
    started = worker("w1"), task("a-1"), move(1.0, "a-1", "waiting>processing", worker="w1")

    assert text(*done) == (
        "1 task in 4 s on 1 worker (2 threads). Thread utilization was 20 %. Nothing failed."
    )
    assert text(*started).startswith("1 task on 1 worker (1 thread).")
    assert text(worker("w1"), task("a-1"), *run("a-1", 0.0, 0.0), stop_t=0.0).startswith(
        "1 task in 0 s on 1 worker."
    )
    assert text().startswith("No task ran during the 10 s of this recording.")


def test_chunks(text, worker, task, run, chunk):
    entries = {"dataset": "Z", "filename": "z.root", "entry_start": 0, "entry_stop": 1000}
    failed = {"run_id": 1, "start_t": 1.0, "stop_t": 3.0, "exception": "OSError()"}
    loaded = {"run_id": 1, "start_t": 1.0, "stop_t": 5.0, "from_checkpoint": True}
    records = (
        worker("w1"),
        task("P-1"),
        chunk("P-1", **entries),
        *run("P-1", 1.0, 5.0, run_id=1),
    )

    assert text(*records).startswith(
        "1 chunk, 1,000 events in 4 s on 1 worker (1 thread): 250 events/s."
    )
    assert text(*records, chunk("P-1", **entries, **loaded)).startswith(
        "1 chunk in 4 s on 1 worker (1 thread)."
    )
    assert text(chunk("a", worker="pid:1", **entries, **failed)).startswith(
        "1 chunk attempt, none finished in 2 s on 1 worker."
    )


def test_retried_tasks_have_more_attempts_than_tasks(text, worker, task, run, move):
    assert text(
        worker("w1"),
        task("a-1"),
        move(1.0, "a-1", "waiting>processing", worker="w1"),
        move(2.0, "a-1", "processing>released", "handle-worker-cleanup-2.0"),
        *run("a-1", 3.0, 4.0),
    ).startswith("1 task, 2 attempts in")


def test_failures_are_counted_by_kind(text, worker, task, move, gone):
    assert text(
        worker("w1"),
        task("a-1"),
        task("a-2"),
        move(1.0, "a-1", "waiting>processing", worker="w1"),
        move(2.0, "a-1", "processing>erred", "task-erred-1.0", worker="w1", exception="E()"),
        move(3.0, "a-2", "waiting>processing", worker="w1"),
        move(4.0, "a-2", "processing>released", "handle-worker-cleanup-4.0"),
        gone("w1", 4.0, "handle-worker-cleanup-4.0"),
    ).endswith("1 task failed and 1 attempt was lost with its worker.")


def test_every_second_of_the_core_time_has_one_use(built, worker, task, move, run):
    phases = [
        {"action": "transfer", "start": 4.0, "stop": 4.5},
        {"action": "compute", "start": 5.0, "stop": 8.0},
    ]
    found = built(
        worker("w1"),
        task("a-1"),
        task("a-2"),
        *run("a-1", 1.0, 3.0),
        move(4.0, "a-2", "waiting>processing", worker="w1", run_id=2),
        move(8.0, "a-2", "processing>erred", "task-erred-1.0", worker="w1", startstops=phases),
    )

    assert [(share.name, share.seconds, share.percent[:2]) for share in found.spent] == [
        ("computing, result kept", 2.0, "20"),
        ("computing, attempt failed", 3.0, "30"),
        ("waiting for a transfer", 0.5, "5\N{NO-BREAK SPACE}"),
        ("waiting for an assigned task to begin", 0.5, "5\N{NO-BREAK SPACE}"),
        ("before the first graph", 1.0, "10"),
        ("between graphs", 1.0, "10"),
        ("after the last result", 2.0, "20"),
    ]
    assert plain(found.spent_sentence) == (
        "The workers provided 10 core-seconds. Each second is counted once. Transfers took "
        "500 ms in total. Only threads that waited for them are counted: most transfers "
        "overlap with computing."
    )


def test_findings_and_their_absence(built, worker, task, run, move):
    failed = built(
        worker("w1"),
        task("a-1"),
        move(1.0, "a-1", "waiting>processing", worker="w1"),
        move(
            3.0, "a-1", "processing>erred", "task-erred-1.0", worker="w1",
            exception="ValueError('no')",
            startstops=[{"action": "compute", "start": 1.0, "stop": 3.0}],
        ),
    )  # fmt: skip
    healthy = built(worker("w1"), task("a-1"), *run("a-1", 0.0, 10.0))

    assert [(found.id, found.entity) for found in failed.findings] == [
        ("retries", "ValueError")
    ]
    assert (healthy.findings, healthy.no_finding) == ((), findings.NONE)


def test_a_remark_has_no_saving(built, worker, task, run, chunk):
    """Events of TT take three times as long, which is no fault."""
    records = [worker("w1")]
    for number, (dataset, seconds) in enumerate([("DY", 0.5), ("TT", 1.5)] * 4):
        key, start = f"P-{number}", 2.5 * (number // 2) + 0.5 * (number % 2)
        entries = {"dataset": dataset, "filename": f"{dataset}.root", "entry_start": 0}
        records += [
            task(key),
            chunk(key, run_id=number, entry_stop=1000, events=1000, **entries),
            *run(key, start, start + seconds, run_id=number),
        ]

    [found] = [f for f in built(*records).findings if f.id == "expensive-dataset"]
    assert (found.entity, found.severity, found.saving) == ("TT", "minor", "")


def test_one_core_second_is_singular(built, worker, task, run):
    found = built(worker("w1"), task("a-1"), *run("a-1", 0.0, 0.5), stop_t=1.0)

    assert found.spent_sentence.startswith("The workers provided 1 core-second. Each")


def test_tiles(built, worker, task, run, move, gone, chunk):
    tiles = built(
        worker("w1", nthreads=2),
        worker("w2", t=6.0),
        gone("w1", 5.0, "retire-workers-5.0"),
        task("P-1"),
        chunk("P-1", dataset="Z", entry_start=0, entry_stop=400),
        *run("P-1", 1.0, 3.0, nbytes=2048),
        task("a-2"),
        move(4.0, "a-2", "waiting>processing", worker="w1"),
        move(5.0, "a-2", "processing>erred", "task-erred-1.0", worker="w1"),
        {"kind": "loss", "t": 2.0, "reason": "full", "records": 3},
    ).tiles

    assert {tile.label: (plain(tile.value), plain(tile.hint), tile.tone) for tile in tiles} == {
        "Wall time": ("10 s", "busy for 4 s", ""),
        "Workers": ("1", "at once, 2 threads; 2 in total", ""),
        "Core-seconds": ("14", "14 % utilized", ""),
        "Tasks": ("2", "attempts: 1 succeeded, 1 failed", ""),
        "Chunks": ("1", "in 1 attempt", ""),
        "Events": ("400", "in finished chunks", ""),
        "Events per second": ("200", "of the whole cluster", ""),
        "Results": ("2 KiB", "size of all task results", ""),
        "Peak memory": ("–", "sum of all workers", ""),
        "Failures": ("1", "listed below", "bad"),
        "Trace": ("incomplete", "13 records", "bad"),
    }


def test_completeness(built, task):
    record = {"kind": "loss", "t": 1.0, "reason": "buffer <full>", "records": 7}
    complete, incomplete = built(task("a-1")), built(record)

    assert (complete.is_complete, incomplete.is_complete) == (True, False)
    assert [plain(v.completeness) for v in (complete, incomplete)] == [
        "The trace is complete: it contains 3 records, and no loss was detected.",
        "The trace is incomplete: buffer <full>. At least 7 records are missing.",
    ]
