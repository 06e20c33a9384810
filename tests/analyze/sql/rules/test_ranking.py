"""Findings of all rules together: limits, ranks, and idle time that no rule explains."""

import polars as pl
import pytest

from analyze.report.reading import plain
from roast_analyze import Trace
from roast_analyze.computed import findings as computed_findings
from roast_analyze.computed.rules import COLUMNS, Rule
from roast_analyze.report.quantities import byte_size


@pytest.fixture
def findings_of_each(write_traces):
    """Return columns of the findings of several traces, which are opened together."""

    def findings_of_each(*traces, columns, stop_t=100.0):
        query = f"SELECT trace_id, {columns} FROM findings ORDER BY rank"
        with Trace(*write_traces(*traces, stop_t=stop_t)) as trace:
            rows = trace.rows(query)
        return [[row[1:] for row in rows if row[0] == f"T{n}"] for n in range(len(traces))]

    return findings_of_each


@pytest.fixture
def findings(findings_of_each):
    """Return columns of the findings of a trace of some records."""

    def findings(*records, **options):
        [found] = findings_of_each(records, **options)
        return found

    return findings


@pytest.fixture
def only_rule(monkeypatch):
    """Replace all rules by one that finds some values in each trace."""

    def only_rule(**values):
        columns = [f"{values.get(name, 'NULL')} AS {name}" for name in COLUMNS[:-1]]
        sql = f"SELECT {', '.join(columns)}, trace_id FROM _cluster_size"
        rule = Rule("only", "Only.", "worker_added", (), "", "", thresholds=(), sql=sql)
        monkeypatch.setattr(computed_findings, "rules", lambda: (rule,))

    return only_rule


def test_the_upper_end_of_a_saving_bounds_the_lower_one(only_rule, findings, worker):
    only_rule(confidence="'high'", core_seconds=9.0, wall_seconds_min=9.0, wall_seconds_max=4.0)
    columns = "wall_seconds_min, wall_share"
    assert findings(worker("w1"), columns=columns) == [(4.0, pytest.approx(0.04))]


def test_no_cost_exceeds_the_run(only_rule, findings, worker):
    """A rule that counts time twice finds 500 core-seconds in a run of 100."""
    only_rule(confidence="'high'", core_seconds=500.0, wall_seconds_max=500.0)

    assert findings(worker("w1"), columns="core_seconds, core_share, wall_seconds_max") == [
        (pytest.approx(100.0), pytest.approx(1.0), pytest.approx(100.0))
    ]


def test_bounds_of_savings(findings_of_each, process, worker, task, run):
    # Of two threads, one is idle for 95 s.
    half = [worker("w1"), worker("w2"), task("nap-1"), *run("nap-1", 0.0, 5.0, "w2")]
    half += [task("fit-1"), *run("fit-1", 0.0, 100.0)]
    # A thread is busy for 99 of 100 s; the bound contains 1.5 times the cost of opening.
    chunks = [
        {"seconds": 9.9, "open_seconds": 4.0, "read_seconds": 0.5, "file": f"{number}.root"}
        for number in range(10)
    ]
    # A client waits for 80 s between two tasks of 10 s.
    gap = [worker("w1")]
    for key, t in ("a", 0.0), ("b", 90.0):
        gap += [task(key, t=t), *run(key, t, t + 10.0)]

    of_half, of_busy, of_gap = findings_of_each(
        *(half, [worker("w1"), *process(*chunks)], gap),
        columns="id, core_seconds, wall_seconds_min, wall_seconds_max",
    )

    # Ranges lie within the run.
    assert of_half
    assert all(0 <= least <= most <= 100.0 for _, _, least, most in of_half)
    # The remaining work bounds a saving; idle time does not reduce it.
    [(_, core_seconds, _, most)] = of_busy
    assert most == pytest.approx(100.0 - (99.0 - 1.5 * core_seconds))
    [(name, _, _, most)] = of_gap
    assert (name, most) == ("client-gaps", pytest.approx(80.0))


