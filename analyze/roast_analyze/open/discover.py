"""Files of traces: which files a name means, and which segment of which trace each file is.

A name is a file, a folder of segments, or a pattern for either. The header of a file states its
trace and segment; a file without a header belongs to the trace of its neighbors.
"""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from roast_analyze.errors import INSTALL_COMMAND, NotATrace, SchemaTooNew, TraceNotFound
from roast_analyze.open.block_reader import OPENINGS
from roast_analyze.open.damage import Damage
from roast_analyze.open.decompress import MAGIC, Breaks, Content, detect_compression
from roast_schemas import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: File names that a folder is searched for.
SUFFIXES: Final = (".jsonl", ".jsonl.zst", ".jsonl.gz")

#: First bytes of a segment: compressed, or a header.
_BEGINNINGS: Final = (*MAGIC.values(), *(opening + b'header",' for opening in OPENINGS))

#: A header must lie within so many bytes.
_HEADER_BYTES: Final = 2**20

_HEADER_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "t": (int, float),
    "trace_id": str,
    "segment": int,
    "schema_version": str,
}


@dataclass(frozen=True)
class Header:
    """Fields of the header of a segment."""

    trace_id: str
    segment: int
    schema_version: str


@dataclass(frozen=True)
class Segment:
    """A segment file.

    Parameters
    ----------
    path : Path
    nbytes : int
        Size of the file when it was found; nothing after it is read.
    stamp : tuple of int
        Device, inode and time of the last change in nanoseconds. A file with the same size
        and stamp has the same content.
    compression : str
        ``zstd``, ``gzip`` or ``uncompressed``.
    header : Header or None
    empty : bool
        Whether the file has no lines, without damage that could explain it.
    begins_well : bool
        Whether the first bytes are those that the recorder writes.
    """

    path: Path
    nbytes: int
    stamp: tuple[int, int, int]
    compression: str
    header: Header | None
    empty: bool
    begins_well: bool


@dataclass(frozen=True)
class Identity:
    """Trace and number of a segment."""

    trace_id: str
    segment: int


@dataclass(frozen=True)
class Part:
    """A segment to read; `name` is the argument that it was found by."""

    name: str
    segment: Segment
    identity: Identity


@dataclass(frozen=True)
class LeftOut:
    """A file that is not read, and why; `segment` is None if unknown."""

    name: str
    damage: Damage
    trace_id: str
    segment: int | None


