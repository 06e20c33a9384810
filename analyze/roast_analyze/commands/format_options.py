"""The options --format, --limit and -o, which the commands that write rows share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import argparse

#: More rows than this nobody reads in a terminal.
TABLE_ROWS: Final = 1000

FORMATS: Final = ("table", "csv", "json", "jsonl", "parquet", "markdown")

_BY_ENDING: Final = {
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
        help="how to write; if not given, the ending of FILE tells, else table",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_row_count,
        help=f"at most N rows, 0 for all; if not given, {TABLE_ROWS} for a table, else all",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write to FILE, not to the terminal"
    )


def _row_count(text: str) -> int:
    if not text.isdecimal():
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"{text!r} is no number of rows, such as 20, or 0 for all")
    return int(text)


def check_output(options: argparse.Namespace) -> None:
    """Refuse to write over the trace, before minutes of reading.

    Raises
    ------
    TraceError
        If FILE is a segment of the trace, or there is no trace.
    """
    if options.output is not None:
        from roast_analyze.commands.trace_args import named_traces
        from roast_analyze.output_paths import refuse_to_overwrite

        refuse_to_overwrite(named_traces(options), options.output)


def chosen_format(options: argparse.Namespace) -> str:
    """Tell which of :data:`FORMATS` is meant."""
    if options.format:
        return str(options.format)
    return _BY_ENDING.get(options.output.suffix.lower(), "table") if options.output else "table"


def chosen_limit(options: argparse.Namespace) -> int | None:
    """Tell how many rows are to be written at most; None is all."""
    if options.limit is None:
        return TABLE_ROWS if chosen_format(options) == "table" else None
    return int(options.limit) or None
