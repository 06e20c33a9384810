"""Serve runs to an assistant over the Model Context Protocol.

The server speaks the protocol on stdin and stdout, so it is started by the program of the
assistant, which is configured with this command. Its tools list the runs, their digests and
findings, describe the views, run read-only queries, explain the difference between two runs and
predict the wall time under other conditions.

NAME is a trace, a folder with several traces, a URL of either, or a store. Queries can only
read the traces, as those of `roast-analyze sql`; results and their time are limited. All text
from traces is marked as data: it can contain instructions of others, which an assistant must
not follow.

For example:

    roast-analyze mcp trace.jsonl.zst
    roast-analyze mcp runs/
"""

from __future__ import annotations

import argparse

from roast_analyze.commands.trace_args import add_reading, is_store
from roast_analyze.errors import MissingExtra, TraceError
from roast_analyze.output_paths import STDIN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "name", metavar="NAME", help="a trace, a folder with several traces, a URL, or a store"
    )
    add_reading(parser)


def run(options: argparse.Namespace) -> None:
    """Serve until stdin ends."""
    if options.name == STDIN:
        raise TraceError("stdin is the connection to the assistant: name a file or a folder")
    try:
        from roast_analyze.commands.mcp_server import server
    except ModuleNotFoundError as error:
        # Version 1 of the library lacks the module.
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        raise MissingExtra(
            "the server needs the Python library of the Model Context Protocol, version 2: "
            "pip install -U '.[mcp]' in a clone of roast"
        ) from None
    from roast_analyze.commands.offered_runs import StoreRuns, TraceRuns

    offer = StoreRuns if is_store(options.name) else TraceRuns
    server(offer(options.name, options)).run("stdio")
