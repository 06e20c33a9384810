"""The newest traces in the working directory, and the commands that open one of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from roast_analyze.errors import TraceError
from roast_analyze.open.discover import SUFFIXES, read_segment, segment_paths
from roast_analyze.report.quantities import byte_size

if TYPE_CHECKING:
    from rich.console import RenderableType

#: Number of traces that are listed.
SHOWN: Final = 10

_NEXT: Final = (
    ("roast-analyze {}", "summary in the terminal"),
    ("roast-analyze {} --open", "report in the browser"),
    ("roast-analyze explain {}", "where the time went, and what to change"),
    ("roast-analyze check {}", "is the trace complete?"),
    ("roast-analyze --help", "all commands"),
)


class Recent(NamedTuple):
    """A file or folder that begins with the header of a trace."""

    path: Path
    nbytes: int
    changed_t: float


def print_recent() -> None:
    """Print the newest traces in the working directory.

    Raises
    ------
    TraceError
        If there is none.
    """
    from roast_analyze.commands.terminal import print_out

    found = list(islice(_newest_first(Path()), SHOWN))
    if not found:
        raise TraceError(
            "no trace given, and none is in this folder: roast-analyze TRACE; to record one: "
            "roast-record run -o trace.jsonl.zst -- python analysis.py"
        )
    print_out(*_parts(found))


def _parts(found: list[Recent]) -> Iterator[RenderableType]:
    from roast_analyze.commands.terminal import table

    rows = [
        (
            trace.path,
            byte_size(trace.nbytes),
            f"{datetime.fromtimestamp(trace.changed_t):%F %R}",
        )
        for trace in found
    ]
    yield table(["trace", ">size", "last change"], rows, "Newest traces in this folder")
    yield ""
    newest = shlex.quote(str(found[0].path))
    yield table(
        ["command", "result"], [(command.format(newest), result) for command, result in _NEXT]
    )


def _newest_first(folder: Path) -> Iterator[Recent]:
    candidates = []
    for path in folder.iterdir():
        if path.name.startswith(".") or not (path.is_dir() or path.name.endswith(SUFFIXES)):
            continue
        try:
            files = segment_paths(path)
            states = [file.stat() for file in files]
        except (TraceError, OSError):
            continue  # not a trace, or just removed
        candidates.append(
            (
                Recent(
                    path,
                    sum(state.st_size for state in states),
                    max(state.st_mtime for state in states),
                ),
                files[0],
            )
        )
    for trace, first in sorted(candidates, key=lambda each: -each[0].changed_t):
        try:
            if read_segment(first, first).schema_version is not None:
                yield trace
        except TraceError:
            continue
