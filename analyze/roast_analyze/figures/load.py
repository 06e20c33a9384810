"""How busy each worker was over time, and what the scheduler had to do.

The frames are cut into stretches of time before they come here: however long the run and
however many its workers, a figure has at most so many points and rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plotly.graph_objects import Figure, Heatmap, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.timeline import lane_label

if TYPE_CHECKING:
    import polars as pl

    from roast_analyze.figures.layout import TimeAxis

#: Height of a row of the map, and of all that is around them.
_ROW_PX: Final = 14
_AROUND_PX: Final = 110

_BLUE: Final = "rgba(0, 114, 178, 0.18)"


def busy(workers: pl.DataFrame, stretches: pl.DataFrame, axis: TimeAxis) -> Figure:
    """Draw how busy each worker was: a row a worker, the stronger the colour the busier.

    Parameters
    ----------
    workers : polars.DataFrame
        View ``utilisation``, put together to rows of the map: row, from 0, the name and
        the address of its first worker, workers (how many they are), stretch, from 0, and
        the share of their threads' time that was computing.
    stretches : polars.DataFrame
        View ``concurrency``: t, where each stretch begins.
    axis : TimeAxis
    """
    rows = workers["row"].unique().sort().to_list()
    places = stretches.select(axis.place("t")).to_series().to_list()
    width = places[1] - places[0] if len(places) > 1 else axis.range[1]
    shares = {
        (row, stretch): None if share is None else round(100 * share)
        for row, stretch, share in workers.select("row", "stretch", "share").iter_rows()
    }
    names = _row_names(workers)
    figure = layout.empty_figure(
        _AROUND_PX + _ROW_PX * max(len(rows), 3),
        xaxis=layout.axis(axis.title, range=axis.range),
        yaxis=layout.axis(
            "",
            autorange="reversed",
            showgrid=False,
            tickmode="array",
            tickvals=list(names),
            ticktext=list(names.values()),
        ),
    )
    figure.add_trace(
        Heatmap(
            # Where no worker was there is nothing.
            z=[[shares.get((row, n)) for n in range(len(places))] for row in rows],
            x=[round(place + width / 2, 6) for place in places],
            y=rows,
            zmin=0,
            zmax=100,
            colorscale=[[0, "rgba(0, 114, 178, 0.08)"], [1, palette.RANKED[0]]],
            colorbar={
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "y": 1,
                "yanchor": "bottom",
                "len": 0.25,
                "thickness": 8,
                "ticksuffix": " %",
                "nticks": 3,
                "outlinewidth": 0,
            },
            hoverongaps=False,
            ygap=1,
            name="busy",
            hovertemplate="%{z} % of the threads' time<extra></extra>",
            meta=layout.columns(x=axis.column, y="workers", z="busy_percent"),
        )
    )
    return figure


def scheduler(load: pl.DataFrame, axis: TimeAxis) -> Figure:
    """Draw what the scheduler had to do, what was held up, and how slow the loops were.

    Parameters
    ----------
    load : polars.DataFrame
        One row per stretch of time: t, transitions_per_second, ready (tasks that waited
        for a free thread), waiting (for results of others), slowest_loop_seconds (of all
        workers' event loops; null where none was sampled).
    axis : TimeAxis
    """
    figure = layout.empty_figure(
        520,
        xaxis=layout.axis(axis.title, range=axis.range, anchor="y"),
        yaxis=layout.axis(
            "event loop (s)", domain=[0, 0.24], rangemode="tozero", nticks=4, anchor="x"
        ),
        yaxis2=layout.axis(
            "tasks", domain=[0.38, 0.62], rangemode="tozero", nticks=5, anchor="x"
        ),
        yaxis3=layout.axis(
            "a second", domain=[0.76, 1], rangemode="tozero", nticks=5, anchor="x"
        ),
    )
    figure.add_trace(
        _curve(
            load, "transitions_per_second", "transitions a second", axis, "y3", fill="tozeroy"
        )
    )
    figure.add_trace(_curve(load, "ready", "ready, without a free thread", axis))
    figure.add_trace(_curve(load, "waiting", "waiting for results of others", axis))
    figure.add_trace(
        _curve(load, "slowest_loop_seconds", "interval of the slowest worker's loop", axis, "y")
    )
    return figure


#: Colour of a curve.
_COLOURS: Final = {
    "transitions_per_second": palette.RANKED[0],
    "ready": palette.RANKED[1],
    "waiting": palette.RANKED[4],
    "slowest_loop_seconds": palette.RANKED[3],
}


def _curve(
    frame: pl.DataFrame,
    column: str,
    words: str,
    axis: TimeAxis,
    yaxis: str = "y2",
    fill: str = "none",
) -> Scatter:
    return Scatter(
        mode="lines",
        # A value holds for the whole stretch that begins there.
        line={"color": _COLOURS[column], "width": 1.6, "shape": "hv"},
        # Samples are rarer than stretches of a short run.
        connectgaps=True,
        x=frame.select(axis.place("t").round(3)).to_series().to_list(),
        y=frame[column].round(3).to_list(),
        yaxis=yaxis,
        name=words,
        fill=fill,
        fillcolor=_BLUE,
        hovertemplate=f"%{{y:,.4~g}} {words}<extra></extra>",
        meta=layout.columns(x=axis.column, y=column),
    )


def _row_names(workers: pl.DataFrame) -> dict[int, str]:
    """Name the rows of the map."""
    rows = workers.unique("row").sort("row").iter_rows(named=True)
    return {
        row["row"]: lane_label(row)
        + (f" and {row['workers'] - 1} more" if row["workers"] > 1 else "")
        for row in rows
    }
