"""Tables of the page: frames in, rows of cells out.

All values of a column have one unit, which its largest value determines and its heading
shows. A numeric cell contains the text and the raw value in the unit of the view: the page
sorts by the raw values, and downloads contain them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from roast_analyze.report import quantities
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from roast_analyze.report.listing import Listing

Kind = Literal[
    "text",
    "count",
    "seconds",
    "difference",
    "bytes",
    "rate",
    "byte_rate",
    "share",
    "ratio",
    "since",
    "outcome",
    "trouble",
]

#: Most characters of a cell.
CELL_LIMIT: Final = 240
#: Outcomes that are not shown as failures.
_GOOD: Final = frozenset({"memory", "complete"})


@dataclass(frozen=True)
class Field:
    """A column to show: its name in the frame, its heading, and the kind of its values."""

    name: str
    title: str
    kind: Kind = "text"
    #: Whether to omit the column when every value is zero or missing.
    optional: bool = False
    #: Description, if the view has none.
    help: str = ""
    #: Columns of one group share a unit.
    group: str = ""
    #: Column of ratios that are shown in small print beside the values.
    times: str = ""


@dataclass(frozen=True)
class Column:
    """Heading of a column.

    Parameters
    ----------
    name : str
        Name in the view and in downloads.
    title, unit : str
    help : str
        Description of the column.
    numeric : bool
        Whether the cells contain numbers.
    """

    name: str
    title: str
    unit: str
    help: str
    numeric: bool


@dataclass(frozen=True)
class Sparkline:
    """A curve in a cell: the ``d`` of its SVG path, and a description for screen readers."""

    path: str
    description: str


@dataclass(frozen=True)
class Cell:
    """A cell.

    Parameters
    ----------
    text : str
    value : int, float or None
        Raw number.
    tone : str
        Empty, ``"good"`` or ``"bad"``.
    more : str
        Longer text that the user can expand.
    sparkline : Sparkline, optional
        Curve before the text.
    beside : str or None
        Small print after the text; empty if only other cells of the column have any.
    """

    text: str
    value: float | None = None
    tone: str = ""
    more: str = ""
    sparkline: Sparkline | None = None
    beside: str | None = None


@dataclass(frozen=True)
class Table:
    """A table of the page.

    Parameters
    ----------
    name : str
        Identifier within the page, and name of a download.
    title : str
    columns : tuple of Column
    rows : tuple of tuple of Cell
        Cells in the order of the columns.
    note : str
        Omitted rows, if any.
    query, command : str
        The SQL and the command that return the same rows.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str
    query: str
    command: str


def build(
    name: str,
    title: str,
    listing: Listing,
    shown: tuple[Field, ...],
    *,
    comments: Mapping[str, str],
    command: str,
    start_t: float = 0.0,
    expandable: tuple[str, str] | None = None,
    chosen: str = "",
    sparklines: Mapping[str, Sequence[Sparkline | None]] | None = None,
) -> Table:
    """Build the table of a listing.

    Parameters
    ----------
    name, title : str
    listing : Listing
    shown : tuple of Field
        Columns in order. A column that is null in every row is omitted, except for the
        first one.
    comments : mapping
        Column to its description.
    command : str
        Command that prints all rows; empty if no view has them.
    start_t : float
        Zero of times, seconds since the epoch.
    expandable : tuple of str, optional
        A shown column, and the column of the longer texts of its cells.
    chosen : str
        Which rows are shown, if there are more.
    sparklines : mapping, optional
        Shown column to the sparklines of its cells, row by row.
    """
    rows = listing.rows
    kept = [
        field
        for field in shown
        if field is shown[0]
        or (
            rows[field.name].is_not_null().any()
            and (not field.optional or (rows[field.name].fill_null(0) != 0).any())
        )
    ]
    columns, cells = [], {}
    for field in kept:
        unit, write = _format(_largest(rows, field, kept), field.kind, start_t)
        numeric = field.kind not in ("text", "outcome")
        help_text = field.help or comments.get(field.name, "")
        columns.append(Column(field.name, field.title, unit, help_text, numeric))
        cells[field.name] = [write(value) for value in rows[field.name].to_list()]
        if field.times:
            cells[field.name] = [
                replace(cell, beside="" if ratio is None else quantities.times(ratio))
                for cell, ratio in zip(cells[field.name], rows[field.times], strict=True)
            ]
    if expandable:
        column, texts = expandable
        column = column if column in cells else kept[0].name
        cells[column] = [
            replace(cell, more=visible(text)) if text else cell
            for cell, text in zip(cells[column], rows[texts].to_list(), strict=True)
        ]
    for column in cells.keys() & (sparklines or {}).keys():
        curves = (sparklines or {})[column]
        cells[column] = [
            replace(cell, sparkline=curve)
            for cell, curve in zip(cells[column], curves, strict=True)
        ]
    note = ""
    if listing.total > rows.height:
        all_rows = command or "the query, without its limit"
        note = f"{rows.height:,} of {listing.total:,} rows: {chosen}. All rows: {all_rows}"
    return Table(
        name=name,
        title=title,
        columns=tuple(columns),
        rows=tuple(zip(*cells.values(), strict=True)),
        note=note,
        query=listing.query,
        command=command,
    )


