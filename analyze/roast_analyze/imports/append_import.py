"""Append imported records to a trace: those of a file completely, or none.

The last file of the trace is copied, the imported records are appended to the copy, and the
copy replaces the file. If the process is killed or the disk is full, the trace does not
change. Recorded lines keep their bytes and their position.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import os
import shutil
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from time import time
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import orjson
import zstandard

from roast_analyze.errors import MissingExtra, NotATrace, NotWritable, TraceError
from roast_analyze.open.decompress import SUFFIX, Content, open_for_content
from roast_analyze.open.discover import find_inputs
from roast_analyze.open.lines import MAX_LINE_BYTES
from roast_analyze.open.session import Session

if TYPE_CHECKING:
    from roast_analyze.open.discover import Segment

#: Length of the digest that identifies an imported file.
_DIGITS: Final = 16

#: Files are copied in pieces, because they can be larger than the memory.
_PIECE_BYTES: Final = 2**20

#: Last time in a trace, and whether its last segment certainly ends with a complete line.
_END: Final = """
SELECT
    max(stop_t),
    coalesce(bool_or(clean_end) FILTER (segment = $segment), false) AND NOT EXISTS (FROM loss)
FROM trace_info
"""


class ImportData(NamedTuple):
    """Content of a file to import."""

    name: str  # program that wrote the file
    facts: dict[str, Any]  # fields of the ``import`` record
    records: Iterable[dict[str, Any]]  # without ``t`` and ``source``, possibly read on demand


def append_files(
    trace: Path,
    files: Sequence[Path],
    read: Callable[[Path], AbstractContextManager[ImportData]],
) -> list[tuple[Path, dict[str, int] | TraceError | None]]:
    """Import files into a trace file or a folder of segments.

    Return each file with the numbers of its records by kind, or None if it was skipped because
    the trace contains it, or the error if it cannot be read. Raise TraceError if the only file
    cannot be read, or if the trace cannot be written; the trace is then unchanged.
    """
    with _last_segment(trace) as segment, TemporaryFile() as lines:
        with Session(trace) as opened:
            known = {source for (source,) in opened.rows("SELECT source FROM imports")}
            [(stop_t, is_complete)] = opened.rows(_END, {"segment": segment.identity.segment})
        # Imported records get the last time of the trace.
        if stop_t is None:
            raise NotATrace(
                f"{str(trace)!r} has no readable records: nothing can be imported into it"
            )
        results: list[tuple[Path, dict[str, int] | TraceError | None]] = []
        for file in files:
            result: dict[str, int] | TraceError | None = None
            try:
                source = digest(file)[:_DIGITS]
                if source not in known:
                    with read(file) as data:
                        result = _write_import(lines, data, file, source, stop_t)
                    # The same file can be named twice in one call.
                    known.add(source)
            except MissingExtra:  # for all files
                raise
            except TraceError as error:
                if len(files) == 1:
                    raise
                result = error
            results.append((file, result))
        if any(isinstance(result, dict) for _, result in results):
            _append(segment, lines, is_complete=is_complete)
    return results


@contextmanager
def _last_segment(trace: Path) -> Iterator[Segment]:
    """Find the file to import into, and lock it against recorders and other imports."""
    while True:
        segments = find_inputs([trace]).segments
        if len({segment.identity.trace_id for segment in segments}) > 1:
            raise NotATrace(f"{str(trace)!r} contains several traces: name one of them")
        segment = segments[-1]
        with segment.path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise NotWritable(
                    f"{str(segment.path)!r} is being recorded or imported into: wait "
                    "until that has ended"
                ) from None
            except OSError:
                # Some network file systems do not support locks; the recorder does not require
                # them either.
                pass
            # Another import may have replaced the file between opening and locking it.
            if segment.path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                # Its content can have changed before it was locked.
                yield find_inputs([trace]).segments[-1]
                return


def digest(path: Path) -> str:
    """Return a digest of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TraceError(f"{str(path)!r} cannot be read: {error.strerror}") from None


