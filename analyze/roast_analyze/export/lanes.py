"""Layout of slices on lanes without overlap."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True)
class Slice:
    """A time range in whole units, and its data."""

    start: int
    stop: int
    data: Any = None


def assign_lanes(slices: Iterable[Slice], tolerance: int = 0) -> Iterator[tuple[int, Slice]]:
    """Assign each slice to a lane, from 0 on, on which it overlaps no other slice.

    Parameters
    ----------
    slices : iterable of Slice
        In order of their starts, each at least one unit long.
    tolerance : int
        Overlap up to which a slice of lane 0 is cut at the start of the next slice. A
        slice that overlaps by more is assigned to another lane.

    Yields
    ------
    tuple of int and Slice
        Lane, and the slice, cut if necessary.
    """
    last: Slice | None = None
    others: list[tuple[int, int]] = []  # stop and number of further lanes, as a heap
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
