"""Import data from Darshan, Yappi or a cluster dump.

    darshan   logs of Darshan: the files that each process read and wrote; with DXT, each call
    yappi     functions profiled by Yappi, saved as ystat, pstat or callgrind
    dump      a dump of Dask's cluster state, which becomes a new trace

Imported records are appended to the trace; recorded ones do not change. A file is imported only
once. Of several files, those that cannot be read are named on stderr and left out, and the exit
code is 1.

For example:

    roast-analyze import darshan *.darshan --into trace.jsonl.zst
    roast-analyze import yappi worker-1.ystat --into trace.jsonl.zst --worker worker-1
    roast-analyze import dump cluster.msgpack.gz -o crash.jsonl.zst
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Final

from roast_analyze.commands.messages import print_note, print_result
from roast_analyze.commands.trace_args import trace_argument
from roast_analyze.errors import TraceError
from roast_analyze.report.quantities import counted

TOOLS: Final = ("darshan", "yappi", "dump")

#: Noun for the records of each kind.
_NOUNS: Final = {"io_file": "file", "io_segment": "segment", "function": "function"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("tool", metavar="TOOL", help="darshan, yappi or dump")
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=Path, help="output of the tool"
    )
    parser.add_argument(
        "--into", metavar="TRACE", type=trace_argument, help="trace file, or folder of segments"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="TRACE",
        type=trace_argument,
        help="trace to write from a dump",
    )
    parser.add_argument("--worker", help="worker profiled by Yappi: its address or name")
    parser.add_argument(
        "--clock",
        choices=("cpu", "wall"),
        help="clock of Yappi, which pstat and callgrind files do not contain",
    )


def run(options: argparse.Namespace) -> bool:
    """Import the files; return whether all of them could be read."""
    _check_options(options)
    if options.tool == "dump":
        from roast_analyze.imports import dump

        summary = dump.convert(options.files[0], options.output)
        print_result(f"{options.output}: {summary}")
        return True
    from roast_analyze.imports import append_import, darshan, yappi

    if options.tool == "darshan":
        read = darshan.read
    else:
        worker = None
        if options.worker is not None:
            from roast_analyze.export.scope import find_workers
            from roast_analyze.open.session import Session

            # Yappi does not record where it ran, so the user names the worker.
            with Session(options.into) as trace:
                found = find_workers(trace, options.worker)
            if len(found) != 1:
                raise TraceError(
                    f"ambiguous worker {options.worker!r}: use one of {', '.join(found)}"
                    if found
                    else f"unknown worker {options.worker!r}: use an address or a name of the "
                    "view workers"
                )
            [worker] = found
        read = partial(yappi.read, worker=worker, clock=options.clock)
    unreadable = 0
    for path, counts in append_import.append_files(options.into, options.files, read):
        if isinstance(counts, TraceError):
            unreadable += 1
            print_note(counts)
            continue
        if counts is None:
            print_result(f"{path.name}: already imported, skipped")
            continue
        contents = " and ".join(counted(n, _NOUNS[kind]) for kind, n in sorted(counts.items()))
        print_result(f"{path.name}: imported {contents or 'nothing: no matching records'}")
    if unreadable:
        print_note(f"{unreadable} of {len(options.files)} files could not be read")
    return not unreadable


def _check_options(options: argparse.Namespace) -> None:
    """Check that the options belong to the tool and that none is missing."""
    tool = options.tool
    if tool not in TOOLS:
        raise TraceError(f"unknown tool {tool!r}: choose from {', '.join(TOOLS)}")
    required = "output" if tool == "dump" else "into"
    if getattr(options, required) is None:
        raise TraceError(f"{tool} needs --{required} TRACE")
    allowed = {required, "worker", "clock"} if tool == "yappi" else {required}
    for name in ("into", "output", "worker", "clock"):
        if name not in allowed and getattr(options, name) is not None:
            raise TraceError(f"--{name} is not an option of {tool}: use --{required}")
    # A trace is replaced as a whole when the import is complete, which a stream cannot be.
    target = getattr(options, required)
    if str(target) == "-":
        raise TraceError(f"--{required} cannot be stdout: name a file")
    if isinstance(target, str):
        raise TraceError(f"cannot write {target!r}: name a file, and upload it afterwards")
    if tool == "dump" and len(options.files) > 1:
        raise TraceError(f"expected one dump, got {len(options.files)}")
