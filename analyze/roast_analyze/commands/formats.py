"""Query results in every output format, and the options --format, --limit and -o.

``table`` is for the terminal: rows that are too wide for it are written with one column per
line. The other formats are for programs. A note about omitted rows goes to stderr. A terminal
gets visible symbols instead of control characters; pipes and files get the characters. In
``csv`` and ``markdown`` lists and structures are JSON; in ``json`` and ``jsonl`` NaN and
infinities are null.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from roast_analyze.commands.whole_numbers import whole_number
from roast_analyze.errors import NotWritable
from roast_analyze.output_paths import (
    NOT_IN_PARQUET,
    STDOUT,
    check_place,
    refuse_to_overwrite,
    replacing,
    text,
)
from roast_analyze.safe_text import one_line, visible

if TYPE_CHECKING:
    import polars as pl
    from duckdb import DuckDBPyRelation

    from roast_analyze.open.session import Session

#: Default limit of the rows of a table in the terminal.
TABLE_ROWS: Final = 1000

#: Format of a file without --format.
_BY_SUFFIX: Final = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".md": "markdown",
}

#: Rows that are fetched from DuckDB at a time.
_BATCH_ROWS: Final = 10_000

Row = tuple[Any, ...]


def add_format(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--format",
        choices=("table", "csv", "json", "jsonl", "markdown", "parquet"),
        help="output format (default: by the suffix of FILE, else table)",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=partial(whole_number, what="number of rows", hint="20, or 0 for all", least=0),
        help=f"write at most N rows, 0 for all (default: {TABLE_ROWS} for a table, else all)",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of stdout"
    )


def complete_options(options: argparse.Namespace, traces: Sequence[Path]) -> None:
    """Set the defaults of the options, and check that FILE can be written.

    An output of None means stdout, a limit of None all rows.
    """
    if options.output in STDOUT:
        options.output = None
    if options.output is not None:
        check_place(options.output)
        refuse_to_overwrite(traces, options.output)
    if options.format is None:
        suffix = options.output.suffix.lower() if options.output else ""
        options.format = _BY_SUFFIX.get(suffix, "table")
    if options.limit is None and options.format == "table":
        options.limit = TABLE_ROWS
    # 0 means all rows.
    options.limit = options.limit or None


def rows(relation: DuckDBPyRelation) -> list[dict[str, Any]]:
    """Return all rows of a relation as values that JSON can represent."""
    written = _writable_columns(relation)
    return [_plain_row(written.columns, row) for row in written.fetchall()]


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare --json."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON: rows of views, with the columns that `roast-analyze view` describes",
    )


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, ensure_ascii=False, indent=2), file=_stdout())


def write_result(
    trace: Session, relation: DuckDBPyRelation, options: argparse.Namespace, query: str = ""
) -> None:
    """Write a relation of a trace as :func:`write`; explain an error of its query."""
    import duckdb

    try:
        write(relation, options)
    except duckdb.Error as error:
        raise trace.explain(error, query) from None


def write_frame(frame: pl.DataFrame, options: argparse.Namespace) -> None:
    """Write a frame as :func:`write`."""
    import duckdb

    write(duckdb.from_arrow(frame.to_arrow()), options)


def write(relation: DuckDBPyRelation, options: argparse.Namespace) -> None:
    """Write the rows of a relation with completed options.

    Raises
    ------
    duckdb.Error
        If the query fails while it runs.
    NotWritable
        If the file cannot be written.
    """
    name, output, limit = options.format, options.output, options.limit
    relation = _writable_columns(relation, NOT_IN_PARQUET if name == "parquet" else ())
    if limit is not None:
        relation = relation.limit(limit + 1)  # one more, to detect that rows are omitted
    if name == "parquet":
        if output is None:
            raise NotWritable("parquet cannot be written to stdout: use -o FILE")
        frame = relation.pl()
        with replacing(output) as path:
            frame[:limit].write_parquet(path)
        is_cut = limit is not None and len(frame) > limit
    else:
        rows = relation.iter_rows(_BATCH_ROWS)
        # Run the query before the file is opened: a query that fails must not truncate it.
        first = next(rows, None)
        if first is not None:
            rows = itertools.chain([first], rows)
        wanted = itertools.islice(rows, limit)
        if output is None:
            _write_text(name, relation.columns, wanted, _stdout())
        else:
            with text(output) as file:
                _write_text(name, relation.columns, wanted, file)
        is_cut = limit is not None and next(rows, None) is not None
    if is_cut:
        print(f"only the first {limit} rows are shown; use --limit 0 for all", file=sys.stderr)


class _VisibleTerminal:
    """A terminal that is written visible symbols instead of control characters."""

    def __init__(self, terminal: IO[str]) -> None:
        self._terminal = terminal
        self.isatty = terminal.isatty

    def write(self, text: str) -> int:
        return self._terminal.write(visible(text))


def _stdout() -> Any:
    return _VisibleTerminal(sys.stdout) if sys.stdout.isatty() else sys.stdout


def _writable_columns(
    relation: DuckDBPyRelation, others: tuple[str, ...] = ()
) -> DuckDBPyRelation:
    """Make the names of columns unique, and convert times with a zone and others to text."""
    from roast_analyze.open.tables import quoted

    columns: dict[str, str] = {}
    for i, (name, type_) in enumerate(zip(relation.columns, relation.types, strict=True), 1):
        # JSON objects and Parquet files cannot have two columns of one name.
        names = itertools.chain([name], (f"{name}_{n}" for n in itertools.count(1)))
        unique = next(n for n in names if n.casefold() not in columns)
        # DuckDB returns these as Python objects only with the library pytz.
        is_zoned = str(type_) == "TIMESTAMP WITH TIME ZONE"
        cast = "::VARCHAR" if is_zoned or str(type_).startswith(others) else ""
        columns[unique.casefold()] = f"#{i}{cast} AS {quoted(unique)}"
    return relation.project(", ".join(columns.values()))


def _write_table(columns: list[str], rows: Iterator[Row], file: IO[str]) -> None:
    from roast_analyze.commands import terminal

    shown = list(rows)
    # All rows are needed for the widths of the columns.
    limit = terminal.CELL_LIMIT
    texts = [[one_line(_text(value), limit) for value in row] for row in shown]
    names = [one_line(column, limit) for column in columns]
    widths = [max([len(name), *(len(row[i]) for row in texts)]) for i, name in enumerate(names)]
    room = terminal.width() if file.isatty() else math.inf
    lines: list[str] = []
    if sum(widths) + 2 * len(widths) <= room:
        # Numbers, and only numbers, are aligned by their last digit.
        right = [
            all(isinstance(row[i], int | float) for row in shown) for i in range(len(names))
        ]
        for cells in [names, ["─" * width for width in widths], *texts]:
            aligned = zip(cells, widths, right, strict=True)
            padded = (c.rjust(n) if is_right else c.ljust(n) for c, n, is_right in aligned)
            lines.append("  ".join(padded))
    else:
        margin = max(map(len, names))
        for number, cells in enumerate(texts, start=1):
            lines.append(f"── row {number} " + "─" * 20)
            lines += (f"{n.ljust(margin)}  {c}" for n, c in zip(names, cells, strict=True))
    for line in lines:
        file.write(line.rstrip() + "\n")
    # Of an output that was closed, no rows were read.
    if not shown and not getattr(file, "is_discarded", False):
        print("(0 rows)", file=sys.stderr)


def _write_text(name: str, columns: list[str], rows: Iterator[Row], file: IO[str]) -> None:
    # Rows that no reader gets need not be computed.
    rows = itertools.takewhile(lambda _: not getattr(file, "is_discarded", False), rows)
    # Except in a table, rows are written as they come: they can be larger than the memory.
    objects = (json.dumps(_plain_row(columns, row), ensure_ascii=False) for row in rows)
    match name:
        case "table":
            _write_table(columns, rows, file)
        case "csv":
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([_text(value) for value in row] for row in rows)
        case "json":
            separator = "[\n"
            for text in objects:
                file.write(separator + text)
                separator = ",\n"
            file.write("[]\n" if separator == "[\n" else "\n]\n")
        case "jsonl":
            for text in objects:
                file.write(text + "\n")
        case "markdown":
            rule = "|" + " --- |" * len(columns) + "\n"
            for cells in itertools.chain([columns], rows):
                texts = (" ".join(visible(_text(cell)).split()) for cell in cells)
                escaped = (t.replace("\\", "\\\\").replace("|", "\\|") for t in texts)
                file.write(f"| {' | '.join(escaped)} |\n{rule}")
                rule = ""


def _text(value: Any) -> str:
    if value is None:
        return ""
    # CSV and Markdown have no structures.
    if isinstance(value, dict | list | tuple):
        return json.dumps(_plain(value), ensure_ascii=False)
    return str(_plain(value)) if isinstance(value, bytes) else str(value)


def _plain_row(columns: list[str], row: Row) -> dict[str, Any]:
    return dict(zip(columns, map(_plain, row), strict=True))


def _plain(value: Any) -> Any:
    """Return the nearest value that JSON can represent."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | Decimal):
        # JSON has neither NaN nor infinities.
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.hex() if isinstance(value, bytes) else str(value)
