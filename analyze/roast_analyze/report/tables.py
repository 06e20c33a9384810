"""Tables of the page: frames in, rows of cells out.

A column has one unit, chosen by its largest value and written in its heading, so that
numbers below each other compare at a glance. A cell carries what is shown and, for
numbers, the raw value in the unit of the view, by which the page sorts and which a
download contains.
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

    from roast_analyze.report.gathered.listing import Listing

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
#: Outcomes and the like that are no cause for worry.
_WELL: Final = frozenset({"memory", "whole"})


@dataclass(frozen=True)
class Field:
    """A column to show: its name in the frame, its heading, and how its values are written."""

    name: str
    title: str
    kind: Kind = "text"
    #: Leave the column out when every value is zero or missing.
    optional: bool = False
    #: What it means, if the view doesn't say.
    help: str = ""
    #: Columns of one group have one unit.
    group: str = ""
    #: Column of how many times as much as elsewhere a value is: it stands small beside it.
    times: str = ""


@dataclass(frozen=True)
class Column:
    """Heading of a column.

    Parameters
    ----------
    name : str
        Name in the view, which a download has as well.
    title, unit : str
    help : str
        What the view says that the column means.
    numeric : bool
        Whether cells carry numbers.
    """

    name: str
    title: str
    unit: str
    help: str
    numeric: bool


@dataclass(frozen=True)
class Picture:
    """A curve in a cell: the ``d`` of its path in an SVG, and what it says in words."""

    path: str
    spoken: str


@dataclass(frozen=True)
class Cell:
    """A cell.

    Parameters
    ----------
    text : str
        What is shown.
    value : int, float or None
        Raw number behind it.
    tone : str
        Empty, ``"good"`` or ``"bad"``.
    more : str
        Longer text that can be opened below it.
    picture : Picture, optional
        What stands before the text.
    beside : str or None
        What stands small beside it; empty if that is in other cells of the column.
    """

    text: str
    value: float | None = None
    tone: str = ""
    more: str = ""
    picture: Picture | None = None
    beside: str | None = None


@dataclass(frozen=True)
class Table:
    """A table of the page.

    Parameters
    ----------
    name : str
        Identity within the page, and name of a download.
    title : str
    columns : tuple of Column
    rows : tuple of tuple of Cell
        Cells in the order of the columns.
    note : str
        What is left out, if anything.
    query, command : str
        What gives the same rows, in SQL and in a terminal.
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
    more: tuple[str, str] | None = None,
    left_out: str = "",
    pictures: Mapping[str, Sequence[Picture | None]] | None = None,
) -> Table:
    """Make a table of a listing.

    Parameters
    ----------
    name, title : str
    listing : Listing
    shown : tuple of Field
        Columns in order. A column that is null in every row is left out, but for the
        first one.
    comments : mapping
        Column to what it means.
    command : str
        What shows all rows in a terminal; empty if no view has them.
    start_t : float
        From when times are counted, seconds since the epoch.
    more : tuple of str, optional
        A shown column, and the column whose text can be opened in its cells.
    left_out : str
        How the rows shown were chosen, if there are more.
    pictures : mapping, optional
        Shown column to the pictures of its cells, row by row.
    """
    rows = listing.rows
    kept = [f for i, f in enumerate(shown) if i == 0 or _tells(rows[f.name], f)]
    written = [_column(rows, field, kept, comments, start_t) for field in kept]
    if more:
        at = [field.name for field in kept].index(more[0]) if _has(kept, more[0]) else 0
        written[at] = (written[at][0], _openable(written[at][1], rows[more[1]].to_list()))
    for at, field in enumerate(kept):
        if drawn := (pictures or {}).get(field.name):
            written[at] = (written[at][0], _pictured(written[at][1], drawn))
    return Table(
        name=name,
        title=title,
        columns=tuple(column for column, _ in written),
        rows=tuple(zip(*(cells for _, cells in written), strict=True)),
        note=_note(listing, left_out, command),
        query=listing.query,
        command=command,
    )


def _tells(values: pl.Series, field: Field) -> bool:
    if values.null_count() == values.len():
        return False
    return not field.optional or bool((values.fill_null(0) != 0).any())


def _has(fields: list[Field], name: str) -> bool:
    return any(field.name == name for field in fields)


def _openable(cells: list[Cell], texts: list[str | None]) -> list[Cell]:
    return [
        replace(cell, more=visible(text)) if text else cell
        for cell, text in zip(cells, texts, strict=True)
    ]


def _pictured(cells: list[Cell], pictures: Sequence[Picture | None]) -> list[Cell]:
    return [
        replace(cell, picture=picture) for cell, picture in zip(cells, pictures, strict=True)
    ]


