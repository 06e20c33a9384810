"""Intervals of attempts, from their phases."""

import math

import polars as pl
import pytest

from roast_analyze.algorithms.attempt_intervals import (
    ATTEMPTS,
    KINDS,
    PHASES,
    USES,
    attempt_intervals,
)

KEPT, TRANSFER, DISK = (USES.index(use) for use in ("kept result", "transfer", "disk"))


@pytest.fixture
def intervals():
    """Return kind, use, start and stop of the intervals of some attempts."""

    def intervals(attempts, phases):
        found = attempt_intervals(
            pl.DataFrame(attempts, ATTEMPTS, orient="row"),
            pl.DataFrame(phases, PHASES, orient="row"),
        )
        rows = found.sort("start").select("kind", "label", "start", "stop").rows()
        return [(KINDS[kind], USES[label], start, stop) for kind, label, start, stop in rows]

    return intervals


def test_phases_that_overlap(intervals):
    """The gap begins with the latest end of all earlier phases."""
    phases = [
        (7, TRANSFER, 1.0, 3.0),
        (7, DISK, 4.0, 8.0),
        (7, DISK, 5.0, 6.0),
        (7, 0, 9.0, 10.0),
    ]
    assert intervals([(7, 1, 1, 1, KEPT, False, 0, 0.0, None, 11.0, None)], phases) == [
        ("dispatch", "dispatch", 0.0, 1.0),
        ("transfer", "transfer", 1.0, 3.0),
        ("dispatch", "dispatch", 3.0, 4.0),
        ("busy", "disk", 4.0, 8.0),
        ("busy", "disk", 5.0, 6.0),
        ("dispatch", "dispatch", 8.0, 9.0),
        ("busy", "kept result", 9.0, 10.0),
    ]


def test_an_attempt_that_was_lost_with_its_worker(intervals):
    """The worker was last seen at 6 s."""
    lost = (None, 1, 1, 1, USES.index("lost attempt"), False, 0, 0.0, 2.0, 9.0, 6.0)
    assert intervals([lost], []) == [
        ("dispatch", "dispatch", 0.0, 2.0),
        ("busy", "lost attempt", 2.0, 6.0),
    ]


def test_attempts_that_report_nothing_hold_their_thread_to_the_end(intervals):
    """Of three cancelled and three open attempts on two threads, two of each compute."""
    cancelled, unfinished = (
        USES.index(f"{name} attempt") for name in ("cancelled", "unfinished")
    )

    def attempt(number, use, start, stop):
        is_doubtful = use == cancelled
        return (number, 1, 1, 2, use, is_doubtful, 0, start, None, stop, None)

    found = intervals(
        [
            attempt(1, cancelled, 0.0, 8.0),
            attempt(2, cancelled, 1.0, 8.0),
            attempt(3, cancelled, 2.0, 8.5),
            attempt(4, unfinished, 3.0, math.inf),
            attempt(5, unfinished, 4.0, math.inf),
            attempt(6, unfinished, 4.5, math.inf),
        ],
        [],
    )
    assert found == [
        ("doubtful", "cancelled attempt", 0.0, 8.0),
        ("doubtful", "cancelled attempt", 1.0, 8.0),
        ("unreported", "unfinished attempt", 3.0, math.inf),
        ("unreported", "unfinished attempt", 4.0, math.inf),
        ("doubtful", "cancelled attempt", 8.0, 8.5),
    ]


@pytest.mark.parametrize("attempts", [[], [(7, 1, 1, 1, KEPT, False, 0, 0.0, None, 2.0, None)]])
def test_phases_of_other_traces(intervals, attempts):
    kinds = [kind for kind, *_ in intervals(attempts, [(3, 0, 0.0, 1.0), (9, 0, 0.0, 1.0)])]
    assert kinds == ["unreported"] * len(attempts)
