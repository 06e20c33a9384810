"""Sparklines in the table of workers: samples of each worker over the run as SVG paths.

All sparklines of a column have one scale, so that they can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.report import quantities as q
from roast_analyze.report.tables import Field, Sparkline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roast_analyze.figures.layout import TimeAxis
    from roast_analyze.report.tables import Kind

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

_PROCESS: Final = ["worker", "server_id"]


@dataclass(frozen=True)
class Curve:
    """A quantity to draw.

    Parameters
    ----------
    name, title, kind, help
        The column of the table, as in :class:`roast_analyze.report.tables.Field`. Its value
        is the maximum of the curve.
    value : polars.Expr
        The quantity, from the columns of the samples.
    is_mean : bool
        Whether a point is the mean of its samples; else their maximum.
    text : callable
        Formats a value.
    top : float or None
        Value at the upper edge; None for the maximum of all workers.
    """

    name: str
    title: str
    kind: Kind
    help: str
    value: pl.Expr
    is_mean: bool
    text: Callable[[float | None], str]
    top: float | None = None


@dataclass(frozen=True)
class Columns:
    """Columns with sparklines.

    Parameters
    ----------
    fields : tuple of Field
    rows : polars.DataFrame
        The rows of the table with these columns: the maxima.
    sparklines : dict
        Column to a sparkline for each row, None where a worker has no samples.
    """

    fields: tuple[Field, ...]
    rows: pl.DataFrame
    sparklines: dict[str, list[Sparkline | None]]


_CPU: Final = Curve(
    name="max_cpu_cores",
    title="CPU",
    kind="share",
    help="CPU usage over the run (view worker_samples), and its maximum; 100 % is one core.",
    value=pl.col("cpu_percent") / 100,
    is_mean=True,
    text=q.share,
)
_MEMORY_SHARE: Final = Curve(
    name="max_memory_share",
    title="memory of limit",
    kind="share",
    help="Memory over the run (view worker_samples) as a share of the worker's limit, which "
    "is the upper edge, and its maximum.",
    value=pl.col("memory_bytes") / pl.col("memory_limit_bytes"),
    is_mean=False,
    text=q.share,
    top=1.0,
)
_MEMORY: Final = Curve(
    name="max_memory_bytes",
    title="memory",
    kind="bytes",
    help="Memory over the run (view worker_samples), and its maximum; no limit is set.",
    value=pl.col("memory_bytes"),
    is_mean=False,
    text=q.byte_size,
)
_SPILLED: Final = Curve(
    name="max_spilled_bytes",
    title="spilled",
    kind="bytes",
    help="Results spilled to disk over the run (view worker_samples), and their maximum.",
    value=pl.col("spilled_bytes"),
    is_mean=False,
    text=q.byte_size,
)
_RUNNING: Final = Curve(
    name="max_executing",
    title="executing tasks",
    kind="ratio",
    help="Tasks executing at once over the run (view worker_samples), and the maximum of the "
    "means that are drawn.",
    value=pl.col("executing"),
    is_mean=True,
    text=q.number,
)


def draw(rows: pl.DataFrame, samples: pl.DataFrame, axis: TimeAxis) -> Columns:
    """Draw the samples of workers.

    Parameters
    ----------
    rows : polars.DataFrame
        Rows of the table: worker, server_id.
    samples : polars.DataFrame
        As :attr:`roast_analyze.report.context.Context.worker_samples`.
    axis : TimeAxis
        From the left edge of the sparklines to the right one.
    """
    processes = rows.select(_PROCESS)
    shown = samples.join(processes, on=_PROCESS, nulls_equal=True)
    memory = _MEMORY if shown["memory_limit_bytes"].max() is None else _MEMORY_SHARE
    curves = [
        curve
        for curve in (_CPU, memory, _SPILLED, _RUNNING)
        if shown.select((curve.value > 0).any()).item()
    ]
    most_samples = shown.group_by(_PROCESS).len().select(pl.col("len").max()).item() or 0
    points = point_count(rows.height * len(curves), most_samples)
    binned = _binned(shown, curves, points, axis)
    maxima = binned.group_by(_PROCESS).agg(pl.col([curve.name for curve in curves]).max())
    return Columns(
        fields=tuple(
            Field(curve.name, curve.title, curve.kind, optional=True, help=curve.help)
            for curve in curves
        ),
        rows=rows.join(
            maxima, on=_PROCESS, how="left", nulls_equal=True, maintain_order="left"
        ),
        sparklines={
            curve.name: _sparklines(processes, binned, curve, points) for curve in curves
        },
    )


def point_count(sparklines: int, samples: int) -> int:
    """Return the number of points of each sparkline.

    Parameters
    ----------
    sparklines : int
        Number of sparklines of the page.
    samples : int
        Most samples of one of them: more points would show nothing more.
    """
    each = min(POINTS_PER_PAGE // max(sparklines, 1), samples)
    return next((choice for choice in _POINT_CHOICES if choice <= each), _POINT_CHOICES[-1])


def path(values: Sequence[float | None], top: float) -> str:
    """Return a curve as an SVG path.

    A page has hundreds of them, so every character counts: coordinates are whole pixels,
    steps are relative, and a horizontal line is one step.

    Parameters
    ----------
    values : sequence of float or None
        At equal distances, from left to right; None makes a gap.
    top : float
        Value at the upper edge; the lower edge is zero.

    Returns
    -------
    str
        The ``d`` of a path within :data:`WIDTH_PX` by :data:`HEIGHT_PX`.

    Examples
    --------
    >>> path([0.0, 2.0, 2.0, 2.0, None, 1.0], top=2.0)
    'M0 15l10-14h20M50 8h0'
    """
    step = WIDTH_PX // max(len(values), 1)
    pixels = _LOWEST_PX - _HIGHEST_PX
    heights = [
        None
        if value is None
        else round(_LOWEST_PX - pixels * (min(max(value / top, 0.0), 1.0) if top > 0 else 0.0))
        for value in values
    ]
    pieces = groupby(enumerate(heights), key=lambda placed: placed[1] is not None)
    return "".join(
        _piece([(place * step, height) for place, height in piece if height is not None])
        for has_values, piece in pieces
        if has_values
    )


def _piece(points: list[tuple[int, int]]) -> str:
    """Return the path of a curve without gaps."""
    (x, y), *others = points
    if not others:
        return f"M{x} {y}h0"  # a dot
    steps = [f"M{x} {y}"]
    for height, level in groupby(others, key=lambda point: point[1]):
        first, *more = (right for right, _ in level)
        last = (more or [first])[-1]
        if height != y:
            down = height - y
            steps.append(f"l{first - x}{down}" if down < 0 else f"l{first - x} {down}")
            x = first
        if last > x:
            steps.append(f"h{last - x}")
            x = last
        y = height
    return "".join(steps)


def _binned(
    samples: pl.DataFrame, curves: list[Curve], points: int, axis: TimeAxis
) -> pl.DataFrame:
    """Aggregate samples to the points of the sparklines."""
    place = (pl.col("t") - axis.start_t) / axis.span_seconds * points
    weight = pl.col("samples")
    values = [
        # A null value must not contribute its weight.
        (curve.value * weight).sum() / weight.filter(curve.value.is_not_null()).sum()
        if curve.is_mean
        else curve.value.max()
        for curve in curves
    ]
    return (
        samples.group_by(
            *_PROCESS, place.floor().clip(0, points - 1).cast(pl.Int32).alias("point")
        )
        # More digits would enlarge the page and are not visible.
        .agg(
            value.round_sig_figs(4).alias(curve.name)
            for curve, value in zip(curves, values, strict=True)
        )
        .sort("point")
    )


def _sparklines(
    processes: pl.DataFrame, binned: pl.DataFrame, curve: Curve, points: int
) -> list[Sparkline | None]:
    known = binned.select(*_PROCESS, "point", curve.name).drop_nulls(curve.name)
    # By server_id too: a restarted worker has the same address but is another process.
    by_process: dict[tuple[str, str | None], dict[int, float]] = {}
    for worker, server_id, point, value in known.iter_rows():
        by_process.setdefault((worker, server_id), {})[point] = value
    top = curve.top or float(known.select(pl.col(curve.name).max()).item() or 1.0)
    drawn: list[Sparkline | None] = []
    for process in processes.iter_rows():
        values = by_process.get(process)
        if not values:
            drawn.append(None)
            continue
        lowest, highest = curve.text(min(values.values())), curve.text(max(values.values()))
        number, space, unit = lowest.partition("\N{NO-BREAK SPACE}")
        if space and highest.endswith(unit):
            lowest = number
        drawn.append(
            Sparkline(path(_held(values, points), top), description=f"{lowest} to {highest}")
        )
    return drawn


def _held(values: dict[int, float], points: int) -> list[float | None]:
    """Repeat each value until the next one: samples can be rarer than points."""
    last = max(values)
    held: list[float | None] = []
    for point in range(points):
        before = held[-1] if held else None
        held.append(values.get(point, before) if point <= last else None)
    return held
