"""No two slices of a lane overlap, and none is lost."""

import itertools
import random

import pytest

from roast_analyze.export.lanes import Slice, assign_lanes


def on_lanes(*times: tuple[int, int], tolerance: int = 0) -> list[tuple[int, int, int]]:
    placed = assign_lanes((Slice(*time) for time in times), tolerance)
    return sorted((lane, slice_.start, slice_.stop) for lane, slice_ in placed)


def test_what_follows_stays_on_the_lane():
    assert on_lanes((0, 5), (5, 6), (9, 10)) == [(0, 0, 5), (0, 5, 6), (0, 9, 10)]


def test_what_seems_to_go_on_ends_where_the_next_begins():
    assert on_lanes((0, 7), (5, 9), tolerance=2) == [(0, 0, 5), (0, 5, 9)]


def test_what_overlaps_by_more_goes_to_another_lane():
    assert on_lanes((0, 8), (5, 9), (9, 10), tolerance=2) == [(0, 0, 8), (0, 9, 10), (1, 5, 9)]


def test_what_begins_together_cannot_share_a_lane():
    assert on_lanes((0, 1), (0, 1), (0, 1), tolerance=9) == [(0, 0, 1), (1, 0, 1), (2, 0, 1)]


def test_a_lane_is_used_again():
    assert [lane for lane, *_ in on_lanes((0, 9), (1, 3), (2, 4), (3, 5), (4, 6))] == [
        0, 1, 1, 2, 2,
    ]  # fmt: skip


def test_nothing_gives_nothing():
    assert on_lanes() == []


@pytest.mark.parametrize("seed", range(20))
def test_any_slices(seed):
    chance = random.Random(seed)
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
