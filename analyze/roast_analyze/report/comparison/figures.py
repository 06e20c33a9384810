"""Figures of a comparison: a panel or a bar per trace, all on the same axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.figures import bars, layout, palette
from roast_analyze.figures.labels import label
from roast_analyze.figures.samples import bucketed
from roast_analyze.report.quantities import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plotly.graph_objects import Figure

    from roast_analyze.figures.layout import TimeAxis

#: Maximum number of parts of a bar; all others are one part.
PART_LIMIT: Final = 9

#: Heights: a bar, and everything around them.
_BAR_PX: Final = 30
_AROUND_PX: Final = 84

#: Styles of the quantity and of the reference line.
_STYLES: Final[tuple[dict[str, Any], ...]] = (
    {"line": {"color": palette.RANKED[0], "width": 1.4}, "fill": "tozeroy"},
    {"line": {"color": palette.REFERENCE, "width": 1.4, "shape": "hv", "dash": "dot"}},
)


def over_time(
    panels: Sequence[tuple[str, pl.DataFrame]],
    axis: TimeAxis,
    lines: Sequence[tuple[str, str, float]],
    unit: str,
    *,
    largest: bool = False,
) -> Figure:
    """Draw a quantity over time, one panel per trace.

    Parameters
    ----------
    panels : sequence of tuple
        Name of each trace, and ``t`` on the axis with the columns of the lines.
    axis : TimeAxis
    lines : sequence of tuple
        Column, its name in words and the unit in that of the column: of the quantity, and of
        the reference line above it, if there is one.
    unit : str
    largest : bool
        Whether a bucket shows its maximum; else its mean.
    """
    shorts = [label(name, 44) for name, _ in panels]
    names = []
    for short, (_, frame) in zip(shorts, panels, strict=True):
        is_empty = frame[lines[0][0]].null_count() == frame.height
        names.append(short + (" · nothing recorded" if is_empty else ""))
    figure, domains = layout.named_rows(names, 18, layout.axis(axis.title, range=axis.range))
    for short, number, (_, frame) in zip(shorts, domains, panels, strict=True):
        buckets = bucketed(frame, [], [column for column, *_ in lines], axis, largest=largest)
        for (column, words, divisor), style in zip(lines, _STYLES, strict=False):
            # A number of threads has no other unit.
            of = "" if words == "threads" else unit
            curve = layout.curve(axis, buckets, column, words, unit=of, divisor=divisor)
            figure.add_trace(
                curve.update(
                    name=f"{short}: {words}",
                    yaxis=f"y{number}",
                    # Else the page reserves room for it in a legend.
                    showlegend=False,
                    **style,
                )
            )
    drawn = (value for curve in figure.data for value in curve.y if value is not None)
    settings = {"range": [0, 1.05 * max(drawn, default=0.0) or 1], "nticks": 4, "anchor": "x"}
    return figure.update_layout(
        {
            f"yaxis{number}": layout.axis("", domain=domain, **settings)
            for number, domain in domains.items()
        }
    )


def stacked(names: Sequence[str], parts: Sequence[bars.Part], title: str) -> Figure:
    """Draw a bar of stacked parts per trace."""
    # A long legend must not shrink the bars.
    height_px = _AROUND_PX + 30 + 5 * len(parts) + _BAR_PX * max(len(names), 2)
    shown = [label(name, 28) for name in names]
    return bars.stacked(shown, parts, title, height_px, column="trace", place="row")


def largest_parts(rows: pl.DataFrame, name: str, columns: Sequence[str]) -> list[bars.Part]:
    """Return the rows with the most seconds as parts of bars, and one part of all others.

    ``columns`` contain the seconds in each trace.
    """
    ranked = rows.with_columns(pl.col(columns).fill_null(0.0)).sort(
        pl.sum_horizontal(columns), name, descending=[True, False]
    )
    shown = ranked.select(name, *columns).head(PART_LIMIT).iter_rows()
    parts = [
        bars.Part(label(words, 40) or "(no name)", seconds, color)
        for (words, *seconds), color in zip(shown, palette.RANKED, strict=False)
    ]
    rest = ranked.slice(PART_LIMIT)
    if rest.height:
        seconds = rest.select(columns).sum().row(0)
        parts.append(bars.Part(counted(rest.height, "other"), seconds, palette.OTHER))
    return parts
