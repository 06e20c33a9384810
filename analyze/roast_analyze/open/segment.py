"""A segment file: what it is a part of, told by its header.

Only the beginning of a file is looked at here; :mod:`roast_analyze.open.load` reads all of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from roast_analyze.errors import INSTALL_COMMAND, NotATrace, SchemaTooNew
from roast_analyze.open.block_reader import OPENINGS
from roast_analyze.open.decompress import MAGIC, Breaks, Content, compression_of
from roast_schemas import SCHEMA_VERSION

if TYPE_CHECKING:
    from pathlib import Path

#: How a segment begins: compressed, or with a header.
_BEGINNINGS: Final = (*MAGIC.values(), *(opening + b'header",' for opening in OPENINGS))

#: A header further behind than this is not looked for.
_PEEK_BYTES: Final = 2**20


@dataclass(frozen=True)
class Header:
    """What the header of a segment says about where it belongs."""

    trace_id: str
    segment: int
    schema_version: str


@dataclass(frozen=True)
class Segment:
    """A segment file, as it is found.

    Parameters
    ----------
    path : Path
    nbytes : int
        Size of the file when it was looked at; nothing behind is read.
    stamp : tuple of int
        Device, inode and time of the last change in nanoseconds: a file of the same size
        and stamp is the same.
    compression : str
        ``zstd``, ``gzip`` or ``uncompressed``.
    header : Header or None
    empty : bool
        There is not a line in it, and no damage that would have taken them away.
    begins_well : bool
        What there is of its beginning is what the recorder writes there.
    """

    path: Path
    nbytes: int
    stamp: tuple[int, int, int]
    compression: str
    header: Header | None
    empty: bool
    begins_well: bool


def read_segment(path: Path) -> Segment:
    """Look at the beginning of a file.

    Raises
    ------
    NotATrace
        If it cannot be read.
    SchemaTooNew
        If it was recorded with a newer major version of the schema.
    """
    try:
        str(path.resolve()).encode()  # DuckDB takes UTF-8 only
        with path.open("rb") as file:
            status = path.stat()
            compression = compression_of(file)
            beginning = bytearray()
            content = Content(file, compression, 0, status.st_size)
            for piece in content:
                beginning += piece.data
                if len(beginning) >= _PEEK_BYTES:
                    break
    except OSError as error:
        raise NotATrace(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeEncodeError:
        raise NotATrace(f"the name {str(path)!r} is not UTF-8; rename the file") from None
    header = _find_header(beginning)
    if header:
        _refuse_newer_schema(path, header.schema_version)
    stamp = (status.st_dev, status.st_ino, status.st_mtime_ns)
    empty = not beginning.strip(b"\r\n") and content.breaks == Breaks()
    begins_well = any(
        # Behind what came out of a frame that was cut stands the end of a line.
        known.startswith(bytes(beginning[: len(known)]).rstrip(b"\n"))
        for known in _BEGINNINGS
    )
    return Segment(path, status.st_size, stamp, compression, header, empty, begins_well)


def schema_versions(version: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Give a version of the schema and ours as numbers, or None if it is no version."""
    if not re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", version):
        return None
    theirs, ours = (tuple(map(int, v.split("."))) for v in (version, SCHEMA_VERSION))
    return theirs, ours


def _find_header(beginning: bytearray) -> Header | None:
    for line in bytes(beginning[:_PEEK_BYTES]).split(b"\n"):
        if b'"header"' not in line:
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if header := _as_header(record):
            return header
    return None


def _as_header(record: Any) -> Header | None:
    if not isinstance(record, dict) or record.get("kind") != "header":
        return None
    names: dict[str, Any] = {
        "t": (int, float), "trace_id": str, "segment": int, "schema_version": str
    }  # fmt: skip
    if not all(isinstance(record.get(name), types) for name, types in names.items()):
        return None
    return Header(record["trace_id"], record["segment"], record["schema_version"])


def _refuse_newer_schema(path: Path, version: str) -> None:
    versions = schema_versions(version)
    if versions and versions[0][0] > versions[1][0]:
        raise SchemaTooNew(
            f"{str(path)!r} has schema version {version}, but this roast reads up to "
            f"{SCHEMA_VERSION}; upgrade it: {INSTALL_COMMAND}"
        )
