"""The computations of a run by thread over time, as a plotly figure for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
from plotly.graph_objects import Bar, Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label, worker_name

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis

#: Height of a lane: the figure is as high as its lanes, within limits.
_LANE_PX: Final = 18
_HEIGHTS_PX: Final = (160, 900)


def timeline(
    *,
    workers: pl.DataFrame,
    kinds: pl.DataFrame,
    bars: pl.DataFrame,
    cells: pl.DataFrame,
    marks: pl.DataFrame,
    bucket_seconds: float,
    note: str,
    time: TimeAxis,
) -> Figure:
    """Draw a lane for each thread and a bar for each computation, in the color of its prefix.

    Parameters
    ----------
    workers : polars.DataFrame
        worker, name, lanes (number of lanes).
    kinds : polars.DataFrame
        kind, prefix, dataset, the most time first. Without prefixes, datasets have the colors.
    bars : polars.DataFrame
        Computations: lane, kind, start_t, stop_t, key, outcome.
    cells : polars.DataFrame
        Other computations, added up: seconds by lane, kind and cell, the number of a bucket.
    marks : polars.DataFrame
        Failed attempts: lane, t, outcome, key.
    bucket_seconds : float
        Length of a bucket.
    note : str
        What is added up or left out.
    time : TimeAxis
        Time axis, which begins with the first bucket.
    """
    group = "prefix" if kinds["prefix"].count() else "dataset"
    lanes = int(workers["lanes"].sum())
    least, most = _HEIGHTS_PX
    # The name of each worker is at its first lane.
    names_axis = layout.names_axis(
        [label(worker_name(row)) for row in workers.iter_rows(named=True)]
    ) | {
        "range": [lanes - 0.5, -0.5],
        "tickvals": (workers["lanes"].cum_sum() - workers["lanes"]).to_list(),
        "fixedrange": False,
    }
    figure = layout.empty_figure(
        min(max(90 + _LANE_PX * lanes, least), most),
        # Readable on white and on black, because the page of a notebook has either.
        font={"color": palette.OTHER},
        barmode="overlay",
        xaxis=layout.axis(time.title, range=time.range, gridcolor=palette.BACKGROUND),
        yaxis=names_axis,
        title={"text": label(note), "font": {"size": 11}, "y": 0.01, "yanchor": "bottom"},
    )
    names = kinds.select("kind", group=pl.col(group)).cast({"kind": pl.Int32})
    ranked = names["group"].drop_nulls().unique(maintain_order=True).to_list()
    colors = palette.by_rank(ranked)
    drawn = _drawn(bars, cells, bucket_seconds, time).join(
        names, on="kind", how="left", maintain_order="left"
    )
    others = pl.when(pl.col("group").is_in(list(colors))).then("group")
    for (name,), part in drawn.with_columns(group=others).group_by(
        "group", maintain_order=True
    ):
        figure.add_trace(
            Bar(
                orientation="h",
                base=part["begin"].to_list(),
                x=part["length"].to_list(),
                y=part["lane"].to_list(),
                width=part["height"].to_list(),
                marker={"color": colors.get(name, palette.OTHER), "line": {"width": 0}},
                name="others" if name is None else label(name, 40),
                customdata=[
                    [label(text), seconds]
                    for text, seconds in part.select("text", "seconds").rows()
                ],
                hovertemplate="%{customdata[0]}<br>%{customdata[1]:,.4~g} s<extra></extra>",
                meta=layout.columns(base=time.column, x=f"length_{time.unit}", y="lane"),
            )
        )
    if marks.height:
        figure.add_trace(
            Scatter(
                mode="markers",
                x=time.places(marks, "t", 6),
                y=marks["lane"].to_list(),
                marker={"color": palette.FAILURE, "symbol": "x", "size": 7},
                name="failed attempt",
                text=[label(f"{o}: {key}") for o, key in marks.select("outcome", "key").rows()],
                hovertemplate="%{text}<extra></extra>",
                meta=layout.columns(x=time.column, y="lane"),
            )
        )
    return figure


def _drawn(
    bars: pl.DataFrame, cells: pl.DataFrame, bucket_seconds: float, time: TimeAxis
) -> pl.DataFrame:
    """Return place, size and text of each bar: single computations, then the added up ones."""
    single = bars.select(
        pl.col("lane", "kind").cast(pl.Int32),
        begin=time.place("start_t"),
        length=(pl.col("stop_t") - pl.col("start_t")) / time.unit_seconds,
        height=pl.lit(0.9),
        seconds=pl.col("stop_t") - pl.col("start_t"),
        text=pl.format("{} ({})", pl.col("key"), pl.col("outcome").fill_null("unfinished")),
    )
    added_up = cells.select(
        pl.col("lane", "kind").cast(pl.Int32),
        begin=pl.col("cell") * bucket_seconds / time.unit_seconds,
        length=pl.lit(bucket_seconds / time.unit_seconds),
        height=0.9 * pl.col("seconds") / bucket_seconds,
        seconds=pl.col("seconds"),
        text=pl.lit("added up in this bucket"),
    )
    return pl.concat([single, added_up])
