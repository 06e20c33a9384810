"""Arithmetic with missing values.

Sums are of known values, and None without any.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable


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


def grouped(rows: Iterable[dict], key: Callable[[dict], object]) -> dict:
    """Group rows, in the order in which groups first occur."""
    groups = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return dict(groups)


def quantile(values: Iterable, part: float) -> float:
    """Return a quantile with linear interpolation."""
    numbers = sorted(values)
    place = part * (len(numbers) - 1)
    below = math.floor(place)
    above = min(below + 1, len(numbers) - 1)
    return numbers[below] + (place - below) * (numbers[above] - numbers[below])
