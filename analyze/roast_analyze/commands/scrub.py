"""Replace all names in a trace with pseudonyms, so that it can be shared.

Keys, functions, files, hosts, users, datasets, branches, messages of exceptions and values
of the configuration are replaced word by word, and the same word always by the same
pseudonym. Numbers, times, ports, versions, the structure of paths, the words of Dask, Python
and file formats, and the functions of widely used packages in profiles are kept, so all views
show the same numbers. Free text and code are replaced line by line.

The scrubbed trace is checked before it appears under its name: no word of the trace may be
left in it. Unreadable lines are replaced with other unreadable lines, so damage stays visible.

--keep keeps the names in fields with the given contents, and the same words in all other
fields.

For example:

    roast-analyze scrub trace.jsonl.zst -o shared.jsonl.zst
    roast-analyze scrub trace.jsonl.zst -o shared.jsonl.zst --keep datasets,branches
    roast-analyze scrub trace.jsonl.zst -o shared.jsonl.zst --map names.db

The map is private: it has all names. To find the name of a pseudonym:

    python -m sqlite3 names.db "SELECT * FROM names WHERE pseudonym = 'bababi'"
"""

from __future__ import annotations

import argparse
from pathlib import Path

from roast_analyze.commands.messages import print_result
from roast_analyze.commands.progress import progress
from roast_analyze.commands.trace_args import trace_argument
from roast_analyze.report.quantities import counted
from roast_schemas.units import Content


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "trace",
        metavar="TRACE",
        type=trace_argument,
        help="a trace file, a folder of segments, or a URL of either",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="SHARED",
        type=Path,
        required=True,
        help="trace to write: a file, or a folder if TRACE is one",
    )
    parser.add_argument(
        "--keep",
        metavar="CONTENT,…",
        type=_contents,
        default=frozenset(),
        help=f"keep the names in fields with these contents: {', '.join(Content)}",
    )
    parser.add_argument(
        "--map",
        metavar="FILE",
        type=Path,
        help="dictionary of names and pseudonyms, which is created or extended; with it, a "
        "name has the same pseudonym in all traces",
    )


def run(options: argparse.Namespace) -> None:
    """Write the scrubbed trace."""
    from roast_analyze.scrub.files import scrub

    with progress(options.trace.name, "reading names") as listener:
        done = scrub(
            options.trace,
            options.output,
            keep=options.keep,
            names=options.map,
            listener=listener,
        )
    left_out = [
        f"{counted(number, noun)} {outcome}"
        for number, noun, outcome in (
            (done.unreadable, "unreadable line", "replaced"),
            (done.damaged, "damaged part of the compression", "left out"),
        )
        if number
    ]
    words = counted(done.words, "word")
    contents = f"{counted(done.records, 'record')}, {words} replaced and none left"
    print_result("; ".join([f"{options.output}: {contents}", *left_out]))


def _contents(text: str) -> frozenset[Content]:
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in [*Content]]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"unknown content {unknown[0]!r}: choose from {', '.join(Content)}"
        )
    return frozenset(map(Content, names))
