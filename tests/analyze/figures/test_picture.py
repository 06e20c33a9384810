"""Figures as SVG."""

import re

import pytest
from plotly.graph_objects import Icicle

from roast_analyze.figures.picture import icicle_to_svg


def icicle(**marker) -> Icicle:
    """Return a tree: `main` calls `read`, half of its time, and a function with odd letters."""
    return Icicle(
        ids=["0", "1", "2", "3"],
        parents=["", "0", "1", "1"],
        labels=["all", "main", "read", "&lt;b&gt;"],
        values=[80, 80, 40, 20],
        marker=marker,
    )


def test_children_are_below_their_parent_from_left_to_right():
    svg = icicle_to_svg(icicle(colors=["#111", "#222", "#333", "#444"]), 'of "a"')

    places = re.findall(r'x="([\d.]+)" y="(\d+)" width="([\d.]+)"[^>]*fill="(#\d+)"', svg)
    assert places == [
        ("0.0", "0", "960.0", "#111"),
        ("0.0", "18", "960.0", "#222"),
        ("0.0", "36", "480.0", "#333"),
        ("480.0", "36", "240.0", "#444"),
    ]
    assert re.findall(">([^<]+)</text>", svg) == ["all", "main", "read", "&lt;b&gt;"]
    assert 'height="58"' in svg
    assert 'aria-label="of &quot;a&quot;"' in svg


@pytest.mark.parametrize(("change", "color"), [(-1.0, "0, 0, 0"), (1.0, "255, 255, 255")])
def test_a_difference_is_a_color_of_the_scale(change, color):
    scale = [[0.0, "rgb(0,0,0)"], [1.0, "rgb(255,255,255)"]]
    marker = {"colors": [0, 0, 0, change], "cmin": -1, "cmax": 1, "colorscale": scale}

    assert f"rgb({color})" in icicle_to_svg(icicle(**marker), "")
