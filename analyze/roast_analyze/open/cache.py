"""Databases of traces that were read before, in a folder of the user's.

An entry is a folder with a database and ``manifest.json``, which says what the database was
made of and how far. It is found by the identity of the traces, and used only if the files
are what they were: by size and stamp, or else by a digest of all their bytes. A database is
never changed: one that has to grow is copied, and the manifest, written last, names the new
one. So two processes may build the same entry at once, and readers notice nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import platformdirs
import xxhash

from roast_analyze.errors import TraceError
from roast_analyze.open.discover import Identity
from roast_analyze.open.load import Account, Progress
from roast_analyze.open.views import definitions_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roast_analyze.open.discover import Inputs, Part
    from roast_analyze.open.segment import Segment

#: Where the cache lies and how large it may become, if not where and as large as usual.
FOLDER_VARIABLE: Final = "ROAST_CACHE_DIR"
BYTES_VARIABLE: Final = "ROAST_CACHE_BYTES"

DEFAULT_BYTES: Final = 20 * 2**30

#: What was left behind by a process that died is removed after this time.
_ABANDONED_SECONDS: Final = 24 * 3600.0

_MANIFEST: Final = "manifest.json"
_FINISHED, _UNFINISHED = ".duckdb", ".unfinished"
_HASHED_AT_ONCE: Final = 2**22


@dataclass(frozen=True)
class Loaded:
    """A segment as it lies in a database.

    Parameters
    ----------
    path : str
    trace_id : str
    segment : int
    nbytes : int
        Size of the file when it was read.
    stamp : list of int
        As :class:`roast_analyze.open.segment.Segment` has it.
    digest : str
        Of so many bytes.
    account : Account
    progress : Progress
    """

    path: str
    trace_id: str
    segment: int
    nbytes: int
    stamp: list[int]
    digest: str
    account: Account
    progress: Progress

    @classmethod
    def of(
        cls, part: Part, account: Account, progress: Progress, *, before: Loaded | None
    ) -> Loaded:
        """Describe a segment that was read; `before` is what is known if it was before."""
        segment = part.segment
        if before is not None and before.nbytes == segment.nbytes:
            digest = before.digest
        else:
            digest = _digest(segment.path, segment.nbytes)
        return cls(
            str(segment.path),
            part.identity.trace_id,
            part.identity.segment,
            segment.nbytes,
            list(segment.stamp),
            digest,
            account,
            progress,
        )

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Loaded:
        """Make one of what :func:`dataclasses.asdict` gave."""
        account = Account.from_dict(values["account"])
        progress = Progress.from_dict(values["progress"])
        return cls(**{**values, "account": account, "progress": progress})

    def is_same(self, segment: Segment) -> bool:
        """Tell, of a file that it :meth:`holds`, whether there is nothing to note about it."""
        now = (str(segment.path), segment.nbytes, list(segment.stamp))
        return now == (self.path, self.nbytes, self.stamp)

    def holds(self, segment: Segment) -> bool:
        """Tell whether the file is still what it was, or begins with it."""
        if segment.nbytes < self.nbytes:
            return False
        if segment.nbytes == self.nbytes and list(segment.stamp) == self.stamp:
            return True
        return _digest(segment.path, self.nbytes) == self.digest


@dataclass(frozen=True)
class Manifest:
    """What a database was made of."""

    database: str
    database_bytes: int
    segments: tuple[Loaded, ...]
    left_out: list[dict[str, Any]]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Manifest:
        """Make one of what :func:`dataclasses.asdict` gave."""
        segments = tuple(map(Loaded.from_dict, values["segments"]))
        return cls(**{**values, "segments": segments})

    def still_known(self, inputs: Inputs) -> dict[Identity, Loaded]:
        """Tell which segments need not be read again from their beginning.

        None, if the database cannot go on: the order of its rows is the order of a trace,
        so what is new must come last in its trace, and no row may have to be removed.
        """
        loaded = {Identity(known.trace_id, known.segment): known for known in self.segments}
        if not loaded.keys() <= {part.identity for part in inputs.parts}:
            return {}
        growing: set[str] = set()
        for part in inputs.parts:
            trace_id = part.identity.trace_id
            known = loaded.get(part.identity)
            if known is None:
                growing.add(trace_id)
            elif trace_id in growing or not known.holds(part.segment):
                return {}
            elif known.nbytes < part.segment.nbytes:
                if known.progress.rows_behind:
                    return {}
                growing.add(trace_id)
        return loaded


class Entry:
    """The place in the cache for some traces.

    Parameters
    ----------
    inputs : Inputs
        Segments of the traces.
    """

    def __init__(self, inputs: Inputs) -> None:
        first: dict[str, int] = {}
        for part in inputs.parts:
            first.setdefault(part.identity.trace_id, part.identity.segment)
        key = json.dumps([definitions_digest(), *first.items()])
        self.folder = cache_folder() / xxhash.xxh3_128_hexdigest(key.encode())

    def manifest(self) -> Manifest | None:
        """Read what the database here was made of; None if there is no whole database."""
        try:
            values = json.loads((self.folder / _MANIFEST).read_bytes())
            manifest = Manifest.from_dict(values)
            if self.database(manifest).stat().st_size != manifest.database_bytes:
                return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return manifest

    def database(self, manifest: Manifest) -> Path:
        """Give the path of a database."""
        return self.folder / Path(manifest.database).name

    def touch(self) -> None:
        """Note that it was used."""
        with contextlib.suppress(OSError):
            os.utime(self.folder / _MANIFEST)

    def drop(self) -> None:
        """Remove it: it turned out to be damaged."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def building(self, origin: Manifest | None = None) -> Iterator[Path]:
        """Give a path for a new database, a copy of an older one if there is one.

        It is removed again if building fails.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{uuid.uuid4().hex}{_UNFINISHED}"
        try:
            if origin is not None:
                shutil.copyfile(self.database(origin), path)
            yield path
        finally:
            for leftover in (path, path.with_name(path.name + ".wal")):
                leftover.unlink(missing_ok=True)

    def keep(
        self, database: Path, segments: tuple[Loaded, ...], left_out: list[dict[str, Any]]
    ) -> Path:
        """Let the entry be a database that was built in :meth:`building`.

        Returns
        -------
        Path
            Where the database now lies.
        """
        finished = database.with_suffix(_FINISHED)
        database.replace(finished)
        manifest = Manifest(finished.name, finished.stat().st_size, segments, left_out)
        draft = finished.with_suffix(".json")
        try:
            draft.write_text(json.dumps(asdict(manifest)), encoding="utf-8")
            draft.replace(self.folder / _MANIFEST)
        finally:
            draft.unlink(missing_ok=True)
        _remove_older(self.folder, but=finished)
        _make_room(but=self.folder)
        return finished


def empty_database() -> Path:
    """Tell where a database with all tables and views is kept, and nothing in them."""
    return cache_folder() / "empty" / definitions_digest()


def cache_folder() -> Path:
    """Tell where the databases of traces are kept."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else Path(platformdirs.user_cache_dir("roast", appauthor=False))