def test_incomplete_results_and_killed_workers_rank_first(
    findings_of_each, process, worker, chunk, task, run, gone
):
    # A file is skipped; one of two threads is idle for the last 10 s.
    chunks = [{"seconds": 10.0, "worker": f"w{number % 2 + 1}"} for number in range(7)]
    bad = {"dataset": "TT", "filename": "bad.root", "exception": "OSError: not a ROOT file"}
    skipped = [
        *[worker("w1"), worker("w2"), *process(*chunks)],
        chunk("metadata-1", run_id=100, worker="w1", until="metadata", **bad),
        *run("metadata-1", 0.1, 0.2, run_id=100),
    ]
    # Idle time that is caused by killed workers.
    killed = [worker("C"), task("last"), *run("last", 40.0, 50.0, "C")]
    for name in "AB":
        killed += [worker(name, name=name), task(f"a-{name}")]
        killed += run(f"a-{name}", 0.0, 40.0, name, "lost")
        killed.append(gone(name, 40.0, "handle-worker-cleanup-1.0"))
    # A worker that closes after its last task.
    closed = [worker("A"), task("a"), *run("a", 0.0, 40.0, "A")]
    closed += [
        closing("nanny-close")(41.0, "A"),
        gone("A", 41.0, "handle-worker-cleanup-1.0"),
    ]

    of_skipped, of_killed, of_closed = findings_of_each(
        skipped, killed, closed, columns="id, severity"
    )
    assert of_skipped[0] == ("skipped-files", "major")
    assert len(of_skipped) > 1
    assert of_killed[0][0] == "killed-workers"
    assert of_closed == []


def test_idle_time_that_no_rule_explains(findings, worker, task, run):
    """Tasks wait on w1 for 50 s while w2 is idle."""
    records = [worker("w1"), worker("w2"), task("nap-1"), *run("nap-1", 0.0, 40.0, "w2")]
    for number in range(10):
        begin = 10.0 * number
        phases = [("compute", begin, begin + 10.0)]
        records += [
            task(f"fit-{number}"), *run(f"fit-{number}", 0.0, begin + 10.0, phases=phases)
        ]  # fmt: skip

    [(name, entity, sentence)] = findings(*records, columns="id, entity, sentence")
    assert (name, entity) == ("idle-threads", "fit")
    assert sentence == (
        "Threads computed nothing for 50.0 core-seconds: ready tasks were queued on other "
        "workers, mostly while fit computed. The cause is not known."
    )


def test_idle_time_beside_one_long_task(apply, worker, task, run):
    """Nine tasks wait on w1 behind one of 50 s, while w2 is idle after 10 s."""
    records = [worker("w1"), worker("w2"), task("nap-1"), *run("nap-1", 0.0, 10.0, "w2")]
    for number, (begin, end) in enumerate(
        [(0.0, 50.0), *((50.0 + n, 51.0 + n) for n in range(9))]
    ):
        phases = [("compute", begin, end)]
        records += [task(f"fit-{number}"), *run(f"fit-{number}", 0.0, end, phases=phases)]

    [(sentence, change)] = apply(
        "idle-threads", *records, columns="sentence, change", stop_t=60.0
    )
    assert sentence == (
        "Threads computed nothing for 48.0 core-seconds: ready tasks were queued on other "
        "workers, mostly while fit computed, of which one task took 50.0 s and the median 1 s."
    )
    assert change.startswith("Split the longest tasks of fit")


def test_idle_time_in_which_little_computed(apply, worker, task, run):
    # "load" computes for 6 of the 80 s between two other graphs.
    [(entity, sentence)] = apply(
        "idle-threads",
        worker("w1"),
        *(task("fit-1", t=0.0), *run("fit-1", 0.0, 10.0)),
        *(task("load-1", t=50.0), *run("load-1", 50.0, 56.0)),
        *(task("fit-2", t=90.0), *run("fit-2", 90.0, 100.0)),
        columns="entity, sentence",
    )
    assert entity is None
    assert sentence == (
        "Threads computed nothing for 74.0 core-seconds: no graph was submitted. The cause "
        "is not known."
    )


