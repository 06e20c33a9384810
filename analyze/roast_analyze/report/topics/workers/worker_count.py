"""Number of workers and threads over time, with marks where workers joined or left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl
from plotly.graph_objects import Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label, worker_name
from roast_analyze.figures.samples import POINT_LIMIT

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis

#: Marks: column, legend, color, symbol.
_MARKS: Final = (
    ("joined", "joined", palette.RANKED[2], "triangle-up"),
    ("left", "left", palette.REFERENCE, "triangle-down"),
    ("lost", "lost", palette.FAILURE, "x"),
)


def figure(workers: pl.DataFrame, axis: TimeAxis, recorded_t: float) -> Figure:
    """Draw the number of workers, and the number of threads if workers differ in it.

    Parameters
    ----------
    workers : polars.DataFrame
        View ``workers``: worker, name, nthreads, added_t, removed_t; and ``lost``, whether
        the worker was lost.
    axis : TimeAxis
    recorded_t : float
        Workers added up to this time joined before the recording and have no mark.
    """
    changes = _changes(workers, axis, recorded_t)
    # Equal workers would give the same curve twice.
    threads = workers["nthreads"].drop_nulls().n_unique() > 1
    drawn = layout.one_or_two_panels(axis, (250, 380), "workers", "threads" if threads else "")
    drawn.add_trace(_steps(changes, "workers", palette.RANKED[0], axis, "y"))
    if threads:
        drawn.add_trace(_steps(changes, "threads", palette.RANKED[1], axis, "y2"))
    drawn.add_traces(
        [_marks(changes, *mark, axis) for mark in _MARKS if changes[mark[0]].sum()]
    )
    return drawn


def _changes(workers: pl.DataFrame, axis: TimeAxis, recorded_t: float) -> pl.DataFrame:
    """Count workers that joined and left at each instant, or in each bucket if there are many.

    Returns
    -------
    polars.DataFrame
        t, joined, left, lost, names (the first few), workers and threads from then on.
    """
    named = workers.select(
        "added_t",
        "removed_t",
        pl.col("nthreads").fill_null(0),
        pl.col("lost").fill_null(value=False),
        pl.Series(
            "names",
            [label(worker_name(row)) for row in workers.iter_rows(named=True)],
            pl.String,
        ),
    )
    from_start = pl.col("added_t").fill_null(axis.start_t) <= recorded_t
    zero = pl.lit(0)
    joined = named.select(
        pl.when(from_start).then(axis.start_t).otherwise("added_t").alias("t"),
        (~from_start).cast(pl.Int32).alias("joined"),
        zero.alias("left"),
        zero.alias("lost"),
        pl.when(~from_start).then("names"),
        pl.lit(1).alias("workers"),
        pl.col("nthreads").alias("threads"),
    )
    left = named.filter(pl.col("removed_t").is_not_null()).select(
        pl.col("removed_t").alias("t"),
        zero.alias("joined"),
        (~pl.col("lost")).cast(pl.Int32).alias("left"),
        pl.col("lost").cast(pl.Int32),
        "names",
        pl.lit(-1).alias("workers"),
        (-pl.col("nthreads")).alias("threads"),
    )
    moves = pl.concat([joined, left], how="vertical_relaxed")
    instant = pl.col("t")
    if moves["t"].n_unique() > POINT_LIMIT:
        width = axis.span_seconds / POINT_LIMIT
        instant = axis.bucket(POINT_LIMIT) * width + axis.start_t
    return (
        moves.group_by(instant.alias("t"))
        .agg(
            pl.col("joined", "left", "lost", "workers", "threads").sum(),
            pl.col("names").drop_nulls().head(3).str.join(", "),
            pl.col("names").drop_nulls().len().alias("named"),
        )
        .sort("t")
        .with_columns(
            pl.col("workers", "threads").cum_sum(),
            pl.when(pl.col("named") > 3)
            .then(pl.format("{} and {} more", "names", pl.col("named") - 3))
            .otherwise("names")
            .alias("names"),
        )
    )


def _steps(
    changes: pl.DataFrame, column: str, color: str, axis: TimeAxis, yaxis: str
) -> Scatter:
    places = changes.select(axis.place("t").round(3)).to_series().to_list()
    values = changes[column].to_list()
    # The last number is valid until the end.
    end = round(axis.span_seconds / axis.unit_seconds, 3)
    return Scatter(
        mode="lines",
        x=[*places, end],
        y=[*values, *values[-1:]],
        yaxis=yaxis,
        name=column,
        line={"color": color, "width": 1.6, "shape": "hv"},
        fill="tozeroy" if column == "workers" else "none",
        fillcolor=palette.AREA,
        hovertemplate=f"%{{y:,}} {column}<extra></extra>",
        meta=layout.columns(x=axis.column, y=column),
    )


def _marks(
    changes: pl.DataFrame, column: str, words: str, color: str, symbol: str, axis: TimeAxis
) -> Scatter:
    changed = changes.filter(pl.col(column) > 0)
    marker: dict[str, Any] = {"color": color, "symbol": symbol, "size": 9}
    return Scatter(
        mode="markers",
        x=changed.select(axis.place("t").round(3)).to_series().to_list(),
        y=changed["workers"].to_list(),
        name=words,
        marker=marker,
        customdata=changed.select(column, "names").rows(),
        cliponaxis=False,
        hovertemplate=f"%{{customdata[0]:,}} {words}: %{{customdata[1]}}<extra></extra>",
        meta=layout.columns(x=axis.column, y="workers", customdata=[column, "names"]),
    )
