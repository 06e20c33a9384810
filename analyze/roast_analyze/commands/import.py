"""Take what others measured into a trace: Darshan, Yappi, cluster dumps.

    darshan   logs of Darshan: what each process did to its files, and with DXT each call
    yappi     functions that Yappi measured, as it saves them: ystat, pstat or callgrind
    dump      a dump of Dask's cluster state, as a trace of its own

What is imported stands behind the recording, which stays as it is; a file that is there
already is not imported again. A file that cannot be read leaves the trace as it was.

For example:

    roast-analyze import darshan *.darshan --into trace.jsonl.zst
    roast-analyze import yappi worker-1.ystat --into trace.jsonl.zst --worker worker-1
    roast-analyze import dump cluster.msgpack.gz -o crash.jsonl.zst
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from roast_analyze.errors import TraceError
from roast_analyze.report.quantities import counted

if TYPE_CHECKING:
    import argparse

    from roast_analyze.imports.append_import import Added

TOOLS: Final = ("darshan", "yappi", "dump")

#: What the records of a kind are called.
_NOUNS: Final = {"io_file": "file", "io_segment": "segment", "function": "function"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("tool", metavar="TOOL", help="darshan, yappi or dump")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="what it wrote")
    parser.add_argument(
        "--into", metavar="TRACE", type=Path, help="trace file, or folder of segments"
    )
    parser.add_argument(
        "-o", "--output", metavar="TRACE", type=Path, help="trace to make of a dump"
    )
    parser.add_argument(
        "--worker", help="worker whose functions Yappi measured: its address or name"
    )
    parser.add_argument(
        "--clock",
        choices=("cpu", "wall"),
        help="clock that Yappi measured by, which pstat and callgrind do not say",
    )


def run(options: argparse.Namespace) -> int:
    """Import the files."""
    if options.tool not in TOOLS:
        raise TraceError(f"nothing is known of {options.tool!r}; there are {', '.join(TOOLS)}")
    _check(options)
    if options.tool == "dump":
        return _import_dump(options)
    from roast_analyze.imports import append_import as addition
    from roast_analyze.imports import darshan, yappi

    if options.tool == "darshan":
        read = darshan.read
    else:
        worker = yappi.worker_named(options.into, options.worker)
        read = partial(yappi.read, worker=worker, clock=options.clock)
    for added in addition.add(options.into, options.files, read):
        _say(f"{added.path.name}: {_told(added)}")
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse options that are another tool's, and miss those that are needed."""
    wanted = "--output" if options.tool == "dump" else "--into"
    meant = options.output if options.tool == "dump" else options.into
    if meant is None:
        raise TraceError(f"say with {wanted} TRACE where {options.tool} is imported to")
    others = {
        "--into": options.into if options.tool == "dump" else None,
        "--output": options.output if options.tool != "dump" else None,
        "--worker": options.worker if options.tool != "yappi" else None,
        "--clock": options.clock if options.tool != "yappi" else None,
    }
    if given := [name for name, value in others.items() if value is not None]:
        raise TraceError(f"{given[0]} is not for {options.tool}; use {wanted}")
    if str(meant) == "-":
        raise TraceError(f"{wanted} - cannot be: a trace is written in place; name a file")


def _import_dump(options: argparse.Namespace) -> int:
    from roast_analyze.imports import dump

    if len(options.files) > 1:
        raise TraceError(f"one dump at a time makes a trace, not {len(options.files)}")
    told = dump.convert(options.files[0], options.output)
    _say(f"{options.output}: {told}")
    return 0


def _say(text: str) -> None:
    from roast_analyze.safe_text import visible

    # The numbers of a page do not break from their nouns; a terminal's may.
    print(visible(text).replace("\xa0", " "))


def _told(added: Added) -> str:
    if added.was_there:
        return "is in the trace already; not imported again"
    parts = [counted(n, _NOUNS[kind]) for kind, n in sorted(added.records_by_kind.items())]
    return f"imported {' and '.join(parts) or 'nothing: it holds no such record'}"
