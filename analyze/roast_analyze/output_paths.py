"""Check of output paths: no output may overwrite the trace that it is made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.errors import NotWritable
from roast_analyze.open.discover import segment_paths

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: Name of standard input, which cannot be overwritten.
STDIN: Final = "-"


def refuse_to_overwrite(traces: Iterable[Path], target: Path) -> None:
    """Raise if an output is a file of a trace, even under another name or through a link."""
    files = (path for trace in traces if str(trace) != STDIN for path in segment_paths(trace))
    for segment in files:
        if target.exists() and target.samefile(segment):
            raise NotWritable(f"{str(target)!r} is the trace itself: name another file")
