"""Ask a question in SQL.

The tables are the views that `roast-analyze view TRACE` lists, the dialect is DuckDB's.
A query sees the trace and nothing else: it can neither read nor write files.

For example:

    roast-analyze sql trace.jsonl "SELECT outcome, count(*) FROM task_runs GROUP BY ALL"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roast_analyze.commands.format_options import add_format, check_output, chosen_format
from roast_analyze.commands.opening import add_trace, open_trace

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add_trace(parser)
    parser.add_argument("query", metavar="QUERY", help="a statement that gives rows")
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Run the query and write what it gives."""
    check_output(options)
    with open_trace(options.trace) as trace:
        from roast_analyze.commands.formats import write

        write(trace.sql(options.query), chosen_format(options), options.output)
    return 0
