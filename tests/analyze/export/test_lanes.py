"""Slices of a lane do not overlap, and no slice is dropped."""

import itertools
import random

import pytest

from roast_analyze.export.lanes import Slice, assign_lanes


@pytest.mark.parametrize(
    ("tolerance", "times", "placed"),
    [
        # Slices that follow each other share a lane.
        (0, [(0, 5), (5, 6), (9, 10)], [(0, 0, 5), (0, 5, 6), (0, 9, 10)]),
        # A small overlap is cut, a longer one needs another lane.
        (2, [(0, 8), (6, 9)], [(0, 0, 6), (0, 6, 9)]),
        (2, [(0, 8), (5, 9), (9, 10)], [(0, 0, 8), (0, 9, 10), (1, 5, 9)]),
        # Coroutines: most of a slice cannot be cut.
        (9, [(0, 8), (5, 9)], [(0, 0, 8), (1, 5, 9)]),
        # Slices with the same start cannot be cut.
        (9, [(0, 1), (0, 1), (0, 1)], [(0, 0, 1), (1, 0, 1), (2, 0, 1)]),
        # Other lanes are reused.
        (0, [(0, 9), (1, 3), (2, 4), (3, 5), (4, 6)],
         [(0, 0, 9), (1, 1, 3), (1, 3, 5), (2, 2, 4), (2, 4, 6)]),
        (0, [], []),
    ],
)  # fmt: skip
def test_slices_are_assigned_to_lanes(tolerance, times, placed):
    lanes = assign_lanes((Slice(*time) for time in times), tolerance)

    assert sorted((lane, slice_.start, slice_.stop) for lane, slice_ in lanes) == placed


@pytest.mark.parametrize("tolerance", [0, 3, 50])
def test_random_slices(tolerance):
    chance = random.Random(tolerance)
    starts = sorted(chance.randrange(1000) for _ in range(2000))
    slices = [Slice(s, s + chance.randint(1, 30), i) for i, s in enumerate(starts)]

    placed = list(assign_lanes(slices, tolerance))

    assert sorted(slice_.data for _, slice_ in placed) == list(range(2000))
    placed.sort(key=lambda pair: (pair[0], pair[1].start))
    for _, lane in itertools.groupby(placed, key=lambda pair: pair[0]):
        together = [slice_ for _, slice_ in lane]
        assert all(slice_.start < slice_.stop for slice_ in together)
        assert all(a.stop <= b.start for a, b in itertools.pairwise(together))
