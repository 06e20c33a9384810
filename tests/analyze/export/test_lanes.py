"""Slices of a lane do not overlap, and no slice is dropped."""

import itertools
import random

from roast_analyze.export.lanes import Slice, assign_lanes


def on_lanes(*times: tuple[int, int], tolerance: int = 0) -> list[tuple[int, int, int]]:
    placed = assign_lanes((Slice(*time) for time in times), tolerance)
    return sorted((lane, slice_.start, slice_.stop) for lane, slice_ in placed)


def test_slices_are_assigned_to_lanes():
    # Slices that follow each other share a lane.
    assert on_lanes((0, 5), (5, 6), (9, 10)) == [(0, 0, 5), (0, 5, 6), (0, 9, 10)]
    # A small overlap is cut, a longer one needs another lane.
    assert on_lanes((0, 7), (5, 9), tolerance=2) == [(0, 0, 5), (0, 5, 9)]
    assert on_lanes((0, 8), (5, 9), (9, 10), tolerance=2) == [(0, 0, 8), (0, 9, 10), (1, 5, 9)]
    # Slices with the same start cannot be cut.
    assert on_lanes((0, 1), (0, 1), (0, 1), tolerance=9) == [(0, 0, 1), (1, 0, 1), (2, 0, 1)]
    # Further lanes are used again.
    assert on_lanes((0, 9), (1, 3), (2, 4), (3, 5), (4, 6)) == [
        (0, 0, 9), (1, 1, 3), (1, 3, 5), (2, 2, 4), (2, 4, 6)
    ]  # fmt: skip
    assert on_lanes() == []


def test_random_slices():
    for seed in range(20):
        check_random_slices(random.Random(seed))


def check_random_slices(chance: random.Random) -> None:
    starts = sorted(chance.randrange(200) for _ in range(300))
    slices = [Slice(s, s + chance.randint(1, 30), i) for i, s in enumerate(starts)]

    placed = list(assign_lanes(slices, tolerance=chance.choice([0, 3, 50])))

    assert sorted(slice_.data for _, slice_ in placed) == list(range(300))
    lanes = {}
    for lane, slice_ in placed:
        lanes.setdefault(lane, []).append(slice_)
    for together in lanes.values():
        together.sort(key=lambda slice_: slice_.start)
        assert all(slice_.start < slice_.stop for slice_ in together)
        assert all(a.stop <= b.start for a, b in itertools.pairwise(together))
