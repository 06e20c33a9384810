"""The newest traces in the working directory, and the commands that open one of them."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path
from typing import Final

from roast_analyze.errors import TraceError
from roast_analyze.open.discover import read_segment, segment_paths
from roast_analyze.open.names import SUFFIXES
from roast_analyze.report.quantities import byte_size

#: Number of traces that are listed.
SHOWN: Final = 10

#: What to do next with the newest trace.
_NEXT: Final = (
    ("roast-analyze {}", "summary in the terminal"),
    ("roast-analyze {} --open", "report in the browser"),
    ("roast-analyze explain {}", "where the time went, and what to change"),
    ("roast-analyze check {}", "missing and damaged records"),
    ("roast-analyze --help", "all commands"),
)


def print_recent() -> None:
    """Print the newest traces in the working directory; raise TraceError without one."""
    from roast_analyze.commands.terminal import print_out, table

    found = []
    for path in Path().iterdir():
        if path.name.startswith(".") or not (path.is_dir() or path.name.endswith(SUFFIXES)):
            continue
        try:
            files = segment_paths(path)
            states = [file.stat() for file in files]
        except (TraceError, OSError):
            continue  # not a trace, or just removed
        nbytes = sum(state.st_size for state in states)
        found.append((max(state.st_mtime for state in states), path, nbytes, files[0]))
    rows: list[tuple[Path, str, str]] = []
    for changed_t, path, nbytes, first in sorted(found, reverse=True):
        if len(rows) == SHOWN:
            break
        try:
            is_trace = read_segment(first, first).schema_version is not None
        except TraceError:
            continue
        if is_trace:  # its first file begins with a header
            changed = f"{datetime.fromtimestamp(changed_t):%F %R}"
            rows.append((path, byte_size(nbytes), changed))
    if not rows:
        raise TraceError(
            "no trace given, and none is in the working directory: roast-analyze TRACE; "
            "to record one: roast-record run -o trace.jsonl.zst -- python analysis.py"
        )
    newest = shlex.quote(str(rows[0][0]))
    commands = [(command.format(newest), result) for command, result in _NEXT]
    columns = ["trace", ">size", "last change"]
    print_out(table(columns, rows, "Newest traces"), "")
    print_out(table(["command", "result"], commands))
