"""Data that moved between workers: a map of who sent to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plotly.graph_objects import Figure, Heatmap

from roast_analyze.figures import layout, palette
from roast_analyze.figures.load import row_names

if TYPE_CHECKING:
    import polars as pl

#: Height of a row of the map, of all rows at least, and of all that is around them.
_ROW_PX: Final = 16
_LEAST_PX: Final = 110
_AROUND_PX: Final = 130
#: Units: their size, from which amount on they are used, and their name.
_BYTES: Final = (
    (1024.0**3, 1024.0**3, "GiB"),
    (1024.0**2, 1024.0**2, "MiB"),
    (1024.0, 1024.0, "KiB"),
    (1.0, 0.0, "B"),
)
_SECONDS: Final = ((1.0, 1.0, "s"), (1e-3, 0.0, "ms"))
#: Up to how many columns have a name below them: more would stand on their heads.
_NAMED_COLUMNS: Final = 8


def movement(workers: pl.DataFrame, cells: pl.DataFrame, *, in_bytes: bool) -> Figure:
    """Draw a row for each worker that sent and a column for each that received.

    Parameters
    ----------
    workers : polars.DataFrame
        Rows of the map: row, worker, name, and workers, how many share the row.
    cells : polars.DataFrame
        from_row, to_row, transfers, bytes, seconds.
    in_bytes : bool
        Whether colours stand for bytes; else for the seconds that transfers took.
    """
    names = row_names(workers)
    rows = list(names)
    column = "bytes" if in_bytes else "seconds"
    values = {
        (sender, receiver): value
        for sender, receiver, value in cells.select("from_row", "to_row", column).iter_rows()
    }
    most = max(values.values(), default=0)
    units = _BYTES if in_bytes else _SECONDS
    divisor, unit = next((size, unit) for size, least, unit in units if most >= least)
    figure = _empty(names)
    figure.add_trace(
        Heatmap(
            z=[
                [_scaled(values.get((sender, receiver)), divisor) for receiver in rows]
                for sender in rows
            ],
            x=rows,
            y=rows,
            zmin=0,
            zmax=most / divisor or 1,
            colorscale=[[0, "rgba(0, 114, 178, 0.08)"], [1, palette.RANKED[0]]],
            colorbar={
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "y": 1,
                "yanchor": "bottom",
                "len": 0.25,
                "thickness": 8,
                "tickmode": "array",
                "tickvals": [0, most / divisor],
                "ticktext": ["0", f"{most / divisor:.3g} {unit}"],
                "outlinewidth": 0,
            },
            hoverongaps=False,
            xgap=1,
            ygap=1,
            name="moved",
            hovertemplate=f"%{{z:,.4~g}} {unit} from %{{y}} to %{{x}}<extra></extra>",
            meta=layout.columns(x="destination", y="source", z=f"{column}_in_{unit}"),
        )
    )
    return figure


def _scaled(value: float | None, divisor: float) -> float | None:
    return None if value is None else float(f"{value / divisor:.3g}")


def _empty(names: dict[int, str]) -> Figure:
    ticks = {"tickmode": "array", "tickvals": list(names), "ticktext": list(names.values())}
    named = len(names) <= _NAMED_COLUMNS
    figure = layout.empty_figure(
        _AROUND_PX + max(_ROW_PX * len(names), _LEAST_PX),
        xaxis=layout.axis(
            "received by" if named else "received by, in the same order",
            # A few columns as wide as the page would look like bars.
            domain=[0, min(1, len(names) / _NAMED_COLUMNS)],
            showticklabels=named,
            showgrid=False,
            **ticks,
        ),
        yaxis=layout.axis("sent by", autorange="reversed", showgrid=False, **ticks),
    )
    if not named:
        # Without names between it and the map plotly would write the title onto the map.
        figure.update_layout(xaxis_title_standoff=28, margin_b=48)
    return figure
