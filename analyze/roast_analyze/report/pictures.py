"""Small pictures for the table of workers: what each one was at over the run.

The pictures of a column have one scale, so that they compare at a glance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.figures import sparklines
from roast_analyze.report import quantities as q
from roast_analyze.report.tables import Field, Picture

if TYPE_CHECKING:
    from collections.abc import Callable

    from roast_analyze.figures.layout import TimeAxis
    from roast_analyze.report.tables import Kind


@dataclass(frozen=True)
class Curve:
    """A quantity to picture.

    Parameters
    ----------
    name, title, kind, help
        The column of the table, as in :class:`roast_analyze.report.tables.Field`. Its value
        is the highest of the picture.
    value : polars.Expr
        The quantity, from the columns of the samples.
    is_mean : bool
        Whether a stretch of time shows its mean; else its highest value.
    words : callable
        How the quantity is told.
    top : float or None
        What reaches the upper edge; None for the highest value of all workers.
    """

    name: str
    title: str
    kind: Kind
    help: str
    value: pl.Expr
    is_mean: bool
    words: Callable[[float | None], str]
    top: float | None = None

    @property
    def field(self) -> Field:
        """The column of the table; left out if there was never any."""
        return Field(self.name, self.title, self.kind, optional=True, help=self.help)


@dataclass(frozen=True)
class Drawn:
    """Columns of pictures.

    Parameters
    ----------
    fields : tuple of Field
        The columns.
    rows : polars.DataFrame
        The table's rows with these columns: the highest values.
    pictures : dict
        Column to a picture for each row, None where a worker was never sampled.
    """

    fields: tuple[Field, ...]
    rows: pl.DataFrame
    pictures: dict[str, list[Picture | None]]


_CPU: Final = Curve(
    name="max_cpu_cores",
    title="CPU",
    kind="share",
    help="CPU over the run (view worker_samples) and its highest mean of a stretch of time; "
    "100 % is one core.",
    value=pl.col("cpu_percent") / 100,
    is_mean=True,
    words=q.share,
)
_MEMORY_SHARE: Final = Curve(
    name="max_memory_share",
    title="memory, of limit",
    kind="share",
    help="Memory over the run (view worker_samples), the upper edge being the worker's limit, "
    "and the most.",
    value=pl.col("memory_bytes") / pl.col("memory_limit_bytes"),
    is_mean=False,
    words=q.share,
    top=1.0,
)
_MEMORY: Final = Curve(
    name="max_memory_bytes",
    title="memory",
    kind="bytes",
    help="Memory over the run (view worker_samples), and the most; no limit is set.",
    value=pl.col("memory_bytes"),
    is_mean=False,
    words=q.byte_size,
)
_SPILLED: Final = Curve(
    name="max_spilled_bytes",
    title="spilled",
    kind="bytes",
    help="Results that lay on disk over the run (view worker_samples), and the most.",
    value=pl.col("spilled_bytes"),
    is_mean=False,
    words=q.byte_size,
)
_RUNNING: Final = Curve(
    name="max_executing",
    title="running tasks",
    kind="ratio",
    help="Tasks that it was computing over the run (view worker_samples), and the highest mean "
    "of a stretch of time.",
    value=pl.col("executing"),
    is_mean=True,
    words=q.number,
)


def draw(rows: pl.DataFrame, samples: pl.DataFrame, axis: TimeAxis) -> Drawn:
    """Picture the samples of workers.

    Parameters
    ----------
    rows : polars.DataFrame
        The table's rows: worker, server_id.
    samples : polars.DataFrame
        View ``worker_samples`` by stretches of time: t, worker, server_id, samples (how many
        are put together), cpu_percent, memory_bytes, memory_limit_bytes, spilled_bytes,
        executing.
    axis : TimeAxis
        From the left edge of the pictures to the right one.
    """
    shown = samples.join(
        rows.select("worker", "server_id"), on=["worker", "server_id"], nulls_equal=True
    )
    limited = shown["memory_limit_bytes"].max() is not None
    memory = _MEMORY_SHARE if limited else _MEMORY
    curves = [curve for curve in (_CPU, memory, _SPILLED, _RUNNING) if _is_told(shown, curve)]
    ticks = shown.group_by("worker", "server_id").len().select(pl.col("len").max()).item() or 0
    points = sparklines.points(rows.height * len(curves), ticks)
    binned = _binned(shown, curves, points, axis)
    pictures = {curve.name: _pictures(rows, binned, curve, points) for curve in curves}
    highest = binned.group_by("worker", "server_id").agg(
        pl.col([curve.name for curve in curves]).max()
    )
    return Drawn(
        fields=tuple(curve.field for curve in curves),
        rows=rows.join(
            highest,
            on=["worker", "server_id"],
            how="left",
            nulls_equal=True,
            maintain_order="left",
        ),
        pictures=pictures,
    )


def _is_told(samples: pl.DataFrame, curve: Curve) -> bool:
    return bool(samples.select((curve.value > 0).any()).item())


def _binned(
    samples: pl.DataFrame, curves: list[Curve], points: int, axis: TimeAxis
) -> pl.DataFrame:
    """Put samples together to the points of a picture."""
    place = (pl.col("t") - axis.start_t) / axis.span_seconds * points
    weight = pl.col("samples")
    point = place.floor().clip(0, points - 1).cast(pl.Int32).alias("point")
    values = [
        # Null has no weight either.
        (curve.value * weight).sum() / weight.filter(curve.value.is_not_null()).sum()
        if curve.is_mean
        else curve.value.max()
        for curve in curves
    ]
    # The page would show more digits to nobody.
    named = [
        value.round_sig_figs(4).alias(curve.name)
        for curve, value in zip(curves, values, strict=True)
    ]
    return samples.group_by("worker", "server_id", point).agg(named).sort("point")


def _pictures(
    rows: pl.DataFrame, binned: pl.DataFrame, curve: Curve, points: int
) -> list[Picture | None]:
    # A row's identity: a worker that comes back under its address is another process.
    told = binned.select("worker", "server_id", "point", curve.name).drop_nulls(curve.name)
    by_process: dict[tuple[str, str | None], dict[int, float]] = {}
    for worker, server_id, point, value in told.iter_rows():
        by_process.setdefault((worker, server_id), {})[point] = value
    top = curve.top or float(told.select(pl.col(curve.name).max()).item() or 1.0)
    return [
        _picture(by_process.get(process, {}), curve, points, top)
        for process in rows.select("worker", "server_id").iter_rows()
    ]


def _picture(values: dict[int, float], curve: Curve, points: int, top: float) -> Picture | None:
    if not values:
        return None
    lowest, highest = min(values.values()), max(values.values())
    return Picture(
        path=sparklines.path(_held(values, points), top),
        spoken=_range(curve.words(lowest), curve.words(highest)),
    )


def _range(lowest: str, highest: str) -> str:
    """Write a range with its unit once, if both ends have the same."""
    number, space, unit = lowest.partition("\N{NO-BREAK SPACE}")
    return f"{number if space and highest.endswith(unit) else lowest} to {highest}"


def _held(values: dict[int, float], points: int) -> list[float | None]:
    """Hold a value until the next one: samples can be rarer than the points of a picture."""
    last = max(values)
    held: list[float | None] = []
    for point in range(points):
        before = held[-1] if held else None
        held.append(values.get(point, before) if point <= last else None)
    return held