def _write_import(
    target: IO[bytes], data: ImportData, path: Path, source: str, t: float
) -> dict[str, int]:
    """Write the ``import`` record of a file, with their checksum, and then its records."""
    counts: Counter[str] = Counter()
    nbytes = crc32 = 0
    with TemporaryFile() as lines:
        for record in data.records:
            kind = record["kind"]
            line = as_line({"kind": kind, "t": t, "source": source, **record})
            # A longer line could not be read again.
            if len(line) > MAX_LINE_BYTES:
                raise TraceError(
                    f"{str(path)!r} has a record of {len(line)} bytes, more than the limit of "
                    f"{MAX_LINE_BYTES}: it cannot be imported"
                )
            lines.write(line)
            counts[kind] += 1
            nbytes += len(line)
            crc32 = zlib.crc32(line, crc32)
        # Size and checksum of the lines that follow: a cut or changed import is a loss.
        facts = {
            "kind": "import",
            "t": t,
            "name": data.name,
            "source": source,
            "filename": path.name,
            **data.facts,
            "records_by_kind": dict(counts),
            "nbytes": nbytes,
            "crc32": crc32,
            "value": {"imported_t": time(), **data.facts.get("value", {})},
        }
        target.write(as_line(facts))
        lines.seek(0)
        shutil.copyfileobj(lines, target, _PIECE_BYTES)
    return dict(counts)


def as_line(record: dict[str, Any]) -> bytes:
    """Encode a record as a line of a trace."""
    present = {name: value for name, value in record.items() if value is not None}
    return orjson.dumps(present, option=orjson.OPT_APPEND_NEWLINE)


def _append(segment: Segment, lines: IO[bytes], *, is_complete: bool) -> None:
    """Append lines to a file by replacing it; a truncated last line is ended first."""
    path = segment.path.resolve()
    with replacing(path, "; it is unchanged") as file:
        with path.open("rb") as recorded:
            shutil.copyfileobj(recorded, file, _PIECE_BYTES)
        # The copy takes the place of the file, with its permissions.
        os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
        if segment.compression == "uncompressed":
            # A trailer that lost only its newline is not detected as truncated.
            file.seek(-1, os.SEEK_END)
            is_complete = is_complete and file.read(1) == b"\n"
        rest = b"" if is_complete else _remove_truncated_frame(file, segment)
        file.seek(0, os.SEEK_END)
        lines.seek(0)
        with compressing(file, segment.compression) as target:
            if not is_complete:
                target.write(rest + b"\n")
            shutil.copyfileobj(lines, target, _PIECE_BYTES)


def _remove_truncated_frame(file: IO[bytes], segment: Segment) -> bytes:
    """Remove a truncated frame from the end of a file, and return its content."""
    complete_nbytes, rest = 0, b""
    with open_for_content(segment.path) as recorded:
        content = Content(recorded, segment.compression, 0, segment.nbytes)
        # A piece without an end is the readable content of a truncated frame.
        for piece in content:
            if piece.end is None:
                rest += piece.data
            else:
                complete_nbytes, rest = piece.end, b""
    if content.breaks.cut_at is None:
        return b""
    # Bytes appended to it would be decompressed as part of it.
    file.truncate(complete_nbytes)
    return rest


@contextmanager
def replacing(path: Path, note: str = "") -> Iterator[IO[bytes]]:
    """Yield a new file that replaces a file if the block succeeds, or raise NotWritable."""
    draft = path.with_name(f".{path.name}.importing")
    try:
        draft.unlink(missing_ok=True)  # left by a killed import
        # Traces hold the user's names and error messages: private to the user.
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        with contextlib.suppress(OSError):  # some file systems cannot sync a folder
            descriptor = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise NotWritable(
            f"cannot write {str(path)!r}: {error.strerror or error}{note}"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def compression_of(name: str) -> str:
    """Return the compression of a trace file by its name."""
    return next((c for c, suffix in SUFFIX.items() if name.endswith(suffix)), "uncompressed")


@contextmanager
def compressing(file: IO[bytes], compression: str) -> Iterator[Any]:
    """Yield a writer to a file: plain, a gzip member or a zstd frame."""
    if compression == "uncompressed":
        yield file
    elif compression == "gzip":
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as member:
            yield member
    else:
        compressor = zstandard.ZstdCompressor(level=6)
        with compressor.stream_writer(file, closefd=False) as frame:
            yield frame
