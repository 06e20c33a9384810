"""Cache of the databases of traces that were read before.

An entry is a folder with a database and a ``manifest.json``, which describes the files that the
database was made from and how far each was read. An entry is found by the identity of the
traces, and used only if the files have not changed: by size and stamp, or else by a digest of
all bytes. A database is never modified. To grow it, it is copied, and the manifest, which is
written last, names the new one. So two processes can build the same entry at the same time
without affecting readers.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import uuid
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin, get_type_hints

import platformdirs
import xxhash

from roast_analyze.errors import TraceError
from roast_analyze.open.account import Account, Progress  # noqa: TC001 - types of fields
from roast_analyze.open.discover import Identity
from roast_analyze.open.views import definitions_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roast_analyze.open.discover import Inputs, Segment

#: Environment variables with the folder of the cache and its maximum size in bytes.
FOLDER_VARIABLE: Final = "ROAST_CACHE_DIR"
BYTES_VARIABLE: Final = "ROAST_CACHE_BYTES"

DEFAULT_BYTES: Final = 20 * 2**30

#: Unfinished files of a killed process are removed after this time.
ABANDONED_SECONDS: Final = 24 * 3600.0

#: File with the description of an entry.
MANIFEST: Final = "manifest.json"
_FINISHED, _UNFINISHED = ".duckdb", ".unfinished"
#: Suffix of the databases of derived tables. Before it are the name of the database that they
#: were derived from, a unique name, and the size.
_TABLES: Final = ".tables"
#: Read in pieces, because a segment can be larger than the memory.
_DIGEST_BYTES: Final = 2**22


@dataclass(frozen=True)
class Loaded:
    """A segment in a database."""

    path: str  # absolute and without links, however it was named
    trace_id: str
    segment: int
    nbytes: int  # size of the file when it was read
    stamp: list[int]  # as in Segment
    account: Account
    progress: Progress  # with the digest of the first `nbytes` bytes

    @classmethod
    def of(cls, segment: Segment, account: Account, progress: Progress) -> Loaded:
        """Describe a segment that was read."""
        if progress.digest is None:
            progress = replace(progress, digest=_digest(segment.path, segment.nbytes))
        where = str(segment.path.resolve())
        known = (where, *segment.identity, segment.nbytes, list(segment.stamp))
        return cls(*known, account, progress)

    def is_current(self, segment: Segment) -> bool:
        """Return whether the file is at the same place, with the same size and stamp."""
        now = (str(segment.path.resolve()), segment.nbytes, list(segment.stamp))
        return now == (self.path, self.nbytes, self.stamp)

    def is_prefix_of(self, segment: Segment) -> bool:
        """Return whether the file has the same content, or begins with it."""
        if segment.nbytes < self.nbytes:
            return False
        if segment.nbytes == self.nbytes and list(segment.stamp) == self.stamp:
            return True
        return _digest(segment.path, self.nbytes) == self.progress.digest


@dataclass(frozen=True)
class Manifest:
    """Description of the files that a database was made from."""

    database: str
    database_bytes: int
    segments: list[Loaded]
    left_out: str  # the files that are left out, only to compare it

    def reusable(self, inputs: Inputs) -> dict[Identity, Loaded]:
        """Return the segments that need not be read from their beginning.

        There is none if the database cannot be extended: the order of its rows is the order of
        the trace, so new rows must come last in their trace, and none may be removed.
        """
        loaded = {Identity(known.trace_id, known.segment): known for known in self.segments}
        if not loaded.keys() <= {segment.identity for segment in inputs.segments}:
            return {}
        growing: set[str] = set()
        for segment in inputs.segments:
            trace_id = segment.identity.trace_id
            known = loaded.get(segment.identity)
            if known is None:
                growing.add(trace_id)
            elif trace_id in growing or not known.is_prefix_of(segment):
                return {}
            elif known.nbytes < segment.nbytes:
                if known.progress.rows_after:
                    return {}
                growing.add(trace_id)
        return loaded


def _from_dict(kind: Any, values: Any) -> Any:
    """Convert the result of :func:`dataclasses.asdict` back."""
    if get_origin(kind) is list and is_dataclass(item := get_args(kind)[0]):
        return [_from_dict(item, value) for value in values]
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return values
    types = get_type_hints(kind)
    return kind(**{name: _from_dict(types[name], value) for name, value in values.items()})


class Entry:
    """The cache entry of some traces."""

    def __init__(self, inputs: Inputs) -> None:
        # The first segment identifies a trace: a growing trace keeps its entry.
        first: dict[str, int] = {}
        for segment in inputs.segments:
            first.setdefault(*segment.identity)
        # A file of a folder must not replace the entry of the folder.
        is_file = [segment.name == segment.path for segment in inputs.segments[:1]]
        # With the digest, another version of roast or DuckDB makes a separate entry.
        key = json.dumps([definitions_digest(), *is_file, *first.items()])
        self.folder = cache_folder() / xxhash.xxh3_128_hexdigest(key.encode())

    def manifest(self) -> Manifest | None:
        """Read the manifest; return None if there is no complete database."""
        try:
            values = json.loads((self.folder / MANIFEST).read_bytes())
            manifest: Manifest = _from_dict(Manifest, values)
            # A full disk or a crash of the machine can cut a database.
            if self.database(manifest).stat().st_size != manifest.database_bytes:
                return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return manifest

    def database(self, manifest: Manifest) -> Path:
        """Return the path of a database."""
        # Only the name, so that an edited manifest cannot refer to a file in another folder.
        return self.folder / Path(manifest.database).name

    def touch(self) -> None:
        """Record that the entry was used."""
        with contextlib.suppress(OSError):
            os.utime(self.folder / MANIFEST)

    def remove(self) -> None:
        """Remove the entry, because it is damaged."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def building(self, origin: Manifest | None = None) -> Iterator[Path]:
        """Yield the path for a new database, with a copy of an older one if given."""
        with unfinished(self.folder) as path:
            if origin is not None:
                shutil.copyfile(self.database(origin), path)
            yield path

    def publish(self, database: Path, segments: list[Loaded], left_out: str) -> Path:
        """Make a database from :meth:`building` the one of the entry; return its new path."""
        finished = database.with_suffix(_FINISHED)
        database.replace(finished)
        manifest = Manifest(finished.name, finished.stat().st_size, segments, left_out)
        draft = finished.with_suffix(".json")
        try:
            draft.write_text(json.dumps(asdict(manifest)), encoding="utf-8")
            draft.replace(self.folder / MANIFEST)
        finally:
            draft.unlink(missing_ok=True)
        # Readers of older databases have them open. Those that others are building stay.
        remove_abandoned(self.folder)
        for path in self.folder.iterdir():
            if path != finished and path.suffix in {_FINISHED, _TABLES}:
                with contextlib.suppress(OSError):
                    path.unlink()
        evict(keep=self.folder)
        return finished


