"""Traces limited to a time range: cuts at its ends, and invalid ranges."""

import contextlib

import pytest

from marks import exhaustive
from roast_analyze import Trace
from roast_analyze.errors import TraceError
from roast_analyze.open import database
from roast_analyze.open.time_range import Counts
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


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (0, 20, [("unfinished", 10.0, 20.0, 10.0, 20.0, 10.0, None)]),
        (20, None, [("memory", 20.0, 30.0, 20.0, 30.0, 10.0, 7)]),
        exhaustive(12, 15, [("unfinished", 12.0, 15.0, 12.0, 15.0, 3.0, None)]),
        exhaustive(5, 31, [("memory", 10.0, 30.0, 10.0, 30.0, 20.0, 7)]),
        # An attempt that ends at the end of a range belongs to the next range.
        (5, 30, [("unfinished", 10.0, 30.0, 10.0, 30.0, 20.0, None)]),
        (30, 31, [("memory", 30.0, 30.0, 30.0, 30.0, 0.0, 7)]),
        # It is left out of ranges that do not contain a part of it.
        (0, 10, []),
        exhaustive(30.5, None, []),
        exhaustive(40, 50, []),
    ],
)
def test_an_attempt_is_cut_at_the_ends(rows_in, crossing, start, stop, expected):
    query = (
        "SELECT outcome, processing_t, end_t, compute_start_t, compute_stop_t, "
        "compute_seconds, nbytes FROM task_runs"
    )

    assert rows_in(*crossing, start=start, stop=stop)(query) == expected


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


def test_workers_are_those_present_in_the_range(rows_in, worker, gone):
    records = [
        worker("gone"), gone("gone", 10.0, "retire-workers-10.0"), worker("stays"),
        worker("goes", 30.0), gone("goes", 70.0, "handle-worker-cleanup-70.0"),
        worker("comes", 80.0),
    ]  # fmt: skip
    opened = rows_in(*records, start=20, stop=60)

    assert opened("SELECT worker, added_t, removed_t FROM workers") == [
        ("stays", 20.0, None),
        ("goes", 30.0, None),
    ]
    assert opened("SELECT workers, core_seconds FROM run") == [(2, 70.0)]
    assert opened("FROM failures") == []
    # A later range contains the loss of the worker.
    later = rows_in(*records, start=60)
    assert later("SELECT worker, t FROM failures") == [("goes", 70.0)]


def test_tasks_are_those_submitted_or_attempted_in_the_range(rows_in, task, run):
    records = [
        task("early-1", 1.0), task("both-1", 1.0), task("late-1", 40.0), task("later-1", 90.0),
        *run("early-1", 2.0, 3.0), *run("both-1", 30.0, 31.0),
    ]  # fmt: skip
    opened = rows_in(*records, start=20, stop=60)

    assert opened("SELECT key FROM tasks ORDER BY key") == [("both-1",), ("late-1",)]


def test_seconds_of_a_chunk_are_split_and_other_measurements_count_at_its_end(
    rows_in, worker, task, run, chunk
):
    identity = {"dataset": "Z", "filename": "z.root", "entry_start": 0, "entry_stop": 1000}
    measured = {"start_t": 10.0, "stop_t": 30.0, "events": 1000, "bytes_read": 50}
    seconds = {"open_seconds": 4.0, "process_seconds": 16.0}
    records = [
        worker("w1"), task("P-1"), chunk("P-1", **identity),
        *run("P-1", 10.0, 30.0, run_id=1),
        chunk("P-1", run_id=1, worker="w1", **identity, **measured, **seconds),
    ]  # fmt: skip
    query = (
        "SELECT outcome, compute_seconds, open_seconds, process_seconds, events, bytes_read, "
        "events_per_second FROM chunks"
    )

    before = rows_in(*records, stop=15)
    assert before(query) == [("unfinished", 5.0, 1.0, 4.0, None, None, None)]
    assert before("SELECT chunks, events FROM run") == [(0, 0)]
    after = rows_in(*records, start=15)
    assert after(query) == [("memory", 15.0, 3.0, 12.0, 1000, 50, 50.0)]
    # A cut chunk does not count for the cost of chunks.
    assert after("SELECT count(*) FROM chunk_costs") == [(0,)]


def test_chunks_without_a_cluster_are_cut(limited, chunk):
    identity = {"dataset": "Z", "filename": "z.root", "entry_start": 0, "entry_stop": 1000}
    done = chunk(
        "P-1", t=30.0, run_id=1, worker="here", **identity, start_t=10.0, stop_t=30.0, events=9
    )
    query = "SELECT outcome, start_t, stop_t, compute_seconds, events FROM chunks"

    assert limited(done, stop=15).sql(query).fetchall() == [
        ("unfinished", 10.0, 15.0, 5.0, None)
    ]
    assert limited(done, start=15).sql(query).fetchall() == [("memory", 15.0, 30.0, 15.0, 9)]
    assert limited(done, start=40).sql(query).fetchall() == []
    [left_out] = limited(done, start=15, stop=16).time_ranges
    assert (left_out.selected.attempts, left_out.cut_attempts) == (1, 1)


def test_sections_are_cut(rows_in, passage):
    through = passage(30.0, "P-1", "jets", run_id=1, start_t=10.0, stop_t=30.0, bytes_read=5)
    query = "SELECT seconds, bytes_read FROM sections"

    assert rows_in(through, stop=15)(query) == [(5.0, None)]
    assert rows_in(through, start=15)(query) == [(15.0, 5)]


def test_tasks_without_a_start_or_an_end(rows_in, worker, task, move):
    records = [
        worker("w1"),
        task("was-1", state="processing", worker="w1"),
        move(50.0, "was-1", "processing>memory", "task-finished-1.0", worker="w1"),
        task("stays-1"),
        move(10.0, "stays-1", "waiting>processing", worker="w1"),
    ]
    query = "SELECT key, outcome, processing_t, end_t FROM task_runs ORDER BY key"

    assert rows_in(*records, start=20, stop=30)(query) == [
        ("stays-1", "unfinished", 20.0, None),
        ("was-1", "unfinished", None, 30.0),
    ]
    assert rows_in(*records, start=60)(query) == [("stays-1", "unfinished", 60.0, None)]


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
        # Ends beyond the run are those of the run.
        (-500, None, (0, 100), ""),
        (None, 500, (0, 100), ""),
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
def test_invalid_ranges(rows_in, crossing, start, stop, message):
    with pytest.raises(TraceError) as error:
        rows_in(*crossing, start=start, stop=stop)

    [line] = str(error.value).splitlines()
    assert line.startswith(message.removesuffix("…"))
