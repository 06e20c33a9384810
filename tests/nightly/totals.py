"""Arithmetic on what may be absent: what was not measured is no zero.

A sum, a mean or a median is over the values that are known, and None if none is.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from fractions import Fraction


def known(values: Iterable) -> list:
    """Give those that are not None."""
    return [value for value in values if value is not None]


def column(rows: Iterable[dict], name: str) -> list:
    """Give the known values of a column."""
    return known(row[name] for row in rows)


def total(values: Iterable) -> float | None:
    """Give the sum of what is known; None if nothing is."""
    numbers = known(values)
    return sum(numbers) if numbers else None


def mean(values: Iterable) -> float | None:
    """Give the mean of what is known."""
    numbers = known(values)
    return statistics.fmean(numbers) if numbers else None


def median(values: Iterable) -> float | None:
    """Give the median of what is known: between two middle ones, their mean."""
    numbers = known(values)
    return statistics.median(numbers) if numbers else None


def least(values: Iterable) -> float | None:
    """Give the least of what is known."""
    return min(known(values), default=None)


def most(values: Iterable) -> float | None:
    """Give the most of what is known."""
    return max(known(values), default=None)


def lasted(start_t: float, stop_t: float) -> float:
    """Measure a time; none has passed if a clock that was put back says that it is negative."""
    return max(stop_t - start_t, 0)


def ratio(part: float | None, whole: float | None) -> float | None:
    """Divide; None if either is unknown, or the whole is zero."""
    return None if part is None or not whole else part / whole


def whole(number: float | None) -> int | None:
    """Round to the nearest whole number, halves away from zero."""
    if number is None:
        return None
    return int(abs(Fraction(number)) + Fraction(1, 2)) * (1 if number >= 0 else -1)


def grouped(rows: Iterable[dict], key: Callable[[dict], object]) -> dict:
    """Group rows, groups in the order in which they first occur."""
    groups = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return dict(groups)


def costliest_first(rows: Iterable[dict], cost: str, *names: str) -> list[dict]:
    """Order rows by a cost, from the most to none; equal ones by name, no name last."""

    def place(row: dict) -> tuple:
        named = [(row[name] is None, row[name] or "") for name in names]
        return (row[cost] is None, -(row[cost] or 0), named)

    return sorted(rows, key=place)


def quantile(values: Iterable, part: float) -> float:
    """Give the value that a part of the values lies below, in proportion between two."""
    numbers = sorted(values)
    place = part * (len(numbers) - 1)
    below = math.floor(place)
    above = min(below + 1, len(numbers) - 1)
    return numbers[below] + (place - below) * (numbers[above] - numbers[below])


def relative_iqr(values: Iterable) -> float | None:
    """Give the interquartile range by the median; None for fewer than two values."""
    numbers = list(values)
    if len(numbers) < 2:
        return None
    return ratio(quantile(numbers, 0.75) - quantile(numbers, 0.25), median(numbers))


def deviation(values: Iterable) -> float | None:
    """Estimate a standard deviation: 1.4826 times the median distance to the median."""
    numbers = list(values)
    middle = median(numbers)
    return None if middle is None else 1.4826 * median(abs(n - middle) for n in numbers)
