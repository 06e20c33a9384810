"""Tables of the page: frames in, rows of cells out.

All values of a column have one unit, which its largest value determines and its heading
shows. A numeric cell contains the text and the raw value in the unit of the view: the page
sorts by the raw values, and downloads contain them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from roast_analyze.open.views import view_comments
from roast_analyze.report import quantities as q
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

#: Maximum number of characters of a cell.
CELL_LIMIT: Final = 240
#: Number of characters at the end of a long name that are always visible.
TAIL_CHARACTERS: Final = 24
#: Maximum number of columns that a table shows with its details.
COLUMN_LIMIT: Final = 8
#: Outcomes that are not shown as failures.
_GOOD: Final = frozenset({"memory", "complete"})


@dataclass(frozen=True)
class Field:
    """A column: its name in the frame and in downloads, its heading, the kind of its values."""

    name: str
    title: str
    kind: Kind = "text"
    #: In the heading; that of a table follows from its largest value.
    unit: str = ""
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

    @property
    def numeric(self) -> bool:
        """Whether the cells contain numbers."""
        return self.kind not in ("text", "outcome")


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

    @property
    def ends(self) -> tuple[str, str]:
        """The text in two parts, between which a narrow column cuts it off.

        Keys, file names and functions differ at their ends. The second part is empty if the
        text is short, has several words, or lacks its end already.
        """
        is_name = self.text.count(" ") <= 1 and not self.text.endswith("…")
        if len(self.text) < 2 * TAIL_CHARACTERS or not is_name:
            return self.text, ""
        return self.text[:-TAIL_CHARACTERS], self.text[-TAIL_CHARACTERS:]


@dataclass(frozen=True)
class Table:
    """A table of the page."""

    #: Identifier within the page, and name of a download.
    name: str
    title: str
    columns: tuple[Field, ...]
    rows: tuple[tuple[Cell, ...], ...]
    #: Omitted rows, if any.
    note: str
    #: The SQL and the command that return the same rows.
    query: str
    command: str


#: Name, title, rows, columns, and which rows are shown if there are more (default: empty).
Wanted = tuple[str, str, "Listing", "Sequence[Field]", str]


class Source:
    """The source of the tables of a page: a trace, several traces, or a store."""

    #: Which rows a table shows, if there are more.
    chosen: ClassVar[str]

    @property
    def start_t(self) -> float:
        """Origin of times, in seconds since the epoch."""
        return 0.0

    @property
    def worker_names(self) -> Mapping[str, str]:
        """Names by address that the column ``worker`` shows, unless a table has both."""
        return MappingProxyType({})

    def command(self, listing: Listing) -> str:
        """Return the command that prints the rows of a listing in a terminal."""
        return self.view_command(listing.view)

    def view_command(self, view: str) -> str:
        """Return the command that prints a view in a terminal."""
        raise NotImplementedError

    def table(
        self,
        name: str,
        title: str,
        listing: Listing,
        shown: Sequence[Field],
        *,
        chosen: str = "",
        has_view: bool = True,
        expandable: tuple[str, str] = ("", ""),
        sparklines: Mapping[str, Sequence[Sparkline | None]] = MappingProxyType({}),
    ) -> Table:
        """Return the table of a listing.

        Parameters
        ----------
        name, title : str
        listing : Listing
        shown : sequence of Field
            Columns in order. All but the first are omitted if they are null in every row.
        chosen : str, optional
            Which rows are shown, if there are more.
        has_view : bool
            Whether a view has these rows; else only the query of the listing has.
        expandable : tuple of str, optional
            A column, and the column of the longer texts of its cells; they are in the first
            column if that one is omitted.
        sparklines : mapping, optional
            Column to the sparklines of its cells, row by row.
        """
        rows, comments = listing.rows, view_comments().get(listing.view, {})
        kept = [
            field
            for field in shown
            if field is shown[0]
            or (
                rows[field.name].is_not_null().any()
                and (not field.optional or (rows[field.name].fill_null(0) != 0).any())
            )
        ]
        expanded, texts = expandable
        if all(field.name != expanded for field in kept):
            expanded = kept[0].name
        columns, cells = [], []
        for field in kept:
            unit, write = _format(_largest(rows, field, kept), field.kind, self.start_t)
            about = field.help or comments.get(field.name, "")
            detail = field.detail and len(kept) > COLUMN_LIMIT
            columns.append(replace(field, unit=unit, help=about, detail=detail))
            own = [write(value) for value in rows[field.name].to_list()]
            if field.name == "worker" and "name" not in listing.rows.columns:
                names = [self.worker_names.get(address) for address in rows["worker"]]
                own = [
                    Cell(name) if name else cell for name, cell in zip(names, own, strict=True)
                ]
            if field.times:
                ratios = rows[field.times].to_list()
                beside = ["" if ratio is None else q.times(ratio) for ratio in ratios]
                own = _with(own, "beside", beside)
            if field.link:
                own = _with(own, "link", rows[field.link].fill_null("").to_list())
            if field.name in sparklines:
                own = _with(own, "sparkline", sparklines[field.name])
            if texts and field.name == expanded:
                own = _with(own, "more", [visible(text or "") for text in rows[texts]])
            cells.append(own)
        command = self.command(listing) if has_view else ""
        note = ""
        if listing.total > rows.height:
            note = (
                f"{rows.height:,} of {listing.total:,} rows: {chosen or self.chosen}. "
                f"All rows: {command or 'the query, without its limit'}"
            )
        return Table(
            name, title, tuple(columns), tuple(zip(*cells, strict=True)), note, listing.query,
            command,
        )  # fmt: skip

    def tables(self, *wanted: Wanted, has_view: bool = True) -> list[Table]:
        """Return the tables that have rows: see :meth:`table`."""
        return [
            self.table(name, title, listing, shown, chosen=chosen, has_view=has_view)
            for name, title, listing, shown, chosen in wanted
            if listing.total
        ]


def _with(cells: list[Cell], name: str, values: Sequence[Any]) -> list[Cell]:
    return [replace(cell, **{name: v}) for cell, v in zip(cells, values, strict=True)]


def _largest(rows: pl.DataFrame, field: Field, shown: list[Field]) -> float:
    """Return the largest finite value of a column and of those that share its unit."""
    if not field.numeric:
        return 0.0
    group = [f.name for f in shown if f is field or (f.group and f.group == field.group)]
    values = (abs(value) for name in group for value in rows[name].drop_nulls())
    return float(max((value for value in values if math.isfinite(value)), default=0.0))


def _format(largest: float, kind: Kind, start_t: float) -> tuple[str, Callable[[Any], Cell]]:
    """Return the unit of a column and the function that writes its cells."""
    if kind in ("text", "outcome"):
        return "", partial(_text, is_outcome=kind == "outcome")
    if kind == "since":
        return "s", lambda t: Cell("") if t is None else Cell(f"{t - start_t:,.3f}", t)
    unit, divisor = "", 1.0
    match kind:
        case "share" | "change":
            unit, divisor = "%", 0.01
        case "rate":
            unit = "1/s"
        case "seconds" | "difference":
            unit = "s"
            # In seconds, short times would differ only in the last decimals.
            if 0 < largest < 0.1:
                unit, divisor = ("ms", 1e-3) if largest >= 1e-4 else ("µs", 1e-6)
        case "bytes" | "byte_rate":
            unit, divisor = q.byte_unit(largest)
    # With so many decimals the largest value has three or four digits. A sum of floats can be
    # slightly below a round number.
    rounded = float(f"{largest / divisor:.9g}")
    decimals = next((d for d, bound in ((3, 1), (2, 100), (1, 1000)) if rounded < bound), 0)
    if kind in ("share", "change", "count", "trouble") or unit == "B":
        decimals = 0
    return unit + "/s" * (kind == "byte_rate"), partial(
        _number,
        divisor=divisor,
        decimals=decimals,
        tone="bad" if kind == "trouble" else "",
        has_sign=kind in ("difference", "change"),
    )


def _text(value: Any, *, is_outcome: bool) -> Cell:
    text = "" if value is None else shortened(visible(str(value)), CELL_LIMIT)
    tone = "good" if value in _GOOD else "bad" if text else ""
    return Cell(text, tone=tone if is_outcome else "")


def _number(
    value: float | None, divisor: float, decimals: int, tone: str, *, has_sign: bool
) -> Cell:
    if value is None:
        return Cell("")
    if not math.isfinite(value):
        return Cell(q.UNKNOWN)
    scaled, least = value / divisor, 10.0**-decimals
    text = f"{scaled:,.{decimals}f}"
    if has_sign:
        amount = text.removeprefix("-")
        # A difference that is rounded to 0 has no sign.
        sign = "" if not amount.strip("0.,") else "−" if value < 0 else "+"
        text = sign + amount
    elif 0 < abs(scaled) < least / 2:
        # Rounded to 0, a small value would look like none.
        text = f"<{least:.{decimals}f}" if scaled > 0 else f">-{least:.{decimals}f}"
    return Cell(text, value, tone if value else "")