def death(t: float, address: str) -> dict:
    """Return the event of a nanny that kills its worker for its memory."""
    payload = {"worker": address, "rss": 960_000_000}
    topic = "worker-restart-memory"
    return {"kind": "event", "t": t, "topic": topic, "worker": address, "payload": payload}


def closing(reason: str):
    """Return a function that returns the event of a worker that closes."""

    def event(t: float, address: str) -> dict:
        payload = {"action": "closing-worker", "reason": reason}
        # Older recordings name the worker only by the topic.
        return {"kind": "event", "t": t, "topic": address, "payload": payload}

    return event


@pytest.mark.exhaustive
def test_a_reason_that_is_recorded_is_named(apply_each, worker, task, run, gone):
    """Two workers are lost at 40 s; what their nannies report, by the name of the worker."""

    def trace(events):
        records = [worker("C"), task("last"), *run("last", 40.0, 50.0, "C")]
        for name in "AB":
            records += [worker(name, name=name), task(f"a-{name}")]
            records += run(f"a-{name}", 0.0, 40.0, name, "lost")
            records += [events[name](40.0, name)] if name in events else []
            records.append(gone(name, 40.0, "handle-worker-cleanup-1.0"))
        return records

    restart, signal, close = map(closing, ("client-restart-17.5", "signal-15", "nanny-close"))
    cases = {
        "2 workers were killed because of memory: ": {"A": death, "B": death},
        "One worker was killed because of memory, and one worker was lost for an unknown ": {
            "A": death
        },
        "2 workers were lost for an unknown reason: ": {},
        "One worker was restarted on request, and one worker was stopped by signal 15: ": {
            "A": restart,
            "B": signal,
        },
        "2 workers were closed on request (nanny-close): ": {"A": close, "B": close},
    }
    found = apply_each("killed-workers", *map(trace, cases.values()), columns="sentence")
    for begin, [(sentence,)] in zip(cases, found, strict=True):
        assert sentence.startswith(begin)


def test_the_task_on_which_dask_gave_up_is_named(apply, worker, task, run, gone):
    records = [worker("C"), task("last"), *run("last", 40.0, 50.0, "C"), task("die-1")]
    for number, name in enumerate("AB"):
        records += [worker(name), gone(name, 20.0 + 20 * number, "handle-worker-cleanup-1.0")]
    records += run("die-1", 0.0, 20.0, "A", "lost")
    records += run(
        "die-1", 20.0, 40.0, "B", "erred", exception="KilledWorker: Attempted to run 'die-1'"
    )
    [(entity, sentence, change)] = apply(
        "killed-workers", *records, columns="entity, sentence, change"
    )
    assert entity == "die"
    assert sentence.endswith("Dask gave up on die-1, whose workers were lost each time.")
    assert change.startswith("Run die alone: look for memory beyond its limit")


def test_the_task_whose_workers_ended_with_little_memory(
    apply_each, worker, task, run, gone, sample
):
    """Another task of the prefix ends well; samples are of 20 s before, or much earlier."""

    def trace(memory, age):
        records = [worker("C"), task("die-2"), *run("die-2", 40.0, 50.0, "C"), task("die-1")]
        for number, name in enumerate("AB"):
            gone_t = 40.0 + 20 * number
            records += [
                worker(name, memory_limit=2**30),
                sample(gone_t - age, name, memory=memory),
                gone(name, gone_t, "handle-worker-cleanup-1.0"),
            ]
        error = "KilledWorker: Attempted to run 'die-1'"
        records += run("die-1", 20.0, 40.0, "A", "lost")
        return [*records, *run("die-1", 40.0, 60.0, "B", "erred", exception=error)]

    [[little], [much], [unknown]] = apply_each(
        "killed-workers",
        trace(2**27, 20.0),
        trace(2**30, 20.0),
        trace(2**27, 35.0),
        columns="sentence, change",
    )

    survivor = " Another task of die ended well."
    last = " When last sampled, up to 20.0 s before, they used {} of 1 GiB of memory at most."
    assert little[0].endswith(survivor + last.format("128 MiB"))
    assert little[1].startswith("Run die alone in a process with PYTHONFAULTHANDLER=1")
    assert much[0].endswith(survivor + last.format("1 GiB"))
    assert much[1].startswith("Run die alone: look for memory beyond its limit")
    assert unknown[0].endswith(survivor)
    assert unknown[1].startswith("Run die alone: look for memory beyond its limit")


