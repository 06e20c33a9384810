"""Imported records behind a recording, all of them or none.

The last file of a trace is written anew beside it, as it is and with the imports behind its
end, and then takes its place at once: whoever is killed meanwhile, or finds no room, leaves
the trace as it was. Lines of the recording stay byte for byte where they are.
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
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from roast_analyze.imports.found import Found
    from roast_analyze.open.discover import Part

#: So many digits of a digest tell a file from all others.
_DIGITS: Final = 16

_PIECE_BYTES: Final = 2**20

#: The last instant of a trace, and whether its last segment surely ends with a whole line.
_END: Final = """
SELECT
    max(stop_t),
    coalesce(bool_or(clean_end) FILTER (segment = $segment), false) AND NOT EXISTS (FROM loss)
FROM trace_info
"""


@dataclass(frozen=True)
class Added:
    """What became of a file.

    Parameters
    ----------
    path : Path
    records_by_kind : dict of str to int
        What was imported of it.
    was_there : bool
        It had been imported before, and was not again.
    """

    path: Path
    records_by_kind: dict[str, int]
    was_there: bool = False


def add(
    trace: Path,
    files: Sequence[Path],
    read: Callable[[Path], AbstractContextManager[Found]],
) -> list[Added]:
    """Import files into a trace.

    Parameters
    ----------
    trace : Path
        A trace file or a folder of segments.
    files : sequence of Path
        What other programs wrote.
    read : callable
        Reads one of them.

    Returns
    -------
    list of Added
        One a file.

    Raises
    ------
    TraceError
        If a file cannot be read, or the trace not be written; it is then as it was.
    """
    with _last_part(trace) as part, TemporaryFile() as room:
        with Session(trace) as opened:
            known = {
                source for (source,) in opened.sql("SELECT source FROM imports").fetchall()
            }
            [(stop_t, ends_well)] = opened.sql(
                _END, {"segment": part.identity.segment}
            ).fetchall()
        if stop_t is None:
            raise NotATrace(
                f"{str(trace)!r} has lost all that it held; nothing can be added to it"
            )
        results = []
        for file in files:
            source = _digest(file)
            if source in known:
                results.append(Added(file, {}, was_there=True))
                continue
            known.add(source)
            with read(file) as found:
                counts = _write_import(room, found, file, source, stop_t)
            results.append(Added(file, counts))
        if any(not result.was_there for result in results):
            _append(part, room, ends_well=ends_well)
    return results


@contextmanager
def _last_part(trace: Path) -> Iterator[Part]:
    """Find the file to import into, and keep recorders and other imports away from it."""
    while True:
        parts = find_inputs([trace]).parts
        if len({part.identity.trace_id for part in parts}) > 1:
            raise NotATrace(f"{str(trace)!r} holds several traces; name one of them")
        part = parts[-1]
        with part.segment.path.open("rb") as file:
            _claim(file, part.segment.path)
            if part.segment.path.stat().st_ino == os.fstat(file.fileno()).st_ino:
                # What it held when the lock was had, not before.
                yield find_inputs([trace]).parts[-1]
                return


def _claim(file: IO[bytes], path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise NotWritable(
            f"{str(path)!r} is being recorded, or imported into; wait for its end"
        ) from None
    except OSError:
        # Some network file systems have no locks; the recorder does without one, too.
        pass


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]
    except OSError as error:
        raise TraceError(f"{str(path)!r} cannot be read: {error.strerror}") from None


def _write_import(
    room: IO[bytes], found: Found, path: Path, source: str, t: float
) -> dict[str, int]:
    """Write what was found in a file as lines, behind the line that announces them."""
    counts: Counter[str] = Counter()
    nbytes = crc32 = 0
    with TemporaryFile() as lines:
        for record in found.records:
            kind, about = record["kind"], {"t": t, "source": source}
            line = _line({"kind": kind, **about, **record})
            if len(line) > MAX_LINE_BYTES:
                raise TraceError(
                    f"{str(path)!r} has a record of {len(line)} bytes, which none may have; "
                    "nothing of it was imported"
                )
            lines.write(line)
            counts[kind] += 1
            nbytes += len(line)
            crc32 = zlib.crc32(line, crc32)
        facts: dict[str, Any] = {
            "kind": "import",
            "t": t,
            "name": found.name,
            "source": source,
            "filename": path.name,
            **found.facts,
            "records_by_kind": dict(counts),
            "nbytes": nbytes,
            "crc32": crc32,
        }
        facts["value"] = {"imported_t": time(), **facts.get("value", {})}
        room.write(_line(facts))
        lines.seek(0)
        shutil.copyfileobj(lines, room, _PIECE_BYTES)
    return dict(counts)


def _line(record: dict[str, Any]) -> bytes:
    there = {name: value for name, value in record.items() if value is not None}
    return orjson.dumps(there, option=orjson.OPT_APPEND_NEWLINE)


def _append(part: Part, room: IO[bytes], *, ends_well: bool) -> None:
    """Put lines behind the end of a file, at once; a line that was cut there is ended."""
    path = part.segment.path.resolve()
    draft = path.with_name(f".{path.name}.importing")
    try:
        draft.unlink(missing_ok=True)  # an import that was killed may have left it
        # Traces hold names and texts of the user: nobody else may read it meanwhile.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        shutil.copyfile(path, draft)
        shutil.copymode(path, draft)
        with draft.open("r+b") as file:
            # Of a trailer that has lost its newline alone nobody can say that it was cut.
            ends_well = ends_well and (
                part.segment.compression != "uncompressed" or _ends_line(file)
            )
            cut = b"" if ends_well else _take_cut_frame(file, part)
            file.seek(0, os.SEEK_END)
            room.seek(0)
            with compressing(file, part.segment.compression) as target:
                if not ends_well:
                    target.write(cut + b"\n")
                shutil.copyfileobj(room, target, _PIECE_BYTES)
            os.fsync(file.fileno())
        draft.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise NotWritable(
            f"{str(path)!r} cannot be written anew: {error.strerror or error}; it is as it was"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _ends_line(file: IO[bytes]) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _take_cut_frame(file: IO[bytes], part: Part) -> bytes:
    """Take what there is of a frame that was cut off the end of a file; give what it held.

    What stands behind it would be taken for its end.
    """
    content = Content(file, part.segment.compression, 0, part.segment.nbytes)
    place, held = 0, b""
    for piece in content:
        if piece.end is None:
            held += bytes(piece.data)
        else:
            place, held = piece.end, b""
    if content.breaks.cut_at is None:
        return b""
    file.truncate(place)
    return held


@contextmanager
def compressing(file: IO[bytes], compression: str) -> Iterator[Any]:
    """Give what writes to a file as the file is compressed: a frame, a member, or plain."""
    if compression == "uncompressed":
        yield file
    elif compression == "gzip":
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as member:
            yield member
    else:
        compressor = zstandard.ZstdCompressor(level=6)
        with compressor.stream_writer(file, closefd=False) as frame:
            yield frame


def _sync_folder(folder: Path) -> None:
    """Let the new name of a file be on the disk, too, where a folder can be asked for that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
