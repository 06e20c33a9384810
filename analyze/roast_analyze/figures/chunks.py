"""Chunks: how long they took, against how many events they had and over the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from plotly.graph_objects import Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis

#: Most points that are drawn.
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
class ChunkPlot:
    """The figure, and how many of the chunk attempts it shows.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
    drawn : int
        Attempts drawn.
    undrawn : int
        Attempts left out because there are many: evenly, neither failed nor slow ones.
    without_time : int
        Attempts that have no compute time or no size, and so no place in the plot.
    """

    figure: Figure
    drawn: int
    undrawn: int
    without_time: int


def chunk_seconds(
    chunks: pl.DataFrame,
    datasets: list[str | None],
    axis: TimeAxis,
    *,
    point_limit: int = POINT_LIMIT,
) -> ChunkPlot:
    """Draw a point for each attempt at a chunk: seconds against events, and against time.

    Parameters
    ----------
    chunks : polars.DataFrame
        View ``chunks``. A failed attempt is placed at the size that it was to have.
    datasets : list of str
        Datasets, the most important first; their ranks give the colours.
    axis : TimeAxis
    point_limit : int
        Most points.

    Returns
    -------
    ChunkPlot
    """
    size = pl.coalesce("events", pl.col("entry_stop") - pl.col("entry_start"))
    sized = chunks.with_columns(size.alias("size"))
    placed = sized.filter(
        pl.col("size").is_not_null() & pl.col("compute_seconds").is_not_null()
    )
    drawn = _chosen(placed, point_limit)
    colours = palette.by_rank(datasets)
    good = drawn.filter(pl.col("outcome") == "memory")
    groups = [
        (
            good.filter(pl.col("dataset").eq_missing(name)),
            label(name, 40) or "(no dataset)",
            colour,
        )
        for name, colour in colours.items()
    ]
    groups.append((good.filter(~_among(list(colours))), "other datasets", palette.OTHER))
    groups.append(
        (drawn.filter(pl.col("outcome") != "memory"), "not finished", palette.FAILURE)
    )
    figure = _two_panels(axis)
    for some, name, colour in groups:
        if some.height:
            figure.add_traces(_points(some, name, colour, axis))
    rate = median_rate(placed)
    if rate:
        figure.add_trace(_rate_line(drawn, rate))
    return ChunkPlot(
        figure, drawn.height, placed.height - drawn.height, chunks.height - placed.height
    )


def median_rate(chunks: pl.DataFrame) -> float | None:
    """Give the median of ``events_per_second`` over finished chunks, None without any."""
    rates = chunks.filter(pl.col("outcome") == "memory")["events_per_second"].drop_nulls()
    value = rates.median()
    return float(value) if isinstance(value, int | float) else None


def _among(names: list[str | None]) -> pl.Expr:
    return pl.any_horizontal(
        [pl.lit(value=False), *(pl.col("dataset").eq_missing(name) for name in names)]
    )


def _chosen(chunks: pl.DataFrame, point_limit: int) -> pl.DataFrame:
    """Keep what failed, then the slowest, then every so-manieth of the others."""
    if chunks.height <= point_limit:
        return chunks
    ranked = chunks.sort(
        pl.col("outcome") != "memory", "compute_seconds", descending=True, maintain_order=True
    )
    first = ranked.head(point_limit // 2)
    others = ranked.slice(point_limit // 2)
    every = -(-others.height // (point_limit - first.height))
    return pl.concat([first, others.gather_every(every)])


def _two_panels(axis: TimeAxis) -> Figure:
    return layout.empty_figure(
        430,
        xaxis=layout.axis("events in the chunk", rangemode="tozero", domain=[0, 0.47]),
        xaxis2=layout.axis(
            f"sent to a worker, {axis.title}", range=axis.range, domain=[0.53, 1], anchor="y"
        ),
        yaxis=layout.axis("compute time (s)", rangemode="tozero"),
    )


def _points(chunks: pl.DataFrame, name: str, colour: str, axis: TimeAxis) -> list[Scatter]:
    """Draw the same attempts twice: by their size, and by when they were sent out."""
    failed = colour == palette.FAILURE
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
            # Of all points together: each that has its own is painted by itself.
            opacity=0.75,
            marker={
                "color": colour,
                "symbol": "x" if failed else "circle",
                "size": 8,
                "line": {"width": 0.5, "color": colour},
            },
            customdata=facts,
            hovertemplate=_HOVER,
            # The second panel draws nothing that the first one does not have.
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


def _rate_line(chunks: pl.DataFrame, rate: float) -> Scatter:
    most = max(float(value) for value in chunks["size"].to_list())
    return Scatter(
        mode="lines",
        x=[0, most],
        y=[0, most / rate],
        name=f"median rate, {rate:,.0f} events/s",
        line={"color": palette.REFERENCE, "dash": "dot", "width": 1.5},
        hoverinfo="skip",
    )
