"""Parts that figures share: an empty figure, axes, and curves over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from plotly.graph_objects import Figure, Scatter

from roast_analyze.figures import palette

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Heights of a row of a figure by name, and of its panel, below the name.
_ROW_PX: Final = 92
_PANEL_PX: Final = 66

#: Units of the time axis: longest span in seconds, name, and length in seconds.
_UNITS: Final = ((600.0, "s", 1.0), (6 * 3600.0, "min", 60.0), (float("inf"), "h", 3600.0))


@dataclass(frozen=True)
class TimeAxis:
    """Time relative to the start of a recording; both ends are seconds since the epoch."""

    start_t: float
    stop_t: float

    @property
    def span_seconds(self) -> float:
        """Length of the axis; at least a millisecond, so that it can be drawn."""
        return max(self.stop_t - self.start_t, 1e-3)

    @property
    def unit(self) -> str:
        """Unit of the axis: s, min or h."""
        return next(unit for bound, unit, _ in _UNITS if self.span_seconds <= bound)

    @property
    def unit_seconds(self) -> float:
        """Length of the unit in seconds."""
        return next(length for bound, _, length in _UNITS if self.span_seconds <= bound)

    @property
    def title(self) -> str:
        """Title of the axis."""
        return f"time since the start ({self.unit})"

    @property
    def column(self) -> str:
        """Name of a column of positions on the axis, unit included."""
        return f"since_start_{self.unit}"

    @property
    def range(self) -> list[float]:
        """Both ends with a small margin, in the unit of the axis."""
        span = self.span_seconds / self.unit_seconds
        return [-0.01 * span, 1.01 * span]

    def bucket(self, count: int) -> pl.Expr:
        """Return the number of the bucket of the column ``t``, of ``count`` equal buckets."""
        return ((pl.col("t") - self.start_t) / (self.span_seconds / count)).floor()

    def place(self, t: str) -> pl.Expr:
        """Convert times in seconds since the epoch to positions, rounded to microseconds."""
        # Rounded, because more digits would only enlarge the page.
        return ((pl.col(t) - self.start_t) / self.unit_seconds).round(6)

    def places(self, frame: pl.DataFrame, t: str = "t", decimals: int = 3) -> list[float]:
        """Return the positions of a column of times, by default precise enough for a curve."""
        return frame.select(self.place(t).round(decimals)).to_series().to_list()


def empty_figure(height_px: int, **layout: Any) -> Figure:
    """Return an empty figure of a given height, without plotly's template."""
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.0, "yanchor": "bottom"}
    base: dict[str, Any] = {
        "template": None,
        "height": height_px,
        # Plotly's buttons need space at the top, or they cover the end of a long legend.
        "margin": {"l": 8, "r": 12, "t": 48, "b": 8},
        "hovermode": "closest",
        "showlegend": True,
        "legend": {**legend, "itemsizing": "constant"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "dragmode": "zoom",
    }
    return Figure(layout={**base, **layout})


def stacked_threads(time: TimeAxis) -> Figure:
    """Return an empty figure for bars of numbers of threads, stacked, over time."""
    return empty_figure(
        360,
        barmode="stack",
        bargap=0,
        legend_traceorder="normal",
        xaxis=axis(time.title, range=time.range),
        yaxis=axis("threads", rangemode="tozero"),
    )


def panels(
    time: TimeAxis, height_px: int, *titles: str, nticks: int = 5, **settings: Any
) -> Figure:
    """Return an empty figure over time with a panel for each title, y on top, y2 below it."""
    gap = {1: 0.0, 2: 0.16}.get(len(titles), 0.14)
    height = (1 - gap * (len(titles) - 1)) / len(titles)
    axes = {}
    for number, title in enumerate(titles, start=1):
        bottom = (len(titles) - number) * (height + gap)
        axes[f"yaxis{number if number > 1 else ''}"] = axis(
            title,
            domain=[round(bottom, 2), round(bottom + height, 2)],
            rangemode="tozero",
            nticks=nticks,
            anchor="x",
        )
    lowest = f"y{len(titles)}" if len(titles) > 1 else "y"
    times = axis(time.title, range=time.range, anchor=lowest)
    return empty_figure(height_px, xaxis=times, **axes, **settings)


def named_rows(
    names: Sequence[str], margin_px: int, xaxis: dict[str, Any]
) -> tuple[Figure, dict[str, list[float]]]:
    """Return an empty figure with a row for each name, the first on top.

    All rows share one x axis. Their y axes are not set: for each row, return the number that
    follows ``y`` and ``yaxis``, and the domain.
    """
    inside_px = _ROW_PX * len(names)
    figure = empty_figure(
        84 + inside_px,
        showlegend=False,
        margin={"l": 8, "r": 12, "t": margin_px, "b": 8},
        xaxis={**xaxis, "anchor": "free"},
    )
    domains = {}
    for row, name in enumerate(names, start=1):
        bottom = max(1 - row * _ROW_PX / inside_px, 0.0)
        top = bottom + _PANEL_PX / inside_px
        domains[str(row) if row > 1 else ""] = [bottom, top]
        figure.add_annotation(text=name, **title_place(top))
    return figure, domains


def title_place(y: float) -> dict[str, Any]:
    """Return the settings of an annotation at the left of a figure, above a height."""
    return {
        "xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": y,
        "yanchor": "bottom", "showarrow": False,
    }  # fmt: skip


def hatched(color: str | Sequence[str], pattern: str) -> dict[str, Any]:
    """Return the marker of bars with a pattern, which may be empty."""
    return {
        "color": color,
        "pattern": {"shape": pattern, "solidity": 0.35},
        # plotly's border is white, even in dark mode.
        "line": {"width": 0},
    }


def axis(title: str, **settings: Any) -> dict[str, Any]:
    """Return the settings of an axis with space for its labels."""
    base = {"title": {"text": title, "standoff": 8}, "automargin": True, "zeroline": False}
    return {**base, **settings}


def names_axis(names: Sequence[str]) -> dict[str, Any]:
    """Return the settings of an axis with a name for each bar or box, the first on top."""
    return axis(
        "",
        range=[len(names) - 0.5, -0.5],
        tickmode="array",
        tickvals=list(range(len(names))),
        ticktext=list(names),
        showgrid=False,
        fixedrange=True,
    )


def columns(**names: str | list[str]) -> dict[str, Any]:
    """Return metadata that names the columns of a trace, by attribute (x, y, customdata)."""
    return {"columns": names}


def curve(
    time: TimeAxis,
    frame: pl.DataFrame,
    column: str,
    words: str,
    *,
    unit: str = "",
    divisor: float = 1.0,
    **settings: Any,
) -> Scatter:
    """Return a curve of a column over ``t``, called ``words``; ``divisor`` is its unit."""
    return Scatter(
        mode="lines",
        x=time.places(frame),
        y=(frame[column].cast(pl.Float64) / divisor).round(3).to_list(),
        name=words,
        fillcolor=palette.AREA,
        hovertemplate=f"%{{y:,.4~g}} {f'{unit} ' if unit else ''}{words}<extra></extra>",
        meta=columns(x=time.column, y=f"{column}_in_{unit}" if unit else column),
    ).update(settings)
