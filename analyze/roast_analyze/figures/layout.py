"""What the figures share: an empty figure, and a time axis that counts from the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import polars as pl
from plotly.graph_objects import Figure

#: Up to which span, in seconds, a unit is used; the last one has no bound.
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
        """What stands below the axis."""
        return f"time since the start ({self.unit})"

    @property
    def column(self) -> str:
        """Name of a column of places on the axis, unit included."""
        return f"since_start_{self.unit}"

    @property
    def range(self) -> list[float]:
        """Both ends with a little air, in the axis's unit."""
        span = self.span_seconds / self.unit_seconds
        return [-0.01 * span, 1.01 * span]

    def place(self, t: str | pl.Expr) -> pl.Expr:
        """Turn instants (seconds since the epoch) into places, to the microsecond."""
        column = pl.col(t) if isinstance(t, str) else t
        return ((column - self.start_t) / self.unit_seconds).round(6)


def empty_figure(height_px: int, **layout: Any) -> Figure:
    """Make a figure without plotly's template, of a given height."""
    base: dict[str, Any] = {
        "template": None,
        "height": height_px,
        # Room above for plotly's buttons, which would cover the end of a long legend.
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


def axis(title: str, **settings: Any) -> dict[str, Any]:
    """Describe an axis that finds room for its own labels."""
    base = {"title": {"text": title, "standoff": 8}, "automargin": True, "zeroline": False}
    return {**base, **settings}


def columns(**names: str | list[str]) -> dict[str, Any]:
    """Say which columns a trace draws: attribute (x, y, base, customdata) to name."""
    return {"columns": names}
