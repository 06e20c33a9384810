"""Files of traces: the files that a name refers to, and the trace and segment of each file.

A name is a file, a folder of segments, or a pattern for either. The header of a file states its
trace and segment; a file without a header belongs to the trace of its neighbors.
"""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from roast_analyze.errors import (
    INSTALL_COMMAND,
    NotATrace,
    SchemaTooNew,
    TraceNotFound,
)
from roast_analyze.open.damage import Damage
from roast_analyze.open.decompress import (
    MAGIC,
    Breaks,
    Content,
    detect_compression,
    open_for_content,
)
from roast_analyze.open.foreign import describe
from roast_analyze.open.lines import OPENINGS, parse_record
from roast_analyze.open.names import SUFFIXES
from roast_schemas import SCHEMA_VERSION
from roast_schemas.describe import is_valid, number_fields
from roast_schemas.documentation import docs
from roast_schemas.urls import is_like_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: First bytes of a segment: compressed, or a header.
_BEGINNINGS: Final = (*MAGIC.values(), *(opening + b'header",' for opening in OPENINGS))

#: A header must lie within this number of bytes.
_HEADER_BYTES: Final = 2**20

#: Compressed files are assumed to contain this multiple of their size.
_COMPRESSION_RATIO: Final = 12

_HEADER_TEXTS: Final = ("trace_id", "schema_version")
_HEADER_NUMBERS: Final = {
    name: number_fields("header")[name].valid for name in ("t", "segment")
}


class Identity(NamedTuple):
    """Trace and number of a segment."""

    trace_id: str
    segment: int


@dataclass(frozen=True)
class Segment:
    """A segment file."""

    name: Path  # argument that it was found by
    path: Path
    nbytes: int  # size of the file when it was found; nothing after it is read
    #: Device, inode and time of the last change in nanoseconds. A file with the same size and
    #: stamp has the same content.
    stamp: tuple[int, int, int]
    compression: str  # zstd, gzip or uncompressed
    identity: Identity  # from the header, or else from its neighbors
    schema_version: str | None  # None without a header
    empty: bool  # no lines, and no damage that could explain it
    begins_well: bool  # whether the first bytes are those that the recorder writes

    def content(self) -> Iterator[bytes]:
        """Yield the decompressed content in pieces: it can be larger than the memory."""
        with open_for_content(self.path) as file:
            for piece in Content(file, self.compression, 0, self.nbytes):
                yield piece.data

    def begins_with(self, other: Segment) -> bool:
        """Return whether the content begins with that of another segment."""
        rest, expected = other.content(), b""
        for data in self.content():
            while len(expected) < len(data):
                more = next(rest, None)
                if more is None:
                    return data.startswith(expected)
                expected += more
            if not expected.startswith(data):
                return False
            expected = expected[len(data) :]
        return not expected and next(rest, None) is None


class Inputs(NamedTuple):
    """The segments to read, in order, and the files that are left out."""

    segments: tuple[Segment, ...]
    #: Reason, trace, and number of the segment if it is known.
    left_out: tuple[tuple[Damage, str, int | None], ...]

    @property
    def nbytes(self) -> int:
        """Total size of the files to read."""
        return sum(segment.nbytes for segment in self.segments)

    @property
    def content_bytes(self) -> int:
        """Estimated size of their decompressed content."""
        return sum(
            segment.nbytes
            * (1 if segment.compression == "uncompressed" else _COMPRESSION_RATIO)
            for segment in self.segments
        )


