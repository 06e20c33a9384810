"""Traces limited to a time range: what is cut at its ends, and which ranges are refused."""

import pytest

from roast_analyze import Trace
from roast_analyze.errors import TraceError
from roast_analyze.open import database
from roast_analyze.open.time_range import Counts


@pytest.fixture
def limited(write_trace):
    """Open a time range of a trace of 100 s with some records."""
    opened: list[Trace] = []

    def limited(*records: dict, start=None, stop=None, **options) -> Trace:
        path = write_trace(*records, stop_t=options.pop("stop_t", 100.0))
        opened.append(Trace(path, start=start, stop=stop, **options))
        return opened[-1]

    yield limited
    for trace in opened:
        trace.close()


@pytest.fixture
def crossing(worker, task, run) -> list[dict]:
    """An attempt from 10 s to 30 s, on a worker that joined at the start."""
    return [worker("w1"), task("a-1"), *run("a-1", 10.0, 30.0, nbytes=7)]


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (0, 20, ("unfinished", 10.0, 20.0, 10.0, 20.0, 10.0, None)),
        (20, None, ("memory", 20.0, 30.0, 20.0, 30.0, 10.0, 7)),
        (12, 15, ("unfinished", 12.0, 15.0, 12.0, 15.0, 3.0, None)),
        (5, 31, ("memory", 10.0, 30.0, 10.0, 30.0, 20.0, 7)),
        # An attempt that ends at the end of a range belongs to the next range.
        (5, 30, ("unfinished", 10.0, 30.0, 10.0, 30.0, 20.0, None)),
        (30, 31, ("memory", 30.0, 30.0, 30.0, 30.0, 0.0, 7)),
    ],
)
def test_an_attempt_is_cut_at_the_ends(limited, crossing, start, stop, expected):
    query = (
        "SELECT outcome, processing_t, end_t, compute_start_t, compute_stop_t, "
        "compute_seconds, nbytes FROM task_runs"
    )

    assert limited(*crossing, start=start, stop=stop).sql(query).fetchall() == [expected]


@pytest.mark.parametrize(("start", "stop"), [(0, 10), (30.5, None), (40, 50)])
def test_an_attempt_outside_the_range_is_left_out(limited, crossing, start, stop):
    opened = limited(*crossing, start=start, stop=stop)

    assert opened.sql("SELECT count(*) FROM task_runs").fetchall() == [(0,)]


def test_sums_are_cut_but_durations_of_attempts_are_not(limited, crossing):
    opened = limited(*crossing, start=20, stop=25)

    assert opened.sql(
        "SELECT compute_seconds, mean_compute_seconds, max_compute_seconds FROM prefixes"
    ).fetchall() == [(5.0, 20.0, 20.0)]
    assert opened.sql(
        "SELECT wall_seconds, busy_seconds, core_seconds, compute_seconds, core_efficiency "
        "FROM run"
    ).fetchall() == [(5.0, 5.0, 5.0, 5.0, 1.0)]
    assert opened.sql("SELECT processing_seconds FROM latencies").fetchall() == [(20.0,)]


def test_workers_are_those_present_in_the_range(limited, worker, gone):
    records = [
        worker("gone"), gone("gone", 10.0, "retire-workers-10.0"), worker("stays"),
        worker("goes", 30.0), gone("goes", 70.0, "handle-worker-cleanup-70.0"),
        worker("comes", 80.0),
    ]  # fmt: skip
    opened = limited(*records, start=20, stop=60)

    assert opened.sql("SELECT worker, added_t, removed_t FROM workers").fetchall() == [
        ("stays", 20.0, None),
        ("goes", 30.0, None),
    ]
    assert opened.sql("SELECT workers, core_seconds FROM run").fetchall() == [(2, 70.0)]
    assert opened.frame("failures").is_empty()
    # A later range contains the loss of the worker.
    later = limited(*records, start=60)
    assert later.sql("SELECT worker, t FROM failures").fetchall() == [("goes", 70.0)]


def test_tasks_are_those_submitted_or_attempted_in_the_range(limited, task, run):
    records = [
        task("early-1", 1.0), task("both-1", 1.0), task("late-1", 40.0), task("later-1", 90.0),
        *run("early-1", 2.0, 3.0), *run("both-1", 30.0, 31.0),
    ]  # fmt: skip
    opened = limited(*records, start=20, stop=60)

    assert opened.sql("SELECT key FROM tasks ORDER BY key").fetchall() == [
        ("both-1",),
        ("late-1",),
    ]


