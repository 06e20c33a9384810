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
    "change",
    "ratio",
    "since",
    "outcome",
    "trouble",
]

#: Most characters of a cell.
CELL_LIMIT: Final = 240
#: Most columns that a table shows with its details.
COLUMN_LIMIT: Final = 8
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
    #: Whether a table of many columns shows the column only on demand.
    detail: bool = False
    #: Description, if the view has none.
    help: str = ""
    #: Columns of one group share a unit.
    group: str = ""
    #: Column of ratios that are shown in small print beside the values.
    times: str = ""
    #: Column of the addresses that the cells link to; null for none.
    link: str = ""


@dataclass(frozen=True)
class Column:
    """Heading of a column; its name is that of the view and of downloads."""

    name: str
    title: str
    unit: str
    #: Description of the column.
    help: str
    #: Whether the cells contain numbers.
    numeric: bool
    #: Whether the column is shown only on demand.
    detail: bool = False


@dataclass(frozen=True)
class Sparkline:
    """A curve in a cell: the ``d`` of its SVG path, and a description for screen readers."""

    path: str
    description: str


@dataclass(frozen=True)
class Cell:
    """A cell: its text, and the raw number if it has one."""

    text: str
    value: float | None = None
    #: Empty, ``"good"`` or ``"bad"``.
    tone: str = ""
    #: Longer text that the user can expand.
    more: str = ""
    #: Curve before the text.
    sparkline: Sparkline | None = None
    #: Small print after the text; empty if only other cells of the column have any.
    beside: str | None = None
    #: Address that the text links to.
    link: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the page."""

    #: Identifier within the page, and name of a download.
    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    #: Omitted rows, if any.
    note: str
    #: The SQL and the command that return the same rows.
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
        Columns in order. All but the first are omitted if they are null in every row.
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
        Column to the sparklines of its cells, row by row.
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
        detail = field.detail and len(kept) > COLUMN_LIMIT
        columns.append(Column(field.name, field.title, unit, help_text, numeric, detail))
        cells[field.name] = [write(value) for value in rows[field.name].to_list()]
        if field.times:
            cells[field.name] = [
                replace(cell, beside="" if ratio is None else quantities.times(ratio))
                for cell, ratio in zip(cells[field.name], rows[field.times], strict=True)
            ]
        if field.link:
            cells[field.name] = [
                replace(cell, link=address or "")
                for cell, address in zip(cells[field.name], rows[field.link], strict=True)
            ]
        if sparklines and field.name in sparklines:
            cells[field.name] = [
                replace(cell, sparkline=curve)
                for cell, curve in zip(cells[field.name], sparklines[field.name], strict=True)
            ]
    if expandable:
        column, texts = expandable
        column = column if column in cells else kept[0].name
        cells[column] = [
            replace(cell, more=visible(text)) if text else cell
            for cell, text in zip(cells[column], rows[texts].to_list(), strict=True)
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
    unit, divisor, tone = "", 1.0, ""
    match kind:
        case "share" | "change":
            unit, divisor = "%", 0.01
        case "rate":
            unit = "1/s"
        case "trouble":
            tone = "bad"
        case "seconds" | "difference":
            unit = "s"
            if 0 < largest < 0.1:
                unit, divisor = ("ms", 1e-3) if largest >= 1e-4 else ("µs", 1e-6)
        case "bytes" | "byte_rate":
            unit, divisor = quantities.byte_unit(largest)
    # With so many decimals the largest value has three or four digits. A sum of floats can be
    # slightly below a round number.
    rounded = float(f"{largest / divisor:.9g}")
    decimals = next((d for d, bound in ((3, 1), (2, 100), (1, 1000)) if rounded < bound), 0)
    if kind in ("share", "change", "count", "trouble") or unit == "B":
        decimals = 0
    if kind in ("difference", "change"):
        return unit, partial(_difference, divisor=divisor, decimals=decimals)
    if kind == "byte_rate":
        unit += "/s"
    return unit, partial(_number, divisor=divisor, decimals=decimals, tone=tone)


def _text(value: Any) -> Cell:
    return Cell("" if value is None else shortened(visible(str(value)), CELL_LIMIT))


def _outcome(value: Any) -> Cell:
    cell = _text(value)
    return replace(cell, tone="good" if value in _GOOD else "bad" if cell.text else "")


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
    # A difference that is rounded to 0 has no sign.
    sign = "" if not amount.strip("0.,") else "−" if value < 0 else "+"
    return Cell(f"{sign}{amount}", value)
