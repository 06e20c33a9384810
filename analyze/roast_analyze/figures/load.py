"""What the scheduler had to do over time.

The frames are cut into stretches of time before they come here: however long the run and
however many its workers, a figure has at most so many points and rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
from plotly.graph_objects import Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label, worker_name

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis


def row_names(workers: pl.DataFrame) -> dict[int, str]:
    """Name the rows of a map of workers.

    Parameters
    ----------
    workers : polars.DataFrame
        row, worker and name of the first worker there, workers (how many they are).
    """
    rows = workers.unique("row").sort("row").iter_rows(named=True)
    return {
        row["row"]: label(worker_name(row))
        + (f" and {row['workers'] - 1} more" if row["workers"] > 1 else "")
        for row in rows
    }


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


def submissions(stretches: pl.DataFrame, axis: TimeAxis) -> Figure:
    """Draw the tasks that came, and below them those that moved by stealing if any did.

    Parameters
    ----------
    stretches : polars.DataFrame
        One row per stretch of time: t, tasks (that came), batches (in which they came),
        stolen (tasks that moved to another worker).
    axis : TimeAxis
    """
    stole = bool(stretches["stolen"].sum())
    figure = layout.empty_figure(
        400 if stole else 240,
        xaxis=layout.axis(axis.title, range=axis.range, anchor="y"),
        yaxis=layout.axis(
            "tasks",
            domain=[0.58, 1] if stole else [0, 1],
            rangemode="tozero",
            nticks=5,
        ),
        showlegend=stole,
    )
    figure.add_trace(
        _stems(stretches, "tasks", "tasks that came", palette.RANKED[0], axis, "y")
    )
    if stole:
        figure.update_layout(
            xaxis_anchor="y2",
            yaxis2=layout.axis(
                "stolen", domain=[0, 0.42], rangemode="tozero", nticks=5, anchor="x"
            ),
        )
        words = "tasks stolen by idle workers"
        figure.add_trace(_stems(stretches, "stolen", words, palette.RANKED[3], axis, "y2"))
    return figure


def _stems(
    stretches: pl.DataFrame, column: str, words: str, colour: str, axis: TimeAxis, yaxis: str
) -> Scatter:
    """Draw a stem for each stretch in which there was something; a bar would be too thin."""
    there = stretches.filter(pl.col(column) > 0)
    counts = there[column].to_list()
    return Scatter(
        mode="markers",
        x=there.select(axis.place("t").round(3)).to_series().to_list(),
        y=counts,
        yaxis=yaxis,
        name=words,
        marker={"color": colour, "size": 7},
        # The stem hangs from the point down to zero.
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [0] * len(counts),
            "arrayminus": counts,
            "width": 0,
            "thickness": 1.6,
            "color": colour,
        },
        cliponaxis=False,
        hovertemplate=f"%{{y:,}} {words}<extra></extra>",
        meta=layout.columns(x=axis.column, y=column),
    )


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
        fillcolor=palette.AREA,
        hovertemplate=f"%{{y:,.4~g}} {words}<extra></extra>",
        meta=layout.columns(x=axis.column, y=column),
    )
