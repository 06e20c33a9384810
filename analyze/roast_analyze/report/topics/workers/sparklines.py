"""Sparklines in the table of workers: samples of each worker over the run as SVG paths.

All sparklines of a column have one scale, so that they can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.report import quantities as q
from roast_analyze.report.tables import Sparkline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roast_analyze.figures.layout import TimeAxis

#: Size of a sparkline. The curve keeps a distance from the edges, which would cut its line.
WIDTH_PX: Final = 60
HEIGHT_PX: Final = 16
_LOWEST_PX: Final = HEIGHT_PX - 1
_HIGHEST_PX: Final = 1
#: Points of all sparklines of a page together, unless each would have fewer than the least
#: of :data:`_POINT_CHOICES`.
POINTS_PER_PAGE: Final = 9000
#: Possible numbers of points: divisors of the width, so that coordinates are integers.
_POINT_CHOICES: Final = (60, 30, 20, 15, 12, 10)

# By server_id too: a restarted worker has the same address but is another process.
_PROCESS: Final = ["worker", "server_id"]


@dataclass(frozen=True)
class Curve:
    """A quantity to draw."""

    #: Column of its maximum.
    name: str
    #: The quantity, from the columns of the samples.
    value: pl.Expr
    #: Formats a value.
    text: Callable[[float | None], str]
    #: Whether a point is the mean of its samples; else their maximum.
    is_mean: bool = False
    #: Value at the upper edge; None for the maximum of all workers.
    top: float | None = None

    @property
    def at_point(self) -> pl.Expr:
        """Aggregate of the samples of a point."""
        if not self.is_mean:
            return self.value.max()
        weight = pl.col("samples")
        # A null value must not contribute its weight; without any value, 0 / 0 is NaN.
        weights = weight.filter(self.value.is_not_null()).sum()
        return ((self.value * weight).sum() / weights).fill_nan(None)


_BYTES: Final = pl.col("memory_bytes")
_SHARE: Final = _BYTES / pl.col("memory_limit_bytes")
_CPU: Final = Curve("max_cpu_cores", pl.col("cpu_percent") / 100, q.share, is_mean=True)
_MEMORY: Final = Curve("max_memory_bytes", _BYTES, q.byte_size)
_MEMORY_SHARE: Final = Curve("max_memory_share", _SHARE, q.share, top=1.0)
_SPILLED: Final = Curve("max_spilled_bytes", pl.col("spilled_bytes"), q.byte_size)
_EXECUTING: Final = Curve("max_executing", pl.col("executing"), q.number, is_mean=True)


def draw(
    rows: pl.DataFrame, samples: pl.DataFrame, axis: TimeAxis
) -> tuple[pl.DataFrame, dict[str, list[Sparkline | None]]]:
    """Draw the samples of the workers in the rows of a table, over the whole axis.

    Returns
    -------
    polars.DataFrame
        The rows with a column of maxima for each quantity that is drawn.
    dict
        Such a column to a sparkline for each row, None where a worker has no samples.
    """
    processes = rows.select(_PROCESS)
    shown = samples.join(processes, on=_PROCESS, nulls_equal=True)
    memory = _MEMORY if shown["memory_limit_bytes"].max() is None else _MEMORY_SHARE
    curves = [
        curve
        for curve in (_CPU, memory, _SPILLED, _EXECUTING)
        if shown.select((curve.value > 0).any()).item()
    ]
    most_samples = shown.group_by(_PROCESS).len().select(pl.col("len").max()).item() or 0
    points = point_count(rows.height * len(curves), most_samples)
    place = (pl.col("t") - axis.start_t) / axis.span_seconds * points
    binned = (
        shown.group_by(
            *_PROCESS, place.floor().clip(0, points - 1).cast(pl.Int32).alias("point")
        )
        # More digits would enlarge the page and are not visible.
        .agg(curve.at_point.round_sig_figs(4).alias(curve.name) for curve in curves)
        .sort("point")
    )
    maxima = binned.group_by(_PROCESS).agg(pl.col(curve.name).max() for curve in curves)
    rows = rows.join(maxima, on=_PROCESS, how="left", nulls_equal=True, maintain_order="left")
    return rows, {curve.name: _sparklines(processes, binned, curve, points) for curve in curves}


def _sparklines(
    processes: pl.DataFrame, binned: pl.DataFrame, curve: Curve, points: int
) -> list[Sparkline | None]:
    known = binned.select(*_PROCESS, "point", curve.name).drop_nulls(curve.name)
    by_process: dict[tuple[str, str | None], dict[int, float]] = {}
    for worker, server_id, point, value in known.iter_rows():
        by_process.setdefault((worker, server_id), {})[point] = value
    top = curve.top or q.as_float(known[curve.name].max()) or 1.0
    drawn: list[Sparkline | None] = []
    for process in processes.iter_rows():
        values = by_process.get(process)
        if not values:
            drawn.append(None)
            continue
        # There can be fewer samples than points: each value is repeated until the next one.
        held: list[float | None] = []
        for point in range(max(values) + 1):
            held.append(values.get(point, held[-1] if held else None))
        lowest, highest = curve.text(min(values.values())), curve.text(max(values.values()))
        number, space, unit = lowest.partition("\N{NO-BREAK SPACE}")
        if space and highest.endswith(unit):
            lowest = number
        drawn.append(Sparkline(path(held, top, WIDTH_PX // points), f"{lowest} to {highest}"))
    return drawn


def point_count(sparklines: int, samples: int) -> int:
    """Return the number of points of each of the sparklines of a page.

    ``samples`` is the largest number of samples of a sparkline; more points would add nothing.
    """
    each = min(POINTS_PER_PAGE // max(sparklines, 1), samples)
    return next((choice for choice in _POINT_CHOICES if choice <= each), _POINT_CHOICES[-1])


def path(values: Sequence[float | None], top: float, step: int) -> str:
    """Return a curve as an SVG path of at most :data:`WIDTH_PX` by :data:`HEIGHT_PX`.

    Parameters
    ----------
    values : sequence of float or None
        From left to right; None makes a gap.
    top : float
        Value at the upper edge; the lower edge is zero.
    step : int
        Pixels from one value to the next.

    Examples
    --------
    >>> path([0.0, 2.0, 2.0, 2.0, None, 1.0], top=2.0, step=10)
    'M0 15l10-14h20M50 8h0'
    """
    pixels = _LOWEST_PX - _HIGHEST_PX
    points = [
        (number * step, round(_LOWEST_PX - pixels * min(max(value / top, 0.0), 1.0)))
        if value is not None
        else None
        for number, value in enumerate(values)
    ]
    # A page has hundreds of curves, so every character counts: coordinates are whole pixels,
    # steps are relative, and a horizontal line is one step.
    steps = []
    for has_values, piece in groupby(points, key=lambda point: point is not None):
        if not has_values:
            continue
        (x, y), *others = filter(None, piece)
        steps.append(f"M{x} {y}")
        if not others:
            steps.append("h0")  # a dot
        for height, level in groupby(others, key=lambda point: point[1]):
            rights = [right for right, _ in level]
            if down := height - y:
                separator = "" if down < 0 else " "
                steps.append(f"l{rights[0] - x}{separator}{down}")
                x, y = rights[0], height
            if rights[-1] > x:
                steps.append(f"h{rights[-1] - x}")
                x = rights[-1]
    return "".join(steps)
