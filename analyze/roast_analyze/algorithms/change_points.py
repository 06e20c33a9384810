"""Change points of a series: places after which its values are larger or smaller.

The test is nonparametric, so that a few runs with extreme values do not dominate it. The values
are replaced by their normal scores, the normal quantiles of their ranks. For each place with at
least :data:`MIN_SIDE` values on both sides, the sum of the scores before it is divided by its
standard deviation over all permutations of the values (the linear rank statistic of van der
Waerden). The largest quotient belongs to the change point. Its p-value is that of the normal
distribution, times the number of places (Bonferroni), which overestimates it.

Several change points are found by binary segmentation: each part on both sides of a change
point is tested again. Those that are not significant between their neighbors, or whose change
is too small, are removed.

The change point lies between ``low`` and ``high`` with a confidence of about 99.9 %: these are
the places whose likelihood ratio to the best place, on the normal scores, is at most
:data:`_LIKELIHOOD_RATIO` (D. Siegmund, Confidence sets in change-point problems, 1988).

The values are regarded as independent: runs that are slow together, such as those of one day,
can be change points. A short slow part between equal ones is not always found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

#: Minimum number of values before and after a change.
MIN_SIDE: Final = 5

#: Twice the logarithm; (1 - exp(-it / 2))² = 0.999.
_LIKELIHOOD_RATIO: Final = 15.2


@dataclass(frozen=True)
class ChangePoint:
    """A change between two parts of a series."""

    #: Index of the first value after the change, and the range in which it lies.
    index: int
    low: int
    high: int
    #: Medians of the values from the change point before this one to the next one.
    before: float
    after: float
    p_value: float


def find_changes(
    values: NDArray[np.float64],
    *,
    significance: float,
    min_change: float,
    marks: Collection[int] = (),
) -> list[ChangePoint]:
    """Return the change points of a series, in order.

    Parameters
    ----------
    values : array of float
        In the order of time; all are finite.
    significance : float
        Largest p-value of a change point. Divide it by the number of series that are tested.
    min_change : float
        Smallest difference of the medians before and after a change point.
    marks : collection of int
        Indices of known changes, such as those of a version. A change point is placed at the
        most likely one between its ``low`` and ``high``, if there is any.
    """
    found = _segment(values, 0, significance, marks)
    while found:
        ends = [0, *found, values.size]
        points = [
            _fit(values, start, stop, marks)
            for start, stop in zip(ends[:-2], ends[2:], strict=True)
        ]
        weak = [
            (point.p_value, number)
            for number, point in enumerate(points)
            if point.p_value > significance or abs(point.after - point.before) < min_change
        ]
        if not weak:
            return points
        del found[max(weak)[1]]
    return []


def _segment(
    values: NDArray[np.float64], offset: int, significance: float, marks: Collection[int]
) -> list[int]:
    """Return the indices of significant change points of values that begin at an offset."""
    if values.size < 2 * MIN_SIDE:
        return []
    point = _fit(values, 0, values.size, {mark - offset for mark in marks})
    if point.p_value > significance:
        return []
    return [
        *_segment(values[: point.index], offset, significance, marks),
        offset + point.index,
        *_segment(values[point.index :], offset + point.index, significance, marks),
    ]


def _fit(
    values: NDArray[np.float64], start: int, stop: int, marks: Collection[int]
) -> ChangePoint:
    """Return the most likely change point of a part of the values, significant or not."""
    part = values[start:stop]
    size = part.size
    # Normal quantiles of the ranks; equal values have the mean of their quantiles.
    quantile = NormalDist().inv_cdf
    ordered = np.array([quantile((rank + 0.5) / size) for rank in range(size)])
    _, group, counts = np.unique(part, return_inverse=True, return_counts=True)
    scores = (np.add.reduceat(ordered, np.cumsum(counts) - counts) / counts)[group]
    places = np.arange(MIN_SIDE, size - MIN_SIDE + 1)
    # Sums of squares: that of all scores, and the part of it that each place explains.
    total = float(scores @ scores)
    explained = np.cumsum(scores)[places - 1] ** 2 * size / (places * (size - places))
    best = float(explained.max())
    within = max(total - best, 0.0) / (size - 2)
    likely = places[best - explained <= _LIKELIHOOD_RATIO * within]
    low, high = int(likely[0]), int(likely[-1])
    among = [mark - start for mark in marks if low <= mark - start <= high]
    index = max(among or places.tolist(), key=lambda place: explained[place - MIN_SIDE])
    quotient = math.sqrt(best * (size - 1) / total) if total else 0.0
    return ChangePoint(
        index=start + index,
        low=start + low,
        high=start + high,
        before=float(np.median(part[:index])),
        after=float(np.median(part[index:])),
        p_value=min(math.erfc(quotient / math.sqrt(2)) * places.size, 1.0),
    )
