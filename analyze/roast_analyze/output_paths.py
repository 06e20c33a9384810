"""Check of output paths: no output may overwrite the trace that it is made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roast_analyze.errors import NotWritable
from roast_analyze.open.discover import segment_paths

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def refuse_to_overwrite(traces: Iterable[Path], target: Path) -> None:
    """Raise if an output is a file of a trace, even under another name or through a link.

    Parameters
    ----------
    traces : iterable of Path
        Trace files, folders of segments, or patterns.
    target : Path
        File to be written; it need not exist.

    Raises
    ------
    NotWritable
        If the target is a segment of a trace.
    TraceNotFound, NotATrace
        If there is no trace.
    """
    for segment in (path for trace in traces for path in segment_paths(trace)):
        if target.exists() and target.samefile(segment):
            raise NotWritable(f"{str(target)!r} is the trace itself: name another file")
