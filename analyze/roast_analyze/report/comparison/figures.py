"""Figures of a comparison: a panel or a bar per trace, all on the same axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl
from plotly.graph_objects import Bar, Figure, Scatter

from roast_analyze.figures import layout, palette
from roast_analyze.figures.labels import label
from roast_analyze.figures.samples import bucketed
from roast_analyze.report.quantities import as_float

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roast_analyze.figures.layout import TimeAxis

#: Most parts of a bar; all others are one part.
PART_LIMIT: Final = 9

#: Heights: a panel with its name, a panel without it, a bar, and everything around them.
_ROW_PX: Final = 92
_PANEL_PX: Final = 66
_BAR_PX: Final = 30
_AROUND_PX: Final = 84


@dataclass(frozen=True)
class Quantity:
    """A quantity over time, and the reference line above it.

    Parameters
    ----------
    column, words : str
        Column of the frames, and its name in words.
    reference, reference_words : str
        The same of the reference line.
    unit : str
    divisor, reference_divisor : float
        Divisors of the values for the unit.
    largest : bool
        Whether a bucket shows its maximum; else its mean.
    """

    column: str
    words: str
    reference: str
    reference_words: str
    unit: str
    divisor: float = 1.0
    reference_divisor: float = 1.0
    largest: bool = False


@dataclass(frozen=True)
class Panel:
    """The data of a trace.

    Parameters
    ----------
    name : str
    axis : TimeAxis
        It begins with the trace, and is as long as the longest trace.
    frame : polars.DataFrame
        ``t`` and the columns of the quantity.
    """

    name: str
    axis: TimeAxis
    frame: pl.DataFrame


@dataclass(frozen=True)
class Part:
    """A part of each bar: its name, its seconds in each trace, and its color."""

    words: str
    seconds: list[float]
    color: str


def over_time(panels: Sequence[Panel], what: Quantity, *, reference: bool = True) -> Figure:
    """Draw a quantity over time, one panel per trace.

    Parameters
    ----------
    panels : sequence of Panel
    what : Quantity
    reference : bool
        Whether to draw the reference line.
    """
    columns = {what.column: what.divisor}
    if reference:
        columns[what.reference] = what.reference_divisor
    drawn = [
        bucketed(panel.frame, [], list(columns), panel.axis, largest=what.largest).with_columns(
            (pl.col(column).cast(pl.Float64) / divisor).round(3)
            for column, divisor in columns.items()
        )
        for panel in panels
    ]
    most = max(
        ((as_float(frame[column].max()) or 0.0) for frame in drawn for column in columns),
        default=0,
    )
    axis = panels[0].axis
    inside_px = _ROW_PX * len(panels)
    figure = layout.empty_figure(
        _AROUND_PX + inside_px,
        showlegend=False,
        margin={"l": 8, "r": 12, "t": 18, "b": 8},
        xaxis=layout.axis(axis.title, range=axis.range, anchor="free"),
    )
    for row, (panel, frame) in enumerate(zip(panels, drawn, strict=True)):
        bottom = 1 - (row + 1) * _ROW_PX / inside_px
        top = bottom + _PANEL_PX / inside_px
        number = "" if row == 0 else str(row + 1)
        values = layout.axis(
            "",
            domain=[max(bottom, 0.0), top],
            range=[0, 1.05 * most or 1],
            nticks=4,
            anchor="x",
        )
        figure.update_layout({f"yaxis{number}": values})
        is_empty = panel.frame[what.column].null_count() == panel.frame.height
        figure.add_annotation(
            text=label(panel.name, 44) + (" · nothing recorded" if is_empty else ""),
            xref="paper",
            yref="paper",
            x=0,
            xanchor="left",
            y=top,
            yanchor="bottom",
            showarrow=False,
        )
        for column in columns:
            figure.add_trace(_curve(panel, frame, what, column, f"y{number}"))
    return figure


def stacked(names: Sequence[str], parts: Sequence[Part], title: str) -> Figure:
    """Draw one bar of stacked parts per trace.

    Parameters
    ----------
    names : sequence of str
        Names of the traces.
    parts : sequence of Part
        With as many values as there are names.
    title : str
        Title of the axis, which shows seconds.
    """
    shown = [label(name, 28) for name in names]
    figure = layout.empty_figure(
        # A long legend must not shrink the bars.
        _AROUND_PX + 30 + 5 * len(parts) + _BAR_PX * max(len(names), 2),
        barmode="stack",
        legend_traceorder="normal",
        bargap=0.3,
        xaxis=layout.axis(title, rangemode="tozero"),
        yaxis=layout.names_axis(shown),
    )
    for part in parts:
        figure.add_trace(
            Bar(
                orientation="h",
                x=[round(seconds, 6) for seconds in part.seconds],
                y=list(range(len(names))),
                name=part.words,
                # Without a border: plotly's is white, even in dark mode.
                marker={"color": part.color, "line": {"width": 0}},
                customdata=[[name] for name in shown],
                hovertemplate=(
                    f"<b>%{{customdata[0]}}</b><br>%{{x:,.4~g}} s {part.words}<extra></extra>"
                ),
                meta=layout.columns(x="seconds", y="row", customdata=["trace"]),
            )
        )
    return figure


def largest_parts(rows: pl.DataFrame, name: str, columns: Sequence[str]) -> list[Part]:
    """Return the rows with the most seconds as parts of bars, and one part of all others.

    Parameters
    ----------
    rows : polars.DataFrame
        ``name`` and ``columns``: the seconds in each trace.
    """
    total = pl.sum_horizontal(columns)
    ranked = rows.with_columns(pl.col(columns).fill_null(0.0)).sort(
        total, name, descending=[True, False]
    )
    parts = [
        Part(label(words, 40) or "(no name)", list(seconds), color)
        for (words, *seconds), color in zip(
            ranked.select(name, *columns).head(PART_LIMIT).iter_rows(),
            palette.RANKED,
            strict=False,
        )
    ]
    rest = ranked.slice(PART_LIMIT)
    if rest.height:
        seconds = list(rest.select(columns).sum().row(0))
        parts.append(Part(f"{rest.height} others", seconds, palette.OTHER))
    return parts


def _curve(
    panel: Panel, frame: pl.DataFrame, what: Quantity, column: str, yaxis: str
) -> Scatter:
    is_reference = column == what.reference
    words = what.reference_words if is_reference else what.words
    line = {"color": palette.RANKED[0], "width": 1.4}
    if is_reference:
        line = {"color": palette.REFERENCE, "width": 1.4, "shape": "hv", "dash": "dot"}
    return Scatter(
        mode="lines",
        x=frame.select(panel.axis.place("t").round(3)).to_series().to_list(),
        y=frame[column].to_list(),
        yaxis=yaxis,
        name=f"{label(panel.name, 44)}: {words}",
        showlegend=False,
        line=line,
        fill="none" if is_reference else "tozeroy",
        fillcolor=palette.AREA,
        hovertemplate=f"%{{y:,.4~g}} {what.unit} {words}<extra></extra>",
        meta=layout.columns(x=panel.axis.column, y=f"{column}_in_{what.unit}"),
    )
