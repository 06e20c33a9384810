"""View stragglers."""

import pytest


@pytest.fixture
def usual(task, run):
    """Return ten tasks of a prefix that compute 1 to 3 s, with median 2 s."""
    times = [1.0, 1.0, 1.5, 2.0, 2.0, 2.0, 2.0, 2.5, 3.0, 3.0]

    def usual(prefix="add", times=times):
        return [
            record
            for n, seconds in enumerate(times)
            for record in (task(f"{prefix}-{n}"), *run(f"{prefix}-{n}", 1.0, 1.0 + seconds))
        ]

    return usual


def test_relative_duration_and_excess(rows, usual, task, run):
    assert rows(
        "SELECT key, prefix, attempt, worker, thread, outcome, compute_seconds, "
        "median_seconds, relative_duration, excess_seconds, prefix_runs, compute_start_t, "
        "compute_stop_t "
        "FROM stragglers",
        *usual(),
        task("add-slow"),
        *run("add-slow", 1.0, 6.0),
        task("add-slower"),
        *run("add-slower", 2.0, 12.0, worker="w2"),
    ) == [
        ("add-slower", "add", 1, "w2", 1, "memory", 10.0, 2.0, 5.0, 8.0, 12, 2.0, 12.0),
        ("add-slow", "add", 1, "w1", 1, "memory", 5.0, 2.0, 2.5, 3.0, 12, 1.0, 6.0),
    ]


def test_median_by_prefix(rows, usual, task, run):
    assert rows(
        "SELECT key, median_seconds FROM stragglers",
        *usual(),
        *usual("sub", [20.0] * 10),
        task("sub-slow"),
        *run("sub-slow", 0.0, 39.9),
        task("add-slow"),
        *run("add-slow", 0.0, 4.0),
    ) == [("add-slow", 2.0)]


def test_median_needs_ten_attempts(rows, usual, task, run):
    slow = [task("add-slow"), *run("add-slow", 0.0, 50.0)]
    query = "SELECT key, prefix_runs FROM stragglers"

    assert rows(query, *usual(times=[2.0] * 8), *slow) == []
    assert rows(query, *usual(times=[2.0] * 9), *slow) == [("add-slow", 10)]


def test_failed_attempts_are_not_in_the_median(rows, usual, move):
    failed = {"states": "processing>erred", "stimulus_id": "task-erred-9.0"}
    parts = [{"action": "compute", "start": 1.0, "stop": 9.0}]
    attempts = [
        (
            move(1.0, f"add-{n}", "waiting>processing", worker="w1"),
            move(9.0, f"add-{n}", **failed, worker="w1", startstops=parts),
        )
        for n in range(10)
    ]

    assert rows(
        "SELECT DISTINCT outcome, median_seconds, relative_duration, count(*) OVER () "
        "FROM stragglers",
        *usual(),
        *(record for pair in attempts for record in pair),
    ) == [("erred", 2.0, 4.0, 10)]


def test_minimum_of_relative_duration(rows, usual):
    query = "SELECT key, relative_duration FROM stragglers_by(1.5)"

    assert rows(query, *usual()) == [("add-8", 1.5), ("add-9", 1.5)]


def test_file_of_a_chunk(rows, usual, task, run, chunk):
    place = {"dataset": "zz", "filename": "zz.root", "entry_start": 100, "entry_stop": 200}

    assert rows(
        "SELECT dataset, filename, entry_start, entry_stop FROM stragglers",
        *usual(),
        task("add-slow"),
        chunk("add-slow", treename="Events", **place),
        *run("add-slow", 0.0, 10.0),
    ) == [("zz", "zz.root", 100, 200)]


def test_chunks_of_several_files(rows, usual, task, run, chunk):
    first = {"dataset": "zz", "filename": "1.root", "entry_start": 0, "entry_stop": 5}

    assert rows(
        "SELECT key, dataset, filename, entry_start, entry_stop FROM stragglers",
        *usual(),
        task("add-slow"),
        chunk("add-slow", **first),
        chunk("add-slow", **{**first, "filename": "2.root"}),
        *run("add-slow", 0.0, 10.0),
    ) == [("add-slow", "zz", None, None, None)]
