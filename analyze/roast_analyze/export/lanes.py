"""Slices on lanes, so that no two of a lane overlap."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True)
class Slice:
    """A stretch of time, in whole units of any kind, and what it stands for."""

    start: int
    stop: int
    what: Any = None


def laid_out(slices: Iterable[Slice], tolerance: int = 0) -> Iterator[tuple[int, Slice]]:
    """Give each slice a lane, counted from 0, on which it overlaps no other one.

    Parameters
    ----------
    slices : iterable of Slice
        In the order of their starts, each at least one unit long.
    tolerance : int
        How far a slice of lane 0 may seem to go on when the next one begins; it is then
        ended there. What overlaps by more goes to another lane.

    Yields
    ------
    tuple of int and Slice
        Lane, and the slice as it fits; as many as came.
    """
    last: Slice | None = None
    others: list[tuple[int, int]] = []  # ends of the further lanes, the earliest first
    for slice_ in slices:
        if last is None or last.start < slice_.start >= last.stop - tolerance:
            if last is not None:
                yield 0, replace(last, stop=min(last.stop, slice_.start))
            last = slice_
            continue
        if others and others[0][0] <= slice_.start:
            _, lane = heapq.heappop(others)
        else:
            lane = len(others) + 1
        heapq.heappush(others, (slice_.stop, lane))
        yield lane, slice_
    if last is not None:
        yield 0, last
