"""Scatter plots of chunk attempts: compute time by number of events and over the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from plotly.graph_objects import Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label
from roast_analyze.report.quantities import as_float

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis

#: Most points.
POINT_LIMIT: Final = 250

_HOVER: Final = (
    "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>entries %{customdata[2]} to "
    "%{customdata[3]}<br>%{y:,.4~g} s for %{customdata[8]} events%{customdata[6]}<br>"
    "attempt %{customdata[4]} on %{customdata[5]}: %{customdata[7]}<extra></extra>"
)
_COLUMNS: Final = [
    "dataset",
    "filename",
    "entry_start",
    "entry_stop",
    "attempt",
    "worker",
    "rate",
    "outcome",
]


@dataclass(frozen=True)
class ChunkFigure:
    """The figure, and the number of chunk attempts that it shows.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
    drawn : int
        Attempts drawn.
    undrawn : int
        Attempts left out: neither failed nor slow ones, evenly over the run.
    without_time : int
        Attempts without a compute time or a size, which cannot be drawn.
    """

    figure: Figure
    drawn: int
    undrawn: int
    without_time: int


def figure(
    chunks: pl.DataFrame,
    datasets: list[str | None],
    axis: TimeAxis,
    *,
    point_limit: int = POINT_LIMIT,
) -> ChunkFigure:
    """Draw a point for each chunk attempt: seconds against events, and against time.

    Parameters
    ----------
    chunks : polars.DataFrame
        View ``chunks``. A failed attempt is drawn at its requested size.
    datasets : list of str
        Datasets, the most important first; their ranks determine the colors.
    axis : TimeAxis
    point_limit : int
        Most points.
    """
    size = pl.coalesce("events", pl.col("entry_stop") - pl.col("entry_start"))
    sized = chunks.with_columns(size.alias("size"))
    placed = sized.filter(
        pl.col("size").is_not_null() & pl.col("compute_seconds").is_not_null()
    )
    drawn = _chosen(placed, point_limit)
    colors = palette.by_rank(datasets)
    good = drawn.filter(pl.col("outcome") == "memory")
    groups = [
        (
            good.filter(pl.col("dataset").eq_missing(name)),
            label(name, 40) or "(no dataset)",
            color,
        )
        for name, color in colors.items()
    ]
    others = pl.all_horizontal(
        pl.lit(value=True), *(pl.col("dataset").ne_missing(name) for name in colors)
    )
    groups += [
        (good.filter(others), "other datasets", palette.OTHER),
        (drawn.filter(pl.col("outcome") != "memory"), "failed or unfinished", palette.FAILURE),
    ]
    drawn_figure = layout.empty_figure(
        430,
        xaxis=layout.axis("events in the chunk", rangemode="tozero", domain=[0, 0.47]),
        xaxis2=layout.axis(
            f"dispatch, {axis.title}", range=axis.range, domain=[0.53, 1], anchor="y"
        ),
        yaxis=layout.axis("compute time (s)", rangemode="tozero"),
    )
    for some, name, color in groups:
        if some.height:
            drawn_figure.add_traces(_points(some, name, color, axis))
    if rate := median_rate(placed):
        most = float(max(drawn["size"]))
        drawn_figure.add_trace(
            Scatter(
                mode="lines",
                x=[0, most],
                y=[0, most / rate],
                name=f"median rate, {rate:,.0f} events/s",
                line={"color": palette.REFERENCE, "dash": "dot", "width": 1.5},
                hoverinfo="skip",
            )
        )
    return ChunkFigure(
        drawn_figure, drawn.height, placed.height - drawn.height, chunks.height - placed.height
    )


def median_rate(chunks: pl.DataFrame) -> float | None:
    """Return the median of ``events_per_second`` over finished chunks; None without any."""
    rates = chunks.filter(pl.col("outcome") == "memory")["events_per_second"].drop_nulls()
    return as_float(rates.median())


def _chosen(chunks: pl.DataFrame, point_limit: int) -> pl.DataFrame:
    """Keep failed attempts, then the slowest, then an even sample of the rest."""
    if chunks.height <= point_limit:
        return chunks
    ranked = chunks.sort(
        pl.col("outcome") != "memory", "compute_seconds", descending=True, maintain_order=True
    )
    first = ranked.head(point_limit // 2)
    others = ranked.slice(point_limit // 2)
    every = -(-others.height // (point_limit - first.height))
    return pl.concat([first, others.gather_every(every)])


def _points(chunks: pl.DataFrame, name: str, color: str, axis: TimeAxis) -> list[Scatter]:
    """Draw the same attempts twice: by size and by time of dispatch."""
    failed = color == palette.FAILURE
    facts = [_facts(row) for row in chunks.iter_rows(named=True)]
    sent = chunks.select(axis.place("processing_t")).to_series().to_list()
    return [
        Scatter(
            mode="markers",
            x=x,
            y=chunks["compute_seconds"].round(6).to_list(),
            xaxis=panel,
            name=name,
            legendgroup=name,
            showlegend=panel == "x",
            # Of the trace instead of the markers: browsers paint that much faster.
            opacity=0.75,
            marker={
                "color": color,
                "symbol": "x" if failed else "circle",
                "size": 8,
                "line": {"width": 0.5, "color": color},
            },
            customdata=facts,
            hovertemplate=_HOVER,
            # The second panel repeats the points of the first.
            meta=columns,
        )
        for panel, x, columns in (
            (
                "x",
                chunks["size"].to_list(),
                layout.columns(x="events", y="compute_seconds", customdata=list(_COLUMNS)),
            ),
            ("x2", sent, None),
        )
    ]


def _facts(chunk: dict[str, Any]) -> list[Any]:
    rate = chunk["events_per_second"]
    return [
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