def find_inputs(names: Iterable[Path]) -> Inputs:
    """Find the segments of some traces: of each number the longest file, in order."""
    copies: dict[Identity, list[Segment]] = {}
    left_out: list[tuple[Damage, str, int | None]] = []
    for name in names:
        found, empty = _read_segments(name)
        for segment in found:
            copies.setdefault(segment.identity, []).append(segment)
        for segment in empty:
            damage = Damage("empty file", None, f"{segment.path.name} is empty")
            left_out.append((damage, found[-1].identity.trace_id, None))
    trace_ids = list(dict.fromkeys(identity.trace_id for identity in copies))
    kept = []
    # Traces in the order of the arguments, and their segments by number.
    for identity in sorted(copies, key=lambda i: (trace_ids.index(i.trace_id), i.segment)):
        # A file that was named twice is not a duplicate.
        files = list({segment.stamp: segment for segment in copies[identity]}.values())
        if len(files) > 1:
            files.sort(key=lambda segment: sum(map(len, segment.content())), reverse=True)
        best, *others = files
        kept.append(best)
        for other in others:
            is_contained = best.begins_with(other)
            difference = (
                "contains all its records" if is_contained else "is no shorter and differs"
            )
            detail = (
                f"{other.path.name} was skipped in favor of {best.path.name}, "
                f"which {difference}"
            )
            damage = Damage("duplicate segment", 0 if is_contained else None, detail)
            left_out.append((damage, *identity))
    return Inputs(tuple(kept), tuple(left_out))


def group_by_trace(names: Iterable[Path]) -> list[tuple[Path, ...]]:
    """Return the paths to open each trace with, in the order of `names`.

    Several names can refer to parts of one trace. If one name refers to several traces, its
    single files are returned instead, and each without a header is a trace of its own.
    """
    traces: dict[str, dict[Path, None]] = {}
    for name in names:
        segments, _ = _read_segments(name)
        if len({segment.identity.trace_id for segment in segments}) == 1:
            parts = {name: segments}
        else:
            parts = {segment.path: [segment] for segment in segments}
        for path, of_trace in parts.items():
            # Without any header the trace_id is a file name, which is not unique.
            has_header = any(segment.schema_version is not None for segment in of_trace)
            key = of_trace[0].identity.trace_id if has_header else str(path.absolute())
            traces.setdefault(key, {})[path] = None
    return [tuple(paths) for paths in traces.values()]


def segment_paths(name: Path) -> list[Path]:
    """Return the files of a trace, in the order of their names.

    The name is that of a file or of a folder of segments, or, if no such path exists, a pattern
    (``*``, ``?``, ``[…]``, ``**``) for files with the suffixes of traces, or else for others.
    """
    return [path for part in parts_of(name) for path in parts_of(part)]


def parts_of(name: Path) -> list[Path]:
    """Return the matches of a pattern, the segments of a folder, or a file itself."""
    try:
        if name.is_file():
            return [name]
        if name.is_dir():
            return _segments_in(name)
        exists = name.exists()
        found = [] if exists else glob.glob(str(name), recursive=True)  # noqa: PTH207
    except OSError as error:
        raise NotATrace(f"cannot read {str(name)!r}: {error.strerror}") from None
    if exists:
        raise NotATrace(
            f"{str(name)!r} is neither a file nor a folder: name a trace, or - for stdin"
        )
    # A link to a missing file matches its own name.
    matches = [match for match in map(Path, found) if match != name]
    if not matches:
        raise TraceNotFound(_not_found(name))
    # A trace can lie beside its report, or beside results of queries.
    named = [match for match in matches if match.name.endswith(SUFFIXES) or match.is_dir()]
    return sorted(named or matches, key=_natural_order)


