"""Append imported records to a trace, all or none.

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
import zlib
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from time import time
from typing import IO, TYPE_CHECKING, Any, Final

import orjson
import zstandard

from roast_analyze.errors import NotATrace, NotWritable, TraceError
from roast_analyze.open.block_reader import MAX_LINE_BYTES
from roast_analyze.open.decompress import Content
from roast_analyze.open.discover import find_inputs
from roast_analyze.open.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from roast_analyze.open.discover import Part

#: Length of the digest that identifies an imported file.
_DIGITS: Final = 16

_PIECE_BYTES: Final = 2**20

#: Last time in a trace, and whether its last segment certainly ends with a complete line.
_END: Final = """
SELECT
    max(stop_t),
    coalesce(bool_or(clean_end) FILTER (segment = $segment), false) AND NOT EXISTS (FROM loss)
FROM trace_info
"""


@dataclass(frozen=True)
class ImportData:
    """Content of a file to import.

    Parameters
    ----------
    name : str
        Program that wrote the file.
    facts : dict
        Fields of the ``import`` record.
    records : iterable of dict
        Records without ``t`` and ``source``, possibly read on demand.
    """

    name: str
    facts: dict[str, Any]
    records: Iterable[dict[str, Any]]


@dataclass(frozen=True)
class ImportResult:
    """Result of importing a file.

    Parameters
    ----------
    path : Path
    records_by_kind : dict of str to int
        Number of imported records.
    already_imported : bool
        Whether the file was skipped because the trace contains it.
    """

    path: Path
    records_by_kind: dict[str, int]
    already_imported: bool = False


def append_files(
    trace: Path,
    files: Sequence[Path],
    read: Callable[[Path], AbstractContextManager[ImportData]],
) -> list[ImportResult]:
    """Import files into a trace.

    Parameters
    ----------
    trace : Path
        A trace file or a folder of segments.
    files : sequence of Path
        Files that other programs wrote.
    read : callable
        Returns a context manager with the content of a file.

    Returns
    -------
    list of ImportResult
        One per file.

    Raises
    ------
    TraceError
        If a file cannot be read or the trace cannot be written; the trace is then
        unchanged.
    """
    with _last_part(trace) as part, TemporaryFile() as lines:
        with Session(trace) as opened:
            known = {
                source for (source,) in opened.sql("SELECT source FROM imports").fetchall()
            }
            [(stop_t, is_complete)] = opened.sql(
                _END, {"segment": part.identity.segment}
            ).fetchall()
        if stop_t is None:
            raise NotATrace(
                f"{str(trace)!r} has no readable records: nothing can be imported into it"
            )
        results = []
        for file in files:
            source = _digest(file)
            if source in known:
                results.append(ImportResult(file, {}, already_imported=True))
                continue
            known.add(source)
            with read(file) as data:
                counts = _write_import(lines, data, file, source, stop_t)
            results.append(ImportResult(file, counts))
        if not all(result.already_imported for result in results):
            _append(part, lines, is_complete=is_complete)
    return results


@contextmanager
def _last_part(trace: Path) -> Iterator[Part]:
    """Find the file to import into, and lock it against recorders and other imports."""
    while True:
        parts = find_inputs([trace]).parts
        if len({part.identity.trace_id for part in parts}) > 1:
            raise NotATrace(f"{str(trace)!r} contains several traces: name one of them")
        part = parts[-1]
        with part.segment.path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise NotWritable(
                    f"{str(part.segment.path)!r} is being recorded or imported into: wait "
                    "until that has ended"
                ) from None
            except OSError:
                # Some network file systems have no locks; the recorder needs none either.
                pass
            if part.segment.path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                # Its content can have changed before it was locked.
                yield find_inputs([trace]).parts[-1]
                return


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]
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
            line = _line({"kind": kind, "t": t, "source": source, **record})
            if len(line) > MAX_LINE_BYTES:
                raise TraceError(
                    f"{str(path)!r} has a record of {len(line)} bytes, more than the limit of "
                    f"{MAX_LINE_BYTES}: nothing was imported"
                )
            lines.write(line)
            counts[kind] += 1
            nbytes += len(line)
            crc32 = zlib.crc32(line, crc32)
        facts: dict[str, Any] = {
            "kind": "import",
            "t": t,
            "name": data.name,
            "source": source,
            "filename": path.name,
            **data.facts,
            "records_by_kind": dict(counts),
            "nbytes": nbytes,
            "crc32": crc32,
        }
        facts["value"] = {"imported_t": time(), **facts.get("value", {})}
        target.write(_line(facts))
        lines.seek(0)
        shutil.copyfileobj(lines, target, _PIECE_BYTES)
    return dict(counts)


def _line(record: dict[str, Any]) -> bytes:
    present = {name: value for name, value in record.items() if value is not None}
    return orjson.dumps(present, option=orjson.OPT_APPEND_NEWLINE)


def _append(part: Part, lines: IO[bytes], *, is_complete: bool) -> None:
    """Append lines to a file by replacing it; a truncated last line is ended first."""
    path = part.segment.path.resolve()
    draft = path.with_name(f".{path.name}.importing")
    try:
        draft.unlink(missing_ok=True)  # left by a killed import
        # Traces hold the user's names and error messages: private to the user.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        shutil.copyfile(path, draft)
        shutil.copymode(path, draft)
        with draft.open("r+b") as file:
            if part.segment.compression == "uncompressed":
                # A trailer that lost only its newline is not detected as truncated.
                file.seek(-1, os.SEEK_END)
                is_complete = is_complete and file.read(1) == b"\n"
            rest = b"" if is_complete else _remove_truncated_frame(file, part)
            file.seek(0, os.SEEK_END)
            lines.seek(0)
            with compressing(file, part.segment.compression) as target:
                if not is_complete:
                    target.write(rest + b"\n")
                shutil.copyfileobj(lines, target, _PIECE_BYTES)
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
            f"{str(path)!r} cannot be written: {error.strerror or error}; it is unchanged"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _remove_truncated_frame(file: IO[bytes], part: Part) -> bytes:
    """Remove a truncated frame from the end of a file, and return its content.

    Bytes appended behind it would be decompressed as its end.
    """
    content = Content(file, part.segment.compression, 0, part.segment.nbytes)
    complete_nbytes, rest = 0, b""
    for piece in content:
        if piece.end is None:
            rest += bytes(piece.data)
        else:
            complete_nbytes, rest = piece.end, b""
    if content.breaks.cut_at is None:
        return b""
    file.truncate(complete_nbytes)
    return rest


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
