"""View stragglers."""

import pytest

#: Ten durations with median 2 s.
USUAL = [1.0, 1.0, 1.5, 2.0, 2.0, 2.0, 2.0, 2.5, 3.0, 3.0]


@pytest.fixture
def computed(task, run):
    """Return tasks of a prefix by their number and duration."""

    def computed(prefix="add", seconds=USUAL, **fields):
        return [
            record
            for n, duration in enumerate(seconds)
            for record in (
                task(f"{prefix}-{n}"), *run(f"{prefix}-{n}", 1.0, 1.0 + duration, **fields)
            )
        ]  # fmt: skip

    return computed


def test_relative_duration_and_excess(ask, computed, task, run):
    """The median is that of the prefix; a prefix with too few attempts has none."""
    found = ask(
        *computed(),
        task("add-slow"),
        *run("add-slow", 1.0, 6.0),
        task("add-slower"),
        *run("add-slower", 2.0, 12.0, worker="w2"),
        *computed("even", [20.0] * 10),
        *computed("ten", [2.0] * 9 + [50.0]),
        *computed("nine", [2.0] * 8 + [50.0]),
    )

    assert found(
        "SELECT key, prefix, attempt, worker, thread, outcome, compute_seconds, "
        "median_seconds, relative_duration, excess_seconds, prefix_runs, compute_start_t, "
        "compute_stop_t FROM stragglers"
    ) == [
        ("ten-9", "ten", 1, "w1", 1, "memory", 50.0, 2.0, 25.0, 48.0, 10, 1.0, 51.0),
        ("add-slower", "add", 1, "w2", 1, "memory", 10.0, 2.0, 5.0, 8.0, 12, 2.0, 12.0),
        ("add-slow", "add", 1, "w1", 1, "memory", 5.0, 2.0, 2.5, 3.0, 12, 1.0, 6.0),
    ]
    query = "SELECT key, relative_duration FROM stragglers_by(1.5) WHERE compute_seconds < 5"
    assert found(query) == [("add-8", 1.5), ("add-9", 1.5)]


def test_failed_attempts_are_not_in_the_median(rows, computed, run):
    phases = [("compute", 1.0, 9.0)]
    failed = (run(f"add-{n}", 1.0, 9.0, outcome="erred", phases=phases) for n in range(10))

    assert rows(
        "SELECT DISTINCT outcome, median_seconds, relative_duration, count(*) OVER () "
        "FROM stragglers",
        *computed(),
        *(move for attempt in failed for move in attempt),
    ) == [("erred", 2.0, 4.0, 10)]


def test_files_of_chunks(rows, computed, task, run, chunk):
    """Two chunks of a task have a dataset in common, but no file."""
    place = {"dataset": "zz", "filename": "1.root", "entry_start": 100, "entry_stop": 200}

    assert rows(
        "SELECT key, dataset, filename, entry_start, entry_stop FROM stragglers",
        *computed(),
        task("add-one"),
        chunk("add-one", treename="Events", **place),
        *run("add-one", 0.0, 20.0),
        task("add-two"),
        chunk("add-two", **place),
        chunk("add-two", **{**place, "filename": "2.root"}),
        *run("add-two", 0.0, 10.0),
    ) == [("add-one", "zz", "1.root", 100, 200), ("add-two", "zz", None, None, None)]