def _digest(path: Path, nbytes: int) -> str:
    """Digest the first bytes of a file."""
    digest = xxhash.xxh3_128()
    with path.open("rb", buffering=0) as file:
        room = memoryview(bytearray(_HASHED_AT_ONCE))
        left = nbytes
        while left and (read := file.readinto(room[:left])):
            digest.update(room[:read])
            left -= read
    return digest.hexdigest()


def _remove_older(folder: Path, but: Path) -> None:
    """Remove the databases that another one took the place of.

    Who reads them has them open. What others are building is let alone.
    """
    for path in folder.iterdir():
        if path.name == _MANIFEST or path == but:
            continue
        with contextlib.suppress(OSError):
            age_seconds = time.time() - path.stat().st_mtime
            if path.suffix == _FINISHED or age_seconds > _ABANDONED_SECONDS:
                path.unlink()


def _make_room(but: Path) -> None:
    """Remove the entries that were not used for longest, until the cache is small enough."""
    limit = _limit_bytes()
    entries = []
    for folder in cache_folder().iterdir():
        with contextlib.suppress(OSError):
            files = list(folder.iterdir())
            used = max((file.stat().st_mtime for file in files), default=0.0)
            entries.append((used, sum(file.stat().st_size for file in files), folder))
    total = sum(nbytes for _, nbytes, _ in entries)
    for _used, nbytes, folder in sorted(entries):
        if total <= limit:
            return
        if folder != but:
            shutil.rmtree(folder, ignore_errors=True)
            total -= nbytes


def _limit_bytes() -> int:
    text = os.environ.get(BYTES_VARIABLE, "")
    if not text:
        return DEFAULT_BYTES
    if not text.isdecimal():
        raise TraceError(f"{BYTES_VARIABLE} is {text!r}; give a number of bytes")
    return int(text)
