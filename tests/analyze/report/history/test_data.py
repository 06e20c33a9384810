"""Changes, slow files and slow hosts in the history of planted runs."""

import polars as pl
import pytest

from roast_analyze.report.history import figures


def found(history):
    """Return the changes as program and run, and the slow files and hosts."""
    changes = {(change.program, change.run_number) for change in history.changes}
    files, hosts = history.files.rows["filename"], history.hosts.rows["host"]
    return changes | {("file", name) for name in files} | {("host", name) for name in hosts}


def test_planted_changes_are_found_and_no_others(planted):
    expected = {("p0.py", 61), ("file", "f0.root"), ("host", "n0")}
    missed = false_alarms = 0

    for seed in range(20):
        history = found(planted(seed))
        missed += len(expected - history)
        false_alarms += len(history - expected)

    assert missed <= 1
    assert false_alarms <= 1


def test_medians_end_at_the_next_change(planted):
    wall_seconds = [
        600.0 * (1 + number // 40) * (1 + 1e-3 * (number % 7)) for number in range(120)
    ]
    hours = {"core_hours": [1.0] * 120, "kept_hours": [1.0] * 120}
    history = planted(seed=0, programs=1, wall_seconds=wall_seconds, **hours)
    figure = figures.changes(history.runs, history.changes, history.changes)

    assert [curve.x for curve in figure.data if curve.mode == "lines"] == [
        (41, 81), (81, 120), (1, 41), (41, 81),
    ]  # fmt: skip


def test_a_change_names_what_changed_at_that_run(planted):
    hosts = [["n1"] if n % 120 < 60 else ["n1", "n2"] for n in range(11 * 120)]

    [change] = planted(seed=0, hosts=hosts).changes

    assert change.is_worse
    assert [(fact.name, fact.text) for fact in change.facts] == [
        ("commit", "aaaaaaaaa → bbbbbbbbb"),
        ("hosts", "+ n2"),
    ]
    assert {shift.metric.name: shift.change for shift in change.shifts} == {
        "wall_seconds": pytest.approx(0.15, abs=0.04),
        "core_seconds_per_event": pytest.approx(0.15, abs=0.04),
    }


@pytest.mark.parametrize("shared", [[True] * 1320, ["true"] * 1320])
def test_recordings_of_shared_schedulers_are_no_runs_of_a_program(planted, shared):
    assert planted(seed=0).changes
    assert planted(seed=0, is_shared=[False] * 1320).changes
    assert planted(seed=0, is_shared=pl.Series([None] * 1320, dtype=pl.String)).changes
    history = planted(seed=0, is_shared=shared)
    assert (history.changes, history.series) == ([], 0)
