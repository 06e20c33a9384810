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

#: Kinds that roast-analyze import appends behind the trailer.
_IMPORTED: Final = ("import", "io_file", "io_segment", "function")

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
    #: Records that are known to be lost; None if that is unknown.
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
    header = next(_records(last), {})
    oldest = header if last == files[0] else next(_records(files[0]), {})
    found = Condition(str(trace), "", "", oldest.get("t"), status.st_mtime, nbytes)
    note, age = _note(trace), time() - status.st_mtime
    if not header:
        is_new = not status.st_size and _is_written(last, age)
        found.state = health.RECORDING if is_new else health.FAILING
        found.detail = note.get("problem", "it has no record")
        return found
    end, found.dropped = _last_record(last), _count_of(header)
    reason = "data was imported" if end.get("kind") in _IMPORTED else None
    if end.get("kind") == "trailer":
        reason, found.written_t = str(end.get("reason")), end.get("t")
        found.dropped += _count_of(end)
    elif reason is None:
        found.dropped = _dropped_in(last, found.dropped)
    if reason is not None and reason != "rotated":
        found.state, found.detail = health.ENDED, reason
    elif not _is_written(last, age):
        reasons = "stopped without a trailer", note.get("problem")
        found.state, found.detail = health.FAILING, ": ".join(filter(None, reasons))
    elif problem := note.get("problem") or _problem(last, header, age):
        found.state, found.detail = health.FAILING, problem
    else:
        found.state = health.RECORDING
    if not (found.is_well or found.dropped):
        found.dropped = None  # what was dropped since the last write is in no file
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
    disk, settings = os.statvfs(file.parent), header.get("settings") or {}
    # Without samples, or between two flushes, an idle scheduler has nothing to write.
    names = ("flush_interval_seconds", "sample_interval_seconds")
    interval = sum(settings.get(name, 0) for name in names)
    if age <= 2 * interval or "scheduler_sample" not in settings.get("kinds", ()):
        return ""
    if disk.f_bavail < min(MIN_FREE_BYTES / disk.f_frsize, disk.f_blocks * MIN_FREE_SHARE):
        return "the disk is almost full"
    return f"nothing was written for {age:.0f} s" if age > SILENT_SECONDS + 2 * interval else ""


# -- records ------------------------------------------------------------------------------


def _records(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file, up to its end or to what cannot be read."""
    with contextlib.suppress(Exception), file.open("rb") as opened:
        lines: Any = opened
        if file.suffix == ".gz":
            lines = gzip.GzipFile(fileobj=opened)
        elif file.suffix == ".zst":
            decompressor = zstandard.ZstdDecompressor()
            lines = BufferedReader(decompressor.stream_reader(opened, read_across_frames=True))
        yield from (one for one in map(orjson.loads, lines) if isinstance(one, dict))


def _last_record(file: Path) -> dict[str, Any]:
    """Return the last whole record of a file; empty if there is none."""
    nbytes, size = TAIL_BYTES, file.stat().st_size
    while True:
        with file.open("rb") as opened:
            opened.seek(max(size - nbytes, 0))
            tail = opened.read()
        for text in _ends(tail, file.suffix):
            # The last line can be incomplete, and compressed data can look like a beginning.
            with contextlib.suppress(IndexError, ValueError):
                record = orjson.loads(text.split(b"\n")[-2])
                return record if isinstance(record, dict) else {}
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
        with contextlib.suppress(zlib.error, zstandard.ZstdError):
            if suffix == ".gz":
                yield zlib.decompressobj(31).decompress(tail[at:])
            else:
                yield zstandard.ZstdDecompressor().decompressobj().decompress(tail[at:])


def _dropped_in(file: Path, before: int) -> int | None:
    """Return the dropped records of a segment without trailer and of those before it."""
    if file.stat().st_size > MAX_COUNTED_BYTES:
        return None
    losses = (record for record in _records(file) if record.get("kind") == "loss")
    return before + sum(int(loss.get("records", 1)) for loss in losses)


def _count_of(record: dict[str, Any]) -> int:
    return sum((record.get("dropped_by_kind") or {}).values())
