"""Layout of slices on lanes without overlap."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Slice:
    """A time range in whole units, at least one long, and its data."""

    start: int
    stop: int
    data: Any = None


def assign_lanes(slices: Iterable[Slice], tolerance: int = 0) -> Iterator[tuple[int, Slice]]:
    """Yield each slice with the number of a lane on which it overlaps no other slice.

    The slices are in order of their starts. An overlap on lane 0 of up to `tolerance`, and up
    to a quarter of the earlier slice, is cut off at the start of the next slice; a slice that
    overlaps by more is assigned to another lane.
    """
    last: Slice | None = None  # of lane 0; not yielded before the next one may cut it
    others: list[tuple[int, int]] = []  # stop and number of further lanes, as a heap
    for slice_ in slices:
        cut = 0 if last is None else min(tolerance, (last.stop - last.start) // 4)
        if last is None or last.start < slice_.start >= last.stop - cut:
            if last is not None:
                yield 0, replace(last, stop=min(last.stop, slice_.start))
            last = slice_
            continue
        # The lane that has been free for longest.
        if others and others[0][0] <= slice_.start:
            _, lane = heapq.heappop(others)
        else:
            lane = len(others) + 1
        heapq.heappush(others, (slice_.stop, lane))
        yield lane, slice_
    if last is not None:
        yield 0, last