def test_seconds_of_a_chunk_are_split_and_other_measurements_count_at_its_end(
    limited, worker, task, run, chunk
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

    before = limited(*records, stop=15)
    assert before.sql(query).fetchall() == [("unfinished", 5.0, 1.0, 4.0, None, None, None)]
    assert before.sql("SELECT chunks, events FROM run").fetchall() == [(0, 0)]
    after = limited(*records, start=15)
    assert after.sql(query).fetchall() == [("memory", 15.0, 3.0, 12.0, 1000, 50, 50.0)]
    # A cut chunk does not count for the cost of chunks.
    assert after.sql("SELECT count(*) FROM chunk_costs").fetchall() == [(0,)]


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


def test_sections_are_cut(limited, passage):
    through = passage(30.0, "P-1", "jets", run_id=1, start_t=10.0, stop_t=30.0, bytes_read=5)
    query = "SELECT seconds, bytes_read FROM sections"

    assert limited(through, stop=15).sql(query).fetchall() == [(5.0, None)]
    assert limited(through, start=15).sql(query).fetchall() == [(15.0, 5)]


def test_tasks_without_a_start_or_an_end(limited, worker, task, move):
    records = [
        worker("w1"),
        task("was-1", state="processing", worker="w1"),
        move(50.0, "was-1", "processing>memory", "task-finished-1.0", worker="w1"),
        task("stays-1"),
        move(10.0, "stays-1", "waiting>processing", worker="w1"),
    ]
    query = "SELECT key, outcome, processing_t, end_t FROM task_runs ORDER BY key"

    assert limited(*records, start=20, stop=30).sql(query).fetchall() == [
        ("stays-1", "unfinished", 20.0, None),
        ("was-1", "unfinished", None, 30.0),
    ]
    assert limited(*records, start=60).sql(query).fetchall() == [
        ("stays-1", "unfinished", 60.0, None)
    ]


def test_phases_of_an_attempt_that_ends_after_the_range(limited, worker, task, move):
    parts = [
        {"action": "transfer", "start": 12.0, "stop": 18.0},
        {"action": "compute", "start": 18.0, "stop": 30.0},
    ]
    ended = {"worker": "w1", "startstops": parts, "exception": "ValueError('no')"}
    records = [
        worker("w1"),
        task("a-1"),
        move(10.0, "a-1", "waiting>processing", worker="w1"),
        move(31.0, "a-1", "processing>erred", "task-erred-31.0", **ended),
    ]
    opened = limited(*records, start=15, stop=20)

    assert opened.sql(
        "SELECT outcome, transfer_seconds, compute_seconds, exception FROM task_runs"
    ).fetchall() == [("unfinished", 3.0, 2.0, None)]
    assert opened.frame("failures").is_empty()
    assert opened.sql("SELECT failures, erred, unfinished FROM run").fetchall() == [(0, 0, 1)]
    # The failure is known from the whole trace.
    assert opened.sql("SELECT sum(failed_seconds) FROM utilisation").fetchall() == [
        (pytest.approx(2.0),)
    ]


def test_the_description_of_a_range(limited, crossing, sample):
    opened = limited(*crossing, sample(50.0), start="20s", stop="-1:00")

    [found] = opened.time_ranges
    assert (found.start_seconds, found.stop_seconds, found.run_seconds) == (20, 40, 100)
    assert found.selected == Counts(attempts=1, transitions=1, samples=0)
    assert found.total == Counts(attempts=1, transitions=2, samples=1)
    assert found.cut_attempts == 1
    assert found.options == "--from 20 --to 40"


def test_a_trace_without_a_range(limited, crossing):
    assert limited(*crossing).time_ranges == ()


def test_a_range_is_relative_to_the_start_of_each_trace(tmp_path, lines, task, run):
    late = [task("b-1", 1010.0), *run("b-1", 1010.0, 1030.0)]
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    paths[0].write_bytes(lines(task("a-1"), *run("a-1", 10.0, 30.0)))
    header = b'"trace_id": "U"'
    text = lines(*late, stop_t=1100.0).replace(b'"trace_id": "T"', header)
    paths[1].write_bytes(
        text.replace(b'"kind": "header", "t": 0.0', b'"kind": "header", "t": 1000.0')
    )

    with Trace(*paths, start=20) as opened:
        assert opened.sql(
            "SELECT trace_id, compute_start_t, compute_seconds FROM task_runs"
        ).fetchall() == [("T", 20.0, 10.0), ("U", 1020.0, 10.0)]
        assert [found.trace_id for found in opened.time_ranges] == ["T", "U"]


def test_views_are_the_same_and_losses_are_those_of_the_whole_trace(limited, crossing):
    lost = {
        "kind": "loss",
        "t": 90.0,
        "reason": "too slow",
        "record_kind": "event",
        "records": 3,
    }
    whole = limited(*crossing, lost)
    part = limited(*crossing, lost, start=20, stop=40)

    assert part.views() == whole.views()
    assert part.frame("loss").to_dicts() == whole.frame("loss").to_dicts()
    assert part.sql("SELECT reason FROM loss").fetchall() == [("too slow",)]


def test_user_views_query_the_range(limited, crossing, sample, tmp_path):
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "mine.sql").write_text(
        "SELECT (SELECT sum(compute_seconds) FROM task_runs) AS seconds, "
        "(SELECT count(*) FROM worker_samples) AS samples"
    )
    records = [*crossing, sample(5.0), sample(25.0)]

    opened = limited(*records, start=20, stop=40, views=tmp_path / "views")

    assert opened.view("mine").fetchall() == [(10.0, 1)]


def test_the_cache_contains_the_whole_trace(
    write_trace, crossing, monkeypatch, temporary_cache
):
    monkeypatch.setattr(database, "SMALL_BYTES", 0)
    path = write_trace(*crossing)
    query = "SELECT compute_seconds FROM task_runs"
    with Trace(path):
        pass
    before = {file: file.read_bytes() for file in temporary_cache.rglob("*.duckdb")}

    with Trace(path, start=20, stop=40) as part:
        assert part.sql(query).fetchall() == [(10.0,)]

    assert {file: file.read_bytes() for file in temporary_cache.rglob("*.duckdb")} == before
    with Trace(path) as whole:
        assert whole.sql(query).fetchall() == [(20.0,)]


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
def test_invalid_ranges(limited, crossing, start, stop, message):
    with pytest.raises(TraceError) as error:
        limited(*crossing, start=start, stop=stop)

    [line] = str(error.value).splitlines()
    assert line.startswith(message.removesuffix("…"))


@pytest.mark.parametrize(
    ("start", "stop"), [(-500, None), (None, 500), ("1970-01-01", "2030-01-01")]
)
def test_ends_beyond_the_run_are_those_of_the_run(limited, crossing, start, stop):
    [found] = limited(*crossing, start=start, stop=stop).time_ranges

    assert (found.start_seconds, found.stop_seconds) == (0, 100)
    assert found.selected == found.total
    assert found.options == ""
