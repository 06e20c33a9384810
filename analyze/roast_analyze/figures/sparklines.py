"""Curves that are small enough for a cell of a table: a path of SVG, and no more.

A page has hundreds of them, so every character counts: coordinates are whole pixels, steps
are relative, and a level stretch is one step.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Size of a picture. The curve keeps off its edges, where half of the line would be lost.
WIDTH_PX: Final = 60
HEIGHT_PX: Final = 16
_LOWEST_PX: Final = HEIGHT_PX - 1
_HIGHEST_PX: Final = 1
#: Points of all pictures of a page together, as far as each has :data:`_FEWEST` of them.
POINTS_OF_A_PAGE: Final = 9000
#: Most and fewest points of a picture; in between are those that divide its width.
_CHOICES: Final = (60, 30, 20, 15, 12, 10)
_FEWEST: Final = _CHOICES[-1]


def points(pictures: int, samples: int) -> int:
    """Say how many points each of so many pictures has.

    Parameters
    ----------
    pictures : int
        All pictures of the page.
    samples : int
        The most values that one of them is made of; more points would say no more.
    """
    each = min(POINTS_OF_A_PAGE // max(pictures, 1), samples)
    return next((choice for choice in _CHOICES if choice <= each), _FEWEST)


def path(values: Sequence[float | None], top: float) -> str:
    """Write a curve as the path of an SVG.

    Parameters
    ----------
    values : sequence of float or None
        At equal distances, from left to right; where there is None the curve has a hole.
    top : float
        What reaches the upper edge; the lower edge is zero.

    Returns
    -------
    str
        The ``d`` of a path in a picture of :data:`WIDTH_PX` by :data:`HEIGHT_PX`.

    Examples
    --------
    >>> path([0.0, 2.0, 2.0, 2.0, None, 1.0], top=2.0)
    'M0 15l10-14h20M50 8h0'
    """
    step = WIDTH_PX // max(len(values), 1)
    heights = [None if value is None else _height(value, top) for value in values]
    pieces = groupby(enumerate(heights), key=lambda placed: placed[1] is not None)
    return "".join(
        _piece([(place * step, height) for place, height in piece if height is not None])
        for is_there, piece in pieces
        if is_there
    )


def _piece(points: list[tuple[int, int]]) -> str:
    """Write a stretch of a curve without holes."""
    (x, y), *others = points
    steps = [f"M{x} {y}"]
    for height, level in groupby(others, key=lambda point: point[1]):
        to_first, *on_it = (right for right, _ in level)
        if height != y:
            steps.append(_line(to_first - x, height - y))
            x = to_first
        if end := (on_it[-1:] or [to_first])[0] - x:
            steps.append(f"h{end}")
            x += end
        y = height
    # What stands alone becomes a dot.
    return "".join(steps) if others else f"{steps[0]}h0"


def _height(value: float, top: float) -> int:
    share = min(max(value / top, 0.0), 1.0) if top > 0 else 0.0
    return round(_LOWEST_PX - share * (_LOWEST_PX - _HIGHEST_PX))


def _line(right: int, down: int) -> str:
    return f"l{right}{down}" if down < 0 else f"l{right} {down}"
