"""Stacked horizontal bars of seconds, whose parts are named in a legend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plotly.graph_objects import Bar, Figure

from roast_analyze.figures import layout

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Part:
    """A part of each bar: its name, its seconds in each, and one color or that of each."""

    words: str
    seconds: Sequence[float]
    color: str | Sequence[str]
    pattern: str = ""
    #: Name of the seconds in downloads.
    column: str = "seconds"


def stacked(
    names: Sequence[str],
    parts: Sequence[Part],
    title: str,
    height_px: int,
    *,
    column: str,
    place: str = "rank",
    attempts: Sequence[int] = (),
) -> Figure:
    """Draw a bar for each name, the first on top.

    ``title`` is that of the axis of seconds. In downloads, ``column`` contains the names and
    ``place`` their numbers from 0 on. The tooltip contains the number of ``attempts`` of a bar.
    """
    columns = {column: names, **({"task_runs": attempts} if attempts else {})}
    in_attempts = " in %{customdata[1]:,} attempts" if attempts else ""
    bars = [
        Bar(
            orientation="h",
            x=[round(seconds, 6) for seconds in part.seconds],
            y=list(range(len(names))),
            name=part.words,
            marker=layout.hatched(part.color, part.pattern),
            customdata=list(zip(*columns.values(), strict=True)),
            hovertemplate=f"<b>%{{customdata[0]}}</b><br>%{{x:,.4~g}} s {part.words}"
            f"{in_attempts}<extra></extra>",
            meta=layout.columns(x=part.column, y=place, customdata=list(columns)),
        )
        for part in parts
    ]
    figure = layout.empty_figure(
        height_px,
        barmode="stack",
        legend_traceorder="normal",
        bargap=0.3,
        xaxis=layout.axis(title, rangemode="tozero"),
        yaxis=layout.names_axis(names),
    )
    return figure.add_traces(bars)
