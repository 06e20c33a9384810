"""Print a named view, or the list of them with what they mean.

The topic `yours` is that of your own views: the .sql files of a folder.

For example:

    roast-analyze view trace.jsonl
    roast-analyze view trace.jsonl workers --format csv
    roast-analyze view trace.jsonl workers --describe
"""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING

from roast_analyze.commands.format_options import (
    add_format,
    check_output,
    chosen_format,
    chosen_limit,
)
from roast_analyze.commands.trace_args import add_excerpt, add_trace, add_views, open_trace

if TYPE_CHECKING:
    import argparse

    from duckdb import DuckDBPyRelation

    from roast_analyze.open.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add_trace(parser, several=True)
    add_excerpt(parser)
    parser.add_argument("name", metavar="NAME", nargs="?", help="the view; all are listed else")
    parser.add_argument(
        "--describe", action="store_true", help="print the columns and what they mean"
    )
    add_format(parser)
    add_views(parser)


def run(options: argparse.Namespace) -> int:
    """Write the view, its columns, or the list of views."""
    check_output(options)
    with open_trace(options, views=options.views) as trace:
        import duckdb

        from roast_analyze.commands.formats import write

        if options.describe:
            rows = _columns(trace, options.name)
        elif options.name:
            rows = trace.view(options.name)
        elif chosen_format(options) == "table" and not options.output and sys.stdout.isatty():
            _print_list(trace)
            return 0
        else:
            rows = _list(trace)
        try:
            write(rows, chosen_format(options), options.output, chosen_limit(options))
        except duckdb.Error as error:
            raise trace.explain(error) from None
    return 0


def _print_list(trace: Session) -> None:
    """Print the list for people, by topic."""
    from roast_analyze.commands.terminal import print_out, table

    for topic, views in groupby(trace.views(), key=lambda view: view.topic):
        rows = [(view.name, view.comment) for view in views]
        print_out(table(["view", "a row is, or what it tells"], rows, title=topic), "")


def _list(trace: Session) -> DuckDBPyRelation:
    views = trace.views()
    return trace.sql(
        "SELECT unnest($names) AS view, unnest($topics) AS topic, unnest($comments) AS meaning",
        {
            "names": [view.name for view in views],
            "topics": [view.topic for view in views],
            "comments": [view.comment for view in views],
        },
    )


def _columns(trace: Session, name: str | None) -> DuckDBPyRelation:
    if name:
        trace.view(name)  # an unknown name is an error, not an empty answer
    columns = [
        (view.name, column)
        for view in trace.views()
        if name in (None, view.name)
        for column in view.columns
    ]
    return trace.sql(
        "SELECT unnest($views) AS view, unnest($names) AS column, unnest($types) AS type, "
        "unnest($comments) AS meaning",
        {
            "views": [view for view, _ in columns],
            "names": [column.name for _, column in columns],
            "types": [column.type for _, column in columns],
            "comments": [column.comment for _, column in columns],
        },
    )