@contextlib.contextmanager
def unfinished(folder: Path) -> Iterator[Path]:
    """Yield the path for a new database, and remove the file afterwards if it still exists."""
    path = draft_path(folder)
    make_private(folder)
    try:
        yield path
    finally:
        for file in files_of_draft(path):
            file.unlink(missing_ok=True)


def make_private(folder: Path) -> None:
    """Create a folder as private as that of a trace."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def draft_path(folder: Path) -> Path:
    """Return a path in a folder for a new database."""
    return folder / f"{uuid.uuid4().hex}{_UNFINISHED}"


def files_of_draft(path: Path) -> list[Path]:
    """Return the files that DuckDB can create for a new database."""
    return [path.with_name(path.name + suffix) for suffix in ("", ".wal", ".wal.checkpoint")]


def keep_tables(draft: Path, database: Path) -> Path:
    """Make a complete draft a file of derived tables of a database; return its path."""
    nbytes = draft.stat().st_size
    path = draft.with_name(f"{database.stem}-{draft.stem}-{nbytes}{_TABLES}")
    draft.replace(path)
    if database.parent.parent == cache_folder():
        evict(keep=database.parent)
    return path


def kept_tables(database: Path) -> set[Path]:
    """Return the complete files of derived tables of a database; remove others."""
    remove_abandoned(database.parent)
    complete = set()
    for path in database.parent.glob(f"{database.stem}-*{_TABLES}"):
        with contextlib.suppress(OSError):
            # A full disk or a crash of the machine can cut a database.
            if path.stem.endswith(f"-{path.stat().st_size}"):
                complete.add(path)
            else:
                path.unlink()
    return complete


def remove_abandoned(folder: Path) -> None:
    """Remove the drafts of killed processes."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            is_used = path.name == MANIFEST or path.suffix in {_FINISHED, _TABLES}
            is_used |= path.is_dir()
            if not is_used and time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                path.unlink()


def template_path(name: str) -> Path:
    """Return the path of a database without rows, from which others are copied."""
    return _templates() / f"{definitions_digest()}.{name}"


def _templates() -> Path:
    return cache_folder() / "templates"


def cache_folder() -> Path:
    """Return the folder of the cache."""
    configured = os.environ.get(FOLDER_VARIABLE)
    try:
        path = Path(configured or platformdirs.user_cache_dir("roast", appauthor=False))
        return path.expanduser()
    except RuntimeError:
        # In a container, a user can have no home folder. At this path nothing can be written.
        return Path(os.devnull, "roast")


def _digest(path: Path, nbytes: int) -> str:
    """Return a digest of the first bytes of a file."""
    digest = xxhash.xxh3_128()
    with path.open("rb", buffering=0) as file:
        left = nbytes
        while data := file.read(min(_DIGEST_BYTES, left)):
            digest.update(data)
            left -= len(data)
    return digest.hexdigest()


def evict(keep: Path) -> None:
    """Remove the least recently used entries until the cache is small enough."""
    text = os.environ.get(BYTES_VARIABLE, "") or str(DEFAULT_BYTES)
    if not text.isdecimal():
        raise TraceError(f"invalid {BYTES_VARIABLE} {text!r}: use a number of bytes")
    entries = []
    # The folder may also contain other files of the user.
    for folder in (_templates(), *cache_folder().glob("[0-9a-f]" * 32)):
        with contextlib.suppress(OSError):
            stats = [file.stat() for file in folder.rglob("*")]
            # `touch` renews the manifest at each use, because many file systems do not record
            # reads.
            used = max((stat.st_mtime for stat in stats), default=0.0)
            entries.append((used, sum(stat.st_size for stat in stats), folder))
    total = sum(nbytes for _, nbytes, _ in entries)
    for _used, nbytes, folder in sorted(entries):
        if total <= int(text):
            return
        if folder != keep:
            shutil.rmtree(folder, ignore_errors=True)
            total -= nbytes
