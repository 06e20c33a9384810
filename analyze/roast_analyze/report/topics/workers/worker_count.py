"""Number of workers and threads over time, with marks where workers joined or left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
from plotly.graph_objects import Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label, worker_name
from roast_analyze.figures.samples import POINT_LIMIT

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis

#: Marks: column, color, symbol.
_MARKS: Final = (
    ("joined", palette.RANKED[2], "triangle-up"),
    ("left", palette.REFERENCE, "triangle-down"),
    ("lost", palette.FAILURE, "x"),
)
_COUNTS: Final = ("joined", "left", "lost", "workers", "threads")


def figure(workers: pl.DataFrame, axis: TimeAxis, recorded_t: float) -> Figure:
    """Draw the number of workers, and the number of threads if workers differ in it.

    ``workers`` is the view with the column ``lost``. Those added up to ``recorded_t`` joined
    before the recording and have no mark.
    """
    changes = _changes(workers, axis, recorded_t)
    # Equal workers would give the same curve twice.
    if workers["nthreads"].drop_nulls().n_unique() > 1:
        drawn = layout.panels(axis, 380, "workers", "threads")
        curves = {"workers": ("y", palette.RANKED[0]), "threads": ("y2", palette.RANKED[1])}
    else:
        drawn = layout.panels(axis, 250, "workers")
        curves = {"workers": ("y", palette.RANKED[0])}
    # The last number is valid until the end.
    end = pl.lit(axis.start_t + axis.span_seconds)
    steps = pl.concat([changes, changes.tail(1).with_columns(t=end)])
    for column, (yaxis, color) in curves.items():
        drawn.add_trace(
            layout.curve(
                axis, steps, column, column,
                yaxis=yaxis,
                line={"color": color, "width": 1.6, "shape": "hv"},
                fill="tozeroy" if column == "workers" else "none",
                hovertemplate=f"%{{y:,}} {column}<extra></extra>",
            )
        )  # fmt: skip
    for column, color, symbol in _MARKS:
        changed = changes.filter(pl.col(column) > 0)
        if changed.height:
            drawn.add_trace(
                Scatter(
                    mode="markers",
                    x=axis.places(changed),
                    y=changed["workers"].to_list(),
                    name=column,
                    marker={"color": color, "symbol": symbol, "size": 9},
                    customdata=changed.select(column, "names").rows(),
                    cliponaxis=False,
                    hovertemplate=(
                        f"%{{customdata[0]:,}} {column}: %{{customdata[1]}}<extra></extra>"
                    ),
                    meta=layout.columns(
                        x=axis.column, y="workers", customdata=[column, "names"]
                    ),
                )
            )
    return drawn


def _changes(workers: pl.DataFrame, axis: TimeAxis, recorded_t: float) -> pl.DataFrame:
    """Count changes at each instant, or in each bucket if there are many.

    Returns t, joined, left, lost, names (the first few), workers and threads from then on.
    """
    joined: list[tuple[object, ...]] = []
    left: list[tuple[object, ...]] = []
    for worker in workers.iter_rows(named=True):
        name, threads = label(worker_name(worker)), worker["nthreads"] or 0
        added_t, removed_t = worker["added_t"], worker["removed_t"]
        if added_t is None or added_t <= recorded_t:
            # Workers that joined before the recording count from its start, without a mark.
            joined.append((axis.start_t, 0, 0, 0, 1, threads, None))
        else:
            joined.append((added_t, 1, 0, 0, 1, threads, name))
        if removed_t is not None:
            lost = int(worker["lost"] or 0)
            left.append((removed_t, 0, 1 - lost, lost, -1, -threads, name))
    moves = pl.DataFrame(
        [*joined, *left],
        schema={"t": pl.Float64, **dict.fromkeys(_COUNTS, pl.Int64), "names": pl.String},
        orient="row",
    )
    instant = pl.col("t")
    if moves["t"].n_unique() > POINT_LIMIT:
        width = axis.span_seconds / POINT_LIMIT
        instant = axis.bucket(POINT_LIMIT) * width + axis.start_t
    names = pl.col("names").drop_nulls()
    first, more = names.head(3).str.join(", "), names.len() - 3
    return (
        moves.group_by(instant.alias("t"))
        .agg(
            pl.col(_COUNTS).sum(),
            names=pl.when(names.len() > 3)
            .then(pl.format("{} and {} more", first, more))
            .otherwise(first),
        )
        .sort("t")
        .with_columns(pl.col("workers", "threads").cum_sum())
    )
