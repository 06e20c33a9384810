"""Files that are in their place only when they are whole, and streams that are not files."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from roast_analyze.errors import NotWritable

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Names of the stream that the next program reads.
STDOUT: Final = (Path("-"), Path("/dev/stdout"))


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to; what lies there in the end takes the place of the file.

    Raises
    ------
    NotWritable
        If that cannot be; the older file is then as it was.
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
    """Open a file for text; a pipe or a device is written to as it is.

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
def _opened(path: Path, meant: Path) -> Iterator[IO[str]]:
    try:
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _not_writable(meant, error) from None


def check_place(path: Path, *, is_folder: bool = False) -> None:
    """Refuse a place where nothing can be written, before minutes of reading.

    Raises
    ------
    NotWritable
        If the folder around it is not there, or it is a folder and should not be, or
        the other way round.
    """
    if path in STDOUT:
        if is_folder:
            raise NotWritable(f"{str(path)!r} is no folder; name one")
        return
    try:
        if is_folder:
            if path.exists() and not path.is_dir():
                raise NotWritable(f"{str(path)!r} is no folder; name one, there or not")
        elif path.is_dir():
            raise NotWritable(f"{str(path)!r} is a folder; name a file")
        if not path.absolute().parent.is_dir():
            raise NotWritable(f"there is no folder {str(path.absolute().parent)!r} to write to")
    except OSError as error:
        raise _not_writable(path, error) from None


def _not_writable(path: Path, error: OSError) -> NotWritable:
    why = error.strerror or " ".join(str(error).split())
    return NotWritable(f"{str(path)!r} cannot be written: {why}")
