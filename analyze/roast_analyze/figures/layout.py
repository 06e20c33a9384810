"""Layout shared by the figures: an empty figure, and a time axis relative to the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from plotly.graph_objects import Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Units of the time axis: longest span in seconds, name, and length in seconds.
_UNITS: Final = ((600.0, "s", 1.0), (6 * 3600.0, "min", 60.0), (float("inf"), "h", 3600.0))


@dataclass(frozen=True)
class TimeAxis:
    """Time relative to the start of a recording.

    Parameters
    ----------
    start_t : float
        Zero of the axis, seconds since the epoch.
    stop_t : float
        End of the recording, seconds since the epoch.
    """

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

    def place(self, t: str | pl.Expr) -> pl.Expr:
        """Convert times in seconds since the epoch to positions, rounded to microseconds."""
        column = pl.col(t) if isinstance(t, str) else t
        return ((column - self.start_t) / self.unit_seconds).round(6)


def empty_figure(height_px: int, **layout: Any) -> Figure:
    """Return an empty figure of a given height, without plotly's template."""
    base: dict[str, Any] = {
        "template": None,
        "height": height_px,
        # Plotly's buttons need space at the top, or they cover the end of a long legend.
        "margin": {"l": 8, "r": 12, "t": 48, "b": 8},
        "hovermode": "closest",
        "showlegend": True,
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.0,
            "yanchor": "bottom",
            "itemsizing": "constant",
        },
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "dragmode": "zoom",
    }
    return Figure(layout={**base, **layout})


def one_or_two_panels(
    time: TimeAxis, heights_px: tuple[int, int], above: str, below: str = "", **layout: Any
) -> Figure:
    """Return an empty figure over time with a panel, or two with ``y2`` below ``y``.

    Parameters
    ----------
    time : TimeAxis
    heights_px : tuple of int
        Height with one panel and with two.
    above, below : str
        Titles of the vertical axes; without ``below`` there is one panel.
    """
    value = {"rangemode": "tozero", "nticks": 5}
    figure = empty_figure(
        heights_px[bool(below)],
        xaxis=axis(time.title, range=time.range, anchor="y2" if below else "y"),
        yaxis=axis(above, domain=[0.58, 1] if below else [0, 1], **value),
        **layout,
    )
    if below:
        figure.update_layout(yaxis2=axis(below, domain=[0, 0.42], anchor="x", **value))
    return figure


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
