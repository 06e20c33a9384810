"""How many workers there were over time, and when they came and went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl
from plotly.graph_objects import Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label, worker_name
from roast_analyze.figures.samples import POINT_LIMIT

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis

#: What is marked: column, words, colour, symbol.
_MARKS: Final = (
    ("came", "came", palette.RANKED[2], "triangle-up"),
    ("left", "left", palette.REFERENCE, "triangle-down"),
    ("lost", "went away unexpectedly", palette.FAILURE, "x"),
)


def headcount(workers: pl.DataFrame, axis: TimeAxis, began_t: float) -> Figure:
    """Draw the number of workers, and of their threads where it tells more.

    Parameters
    ----------
    workers : polars.DataFrame
        View ``workers``: worker, name, nthreads, added_t, removed_t, and ``lost``, whether
        a worker went away unexpectedly.
    axis : TimeAxis
    began_t : float
        Workers that came up to then were there when recording began: they have no mark.
    """
    changes = _changes(workers, axis, began_t)
    threads = _tells_more(workers)
    figure = layout.empty_figure(
        380 if threads else 250,
        xaxis=layout.axis(axis.title, range=axis.range, anchor="y"),
        yaxis=layout.axis(
            "workers", domain=[0.58, 1] if threads else [0, 1], rangemode="tozero", nticks=5
        ),
    )
    figure.add_trace(_steps(changes, "workers", palette.RANKED[0], axis, "y"))
    if threads:
        figure.update_layout(
            xaxis_anchor="y2",
            yaxis2=layout.axis(
                "threads", domain=[0, 0.42], rangemode="tozero", nticks=5, anchor="x"
            ),
        )
        figure.add_trace(_steps(changes, "threads", palette.RANKED[1], axis, "y2"))
    figure.add_traces(
        [_marks(changes, *mark, axis) for mark in _MARKS if changes[mark[0]].sum()]
    )
    return figure


def _tells_more(workers: pl.DataFrame) -> bool:
    """Tell whether workers differ in their threads, so that these have a curve of their own."""
    return workers["nthreads"].drop_nulls().n_unique() > 1


def _changes(workers: pl.DataFrame, axis: TimeAxis, began_t: float) -> pl.DataFrame:
    """Count who came and went at each instant, or in each stretch of time if there are many.

    Returns
    -------
    polars.DataFrame
        t, came, left, lost, who (names, the first few), workers and threads from then on.
    """
    named = workers.select(
        "added_t",
        "removed_t",
        pl.col("nthreads").fill_null(0),
        pl.col("lost").fill_null(value=False),
        pl.Series(
            "who", [label(worker_name(row)) for row in workers.iter_rows(named=True)], pl.String
        ),
    )
    from_start = pl.col("added_t").fill_null(axis.start_t) <= began_t
    zero = pl.lit(0)
    came = named.select(
        pl.when(from_start).then(axis.start_t).otherwise("added_t").alias("t"),
        (~from_start).cast(pl.Int32).alias("came"),
        zero.alias("left"),
        zero.alias("lost"),
        pl.when(~from_start).then("who").alias("who"),
        pl.lit(1).alias("workers"),
        pl.col("nthreads").alias("threads"),
    )
    gone = named.filter(pl.col("removed_t").is_not_null()).select(
        pl.col("removed_t").alias("t"),
        zero.alias("came"),
        (~pl.col("lost")).cast(pl.Int32).alias("left"),
        pl.col("lost").cast(pl.Int32),
        "who",
        pl.lit(-1).alias("workers"),
        (-pl.col("nthreads")).alias("threads"),
    )
    moves = pl.concat([came, gone], how="vertical_relaxed")
    instant = pl.col("t")
    if moves["t"].n_unique() > POINT_LIMIT:
        width = axis.span_seconds / POINT_LIMIT
        instant = ((instant - axis.start_t) / width).floor() * width + axis.start_t
    return (
        moves.group_by(instant.alias("t"))
        .agg(
            pl.col("came", "left", "lost", "workers", "threads").sum(),
            pl.col("who").drop_nulls().head(3).str.join(", "),
            pl.col("who").drop_nulls().len().alias("named"),
        )
        .sort("t")
        .with_columns(
            pl.col("workers", "threads").cum_sum(),
            pl.when(pl.col("named") > 3)
            .then(pl.format("{} and {} more", "who", pl.col("named") - 3))
            .otherwise("who")
            .alias("who"),
        )
    )


def _steps(
    changes: pl.DataFrame, column: str, colour: str, axis: TimeAxis, yaxis: str
) -> Scatter:
    places = changes.select(axis.place("t").round(3)).to_series().to_list()
    values = changes[column].to_list()
    # The last number holds until the end.
    end = round(axis.span_seconds / axis.unit_seconds, 3)
    return Scatter(
        mode="lines",
        x=[*places, end],
        y=[*values, *values[-1:]],
        yaxis=yaxis,
        name=column,
        line={"color": colour, "width": 1.6, "shape": "hv"},
        fill="tozeroy" if column == "workers" else "none",
        fillcolor=palette.AREA,
        hovertemplate=f"%{{y:,}} {column}<extra></extra>",
        meta=layout.columns(x=axis.column, y=column),
    )


def _marks(
    changes: pl.DataFrame, column: str, words: str, colour: str, symbol: str, axis: TimeAxis
) -> Scatter:
    there = changes.filter(pl.col(column) > 0)
    marker: dict[str, Any] = {"color": colour, "symbol": symbol, "size": 9}
    return Scatter(
        mode="markers",
        x=there.select(axis.place("t").round(3)).to_series().to_list(),
        y=there["workers"].to_list(),
        name=words,
        marker=marker,
        customdata=there.select(column, "who").rows(),
        cliponaxis=False,
        hovertemplate=f"%{{customdata[0]:,}} {words}: %{{customdata[1]}}<extra></extra>",
        meta=layout.columns(x=axis.column, y="workers", customdata=[column, "who"]),
    )