@dataclass(frozen=True)
class Inputs:
    """The segments to read, in order, and the files that are left out."""

    parts: tuple[Part, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def nbytes(self) -> int:
        """Total size of the files to read."""
        return sum(part.segment.nbytes for part in self.parts)


def find_inputs(names: Iterable[Path]) -> Inputs:
    """Find the segments of some traces.

    Raises
    ------
    TraceNotFound, NotATrace, SchemaTooNew
    """
    parts: list[Part] = []
    left_out: list[LeftOut] = []
    for name in names:
        segments = [read_segment(path) for path in segment_paths(name)]
        identified = list(_identify(name, segments))
        parts += [Part(str(name), segment, identity) for segment, identity in identified]
        for segment in segments:
            if segment.empty:
                damage = Damage("empty file", None, f"{segment.path.name} is empty")
                trace_id = identified[-1][1].trace_id
                left_out.append(LeftOut(str(name), damage, trace_id, None))
    parts, duplicates = _without_duplicates(parts)
    return Inputs(tuple(parts), (*left_out, *duplicates))


def group_by_trace(names: Iterable[Path]) -> list[tuple[Path, ...]]:
    """Group names by trace; several names can mean parts of one trace, and one name several.

    Parameters
    ----------
    names : iterable of Path
        Files, folders of segments, or patterns.

    Returns
    -------
    list of tuple of Path
        The paths to open each trace with, in the order of `names`: a name, or the single files
        if the name also means other traces.

    Raises
    ------
    TraceNotFound, NotATrace, SchemaTooNew
    """
    traces: dict[str, dict[Path, None]] = {}
    for name in names:
        identified = list(_identify(name, [read_segment(path) for path in segment_paths(name)]))
        # Without any header the trace_id is a file name, which is not unique.
        has_header = any(segment.header for segment, _ in identified)
        is_single = len({identity.trace_id for _, identity in identified}) == 1
        for segment, identity in identified:
            key = identity.trace_id if has_header else str(name.absolute())
            traces.setdefault(key, {})[name if is_single else segment.path] = None
    return [tuple(paths) for paths in traces.values()]


def segment_paths(name: Path) -> list[Path]:
    """Return the files of a trace, in the order of their names.

    Parameters
    ----------
    name : Path
        A file, a folder of segments, or, if no such path exists, a pattern (``*``, ``?``,
        ``[…]``, ``**``).

    Raises
    ------
    TraceNotFound
        If the path does not exist.
    NotATrace
        If it is neither a file nor a folder with segments.
    """
    try:
        if name.is_file():
            return [name]
        if name.is_dir():
            return _segments_in(name)
        exists = name.exists()
        matches = [] if exists else glob.glob(str(name), recursive=True)  # noqa: PTH207
    except OSError as error:
        raise NotATrace(f"cannot read {str(name)!r}: {error.strerror}") from None
    if exists:
        raise NotATrace(f"{str(name)!r} is neither a file nor a folder: name a trace")
    if not matches:
        raise TraceNotFound(
            f"{str(name)!r} does not exist: name a trace file or a folder of segments"
        )
    return [
        path
        for match in sorted(map(Path, matches), key=_natural_order)
        for path in ([match] if match.is_file() else _segments_in(match))
    ]


def trace_name(path: Path) -> str:
    """Return the file name of a trace without its suffix."""
    name = path.absolute().name
    suffix = next((s for s in sorted(SUFFIXES, key=len)[::-1] if name.endswith(s)), "")
    return name.removesuffix(suffix) or name


def read_segment(path: Path) -> Segment:
    """Read the beginning of a segment file.

    Raises
    ------
    NotATrace
        If it cannot be read.
    SchemaTooNew
        If it was recorded with a newer major version of the schema.
    """
    try:
        str(path.resolve()).encode()  # DuckDB accepts only UTF-8
        with path.open("rb") as file:
            status = path.stat()
            compression = detect_compression(file, path.suffix)
            content = Content(file, compression, 0, status.st_size)
            beginning = bytearray()
            for piece in content:
                beginning += piece.data
                if len(beginning) >= _HEADER_BYTES:
                    break
    except OSError as error:
        raise NotATrace(f"cannot read {str(path)!r}: {error.strerror}") from None
    except UnicodeEncodeError:
        raise NotATrace(f"the file name {str(path)!r} is not UTF-8: rename the file") from None
    header = _find_header(bytes(beginning[:_HEADER_BYTES]))
    versions = parse_schema_version(header.schema_version) if header else None
    if header and versions and versions[0][0] > versions[1][0]:
        raise SchemaTooNew(
            f"{str(path)!r} has schema version {header.schema_version}, newer than "
            f"{SCHEMA_VERSION}: upgrade with {INSTALL_COMMAND}"
        )
    return Segment(
        path=path,
        nbytes=status.st_size,
        stamp=(status.st_dev, status.st_ino, status.st_mtime_ns),
        compression=compression,
        header=header,
        empty=not beginning.strip(b"\r\n") and content.breaks == Breaks(),
        begins_well=any(
            # A newline is added to what was decompressed from a cut frame.
            known.startswith(bytes(beginning[: len(known)]).rstrip(b"\n"))
            for known in _BEGINNINGS
        ),
    )


def parse_schema_version(version: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return a schema version and the current one as numbers, or None if it is invalid."""
    if not re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", version):
        return None
    parsed, current = (tuple(map(int, v.split("."))) for v in (version, SCHEMA_VERSION))
    return parsed, current


def _find_header(beginning: bytes) -> Header | None:
    for line in beginning.split(b"\n"):
        if b'"header"' not in line:
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if (
            isinstance(record, dict)
            and record.get("kind") == "header"
            and all(
                isinstance(record.get(name), types) for name, types in _HEADER_TYPES.items()
            )
        ):
            return Header(record["trace_id"], record["segment"], record["schema_version"])
    return None


def _segments_in(folder: Path) -> list[Path]:
    found = [
        entry
        for entry in folder.iterdir()
        if entry.name.endswith(SUFFIXES) and not entry.name.startswith(".") and entry.is_file()
    ]
    if not found:
        raise NotATrace(
            f"the folder {str(folder)!r} contains no trace: segments end in "
            f"{', '.join(SUFFIXES)}"
        )
    return sorted(found, key=_natural_order)


def _natural_order(path: Path) -> list[tuple[int, str]]:
    """Return a sort key that puts 2 before 10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", str(path))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _identify(name: Path, segments: list[Segment]) -> Iterator[tuple[Segment, Identity]]:
    """Yield the segments that are not empty with their identities."""
    found = [segment for segment in segments if not segment.empty]
    if not found:
        raise NotATrace(f"{str(name)!r} is empty: name a trace recorded by roast")
    headers = [segment.header for segment in found if segment.header]
    trace_id = headers[0].trace_id if headers else trace_name(name)
    number = 0
    for segment in found:
        if segment.header:
            trace_id, number = segment.header.trace_id, segment.header.segment
        else:
            number += 1
        yield segment, Identity(trace_id, number)


def _without_duplicates(parts: list[Part]) -> tuple[list[Part], list[LeftOut]]:
    """Keep the longest file of each segment, ordered by trace and segment."""
    copies: dict[Identity, list[Part]] = {}
    for part in parts:
        copies.setdefault(part.identity, []).append(part)
    trace_ids = list(dict.fromkeys(identity.trace_id for identity in copies))
    kept, left_out = [], []
    for identity in sorted(copies, key=lambda i: (trace_ids.index(i.trace_id), i.segment)):
        # A file that was named twice is not a duplicate.
        files = list({part.segment.stamp: part for part in copies[identity]}.values())
        if len(files) > 1:
            files.sort(key=lambda part: sum(map(len, _content(part.segment))), reverse=True)
        best, *others = files
        kept.append(best)
        for other in others:
            is_contained = _begins_with(best.segment, other.segment)
            difference = "contains all its records" if is_contained else "is longer and differs"
            detail = (
                f"{other.segment.path.name} was skipped in favor of {best.segment.path.name}, "
                f"which {difference}"
            )
            damage = Damage("duplicate segment", 0 if is_contained else None, detail)
            left_out.append(LeftOut(other.name, damage, identity.trace_id, identity.segment))
    return kept, left_out


def _begins_with(long: Segment, short: Segment) -> bool:
    """Return whether the content of one segment begins with that of another.

    Both are read in pieces, because they can be larger than the memory.
    """
    rest = _content(short)
    expected = b""
    for data in _content(long):
        while len(expected) < len(data):
            more = next(rest, None)
            if more is None:
                return data.startswith(expected)
            expected += more
        if not expected.startswith(data):
            return False
        expected = expected[len(data) :]
    return not expected and next(rest, None) is None


def _content(segment: Segment) -> Iterator[bytes]:
    with segment.path.open("rb") as file:
        for piece in Content(file, segment.compression, 0, segment.nbytes):
            yield bytes(piece.data)
