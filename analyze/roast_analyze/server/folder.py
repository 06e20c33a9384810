"""The traces below a folder that is served. Links are never followed.

Files in one folder with one ``trace_id`` and different segment numbers are one trace. Further
files with the number of one of them are copies, which are traces of their own: the largest file
of each number is that of the trace.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import xxhash

from roast_analyze.errors import TraceError
from roast_analyze.open.discover import read_segment, trace_name
from roast_analyze.open.names import SUFFIXES
from roast_analyze.safe_text import visible

#: Files and folders that are looked at, so that the home folder of a user can be served.
MOST_ENTRIES: Final = 50_000

#: Name of a file of a folder of segments.
_NUMBERED: Final = re.compile(r"\d{6,}\.jsonl(\.zst|\.gz)?")


@dataclass(frozen=True)
class FoundTrace:
    """The files of a trace: one file, or the segments in a folder."""

    #: Files, or the folder of the segments.
    paths: tuple[Path, ...]
    #: Path relative to the folder that is served.
    place: str
    #: The same as long as the trace lies in the same folder.
    id: str
    #: Name, size and time of the last change of each file.
    states: tuple[tuple[str, int, int], ...]
    owner: int
    #: Place of the trace that it is a copy of, or of a part of it; empty if it is none.
    copy_of: str = ""
    #: Reason for which it cannot be read; empty if none is known.
    error: str = ""

    @property
    def name(self) -> str:
        """The name of the file or folder without a suffix."""
        return trace_name(self.paths[0])

    @property
    def stamp(self) -> str:
        """A digest of sizes and times of all files."""
        return xxhash.xxh3_64_hexdigest(repr(self.states).encode())

    @property
    def nbytes(self) -> int:
        """The size of all files."""
        return sum(nbytes for _, nbytes, _ in self.states)

    @property
    def changed_t(self) -> float:
        """The time of the last change, in seconds since the epoch."""
        return max(changed_ns for _, _, changed_ns in self.states) / 1e9


@dataclass(frozen=True)
class _Head:
    """What the first bytes of a file contain."""

    inode: int
    nbytes: int
    trace_id: str
    segment: int
    is_listed: bool
    error: str = ""

    def is_of(self, status: os.stat_result) -> bool:
        """Return whether a file still begins so: a trace that grows keeps its header."""
        if self.inode != status.st_ino or self.nbytes > status.st_size:
            return False
        return bool(self.trace_id) or self.nbytes == status.st_size


@dataclass
class Folder:
    """A folder, whose files are opened once."""

    #: Without links.
    path: Path
    #: Whether there were more entries than are looked at.
    is_cut: bool = False
    _heads: dict[Path, _Head] = field(default_factory=dict)

    def traces(self) -> Iterator[FoundTrace]:
        """Yield the traces that are there now."""
        heads: dict[Path, _Head] = {}
        for folder, files in self._files().items():
            by_trace: dict[str, list[tuple[Path, os.stat_result]]] = {}
            for path, status in files:
                head = heads[path] = self._head(path, status)
                if head.is_listed:
                    by_trace.setdefault(head.trace_id or path.name, []).append((path, status))
            for trace_id, of_trace in by_trace.items():
                copy_of = ""
                for part in _without_copies(of_trace, heads):
                    is_alone = len(part) == len(files)
                    # Which of several copies is the largest one can change.
                    name = f"{trace_id}\0{part[0][0].name}" if copy_of else trace_id
                    found = self._found(folder, name, part, heads, is_alone=is_alone)
                    yield replace(found, copy_of=copy_of)
                    copy_of = copy_of or found.place
        self._heads = heads

    def _found(
        self,
        folder: Path,
        name: str,
        files: list[tuple[Path, os.stat_result]],
        heads: dict[Path, _Head],
        *,
        is_alone: bool,
    ) -> FoundTrace:
        files.sort()
        paths = tuple(path for path, _ in files)
        if is_alone and all(_NUMBERED.fullmatch(path.name) for path in paths):
            paths = (folder,)
        # The folder that is served can itself be one of segments.
        place = folder.name if paths[0] == self.path else paths[0].relative_to(self.path)
        key = f"{folder.relative_to(self.path)}\0{name}".encode(errors="surrogateescape")
        return FoundTrace(
            paths=paths,
            place=str(place),
            id=xxhash.xxh3_64_hexdigest(key),
            states=tuple((path.name, it.st_size, it.st_mtime_ns) for path, it in files),
            owner=files[0][1].st_uid,
            error=next(filter(None, (heads[path].error for path, _ in files)), ""),
        )

    def _files(self) -> dict[Path, list[tuple[Path, os.stat_result]]]:
        """Return the files with the suffixes of traces by folder, the nearest folders first."""
        found: dict[Path, list[tuple[Path, os.stat_result]]] = {}
        waiting, left = deque([self.path]), MOST_ENTRIES
        while waiting and left > 0:
            folder = waiting.popleft()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        left -= 1
                        if entry.name.startswith("."):
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(folder / entry.name)
                        elif entry.name.endswith(SUFFIXES) and entry.is_file(
                            follow_symlinks=False
                        ):
                            status = entry.stat(follow_symlinks=False)
                            if status.st_size:
                                file = (folder / entry.name, status)
                                found.setdefault(folder, []).append(file)
            except OSError:
                continue  # removed just now, or of another user
        self.is_cut = left <= 0
        return found

    def _head(self, path: Path, status: os.stat_result) -> _Head:
        known = self._heads.get(path)
        if known is not None and known.is_of(status):
            return known
        about = status.st_ino, status.st_size
        if not os.access(path, os.R_OK):
            return _Head(*about, "", 0, is_listed=False)  # of another user
        try:
            segment = read_segment(path, path)
        except TraceError as error:
            return _Head(*about, "", 0, is_listed=True, error=visible(str(error)))
        if segment.schema_version is None:
            # Data of other programs is not listed; a trace with a damaged beginning is.
            is_listed = segment.begins_well and not segment.empty
            return _Head(*about, "", 0, is_listed=is_listed)
        return _Head(*about, *segment.identity, is_listed=True)


def _without_copies(
    files: list[tuple[Path, os.stat_result]], heads: Mapping[Path, _Head]
) -> Iterator[list[tuple[Path, os.stat_result]]]:
    """Yield the largest file of each segment, then the next largest ones, which are copies."""
    rest = sorted(files, key=lambda file: (-file[1].st_size, file[0]))
    while rest:
        of_number: dict[int, tuple[Path, os.stat_result]] = {}
        for file in rest:
            of_number.setdefault(heads[file[0]].segment, file)
        part = sorted(of_number.values())
        yield part
        rest = [file for file in rest if file not in part]
