"""Traces limited to a time range: cuts at its ends, and invalid ranges."""

import contextlib

import pytest

from roast_analyze import Trace
from roast_analyze.errors import TraceError
from roast_analyze.open import database
from roast_analyze.open.time_range import Counts, parse_range
from sealing import sealed


@pytest.fixture
def limited(write_trace):
    """Open a time range of a trace of 100 s with some records."""
    with contextlib.ExitStack() as opened:
        yield lambda *records, **options: opened.enter_context(
            Trace(write_trace(*records), **options)
        )


@pytest.fixture
def rows_in(limited):
    """Open a time range of some records; return a function that returns the rows of a query."""

    def rows_in(*records: dict, start=None, stop=None):
        opened = limited(*records, start=start, stop=stop)
        return opened.rows

    return rows_in


@pytest.fixture
def crossing(worker, task, run) -> list[dict]:
    """Return an attempt from 10 s to 30 s, on a worker that joined at the start."""
    return [worker("w1"), task("a-1"), *run("a-1", 10.0, 30.0, nbytes=7)]


@pytest.fixture
def two_clients(worker, task, run) -> list[dict]:
    """Return records of clients from 10 s to 40 s, and from 50 s to the end."""
    return [
        worker("w1"),
        *({"kind": "client_added", "t": t, "client": c} for c, t in (("A", 10.0), ("B", 50.0))),
        {"kind": "client_removed", "t": 40.0, "client": "A"},
        task("a-1", t=10.0, client="A"), *run("a-1", 10.0, 30.0),
        task("b-1", t=50.0, client="B"), *run("b-1", 50.0, 60.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("session", "keys", "options"),
    [(1, [("a-1",)], "--from 10 --to 40"), (2, [("b-1",)], "--from 50")],
)
def test_a_session(limited, two_clients, session, keys, options):
    trace = limited(*two_clients, session=session)

    assert trace.rows("SELECT key FROM task_runs") == keys
    assert [time_range.options for time_range in trace.time_ranges] == [options]


@pytest.mark.parametrize("session", [0, 3])
def test_an_unknown_session(limited, two_clients, session):
    message = rf"unknown session {session}: use 1 \(A, 10 to 40 s\), 2 \(B, 50 to 100 s\)$"
    with pytest.raises(TraceError, match=message):
        limited(*two_clients, session=session)


def test_an_unknown_session_lists_the_programs(limited, two_clients):
    reported = {"kind": "client_program", "t": 11.0, "host": "h", "pid": 1, "value": {}}
    programs = [
        {**reported, "client": "A", "name": "fit.py"},
        {**reported, "client": "B", "name": "\x1bhist.py"},
    ]
    message = r"use 1 \(fit\.py, 10 to 40 s\), 2 \(␛hist\.py, 50 to 100 s\)$"
    with pytest.raises(TraceError, match=message):
        limited(*two_clients, *programs, session=9)


def test_a_session_without_clients_or_with_a_time_range(limited, worker, two_clients):
    with pytest.raises(TraceError, match="no session 1: it has no record of a client"):
        limited(worker("w1"), session=1)
    with pytest.raises(TraceError, match="session 1 has a time range of its own"):
        limited(*two_clients, session=1, start=10)


def test_an_attempt_is_cut_at_the_ends(rows_in, worker, task, run):
    expected = {
        (10, 30): [("unfinished", 20.0, 30.0, 20.0, 30.0, 10.0, None)],
        (10, 25): [("memory", 20.0, 25.0, 20.0, 25.0, 5.0, 7)],
        (25, 50): [("unfinished", 25.0, 30.0, 25.0, 30.0, 5.0, None)],
        (21, 29): [("memory", 21.0, 29.0, 21.0, 29.0, 8.0, 7)],
        # An attempt that ends at the end of a range belongs to the next range.
        (22, 30): [("unfinished", 22.0, 30.0, 22.0, 30.0, 8.0, None)],
        (10, 20): [("memory", 20.0, 20.0, 20.0, 20.0, 0.0, 7)],
        # It is left out of ranges that do not contain a part of it.
        (30, 40): [],
        (10, 19.5): [],
        (5, 15): [],
        (35, 45): [],
    }
    records = [worker("w1", nthreads=20)]
    for start, stop in expected:
        key = f"a-{start}-{stop}"
        records += [task(key), *run(key, float(start), float(stop), nbytes=7)]

    rows = rows_in(*records, start=20, stop=30)(
        "SELECT key, outcome, processing_t, end_t, compute_start_t, compute_stop_t, "
        "compute_seconds, nbytes FROM task_runs"
    )
    found = {ends: [] for ends in expected}
    for key, *row in rows:
        _, start, stop = key.split("-")
        found[float(start), float(stop)].append(tuple(row))
    assert found == expected


def test_sums_are_cut_but_durations_of_attempts_are_not(rows_in, crossing):
    opened = rows_in(*crossing, start=20, stop=25)

    assert opened(
        "SELECT compute_seconds, mean_compute_seconds, max_compute_seconds FROM prefixes"
    ) == [(5.0, 20.0, 20.0)]
    assert opened(
        "SELECT wall_seconds, busy_seconds, core_seconds, compute_seconds, core_efficiency "
        "FROM run"
    ) == [(5.0, 5.0, 5.0, 5.0, 1.0)]
    assert opened("SELECT processing_seconds FROM latencies") == [(20.0,)]


def test_workers_and_their_losses_are_those_in_the_range(rows_in, worker, gone):
    records = [
        worker("gone"), gone("gone", 10.0, "retire-workers-10.0"), worker("stays"),
        worker("goes", 30.0), gone("goes", 70.0, "handle-worker-cleanup-70.0"),
        worker("lost", 40.0), gone("lost", 55.0, "handle-worker-cleanup-55.0"),
        worker("comes", 80.0),
    ]  # fmt: skip
    opened = rows_in(*records, start=20, stop=60)

    assert opened("SELECT worker, added_t, removed_t FROM workers") == [
        ("stays", 20.0, None),
        ("goes", 30.0, None),
        ("lost", 40.0, 55.0),
    ]
    assert opened("SELECT workers, core_seconds FROM run") == [(3, 40.0 + 30.0 + 15.0)]
    # The other worker is lost after the range.
    assert opened("SELECT worker, t FROM failures") == [("lost", 55.0)]


def test_tasks_are_those_submitted_or_attempted_in_the_range(rows_in, task, run):
    records = [
        task("early-1", 1.0), task("both-1", 1.0), task("late-1", 40.0), task("later-1", 90.0),
        *run("early-1", 2.0, 3.0), *run("both-1", 30.0, 31.0),
    ]  # fmt: skip
    opened = rows_in(*records, start=20, stop=60)

    assert opened("SELECT key FROM tasks ORDER BY key") == [("both-1",), ("late-1",)]


@pytest.mark.exhaustive
def test_seconds_of_a_chunk_are_split_and_other_measurements_count_at_its_end(
    rows_in, worker, task, run, chunk
):
    records = [worker("w1")]
    for number, (key, start) in enumerate([("before-1", 10.0), ("after-1", 30.0)], start=1):
        identity = {"dataset": "Z", "filename": f"{key}.root"}
        identity |= {"entry_start": 0, "entry_stop": 1000}
        measured = {"start_t": start, "stop_t": start + 20, "events": 1000, "bytes_read": 50}
        seconds = {"open_seconds": 4.0, "process_seconds": 16.0}
        records += [
            task(key), chunk(key, **identity), *run(key, start, start + 20, run_id=number),
            chunk(key, run_id=number, worker="w1", **identity, **measured, **seconds),
        ]  # fmt: skip

    opened = rows_in(*records, start=15, stop=35)

    assert opened(
        "SELECT key, outcome, compute_seconds, open_seconds, process_seconds, events, "
        "bytes_read, events_per_second FROM chunks ORDER BY start_t"
    ) == [
        ("before-1", "memory", 15.0, 3.0, 12.0, 1000, 50, 50.0),
        ("after-1", "unfinished", 5.0, 1.0, 4.0, None, None, None),
    ]
    assert opened("SELECT chunks, events FROM run") == [(1, 1000)]
    # Cut chunks do not count for the cost of chunks.
    assert opened("SELECT count(*) FROM chunk_costs") == [(0,)]


@pytest.mark.exhaustive
def test_chunks_without_a_cluster_are_cut(limited, chunk):
    expected = {
        (10.0, 30.0): [("memory", 20.0, 30.0, 10.0, 9)],
        (30.0, 50.0): [("unfinished", 30.0, 40.0, 10.0, None)],
        (15.0, 45.0): [("unfinished", 20.0, 40.0, 20.0, None)],
        (1.0, 11.0): [],
        (45.0, 50.0): [],
    }
    records = []
    for number, (start, stop) in enumerate(expected):
        identity = {"filename": "z.root", "entry_start": number, "entry_stop": number + 1}
        about = {"dataset": "Z", "run_id": number, "worker": f"pid:{number}", "events": 9}
        records.append(
            chunk(f"P-{number}", t=stop, start_t=start, stop_t=stop, **identity, **about)
        )

    part = limited(*records, start=20, stop=40)

    columns = "outcome, start_t, stop_t, compute_seconds, events"
    assert [
        part.rows(f"SELECT {columns} FROM chunks WHERE key = 'P-{number}'")
        for number in range(len(expected))
    ] == [*expected.values()]
    [left_out] = part.time_ranges
    assert (left_out.selected.attempts, left_out.cut_attempts) == (3, 3)


def test_sections_are_cut(rows_in, passage):
    measured = {"run_id": 1, "bytes_read": 5}
    opened = rows_in(
        passage(30.0, "P-1", "ends", start_t=10.0, stop_t=30.0, **measured),
        passage(50.0, "P-1", "begins", start_t=30.0, stop_t=50.0, **measured),
        start=15,
        stop=35,
    )

    assert opened("SELECT name, seconds, bytes_read FROM sections ORDER BY start_t") == [
        ("ends", 15.0, 5),
        ("begins", 5.0, None),
    ]


@pytest.mark.exhaustive
def test_tasks_without_a_start_or_an_end(rows_in, worker, task, move):
    records = [
        worker("w1"),
        task("was-1", state="processing", worker="w1"),
        move(50.0, "was-1", "processing>memory", "task-finished-1.0", worker="w1"),
        task("stays-1"),
        move(10.0, "stays-1", "waiting>processing", worker="w1"),
        # It ends before the range.
        task("ended-1", state="processing", worker="w1"),
        move(15.0, "ended-1", "processing>memory", "task-finished-1.0", worker="w1"),
    ]
    query = "SELECT key, outcome, processing_t, end_t FROM task_runs ORDER BY key"

    assert rows_in(*records, start=20, stop=30)(query) == [
        ("stays-1", "unfinished", 20.0, None),
        ("was-1", "unfinished", None, 30.0),
    ]
    assert rows_in(*records, start=60)(query) == [("stays-1", "unfinished", 60.0, None)]


@pytest.mark.exhaustive
def test_phases_of_an_attempt_that_ends_after_the_range(rows_in, worker, task, move):
    phases = [("transfer", 12.0, 18.0), ("compute", 18.0, 30.0)]
    ended = {"worker": "w1", "phases": phases, "exception": "ValueError('no')"}
    records = [
        worker("w1"),
        task("a-1"),
        move(10.0, "a-1", "waiting>processing", worker="w1"),
        move(31.0, "a-1", "processing>erred", "task-erred-31.0", **ended),
    ]
    opened = rows_in(*records, start=15, stop=20)

    assert opened(
        "SELECT outcome, transfer_seconds, compute_seconds, exception FROM task_runs"
    ) == [("unfinished", 3.0, 2.0, None)]
    assert opened("FROM failures") == []
    assert opened("SELECT failures, erred, unfinished FROM run") == [(0, 0, 1)]
    # The failure is known from the whole trace.
    assert opened("SELECT sum(failed_seconds) FROM utilization") == [(pytest.approx(2.0),)]


@pytest.mark.parametrize(
    ("start", "stop", "ends", "options"),
    [
        ("20s", "-1:00", (20, 40), "--from 20 --to 40"),
        (None, 20, (0, 20), "--to 20"),
        # Ends beyond the run are those of the run.
        (-500, 500, (0, 100), ""),
        ("1970-01-01", "2030-01-01", (0, 100), ""),
    ],
)
def test_the_description_of_a_range(limited, crossing, sample, start, stop, ends, options):
    [found] = limited(*crossing, sample(50.0), start=start, stop=stop).time_ranges

    assert (found.start_seconds, found.stop_seconds, found.run_seconds) == (*ends, 100)
    assert found.options == options
    assert found.total == Counts(attempts=1, transitions=2, samples=1)
    assert found.selected == (Counts(1, 1, 0) if options else found.total)
    assert found.cut_attempts == bool(options)


def test_a_range_is_relative_to_the_start_of_each_trace(write_trace, task, run):
    one = write_trace(task("a-1"), *run("a-1", 10.0, 30.0), name="a.jsonl")
    late = [task("b-1", 1010.0), *run("b-1", 1010.0, 1030.0)]
    two = write_trace(*late, stop_t=1100.0, name="b.jsonl", trace_id="U")
    first = b'"kind": "header", "t": '
    two.write_bytes(sealed(two.read_bytes().replace(first + b"0.0", first + b"1000.0")))

    with Trace(one, two, start=20) as opened:
        assert opened.rows(
            "SELECT trace_id, compute_start_t, compute_seconds FROM task_runs"
        ) == [("T", 20.0, 10.0), ("U", 1020.0, 10.0)]
        assert [found.trace_id for found in opened.time_ranges] == ["T", "U"]


def test_views_are_the_same_and_losses_are_those_of_the_whole_trace(limited, crossing):
    lost = {"kind": "loss", "t": 90.0, "reason": "too slow", "record_kind": "event"}
    whole = limited(*crossing, lost)
    part = limited(*crossing, lost, start=20, stop=40)

    assert whole.time_ranges == ()
    assert part.views() == whole.views()
    assert part.frame("loss").to_dicts() == whole.frame("loss").to_dicts()
    assert part.sql("SELECT reason FROM loss").fetchall() == [("too slow",)]


@pytest.mark.exhaustive
def test_user_views_query_the_range(limited, crossing, sample, tmp_path):
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "mine.sql").write_text(
        "SELECT (SELECT sum(compute_seconds) FROM task_runs) AS seconds, "
        "(SELECT count(*) FROM worker_samples) AS samples, "
        # A table that is computed on its first use.
        "(SELECT sum(seconds) FROM core_time) AS core_seconds"
    )
    records = [*crossing, sample(5.0), sample(25.0)]

    opened = limited(*records, start=20, stop=40, views=tmp_path / "views")

    assert opened.view("mine").fetchall() == [(10.0, 1, 20.0)]