def _not_found(name: Path) -> str:
    """Return the error about a path that does not exist, with a similar one beside it."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]+:", str(name)):
        url = f"{name}//"  # the path of such a URL has no slashes
        return f"{url!r} names no trace: write the whole URL, or a path"
    if is_like_url(str(name)):
        return (
            f"{str(name)!r} does not exist: pass a URL as a text, not as a path, and with :// "
            "after its scheme"
        )
    if glob.has_magic(str(name)) and not name.is_symlink():
        return f"no file matches {str(name)!r}: name a trace file or a folder of segments"
    try:
        beside = [
            path.name
            for path in name.parent.iterdir()
            if path.name.endswith(SUFFIXES) or path.is_dir()
        ]
    except OSError:  # the folder does not exist either
        beside = []
    # Imported here, because commands do not need the views to find a trace.
    from roast_analyze.open.views import nearest

    near = nearest(name.name, beside, cutoff=0.8)
    remedy = (
        f"did you mean {str(name.with_name(near))!r}?"
        if near
        else "name a trace file or a folder of segments"
    )
    return f"{str(name)!r} does not exist: {remedy}"


def trace_name(path: Path) -> str:
    """Return the file name of a trace without its suffix."""
    name = path.absolute().name
    suffix = next((s for s in SUFFIXES if name.endswith(s)), "")
    return name.removesuffix(suffix) or name


def _read_segments(name: Path) -> tuple[list[Segment], list[Segment]]:
    """Return the segments that a name refers to, with their identities, and empty files."""
    segments = [read_segment(path, name) for path in segment_paths(name)]
    found = [segment for segment in segments if not segment.empty]
    if not found:
        raise NotATrace(f"{str(name)!r} is empty: name a trace recorded by roast")
    with_header = (segment.identity for segment in found if segment.schema_version is not None)
    identity = Identity(next(with_header, Identity(trace_name(name), 0)).trace_id, 0)
    for place, segment in enumerate(found):
        if segment.schema_version is None:
            identity = Identity(identity.trace_id, identity.segment + 1)
            found[place] = replace(segment, identity=identity)
        identity = found[place].identity
    return found, [segment for segment in segments if segment.empty]


def read_segment(path: Path, name: Path) -> Segment:
    """Read the beginning of a segment file; `name` is the argument that it was found by."""
    try:
        str(path.resolve()).encode()  # DuckDB accepts only UTF-8
        with open_for_content(path) as file:
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
    identity, version = _find_header(bytes(beginning[:_HEADER_BYTES]))
    numbers = version_numbers(version)
    if numbers and numbers[0] > CURRENT_VERSION[0]:
        raise SchemaTooNew(
            f"{str(path)!r} has schema version {version}, newer than "
            f"{SCHEMA_VERSION}: upgrade with {INSTALL_COMMAND} {docs('reference/trace-format')}"
        )
    return Segment(
        name=name,
        path=path,
        nbytes=status.st_size,
        stamp=(status.st_dev, status.st_ino, status.st_mtime_ns),
        compression=compression,
        identity=identity,
        schema_version=version,
        empty=not beginning.strip(b"\r\n") and content.breaks == Breaks(),
        begins_well=any(
            # A newline is added to what was decompressed from a cut frame.
            known.startswith(bytes(beginning[: len(known)]).rstrip(b"\n"))
            for known in _BEGINNINGS
        ),
    )


def version_numbers(version: str | None) -> tuple[int, int] | None:
    """Return a schema version as numbers, or None if it is invalid."""
    match = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,9})", version or "")
    return (int(match[1]), int(match[2])) if match else None


#: Version of the schema that this version of roast writes.
CURRENT_VERSION: Final = version_numbers(SCHEMA_VERSION) or (0, 0)


def _find_header(beginning: bytes) -> tuple[Identity, str | None]:
    """Return the identity and the schema version in the header of a segment, if it has one."""
    for line in beginning.split(b"\n"):
        if b'"header"' not in line:
            continue
        record = parse_record(line)
        if (
            record is not None
            and record["kind"] == "header"
            and all(isinstance(record.get(name), str) for name in _HEADER_TEXTS)
            and all(
                is_valid(record.get(name), valid) for name, valid in _HEADER_NUMBERS.items()
            )
        ):
            identity = Identity(record["trace_id"], round(record["segment"]))
            return identity, record["schema_version"]
    return Identity("", 0), None


def _segments_in(folder: Path) -> list[Path]:
    found = [
        entry
        for entry in folder.iterdir()
        if entry.name.endswith(SUFFIXES) and not entry.name.startswith(".") and entry.is_file()
    ]
    if not found:
        for entry in sorted(entry for entry in folder.iterdir() if entry.is_file())[:20]:
            if what := describe(entry):
                raise NotATrace(
                    f"the folder {str(folder)!r} contains no trace: {entry.name!r} {what}"
                )
        raise NotATrace(
            f"the folder {str(folder)!r} contains no trace: segments end in "
            f"{', '.join(SUFFIXES)}"
        )
    return sorted(found, key=_natural_order)


def _natural_order(path: Path) -> list[tuple[int, str]]:
    """Return a sort key that puts 2 before 10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", str(path))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
