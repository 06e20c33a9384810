"""Scatter plots of chunk attempts: compute time by number of events and over the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
from plotly.graph_objects import Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label
from roast_analyze.report.quantities import as_float

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis

#: Maximum number of points.
POINT_LIMIT: Final = 250

_HOVER: Final = (
    "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>entries %{customdata[2]} to "
    "%{customdata[3]}<br>%{y:,.4~g} s for %{customdata[8]} events%{customdata[6]}<br>"
    "attempt %{customdata[4]} on %{customdata[5]}: %{customdata[7]}<extra></extra>"
)
_COLUMNS: Final = (
    "dataset", "filename", "entry_start", "entry_stop", "attempt", "worker", "rate", "outcome",
)  # fmt: skip


def sized(chunks: pl.DataFrame) -> pl.DataFrame:
    """Return the attempts that can be drawn, with their ``size``.

    They have a compute time, and a number of events; a failed attempt has its requested size.
    """
    size = pl.coalesce("events", pl.col("entry_stop") - pl.col("entry_start"))
    return chunks.with_columns(size=size).drop_nulls(["size", "compute_seconds"])


def chosen(chunks: pl.DataFrame, limit: int = POINT_LIMIT) -> pl.DataFrame:
    """Return failed attempts or else the slowest, and as many as an even sample of the rest."""
    if chunks.height <= limit:
        return chunks
    ranked = chunks.sort(
        pl.col("outcome") != "memory", "compute_seconds", descending=True, maintain_order=True
    )
    # The other half is a sample of ordinary attempts over the whole run.
    first, others = ranked.head(limit // 2), ranked.slice(limit // 2)
    every = -(-others.height // (limit - first.height))
    return pl.concat([first, others.gather_every(every)])


def median_rate(chunks: pl.DataFrame) -> float | None:
    """Return the median of ``events_per_second`` over finished chunks; None without any."""
    rates = chunks.filter(pl.col("outcome") == "memory")["events_per_second"].drop_nulls()
    return as_float(rates.median())


def figure(
    drawn: pl.DataFrame, rate: float | None, datasets: list[str | None], axis: TimeAxis
) -> Figure:
    """Draw a point for each chunk attempt: seconds against events, and against time.

    Parameters
    ----------
    drawn : polars.DataFrame
        Attempts, from :func:`chosen`.
    rate : float or None
        Events per second, drawn as a line.
    datasets : list of str
        Datasets, the most important first; their ranks determine the colors.
    axis : TimeAxis
    """
    colors = palette.by_rank(datasets)
    good = drawn.filter(pl.col("outcome") == "memory")
    dataset = pl.col("dataset")
    groups = [
        (good.filter(dataset.eq_missing(name)), label(name, 40) or "(no dataset)", color)
        for name, color in colors.items()
    ]
    others = pl.all_horizontal(
        pl.lit(value=True), *(dataset.ne_missing(name) for name in colors)
    )
    groups += [
        (good.filter(others), "other datasets", palette.OTHER),
        (drawn.filter(pl.col("outcome") != "memory"), "failed or unfinished", palette.FAILURE),
    ]
    figure = layout.empty_figure(
        430,
        xaxis=layout.axis("events in the chunk", rangemode="tozero", domain=[0, 0.47]),
        xaxis2=layout.axis(
            f"dispatch, {axis.title}", range=axis.range, domain=[0.53, 1], anchor="y"
        ),
        yaxis=layout.axis("compute time (s)", rangemode="tozero"),
    )
    for some, name, color in groups:
        if some.height:
            figure.add_traces(_points(some, name, color, axis))
    if rate:
        most = float(max(drawn["size"]))
        figure.add_trace(
            Scatter(
                mode="lines",
                x=[0, most],
                y=[0, most / rate],
                name=f"median rate, {rate:,.0f} events/s",
                line={"color": palette.REFERENCE, "dash": "dot", "width": 1.5},
                hoverinfo="skip",
            )
        )
    return figure


def _points(chunks: pl.DataFrame, name: str, color: str, axis: TimeAxis) -> list[Scatter]:
    """Draw the same attempts twice: by size and by time of dispatch."""
    facts = [
        [
            label(chunk["dataset"]),
            label(chunk["filename"]),
            chunk["entry_start"],
            chunk["entry_stop"],
            chunk["attempt"],
            label(chunk["worker"]),
            "" if rate is None else f", {rate:,.0f} events/s",
            label(chunk["outcome"]),
            f"{chunk['size']:,}",
        ]
        for chunk in chunks.iter_rows(named=True)
        for rate in (chunk["events_per_second"],)
    ]
    sent = axis.places(chunks, "processing_t", 6)
    columns = layout.columns(x="events", y="compute_seconds", customdata=list(_COLUMNS))
    return [
        Scatter(
            mode="markers",
            x=x,
            y=chunks["compute_seconds"].round(6).to_list(),
            xaxis=panel,
            name=name,
            legendgroup=name,
            showlegend=panel == "x",
            # Opacity of the trace instead of the markers: browsers paint this much faster.
            opacity=0.75,
            marker={
                "color": color,
                "symbol": "x" if color == palette.FAILURE else "circle",
                "size": 8,
                "line": {"width": 0.5, "color": color},
            },
            customdata=facts,
            hovertemplate=_HOVER,
            # The second panel repeats the points of the first.
            meta=columns if panel == "x" else None,
        )
        for panel, x in (("x", chunks["size"].to_list()), ("x2", sent))
    ]
