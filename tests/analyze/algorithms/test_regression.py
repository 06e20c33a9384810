"""Comparison of metrics of runs, and rules for a regression."""

import random

import pytest

from roast_analyze.algorithms.regression import compare, parse_rule
from roast_analyze.algorithms.student import student
from roast_analyze.errors import TraceError

METRICS = ("wall_seconds", "events_per_second", "failures")


def fails(rule: str, base: list[float], new: list[float]) -> bool:
    return parse_rule(rule, METRICS).fails(compare("wall_seconds", base, new))


@pytest.mark.parametrize(
    ("rule", "base", "new", "expected"),
    [
        # One run each: the threshold alone decides.
        ("wall_seconds > +10%", [10.0], [11.1], True),
        ("wall_seconds > +10%", [10.0], [10.9], False),
        ("events_per_second < -5%", [100.0], [94.0], True),
        ("events_per_second < -5%", [100.0], [96.0], False),
        ("failures > +1", [3], [5], True),
        ("failures > +1", [3], [4], False),
        ("failures > +10%", [0], [1], True),
        # A value without a sign is not compared with the base.
        ("failures > 0", [3, 5], [1], True),
        # With several runs, the change must also exceed their spread: ± 1.15 t.
        ("wall_seconds > +10%", [9.0, 10.0, 11.0], [14.9], False),
        ("wall_seconds > +10%", [9.0, 10.0, 11.0], [15.1], True),
        ("wall_seconds > +10%", [9.9, 10.0, 10.1], [11.1], True),
        ("wall_seconds > +10%", [10.0], [10.0, 14.0], False),
        ("wall_seconds > +10%", [10.0], [11.95, 12.05], True),
    ],
)
def test_a_rule(rule, base, new, expected):
    assert fails(rule, base, new) == expected


def test_runs_of_one_program_pass_and_slower_ones_fail():
    draw, rule = random.Random(1), "wall_seconds > +10%"
    failed, missed = 0, 0
    for _ in range(100):
        same = [draw.gauss(10.0, 0.25) for _ in range(20)]
        failed += sum(fails(rule, same[:i] + same[i + 1 :], [same[i]]) for i in range(20))
        missed += sum(not fails(rule, same, [draw.gauss(12.0, 0.25)]) for _ in range(20))

    # Of 2,000 each. The threshold is four standard deviations from either.
    assert (failed, missed) == (0, 0)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("wall_seconds > 10%", "invalid rule 'wall_seconds > 10%'"),
        ("wall_seconds = +10%", "invalid rule"),
        ("wall > +10%", "unknown metric 'wall': use one of wall_seconds, "),
    ],
)
def test_an_invalid_rule(rule, message):
    with pytest.raises(TraceError, match=message):
        parse_rule(rule, METRICS)


@pytest.mark.parametrize(
    ("freedom", "bound"), [(1, 12.706), (9, 2.262), (10, 2.228), (1000, 1.962)]
)
def test_bounds_of_student(freedom, bound):
    assert student(freedom) == pytest.approx(bound, abs=0.01)