def _largest(rows: pl.DataFrame, field: Field, shown: list[Field]) -> float:
    """Return the largest finite value of a column and of those that share its unit."""
    if field.kind in ("text", "outcome"):
        return 0.0
    group = [f.name for f in shown if f is field or (f.group and f.group == field.group)]
    values = (abs(value) for name in group for value in rows[name].drop_nulls())
    return float(max((value for value in values if math.isfinite(value)), default=0.0))


def _format(largest: float, kind: Kind, start_t: float) -> tuple[str, Callable[[Any], Cell]]:
    """Return the unit of a column and the function that writes its cells."""
    if kind == "text":
        return "", _text
    if kind == "outcome":
        return "", _outcome
    if kind == "since":
        return "s", lambda t: Cell("") if t is None else Cell(f"{t - start_t:,.3f}", t)
    if kind == "share":
        return "%", partial(_number, divisor=0.01, decimals=0)
    if kind in ("count", "trouble"):
        tone = "bad" if kind == "trouble" else ""
        return "", partial(_number, divisor=1, decimals=0, tone=tone)
    if kind in ("rate", "ratio"):
        unit = "1/s" if kind == "rate" else ""
        return unit, partial(_number, divisor=1, decimals=_decimals(largest))
    if kind in ("seconds", "difference"):
        unit, divisor = "s", 1.0
        if 0 < largest < 0.1:
            unit, divisor = ("ms", 1e-3) if largest >= 1e-4 else ("µs", 1e-6)
    else:
        unit, divisor = quantities.byte_unit(largest)
    decimals = 0 if unit == "B" else _decimals(largest / divisor)
    unit += "/s" if kind == "byte_rate" else ""
    if kind == "difference":
        return unit, partial(_difference, divisor=divisor, decimals=decimals)
    return unit, partial(_number, divisor=divisor, decimals=decimals)


def _text(value: Any) -> Cell:
    return Cell("" if value is None else shortened(visible(str(value)), CELL_LIMIT))


def _outcome(value: Any) -> Cell:
    text = _text(value).text
    return Cell(text, tone="good" if value in _GOOD else "bad" if text else "")


def _number(value: float | None, divisor: float, decimals: int, tone: str = "") -> Cell:
    if value is None:
        return Cell("")
    if not math.isfinite(value):
        return Cell(quantities.UNKNOWN)
    scaled = value / divisor
    least = 10.0**-decimals
    text = f"{scaled:,.{decimals}f}"
    if 0 < abs(scaled) < least / 2:
        # Rounded to 0, a small value would look like none.
        text = f"<{least:.{decimals}f}" if scaled > 0 else f">-{least:.{decimals}f}"
    return Cell(text, value, tone if value else "")


def _difference(value: float | None, divisor: float, decimals: int) -> Cell:
    if value is None or not math.isfinite(value):
        return _number(value, divisor, decimals)
    amount = f"{abs(value) / divisor:,.{decimals}f}"
    sign = "−" if value < 0 else "+"
    # A difference that is rounded to 0 has no sign.
    return Cell(f"{sign if float(amount.replace(',', '')) else ''}{amount}", value)


def _decimals(largest: float) -> int:
    """Return the number of decimals with which the largest value has three or four digits."""
    # A sum of floats can be slightly below a round number.
    rounded = float(f"{largest:.9g}")
    return next((d for d, bound in ((3, 1), (2, 100), (1, 1000)) if rounded < bound), 0)