def test_workers_that_were_lost_with_their_first_tasks(apply_each, worker, task, run, gone):
    """Two workers are lost soon after they received tasks, of which none is seen to begin."""

    def trace(*others, seconds=0.3, events=()):
        records = [worker("C"), task("b-1"), *run("b-1", 0.0, 90.0, "C"), *events]
        for number, name in enumerate("AB"):
            key, t = f"select-{number}", 20.0 + 20 * number
            lost = run(key, t, t + seconds, name, "lost")
            cleanup = f"handle-worker-cleanup-{number}.0"
            records += [worker(name), task(key), *lost, gone(name, t + seconds, cleanup)]
        return [*records, *others]

    computed = [task("select-2"), *run("select-2", 1.0, 2.0, "C")]
    on_another = [task("select-2"), *run("select-2", 30.0, None, "C")]

    [at_once], *others = apply_each(
        "killed-workers",
        trace(),
        trace(seconds=3.0),
        trace(*computed),
        trace(*on_another),
        trace(events=[death(20.2, "A"), death(40.2, "B")]),
        columns="sentence, change",
    )

    assert at_once[0].endswith(
        " Each of the 2 workers that received tasks of select was lost at most 0.3 s after the "
        "first of them, and no execution of such a task is recorded."
    )
    assert at_once[1].startswith(
        'Search the logs of the workers for "Failed to deserialize" or an import error: '
    )
    for [(sentence, change)] in others:
        assert "received tasks of" not in sentence
        assert "deserialize" not in change


def test_findings_format_sizes_as_the_report_does(rows):
    sizes = [0, 999, 1023, 1024, 65_432, 999_999, 954 * 2**20, 2**51]
    found = rows(f"SELECT _byte_size(nbytes) FROM (SELECT unnest({sizes}) AS nbytes)")
    assert [text for (text,) in found] == [plain(byte_size(nbytes)) for nbytes in sizes]


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [
        (1.0, 3.0, (1.0, 3.0, 0.2)),
        # Slightly too wide: the lower end is raised.
        (1.0, 5.0, (1.25, 5.0, 0.2)),
        # No information: a lower bound, or nothing if that is 0.
        (1.0, 8.0, (1.0, None, 0.1)),
        (0.0, 8.0, (None, None, None)),
        # A remark, and a finding that saves nothing.
        (None, None, (None, None, 0.2)),
        (0.0, 0.0, (0.0, 0.0, 0.2)),
    ],
)
def test_savings_are_within_a_factor_of_four_or_a_lower_bound(least, most, expected):
    names = ("wall_seconds_min", "wall_seconds_max", "wall_share")
    row = dict(zip(names, (least, most, 0.2), strict=True)) | {"wall_seconds": 10.0}

    found = computed_findings.with_information(
        pl.DataFrame([row], schema=dict.fromkeys(row, pl.Float64))
    )

    assert found.select(names).row(0) == expected


def test_a_failure_that_ended_the_run(write_trace, worker, task, run):
    """It ranks before a larger saving, unless the program went on."""
    records = [worker("w1"), task("a-1"), task("b-1")]
    records += run("a-1", 0.0, 1.0, outcome="erred", exception="ValueError()")
    phases = [("compute", 1.0, 41.0)]
    records += run("b-1", 1.0, 41.0, outcome="retried", exception="OSError()", phases=phases)
    records += run("b-1", 41.0, 81.0)

    def first(reason):
        with Trace(write_trace(*records, stop_t=91.0, reason=reason)) as trace:
            [(entity,)] = trace.rows("SELECT entity FROM findings ORDER BY rank LIMIT 1")
            return entity

    assert first("recording was stopped") == "OSError"
    assert first("the recorded block raised ValueError") == "ValueError"
