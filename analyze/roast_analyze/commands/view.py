"""Print a view, the list of views, or the description of a view.

The last argument is the name of a view if it consists of letters, digits and _ and is not the
path of an existing file. Without a name the views are listed. The list and the descriptions
need no trace. The topic `yours` contains your own views: the .sql files of a folder.

For example:

    roast-analyze view
    roast-analyze view trace.jsonl workers --format csv
    roast-analyze view --describe workers
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from roast_analyze.commands.formats import add_format, complete_options, write, write_result
from roast_analyze.commands.trace_args import (
    TRACE_HELP,
    add_reading,
    add_time_range,
    add_views,
    open_trace,
)
from roast_analyze.errors import TraceError

if TYPE_CHECKING:
    from roast_analyze.open.views import View

_NAME: Final = re.compile(r"[A-Za-z_]\w*")

#: End of the first clause of a comment.
_CLAUSE_END: Final = re.compile(r"[.:;](?=\s|$)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("traces", metavar="TRACE", nargs="*", help=TRACE_HELP)
    # argparse assigns all words to TRACE; NAME is declared only for the help text.
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the view")
    add_reading(parser)
    add_time_range(parser)
    parser.add_argument(
        "--describe",
        action="store_true",
        help="print the description of the view, or of all views, with types and columns",
    )
    add_format(parser)
    add_views(parser)


def run(options: argparse.Namespace) -> None:
    """Write the view, the list of views, or a description."""
    words = list(options.traces)
    named = words and _NAME.fullmatch(words[-1]) and not Path(words[-1]).exists()
    name = words.pop() if named else None
    traces = [Path(word) for word in words]
    complete_options(options, traces)
    if name and not options.describe:
        if not traces:
            raise TraceError(f"no trace given for {name!r}: roast-analyze view TRACE… [NAME]")
        with open_trace(traces, options, views=options.views) as trace:
            write_result(trace, trace.view(name), options)
        return
    from roast_analyze.open.database import documented_views
    from roast_analyze.open.views import check_view_name

    if traces:
        with open_trace(traces, options, views=options.views, limited=False) as trace:
            views = trace.views()
    else:
        views = documented_views()
    if name:
        check_view_name(name, [view.name for view in views])
        views = [view for view in views if view.name == name]
    is_printed = options.format == "table" and not options.output
    if is_printed and options.describe:
        from roast_analyze.commands.terminal import cell, print_out, table

        for view in views:
            print_out(f"{view.name} ({view.topic})", cell(view.comment, limit=10_000), "")
            described = [(column.name, column.type, column.comment) for column in view.columns]
            print_out(table(["column", "type", "meaning"], described), "")
    elif is_printed:
        _print_list(views)
    elif options.describe:
        columns = [(v.name, c.name, c.type, c.comment) for v in views for c in v.columns]
        _write_rows(["view", "column", "type", "meaning"], columns, options)
    else:
        rows = [(view.name, view.topic, view.comment) for view in views]
        _write_rows(["view", "topic", "meaning"], rows, options)


def _print_list(views: list[View]) -> None:
    """Print one line per view, by topic: the name and the first clause of the comment."""
    from roast_analyze.commands.terminal import print_out, width
    from roast_analyze.safe_text import one_line

    # Laid out by hand: a table of rich would wrap the clauses, and the list be twice as long.
    margin = max(len(view.name) for view in views)
    room = width() - margin - 4
    for topic, members in groupby(views, key=lambda view: view.topic):
        print_out(topic)
        for view in members:
            clause = one_line(_CLAUSE_END.split(view.comment, maxsplit=1)[0], 1000)
            short = clause if len(clause) <= room else f"{clause[: room - 1].rstrip()}…"
            print_out(f"  {view.name.ljust(margin)}  {short}")
        print_out("")
    print_out("`roast-analyze view --describe NAME` describes a view and its columns.")


def _write_rows(
    columns: list[str], rows: Sequence[tuple[str, ...]], options: argparse.Namespace
) -> None:
    import duckdb
    import polars as pl

    frame = pl.DataFrame(rows, schema=columns, orient="row")
    with duckdb.connect() as connection:
        relation = connection.from_arrow(frame.to_arrow())
        write(relation, options.format, options.output, options.limit)
