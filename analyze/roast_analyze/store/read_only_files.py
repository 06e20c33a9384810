"""File system through which DuckDB reads the files of a store, and no others.

DuckDB's own restrictions allow a folder or nothing, and what may be read may be written. So a
session of a store allows only the paths of this file system, in which each name refers to a
file that the session has listed, and which cannot write.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from fsspec.spec import AbstractFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

#: Beginning of all paths.
PREFIX: Final = "roast://"


class ReadOnlyFiles(AbstractFileSystem):
    """Some files below a folder of another file system.

    Parameters
    ----------
    source : fsspec.AbstractFileSystem
        File system of the folder.
    folder : str
        Path or URL of the folder.
    """

    protocol: ClassVar[str] = PREFIX.removesuffix("://")
    cachable: ClassVar[bool] = False

    def __init__(self, source: AbstractFileSystem, folder: str) -> None:
        super().__init__()
        self._source = source
        self._folder = folder
        self._allowed: set[str] = set()

    def allow(self, files: Iterable[str]) -> list[str]:
        """Allow to read files; return the paths under which DuckDB finds them.

        `files` are their paths or URLs in the source.
        """
        paths = [PREFIX + file.removeprefix(f"{self._folder}/") for file in files]
        self._allowed.update(paths)
        return paths

    def _source_path(self, path: str) -> str:
        path = PREFIX + path.removeprefix(PREFIX)
        if path not in self._allowed:
            raise PermissionError(f"{path!r} is not a file of this session")
        return f"{self._folder}/{path.removeprefix(PREFIX)}"

    def open(self, path: str, mode: str = "rb", **_options: Any) -> ThreadedFile:
        """Open a file; raise PermissionError if the mode is not that of reading."""
        if mode != "rb":
            raise PermissionError(f"{path!r} can only be read")
        return ThreadedFile(self._source.open(self._source_path(path), "rb"))

    def info(self, path: str, **_options: Any) -> dict[str, Any]:
        """Return the name, type and size of a file."""
        size = self._source.info(self._source_path(path))["size"]
        return {"name": path, "type": "file", "size": size}

    def glob(self, path: str, **_options: Any) -> list[str]:
        """Return the path if it is that of a file: there are no patterns."""
        return [path] if self.exists(path) else []

    def exists(self, path: str, **_options: Any) -> bool:
        """Return whether a file can be read."""
        return PREFIX + path.removeprefix(PREFIX) in self._allowed

    def isfile(self, path: str) -> bool:
        """Return whether a file can be read."""
        return self.exists(path)

    def isdir(self, path: str) -> bool:  # noqa: ARG002 - interface of fsspec
        """Return False: folders cannot be listed."""
        return False

    def modified(self, path: str) -> datetime:  # noqa: ARG002 - interface of fsspec
        """Return a fixed time: files of a store never change."""
        return datetime.fromtimestamp(0, UTC)


class ThreadedFile:
    """File that several threads read, each with a position of its own.

    DuckDB reads a file in several threads, and sets the position before it reads.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._positions: dict[int, int] = {}

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the position of the current thread."""
        with self._lock:
            if whence == 1:
                offset += self.tell()
                whence = 0
            position = self._file.seek(offset, whence)
            self._positions[threading.get_ident()] = position
            return position

    def tell(self) -> int:
        """Return the position of the current thread."""
        return self._positions.get(threading.get_ident(), 0)

    def read(self, size: int = -1) -> bytes:
        """Read from the position of the current thread."""
        with self._lock:
            self._file.seek(self.tell())
            data = self._file.read(size)
            self._positions[threading.get_ident()] = self._file.tell()
            return data

    def seekable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()
