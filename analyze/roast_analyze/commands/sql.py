"""Query traces in SQL.

The tables are the views that `roast-analyze view` lists; the dialect is DuckDB's. The last
argument is the query, unless --file names one. The query - is read from stdin.

TRACE can also be a store (`roast-analyze store`). It has the same views, of all its runs, and
runs, program_history, dataset_history, file_history and host_history. A query of some traces
(WHERE trace_id = '…') reads only their files, unless its view compares runs.

A query can only read the traces: no other files, no network, no extensions, no changes.
--unsafe allows all of these, and several statements. Use it only for queries that you trust.

-p NAME=VALUE sets $NAME in the query. A VALUE that is valid JSON has the type of its JSON value
(numbers, true, false, null, lists); any other VALUE is text. Quote a number to make it text:
-p 'worker="0"'.

For example:

    roast-analyze sql trace.jsonl "SELECT outcome, count(*) FROM task_runs GROUP BY ALL"
    roast-analyze sql monday.jsonl tuesday.jsonl "FROM run"
    roast-analyze sql trace.jsonl -f slow.sql -p prefix=process -p seconds=10 -o slow.csv
    roast-analyze sql trace.jsonl --unsafe "FROM chunks JOIN 'sites.csv' USING (filename)"
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from roast_analyze.commands.formats import add_format, complete_options, write_result
from roast_analyze.commands.progress import progress
from roast_analyze.commands.trace_args import add_traces_and, add_views, is_store, open_trace
from roast_analyze.errors import QueryError
from roast_analyze.output_paths import STDIN, refuse_to_replace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_traces_and(parser, "QUERY", "a statement that returns rows, or - for stdin")
    parser.add_argument(
        "-f", "--file", metavar="FILE", help="read the query from FILE, or - for stdin"
    )
    parser.add_argument(
        "-p",
        "--parameter",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        dest="parameters",
        help="value of $NAME in the query; can be repeated",
    )
    add_format(parser)
    add_views(parser)
    parser.add_argument(
        "--unsafe",
        action="store_true",
        help="let the query read and write files, use the network and load extensions",
    )


def run(options: argparse.Namespace) -> None:
    """Run the query and write its rows."""
    words = options.traces if options.file else options.traces[:-1]
    traces = [Path(word) for word in words]
    if not traces:
        raise QueryError(
            "expected TRACE… QUERY, got one argument: pass the query last, with --file FILE, "
            "or as - for stdin"
        )
    complete_options(options, [] if is_store(words[0]) else traces)
    if options.file and options.output:
        refuse_to_replace(Path(options.file), options.output, "the file of the query")
    parameters: dict[str, object] = {}
    for word in options.parameters:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise QueryError(
                f"invalid parameter {word!r}: use NAME=VALUE, such as -p worker=w1"
            )
        name = name.removeprefix("$")
        if name in parameters:
            raise QueryError(f"${name} has two values: pass one")
        try:
            # NaN and Infinity, which are not JSON, stay text.
            parsed = json.loads(value, parse_constant=str)
        except (ValueError, RecursionError):
            parsed = value
        # As a structure of DuckDB, an object would have a type of its own.
        parameters[name] = value if isinstance(parsed, dict) else parsed
    query = _read_query(options, traces)
    if is_store(words[0]):
        if len(words) > 1:
            raise QueryError(f"{words[0]!r} is a store: query one store, or traces")
        limits = (options.start, options.stop, options.session)
        if options.unsafe or options.views or any(limit is not None for limit in limits):
            raise QueryError(
                "--from, --to, --session, --views and --unsafe are not options of a store: "
                "query a trace"
            )
        from roast_analyze.store.store import Store

        store = Store(words[0], memory_limit=options.memory_limit, cache=options.cache)
        with progress(store.path, "querying", measured=False):
            # A query of some traces opens only their files.
            session = store.session_for(query, parameters)
            write_result(session, session.sql(query, parameters), options, query)
        return
    with open_trace(traces, options, views=options.views, unsafe=options.unsafe) as trace:
        write_result(trace, trace.sql(query, parameters), options, query)


def _read_query(options: argparse.Namespace, traces: list[Path]) -> str:
    name = options.file or options.traces[-1]
    if name == STDIN:
        if STDIN in map(str, traces):
            raise QueryError("the trace is read from stdin: pass the query as QUERY or --file")
        text, source = sys.stdin.buffer.read(), "stdin"
    elif options.file:
        try:
            text, source = Path(name).read_bytes(), repr(name)
        except OSError as error:
            raise QueryError(f"cannot read the query {name!r}: {error.strerror}") from None
    else:
        return str(name)
    try:
        return text.decode("utf-8-sig")  # editors of Windows begin a file with a mark
    except UnicodeDecodeError:
        raise QueryError(f"the query in {source} is not UTF-8: save it as UTF-8") from None
