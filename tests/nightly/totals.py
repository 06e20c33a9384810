"""Arithmetic with missing values.

Sums, means and medians are of known values, and None without any.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from fractions import Fraction


def known(values: Iterable) -> list:
    """Return the values that are not None."""
    return [value for value in values if value is not None]


def column(rows: Iterable[dict], name: str) -> list:
    """Return the known values of a column."""
    return known(row[name] for row in rows)


def total(values: Iterable) -> float | None:
    """Return the sum of known values."""
    numbers = known(values)
    return sum(numbers) if numbers else None


def mean(values: Iterable) -> float | None:
    """Return the mean of known values."""
    numbers = known(values)
    return statistics.fmean(numbers) if numbers else None


def median(values: Iterable) -> float | None:
    """Return the median of known values."""
    numbers = known(values)
    return statistics.median(numbers) if numbers else None


def least(values: Iterable) -> float | None:
    """Return the minimum of known values."""
    return min(known(values), default=None)


def most(values: Iterable) -> float | None:
    """Return the maximum of known values."""
    return max(known(values), default=None)


def lasted(start_t: float, stop_t: float) -> float:
    """Return a duration, 0 if it is negative because a clock was set back."""
    return max(stop_t - start_t, 0)


def ratio(part: float | None, whole: float | None) -> float | None:
    """Divide; None if either is unknown or the divisor is 0."""
    return None if part is None or not whole else part / whole


def whole(number: float | None) -> int | None:
    """Round to the nearest integer, halves away from zero."""
    if number is None:
        return None
    return int(abs(Fraction(number)) + Fraction(1, 2)) * (1 if number >= 0 else -1)


def grouped(rows: Iterable[dict], key: Callable[[dict], object]) -> dict:
    """Group rows, in the order in which groups first occur."""
    groups = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return dict(groups)


def costliest_first(rows: Iterable[dict], cost: str, *names: str) -> list[dict]:
    """Order rows by descending cost, then by name; None last."""

    def place(row: dict) -> tuple:
        named = [(row[name] is None, row[name] or "") for name in names]
        return (row[cost] is None, -(row[cost] or 0), named)

    return sorted(rows, key=place)


def quantile(values: Iterable, part: float) -> float:
    """Return a quantile with linear interpolation."""
    numbers = sorted(values)
    place = part * (len(numbers) - 1)
    below = math.floor(place)
    above = min(below + 1, len(numbers) - 1)
    return numbers[below] + (place - below) * (numbers[above] - numbers[below])


def relative_iqr(values: Iterable) -> float | None:
    """Return the interquartile range divided by the median; None for fewer than two values."""
    numbers = list(values)
    if len(numbers) < 2:
        return None
    return ratio(quantile(numbers, 0.75) - quantile(numbers, 0.25), median(numbers))


def deviation(values: Iterable) -> float | None:
    """Estimate a standard deviation: 1.4826 times the median absolute deviation."""
    numbers = list(values)
    middle = median(numbers)
    return None if middle is None else 1.4826 * median(abs(n - middle) for n in numbers)
