"""The condition of traces on disk: whether they are being written, and how they ended.

Only the beginning and the end of a file are read, and all of it where it has no trailer and
is small, to count dropped records. A trace that is being written is locked by its writing
process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gzip
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from time import time
from typing import Any, Final

import orjson
import zstandard

from roast_recorder.scheduler import health
from roast_recorder.writer.segments import MIN_FREE_BYTES, MIN_FREE_SHARE, SEGMENT_NAME
from roast_recorder.writer.trace_file import ENDINGS

#: How much is read of the end of a file: this much, and more while no record is found.
TAIL_BYTES: Final = 256 * 2**10

#: Largest file without a trailer whose losses are counted.
MAX_COUNTED_BYTES: Final = 64 * 2**20

#: Time without a write after which a recording that samples does not work. A recording writes
#: every second or so; a scheduler can be busy for a while.
SILENT_SECONDS: Final = 30.0

#: Beginnings of a zstd frame and of a gzip member.
_BEGINNINGS: Final = {".zst": b"\x28\xb5\x2f\xfd", ".gz": b"\x1f\x8b\x08"}


@dataclass
class Condition:
    """The condition of a trace; times are those of its records or of its files."""

    path: str
    #: ``recording``, ``ended``, ``failing``, or ``not recorded``.
    state: str
    #: How it ended, or what is wrong.
    detail: str = ""
    start_t: float | None = None
    written_t: float | None = None
    nbytes: int = 0
    #: Records that are known to be lost; None if the trace has not ended and is large.
    dropped: int | None = 0

    @property
    def is_well(self) -> bool:
        """True if the recording works or has ended in order."""
        return self.state in ("recording", "ended")


def conditions(path: Path) -> Iterator[Condition]:
    """Yield the condition of a trace, or of the traces in a folder and of its notes."""
    if not path.is_dir() or _segments(path):
        yield condition(path)
        return
    for entry in sorted(path.iterdir()):
        trace = entry.name.removesuffix(health.NOTE_ENDING)
        # Retention has removed it, or it belongs to another user.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            if trace != entry.name:
                if not (path / trace).exists():
                    yield _of_note(path / trace)
            elif entry.name.endswith(ENDINGS) or (entry.is_dir() and _segments(entry)):
                yield condition(entry)


def _segments(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if SEGMENT_NAME.fullmatch(file.name))


def condition(trace: Path) -> Condition:
    """Return the condition of one trace."""
    files = _segments(trace) if trace.is_dir() else [trace]
    last = files[-1]
    status = last.stat()
    nbytes = sum(file.stat().st_size for file in files)
    header = _record(next(_lines(last), b""))
    oldest = header if last == files[0] else _record(next(_lines(files[0]), b""))
    found = Condition(str(trace), "", "", oldest.get("t"), status.st_mtime, nbytes)
    note, age = _note(trace), time() - status.st_mtime
    if not header:
        is_new = not status.st_size and _is_written(last, age)
        found.state = health.RECORDING if is_new else health.FAILING
        found.detail = note.get("problem", "it has no record")
        return found
    found.dropped = sum((header.get("dropped_by_kind") or {}).values())
    end = _last_record(last)
    reason = end.get("reason") if end.get("kind") == "trailer" else None
    if reason is not None:
        found.dropped += sum(end["dropped_by_kind"].values())
        found.written_t = end["t"]
    else:
        found.dropped = _dropped_in(last, found.dropped)
    if reason is not None and reason != "rotated":
        found.state, found.detail = health.ENDED, reason
    elif not _is_written(last, age):
        found.state, found.detail = health.FAILING, "stopped without a trailer"
    elif problem := note.get("problem") or _problem(last, header, age):
        found.state, found.detail = health.FAILING, problem
    else:
        found.state = health.RECORDING
    return found


def _of_note(trace: Path) -> Condition:
    note = _note(trace)
    problem = note.get("problem", "the note cannot be read")
    detail = f"{problem} ({note.get('scheduler')} on {note.get('host')})" if note else problem
    return Condition(str(trace), "not recorded", detail, note.get("t"), dropped=None)


def _note(trace: Path) -> dict[str, Any]:
    try:
        note = json.loads(health.note_of(str(trace)).read_bytes())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _is_written(file: Path, age: float) -> bool:
    """Return whether a process is writing a file: it has the lock."""
    try:
        with file.open("rb") as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        # Some network file systems have no locks.
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS):
            raise
        return age < SILENT_SECONDS
    return False


def _problem(file: Path, header: dict[str, Any], age: float) -> str:
    """Return what keeps a trace that is open from being written; empty if nothing does."""
    settings = header.get("settings") or {}
    intervals = [
        float(settings.get(f"{name}_interval_seconds") or 0) for name in ("flush", "sample")
    ]
    if age <= 2 * sum(intervals) or "scheduler_sample" not in settings.get("kinds", ()):
        return ""
    disk = os.statvfs(file.parent)
    free, total = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    if free < min(MIN_FREE_BYTES, total * MIN_FREE_SHARE):
        return "the disk is almost full"
    silent = age > SILENT_SECONDS + 2 * sum(intervals)
    return f"nothing was written for {age:.0f} s" if silent else ""


# -- records ------------------------------------------------------------------------------


def _lines(file: Path) -> Iterator[bytes]:
    """Yield the whole lines of a file, up to its end or to what cannot be decompressed."""
    with contextlib.suppress(Exception), file.open("rb") as opened:
        lines: Any = opened
        if file.suffix == ".gz":
            lines = gzip.GzipFile(fileobj=opened)
        elif file.suffix == ".zst":
            decompressor = zstandard.ZstdDecompressor()
            lines = BufferedReader(decompressor.stream_reader(opened, read_across_frames=True))
        yield from lines


def _record(line: bytes) -> dict[str, Any]:
    """Return the record of a line; empty if it is none."""
    with contextlib.suppress(ValueError):
        record = orjson.loads(line)
        if isinstance(record, dict):
            return record
    return {}


def _last_record(file: Path) -> dict[str, Any]:
    """Return the last whole record of a file; empty if there is none."""
    nbytes, size = TAIL_BYTES, file.stat().st_size
    while True:
        with file.open("rb") as opened:
            opened.seek(max(size - nbytes, 0))
            tail = opened.read()
        for text in _ends(tail, file.suffix):
            *lines, _ = text.split(b"\n")
            if lines and (record := _record(lines[-1])):
                return record
        if nbytes >= min(size, MAX_COUNTED_BYTES):
            return {}
        nbytes *= 8


def _ends(tail: bytes, suffix: str) -> Iterator[bytes]:
    """Yield what the end of a file may be the text of: its last frame first."""
    if suffix not in _BEGINNINGS:
        yield tail
        return
    at = len(tail)
    while (at := tail.rfind(_BEGINNINGS[suffix], 0, at)) >= 0:
        # Compressed data can look like a beginning.
        with contextlib.suppress(zlib.error, zstandard.ZstdError):
            if suffix == ".gz":
                yield zlib.decompressobj(31).decompress(tail[at:])
            else:
                yield zstandard.ZstdDecompressor().decompressobj().decompress(tail[at:])


def _dropped_in(file: Path, before: int) -> int | None:
    """Return the dropped records of a segment without trailer and of those before it."""
    if file.stat().st_size > MAX_COUNTED_BYTES:
        return None
    losses = (_record(line) for line in _lines(file) if b'"kind":"loss"' in line[:100])
    return before + sum(int(loss.get("records", 1)) for loss in losses)
