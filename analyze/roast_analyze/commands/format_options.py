"""The options --format, --limit and -o of commands that write rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

#: Default limit of the rows of a table in the terminal.
TABLE_ROWS: Final = 1000

FORMATS: Final = ("table", "csv", "json", "jsonl", "parquet", "markdown")

_BY_SUFFIX: Final = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".md": "markdown",
}


def add_format(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="output format (default: by the suffix of FILE, else table)",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_row_count,
        help=f"write at most N rows, 0 for all (default: {TABLE_ROWS} for a table, else all)",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of stdout"
    )


def _row_count(text: str) -> int:
    if not text.isdecimal():
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"invalid number of rows {text!r}: use 20, or 0 for all")
    return int(text)


def check_output(options: argparse.Namespace, traces: Iterable[Path]) -> None:
    """Check, before the traces are read, that FILE is not one of them.

    Raises
    ------
    TraceError
        If FILE is a segment of a trace, or there is no trace.
    """
    if options.output is not None:
        from roast_analyze.commands.trace_args import without_stdin
        from roast_analyze.output_paths import refuse_to_overwrite

        refuse_to_overwrite(without_stdin(traces), options.output)


def chosen_format(options: argparse.Namespace) -> str:
    """Return the chosen one of :data:`FORMATS`."""
    if options.format:
        return str(options.format)
    return _BY_SUFFIX.get(options.output.suffix.lower(), "table") if options.output else "table"


def chosen_limit(options: argparse.Namespace) -> int | None:
    """Return the maximum number of rows, or None for all."""
    if options.limit is None:
        return TABLE_ROWS if chosen_format(options) == "table" else None
    return int(options.limit) or None
