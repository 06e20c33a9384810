"""One row per attempt at a chunk, joined to what it is and what was measured."""

IDENTITY = {
    "dataset": "DY",
    "filename": "f.root",
    "treename": "Events",
    "entry_start": 100,
    "entry_stop": 150,
    "file_uuid": "u",
    "usermeta": {"xsec": 1.5},
}


def test_a_chunk_that_was_not_measured(rows, chunk, run):
    assert rows("SELECT * FROM chunks", chunk("a", **IDENTITY), *run("a", 1.0, 3.0)) == [
        (
            "a", 1, "DY", "f.root", "Events", 100, 150, 50, None, None, None, None, None, None,
            "w1", "memory", 8, 25.0, None, 2.0, 1.0, 3.0, "u", '{"xsec":1.5}', None, "T",
        )
    ]  # fmt: skip


def test_a_measured_attempt_is_found_by_its_run_id(rows, chunk, run, move):
    measured = {
        "events": 40,
        "bytes_read": 1000,
        "columns": ["x", "y"],
        "branches": [{"branch": "x"}],
        "process_seconds": 1.5,
        "open_seconds": 0.25,
        "cpu_seconds": 1.0,
    }

    assert rows(
        "SELECT attempt, outcome, events, bytes_read, columns_read, branches_read, "
        "process_seconds, open_seconds, cpu_seconds, events_per_second FROM chunks",
        chunk("a", **IDENTITY),
        move(1.0, "a", "waiting>processing", worker="w1", run_id=1),
        move(2.0, "a", "processing>released", "task-erred-2.0", worker="w1", run_id=1),
        *run("a", 3.0, 5.0, run_id=2),
        chunk("a", run_id=2, **measured),
    ) == [
        (1, "retried", None, None, None, None, None, None, None, None),
        (2, "memory", 40, 1000, 2, 1, 1.5, 0.25, 1.0, 20.0),
    ]


def test_an_identity_that_is_repeated_does_not_multiply_the_attempts(rows, chunk, run):
    assert rows(
        "SELECT key, attempt, events FROM chunks",
        chunk("a", **IDENTITY),
        chunk("a", **IDENTITY),
        *run("a", 1.0, 2.0, run_id=1),
        chunk("a", run_id=1, bytes_read=1),
        chunk("a", run_id=1, bytes_read=2),
    ) == [("a", 1, 50)]


def test_a_lost_result_is_processed_twice_and_counts_twice(rows, chunk, run):
    assert rows(
        "SELECT attempt, outcome, events FROM chunks",
        chunk("a", **IDENTITY),
        *run("a", 1.0, 2.0, worker="w1"),
        *run("a", 4.0, 5.0, worker="w2"),
    ) == [(1, "memory", 50), (2, "memory", 50)]


def test_a_failed_chunk_has_no_events_but_its_exception(rows, chunk, move):
    assert rows(
        "SELECT outcome, events, events_per_second, exception FROM chunks",
        chunk("a", **IDENTITY),
        move(1.0, "a", "waiting>processing", worker="w1"),
        move(2.0, "a", "processing>erred", "task-erred-2.0", exception="OSError()"),
    ) == [("erred", None, None, "OSError()")]


def test_a_measured_attempt_without_identity_brings_its_own(rows, chunk, run):
    assert rows(
        "SELECT dataset, events FROM chunks",
        *run("a", 1.0, 2.0, run_id=1),
        chunk("a", run_id=1, dataset="DY", events=5),
    ) == [("DY", 5)]


def test_a_file_that_is_asked_for_its_entries_is_no_chunk(rows, chunk, run):
    assert rows(
        "SELECT * FROM chunks",
        chunk("a", dataset="DY", filename="f.root", treename="Events"),
        *run("a", 1.0, 2.0),
    ) == []  # fmt: skip


def test_no_rate_without_time(rows, chunk, run):
    assert rows(
        "SELECT events_per_second FROM chunks", chunk("a", **IDENTITY), *run("a", 1.0, 1.0)
    ) == [(None,)]
