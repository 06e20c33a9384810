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
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from roast_analyze.commands.formats import (
    add_format,
    complete_options,
    write_frame,
    write_result,
)
from roast_analyze.commands.trace_args import add_traces_and, add_views, open_trace
from roast_analyze.errors import TraceError

if TYPE_CHECKING:
    from roast_analyze.open.views import View

_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_traces_and(parser, "NAME", "name of the view", nargs="*")
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
    # A file that exists is a trace, whatever its name.
    named = words and _NAME.fullmatch(str(words[-1])) and not Path(words[-1]).exists()
    name = words.pop() if named else None
    traces = [Path(word) for word in words]
    complete_options(options, traces)
    if name and not options.describe:
        if not traces:
            raise TraceError(f"no trace given for {name!r}: roast-analyze view TRACE… [NAME]")
        with open_trace(traces, options, views=options.views) as trace:
            write_result(trace, trace.view(name), options)
        return
    if options.views and not traces:
        raise TraceError("--views needs a trace: roast-analyze view TRACE… --views DIR")
    from roast_analyze.open.database import documented_views
    from roast_analyze.open.views import check_view_name

    if traces:
        with open_trace(traces, options, views=options.views, limited=False) as trace:
            views = trace.views()
    else:
        # The list needs no trace, but then it has no views of the user.
        views = documented_views()
    if name:
        check_view_name(name, [view.name for view in views])
        views = [view for view in views if view.name == name]
    if options.format == "table" and not options.output:
        from roast_analyze.commands.terminal import cell, print_out, table

        if not options.describe:
            _print_list(views)
            return
        for view in views:
            print_out(f"{view.name} ({view.topic})", cell(view.comment, limit=10_000), "")
            described = [(column.name, column.type, column.comment) for column in view.columns]
            print_out(table(["column", "type", "meaning"], described), "")
        return
    import polars as pl

    rows: list[tuple[str, ...]]
    if options.describe:
        columns = ["view", "column", "type", "meaning"]
        rows = [(v.name, c.name, c.type, c.comment) for v in views for c in v.columns]
    else:
        columns = ["view", "topic", "meaning"]
        rows = [(view.name, view.topic, view.comment) for view in views]
    write_frame(pl.DataFrame(rows, schema=columns, orient="row"), options)


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
            clause = one_line(view.summary, 1000)
            short = clause if len(clause) <= room else f"{clause[: room - 1].rstrip()}…"
            print_out(f"  {view.name.ljust(margin)}  {short}")
        print_out("")
    print_out("`roast-analyze view --describe NAME` describes a view and its columns.")
