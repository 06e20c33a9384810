"""Ask a question in SQL.

The tables are the views that `roast-analyze view TRACE` lists, the dialect is DuckDB's.
A query sees the trace and nothing else: no other file, no network, no extension, and it
changes nothing. `--unsafe` lets it do all of that, and lets several statements stand there; it
is for queries that you trust as you trust a program.

-p NAME=VALUE gives the value of $NAME in the query. A VALUE that is JSON is taken as that
(numbers, true, false, null, lists), all else as text; JSON's quotes make text of what is not,
as in -p 'worker="0"'.

For example:

    roast-analyze sql trace.jsonl "SELECT outcome, count(*) FROM task_runs GROUP BY ALL"
    roast-analyze sql trace.jsonl -f slow.sql -p prefix=process -p seconds=10 -o slow.csv
    roast-analyze sql trace.jsonl --unsafe "FROM chunks JOIN 'sites.csv' USING (filename)"
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from roast_analyze.commands.format_options import (
    add_format,
    check_output,
    chosen_format,
    chosen_limit,
)
from roast_analyze.commands.trace_args import (
    STDIN,
    add_excerpt,
    add_trace,
    add_views,
    open_trace,
)
from roast_analyze.errors import QueryError

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add_trace(parser, several=True)
    add_excerpt(parser)
    parser.add_argument(
        "query", metavar="QUERY", nargs="?", help="a statement that gives rows; - for stdin"
    )
    parser.add_argument(
        "-f", "--file", metavar="FILE", help="read the query from FILE; - for stdin"
    )
    parser.add_argument(
        "-p",
        "--parameter",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        dest="parameters",
        help="value of $NAME in the query; can be given again",
    )
    add_format(parser)
    add_views(parser)
    parser.add_argument(
        "--unsafe",
        action="store_true",
        help="let the query read and write files, use the network, load extensions",
    )


def run(options: argparse.Namespace) -> int:
    """Run the query and write what it gives."""
    check_output(options)
    parameters = _parameters(options.parameters)
    query = _query(options)
    with open_trace(options, views=options.views, unsafe=options.unsafe) as trace:
        import duckdb

        from roast_analyze.commands.formats import write

        rows = trace.sql(query, parameters)
        try:
            write(rows, chosen_format(options), options.output, chosen_limit(options))
        except duckdb.Error as error:
            raise trace.explain(error, query) from None
    return 0


def _query(options: argparse.Namespace) -> str:
    """Give the text of the query, wherever it is."""
    if (options.query is None) == (options.file is None):
        both = "a query and --file, and only one can be" if options.query else "no query is"
        raise QueryError(f"{both} given: name one as QUERY, --file FILE, or - for stdin")
    if STDIN not in (options.query, options.file):
        return str(options.query) if options.file is None else _text_of(Path(options.file))
    if STDIN in map(str, (options.trace, *options.others)):
        raise QueryError("stdin is the trace already; name the query as QUERY or --file FILE")
    return _decoded(sys.stdin.buffer.read(), "stdin")


def _text_of(file: Path) -> str:
    try:
        return _decoded(file.read_bytes(), repr(str(file)))
    except OSError as error:
        raise QueryError(f"the query {str(file)!r} cannot be read: {error.strerror}") from None


def _decoded(text: bytes, source: str) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise QueryError(f"the query in {source} is not UTF-8; save it as that") from None


def _parameters(words: list[str]) -> dict[str, object]:
    parameters: dict[str, object] = {}
    for word in words:
        name, is_given, value = word.partition("=")
        if not is_given or not name:
            raise QueryError(f"{word!r} is no parameter; write NAME=VALUE, as in -p worker=w1")
        name = name.removeprefix("$")
        if name in parameters:
            raise QueryError(f"two values are given for ${name}; one is enough")
        parameters[name] = _typed(value)
    return parameters


def _typed(text: str) -> object:
    """Take text as JSON if it is that; NaN and infinities are none."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, dict) else value


def _refuse(constant: str) -> None:
    raise ValueError(constant)
