"""Output files that replace older ones only when complete, and output streams."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from roast_analyze.errors import NotWritable

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Names of standard output.
STDOUT: Final = (Path("-"), Path("/dev/stdout"))


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path, whose file finally replaces the one at `path`.

    Raises
    ------
    NotWritable
        If the file cannot be written; the older file is then unchanged.
    """
    unfinished = path.with_name(path.name + ".part")
    try:
        yield unfinished
        unfinished.replace(path)
    except OSError as error:
        raise _not_writable(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()


@contextlib.contextmanager
def text(path: Path) -> Iterator[IO[str]]:
    """Open a text file for writing, without replacing pipes and devices.

    Raises
    ------
    NotWritable
        If it cannot be written.
    """
    if path in STDOUT:
        yield sys.stdout
    elif path.exists() and not path.is_file() and not path.is_dir():
        with _opened(path, path) as file:
            yield file
    else:
        with replacing(path) as unfinished, _opened(unfinished, path) as file:
            yield file


@contextlib.contextmanager
def _opened(path: Path, target: Path) -> Iterator[IO[str]]:
    try:
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _not_writable(target, error) from None


def check_place(path: Path, *, is_folder: bool = False) -> None:
    """Check that a target can be written, before the trace is read.

    Raises
    ------
    NotWritable
        If its parent folder does not exist, or if it is a file where a folder is expected
        or the reverse.
    """
    if path in STDOUT:
        if is_folder:
            raise NotWritable(f"{str(path)!r} is not a folder: name a folder")
        return
    try:
        if is_folder:
            if path.exists() and not path.is_dir():
                raise NotWritable(f"{str(path)!r} is not a folder: name a folder")
        elif path.is_dir():
            raise NotWritable(f"{str(path)!r} is a folder: name a file")
        if not path.absolute().parent.is_dir():
            folder = str(path.absolute().parent)
            raise NotWritable(f"folder {folder!r} does not exist: create it, or name another")
    except OSError as error:
        raise _not_writable(path, error) from None


def _not_writable(path: Path, error: OSError) -> NotWritable:
    reason = error.strerror or " ".join(str(error).split())
    return NotWritable(f"{str(path)!r} cannot be written: {reason}")
