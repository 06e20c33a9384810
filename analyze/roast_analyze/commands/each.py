"""Run a query over each of many traces.

The rows of all traces are written one after the other, with the columns trace_id and path. The
last argument is the query, whose tables are the views of a trace. Traces that cannot be read
are listed at the end, and the exit code is 1.

For example:

    roast-analyze each 'runs/*.jsonl.zst' "SELECT wall_seconds, failures FROM run"
    roast-analyze each runs/ --workers 4 -o slow.csv "FROM stragglers LIMIT 10"
"""

from __future__ import annotations

import argparse
from pathlib import Path

from roast_analyze.commands.cluster_args import add_cluster, connected
from roast_analyze.commands.formats import add_format, complete_options, write_frame
from roast_analyze.commands.messages import print_note
from roast_analyze.commands.progress import progress
from roast_analyze.errors import QueryError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "traces",
        metavar="TRACE",
        nargs="+",
        help="a trace file, a folder of segments, a quoted pattern for either, or a URL",
    )
    parser.set_defaults(reads_many=True)
    # argparse assigns all words to TRACE; QUERY is declared only for the help text.
    parser.add_argument(
        "query", metavar="QUERY", nargs="?", help="a statement that returns rows"
    )
    add_cluster(parser)
    add_format(parser)


def run(options: argparse.Namespace) -> bool:
    """Run the query and write the rows; return whether all traces were read."""
    *traces, query = options.traces
    if not traces:
        raise QueryError("expected TRACE… QUERY, got one argument: pass the query last")
    complete_options(options, [Path(word) for word in traces])
    with (
        progress(f"{len(traces)} traces", "querying") as listener,
        connected(options) as client,
    ):
        from roast_analyze.batch_query import run_each

        frame, failures = run_each(query, traces, client=client, listener=listener)
    # Without columns, no trace could be read.
    if frame.width:
        write_frame(frame, options)
    for failure in failures:
        print_note(f"{failure.path}: {failure.reason}")
    return not failures