def _note(listing: Listing, left_out: str, command: str) -> str:
    if listing.total <= listing.rows.height:
        return ""
    way = command or "the query, without its limit"
    return f"{listing.rows.height:,} of {listing.total:,} rows: {left_out}. All of them: {way}"


def _column(
    rows: pl.DataFrame,
    field: Field,
    shown: list[Field],
    comments: Mapping[str, str],
    start_t: float,
) -> tuple[Column, list[Cell]]:
    numeric = field.kind not in ("text", "outcome")
    together = [f for f in shown if f is field or (f.group and f.group == field.group)]
    largest = max(_largest(rows[f.name]) for f in together) if numeric else 0.0
    unit, write = _writer(largest, field.kind, start_t)
    column = Column(field.name, field.title, unit, _help(field, comments), numeric)
    cells = [write(value) for value in rows[field.name].to_list()]
    if field.times:
        cells = _beside(cells, rows[field.times].to_list())
    return column, cells


def _help(field: Field, comments: Mapping[str, str]) -> str:
    return field.help or comments.get(field.name, "")


def _beside(cells: list[Cell], times: list[float | None]) -> list[Cell]:
    return [
        replace(cell, beside="" if ratio is None else quantities.times(ratio))
        for cell, ratio in zip(cells, times, strict=True)
    ]


def _writer(largest: float, kind: Kind, start_t: float) -> tuple[str, Callable[[Any], Cell]]:
    """Choose the unit of a column by its largest value, and how one of them is written."""
    if kind == "text":
        return "", _text
    if kind == "outcome":
        return "", _outcome
    if kind == "since":
        return "s", partial(_since, start_t=start_t)
    if kind == "share":
        return "%", partial(_number, divisor=0.01, decimals=0)
    if kind in ("count", "trouble"):
        tone = "bad" if kind == "trouble" else ""
        return "", partial(_number, divisor=1, decimals=0, tone=tone)
    if kind in ("rate", "ratio"):
        unit = "1/s" if kind == "rate" else ""
        return unit, partial(_number, divisor=1, decimals=_decimals(largest))
    if kind in ("seconds", "difference"):
        unit, divisor = _seconds_unit(largest)
    else:
        unit, divisor = quantities.byte_unit(largest)
    decimals = 0 if unit == "B" else _decimals(largest / divisor)
    unit += "/s" if kind == "byte_rate" else ""
    if kind == "difference":
        return unit, partial(_difference, divisor=divisor, decimals=decimals)
    return unit, partial(_number, divisor=divisor, decimals=decimals)


def _text(value: Any) -> Cell:
    if value is None:
        return Cell("")
    return Cell(shortened(visible(str(value)), CELL_LIMIT))


def _outcome(value: Any) -> Cell:
    text = _text(value).text
    return Cell(text, tone="good" if value in _WELL else "bad" if text else "")


def _since(value: float | None, start_t: float) -> Cell:
    return Cell("") if value is None else Cell(f"{value - start_t:,.3f}", value)


def _number(value: float | None, divisor: float, decimals: int, tone: str = "") -> Cell:
    if value is None:
        return Cell("")
    if not math.isfinite(value):
        return Cell(quantities.UNKNOWN)
    scaled = value / divisor
    least = 10.0**-decimals
    text = f"{scaled:,.{decimals}f}"
    if 0 < abs(scaled) < least / 2:
        # A little is not nothing, whichever way.
        text = f"<{least:.{decimals}f}" if scaled > 0 else f">-{least:.{decimals}f}"
    return Cell(text, value, tone if value else "")


def _difference(value: float | None, divisor: float, decimals: int) -> Cell:
    if value is None or not math.isfinite(value):
        return _number(value, divisor, decimals)
    amount = f"{abs(value) / divisor:,.{decimals}f}"
    sign = "−" if value < 0 else "+"
    # What is too little to be shown has no direction either.
    return Cell(f"{sign if float(amount.replace(',', '')) else ''}{amount}", value)


def _largest(values: pl.Series) -> float:
    finite = [abs(value) for value in values.drop_nulls() if math.isfinite(value)]
    return float(max(finite, default=0.0))


def _seconds_unit(largest: float) -> tuple[str, float]:
    if 0 < largest < 1e-4:
        return "µs", 1e-6
    return ("ms", 1e-3) if 0 < largest < 0.1 else ("s", 1.0)


def _decimals(largest: float) -> int:
    """Give the largest value of a column three to four digits."""
    # A sum can be a hair below what it is.
    rounded = float(f"{largest:.9g}")
    return next((d for d, bound in ((3, 1), (2, 100), (1, 1000)) if rounded < bound), 0)
