"""Output files, which replace older ones only when complete, and output streams."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final
from uuid import uuid4

from roast_analyze.errors import NotWritable, TraceError
from roast_analyze.open.discover import segment_paths

#: Name of standard input, which cannot be overwritten.
STDIN: Final = "-"

#: Names of standard output.
STDOUT: Final = (Path("-"), Path("/dev/stdout"))

#: Types of DuckDB that a Parquet file cannot have: they are written as text.
NOT_IN_PARQUET: Final = ("INTERVAL", "UNION")


def refuse_to_overwrite(traces: Iterable[Path], target: Path) -> None:
    """Raise if an output is a file of a trace, even under another name or through a link."""
    for trace in traces:
        segments: list[Path] = []
        if str(trace) != STDIN:
            # A trace that is missing is reported when it is read.
            with suppress(TraceError):
                segments = segment_paths(trace)
        for segment in segments:
            refuse_to_replace(segment, target, "the trace itself")


def refuse_to_replace(source: Path, target: Path, what: str) -> None:
    """Raise NotWritable if an output is another file of the call, described by `what`."""
    is_same = target.exists() and source.exists() and target.samefile(source)
    # Both can be files that do not exist yet.
    if is_same or target.resolve() == source.resolve():
        raise NotWritable(f"{str(target)!r} is {what}: name another file")


def check_place(path: Path, *, is_folder: bool = False) -> None:
    """Raise :class:`NotWritable` if a target is certain to fail, before the trace is read.

    Its parent folder must exist, and it must not be a file in place of a folder or the reverse.
    """
    with writing(path):
        if is_folder and (path in STDOUT or (path.exists() and not path.is_dir())):
            raise NotWritable(f"{str(path)!r} is not a folder: name a folder")
        if not is_folder and path.is_dir():
            raise NotWritable(f"{str(path)!r} is a folder: name a file")
        folder = path.absolute().parent
        if path not in STDOUT and not folder.is_dir():
            raise NotWritable(
                f"folder {str(folder)!r} does not exist: create it, or name another"
            )


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Raise NotWritable in place of an OSError of the block."""
    try:
        yield
    except BrokenPipeError:
        pass  # the reader of a pipe has read enough
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())
        raise NotWritable(f"cannot write {str(target)!r}: {reason}") from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path, whose file finally replaces the one at `path`.

    Raise :class:`NotWritable` if it cannot be written; the older file is then unchanged.
    A pipe or a device is written to, not replaced.
    """
    with writing(path):
        if path.exists() and not path.is_file() and not path.is_dir():
            yield path
            return
        target = path.resolve()  # a link stays
        # In the same folder, because only a rename within a file system is atomic. Unique,
        # because several processes can write the same file.
        unfinished = target.with_name(f"{target.name}.{uuid4().hex[:8]}.part")
        try:
            yield unfinished
            unfinished.replace(target)
        finally:
            with suppress(OSError):
                unfinished.unlink()


@contextmanager
def text(path: Path) -> Iterator[IO[str]]:
    """Open a text file for writing; raise :class:`NotWritable` if it cannot be written."""
    if path in STDOUT:
        yield sys.stdout
        return
    with (
        replacing(path) as target,
        # Names of files in a trace need not be valid Unicode.
        target.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file,
    ):
        yield file