def test_the_cache_contains_the_whole_trace(
    write_trace, crossing, monkeypatch, temporary_cache
):
    monkeypatch.setattr(database, "UNCACHED_BYTES", 0)
    path = write_trace(*crossing)
    query = "SELECT compute_seconds FROM task_runs"
    with Trace(path):
        pass
    before = {file: file.read_bytes() for file in temporary_cache.rglob("*.duckdb")}

    with Trace(path, start=20, stop=40) as part:
        assert part.sql(query).fetchall() == [(10.0,)]

    assert {file: file.read_bytes() for file in temporary_cache.rglob("*.duckdb")} == before
    with Trace(path) as whole:
        assert whole.rows(query) == [(20.0,)]


@pytest.mark.parametrize(
    ("start", "stop", "message"),
    [
        (100, None, "'100' is after the end of the run; the run lasted 100 s: use a time …"),
        ("2m", "3m", "'2m' is after the end of the run; the run lasted 100 s: …"),
        (None, 0, "'0' is not after the start of the run; the run lasted 100 s: …"),
        ("-10m", "-5m", "'-5m' is not after the start of the run; the run lasted 100 s: …"),
        ("50", "-60", "empty time range from '50' to '-60', which are 50 s and 40 s after …"),
        (30, 30.0, "empty time range from '30' to '30.0', which are 30 s and 30 s after …"),
        ("noon", None, "invalid time 'noon': use seconds (90), 5m, …"),
    ],
)
def test_invalid_ranges(start, stop, message):
    with pytest.raises(TraceError) as error:
        parse_range(start, stop, start_t=0.0, stop_t=100.0, utc_offset_seconds=0.0)

    [line] = str(error.value).splitlines()
    assert line.startswith(message.removesuffix("…"))


def test_a_trace_is_not_opened_with_an_invalid_range(limited, crossing):
    with pytest.raises(TraceError, match=r"^'100' is after the end of the run; the run lasted"):
        limited(*crossing, start=100)
