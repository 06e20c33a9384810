"""Errors of output paths: a file that cannot be written, or that is the trace itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from roast_analyze.errors import NotWritable
from roast_analyze.open.discover import segment_paths

#: Name of standard input, which cannot be overwritten.
STDIN: Final = "-"


def refuse_to_overwrite(traces: Iterable[Path], target: Path) -> None:
    """Raise if an output is a file of a trace, even under another name or through a link."""
    files = (path for trace in traces if str(trace) != STDIN for path in segment_paths(trace))
    for segment in files:
        if target.exists() and target.samefile(segment):
            raise NotWritable(f"{str(target)!r} is the trace itself: name another file")


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Raise NotWritable in place of an OSError of the block."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise NotWritable(f"cannot write {str(target)!r}: {reason}") from None
