"""Figures as SVG, for renderers without plotly, such as nbconvert: bars, and flame graphs."""

from __future__ import annotations

import math
from html import escape, unescape
from typing import TYPE_CHECKING, Any, Final

from plotly.colors import sample_colorscale

from roast_analyze.figures import palette
from roast_analyze.safe_text import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from plotly.graph_objects import Figure, Icicle

    #: Converts a coordinate of the figure to pixels.
    _Place = Callable[[float], float]

#: Width of the picture, of its names, and of a character of the legend.
_WIDTH_PX: Final = 960
_NAMES_PX: Final = 150
_CHARACTER_PX: Final = 7
#: Height of a line of the legend and the axis.
_LINE_PX: Final = 18
#: Width of the narrowest node that is drawn, and length of the shortest name in one.
_LEAST_PX: Final = 0.5
_LEAST_CHARACTERS: Final = 3
#: Length limit of a name on the left.
_NAME_CHARACTERS: Final = 22


def bars_to_svg(figure: Figure, label: str) -> str:
    """Draw the bars and markers of a figure with lanes, its axes, legend and note.

    `label` describes it to readers who cannot see it. Texts are escaped: they can be names of
    a trace.
    """
    axes = figure.layout
    left, right = map(float, axes.xaxis.range)
    bottom, top = map(float, axes.yaxis.range)
    legend = list(_legend(figure))
    first_px = _LINE_PX * (1 + max((line for _, line, _, _ in legend), default=0)) + 8
    lanes_px = max(int(axes.height) - 90, _LINE_PX)
    last_px = first_px + lanes_px

    def x_px(x: float) -> float:
        return _NAMES_PX + (x - left) / (right - left) * (_WIDTH_PX - _NAMES_PX)

    def y_px(y: float) -> float:
        return first_px + (y - top) / (bottom - top) * lanes_px

    parts = []
    for x, line, color, name in legend:
        y = _LINE_PX * line + 4
        parts += [
            f'<rect x="{x}" y="{y}" width="10" height="10" fill="{escape(color)}"/>',
            _text(x + 14, y + 9, name),
        ]
    for trace in figure.data:
        path = "".join(
            _bars(trace, x_px, y_px) if trace.type == "bar" else _marks(trace, x_px, y_px)
        )
        drawn = "fill" if trace.type == "bar" else 'fill="none" stroke-width="1.5" stroke'
        parts.append(f'<path {drawn}="{escape(_color(trace))}" d="{path}"/>')
    for y, name in zip(axes.yaxis.tickvals or (), axes.yaxis.ticktext or (), strict=True):
        parts.append(_text(0, y_px(y) + 4, shortened(_shown(name), _NAME_CHARACTERS)))
    step = _step(right - left)
    for number in range(math.ceil(left / step), math.floor(right / step) + 1):
        parts.append(_text(x_px(number * step), last_px + 14, f"{number * step:g}"))
    parts.append(_text(_NAMES_PX, last_px + 14 + _LINE_PX, axes.xaxis.title.text or ""))
    parts.append(_text(0, last_px + 14 + 2 * _LINE_PX, _shown(axes.title.text or "")))
    return _svg(parts, last_px + 3 * _LINE_PX + 4, label)


def icicle_to_svg(icicle: Icicle, label: str) -> str:
    """Draw the nodes of a flame graph that are wide enough to be seen, from the top.

    A parent comes before its children. `label` describes the graph to readers who cannot see
    it. Texts are escaped.
    """
    colors = _colors(icicle)
    whole = max(float(icicle.values[0]), 1e-9)
    #: Left end of the next child, and depth, of each node.
    places: dict[str, tuple[float, int]] = {"": (0.0, 0)}
    parts, depths = [], 0
    for node, parent, name, value, color in zip(
        icicle.ids, icicle.parents, icicle.labels, icicle.values, colors, strict=True
    ):
        left, depth = places[parent]
        width = value / whole * _WIDTH_PX
        places[parent], places[node] = (left + width, depth), (left, depth + 1)
        if width < _LEAST_PX:
            continue
        depths = max(depths, depth + 1)
        y = depth * _LINE_PX
        parts.append(
            f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="{_LINE_PX}" '
            f'fill="{escape(color)}" fill-opacity="0.4" stroke="#FFFFFF"/>'
        )
        if (characters := int((width - 6) / _CHARACTER_PX)) >= _LEAST_CHARACTERS:
            parts.append(_text(left + 3, y + 13, shortened(_shown(name), characters)))
    return _svg(parts, depths * _LINE_PX + 4, label)


def _colors(icicle: Icicle) -> Sequence[str]:
    """Return the colors of nodes, which can be numbers on a scale."""
    marker = icicle.marker
    if marker.colorscale is None:
        return list(marker.colors)
    span = marker.cmax - marker.cmin
    shares = [min(max((n - marker.cmin) / span, 0.0), 1.0) for n in marker.colors]
    return list(sample_colorscale([list(stop) for stop in marker.colorscale], shares))


def _svg(parts: Iterable[str], height_px: float, label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH_PX} {height_px:.0f}" '
        f'width="{_WIDTH_PX}" height="{height_px:.0f}" style="max-width: 100%; height: auto" '
        f'role="img" aria-label="{escape(label)}" font-family="sans-serif" '
        f'font-size="12" fill="{palette.OTHER}">{"".join(parts)}</svg>'
    )


def _legend(figure: Figure) -> Iterator[tuple[int, int, str, str]]:
    """Yield place, line, color and name of each entry."""
    x, line = 0, 0
    for trace in figure.data:
        name = _shown(trace.name)
        size = 24 + _CHARACTER_PX * len(name)
        if x and x + size > _WIDTH_PX:
            x, line = 0, line + 1
        yield x, line, _color(trace), name
        x += size


def _color(trace: Any) -> str:
    return str(trace.marker.color)


def _bars(trace: Any, x_px: _Place, y_px: _Place) -> Iterator[str]:
    for base, length, y, height in zip(trace.base, trace.x, trace.y, trace.width, strict=True):
        start, size = x_px(base), x_px(base + length) - x_px(base)
        top = y_px(y - height / 2)
        # A short bar is as visible as in the interactive figure.
        size, rise = max(size, 0.3), y_px(y + height / 2) - top
        yield f"M{start:.1f} {top:.1f}h{size:.1f}v{rise:.1f}h-{size:.1f}z"


def _marks(trace: Any, x_px: _Place, y_px: _Place) -> Iterator[str]:
    for x, y in zip(trace.x, trace.y, strict=True):
        yield f"M{x_px(x) - 3:.1f} {y_px(y) - 3:.1f}l6 6m0 -6l-6 6"


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>'


def _shown(name: str) -> str:
    """Return a name as plotly shows it: in a figure, its markup is escaped."""
    return unescape(name)


def _step(span: float) -> float:
    """Return the distance of ticks: 1, 2 or 5 times a power of ten, for at most ten of them."""
    power = 10.0 ** math.floor(math.log10(span / 10))
    return next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= 10)
