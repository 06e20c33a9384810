import re

import pytest

from roast_analyze.figures import sparklines


@pytest.mark.parametrize(
    ("values", "top", "path"),
    [
        ([0.0, 1.0], 1.0, "M0 15l30-14"),
        ([1.0, 0.0, 0.5], 1.0, "M0 1l20 14l20-7"),
        ([5.0, 5.0, 5.0, 5.0], 10.0, "M0 8h45"),
        ([None, 1.0, None, 0.0, 0.0], 1.0, "M12 1h0M36 15h12"),
        ([9.0, -9.0], 1.0, "M0 1l30 14"),
        ([0.0, 0.0], 0.0, "M0 15h30"),
        ([None, None], 1.0, ""),
        ([], 1.0, ""),
    ],
    ids=["up", "down", "level", "holes", "outside", "no-top", "nothing", "empty"],
)
def test_a_curve_is_a_short_path(values, top, path):
    assert sparklines.path(values, top) == path


def test_a_path_stays_in_its_picture():
    values = [None, 3.0, 0.1, 7.0, 7.0, 2.0, None, None, 5.0, 1.0] * 6

    x = y = 0
    for letter, numbers in re.findall(r"([Mlh])([-0-9 ]+)", sparklines.path(values, 7.0)):
        steps = [int(number) for number in re.findall(r"-?[0-9]+", numbers)]
        right, down = [*steps, 0][:2]
        x, y = (right, down) if letter == "M" else (x + right, y + down)
        assert 0 <= x <= sparklines.WIDTH_PX
        assert 0 <= y <= sparklines.HEIGHT_PX


@pytest.mark.parametrize(
    ("pictures", "samples", "points"),
    [(9, 1000, 60), (9, 19, 15), (9, 0, 10), (300, 1000, 30), (900, 1000, 10), (0, 5, 10)],
)
def test_the_more_pictures_the_fewer_points(pictures, samples, points):
    assert sparklines.points(pictures, samples) == points
