"""The condition of traces on disk: whether they are being written, and how they ended.

Only the beginning and the end of a file are read, and all of it where it has no trailer and
is small, to count dropped records. A trace that is being written is locked by its writing
process.

Several users can write to the folder of the preload. Only regular files are opened, no read is
larger than the limits below, and every value is checked, so that one file cannot hide the
condition of the others.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gzip
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from time import time
from typing import Any, BinaryIO, Final

import orjson
import zstandard

from roast_recorder.scheduler import health
from roast_recorder.scheduler.health import SILENT_SECONDS
from roast_recorder.writer.segments import MIN_FREE_BYTES, MIN_FREE_SHARE, SEGMENT_NAME
from roast_recorder.writer.trace_file import ENDINGS

#: How much is read of the end of a file: this much, and more while no record is found.
TAIL_BYTES: Final = 256 * 2**10

#: Largest file without a trailer whose losses are counted.
MAX_COUNTED_BYTES: Final = 64 * 2**20

#: Decompressed content that is read of one file, and the longest line in it.
MAX_CONTENT_BYTES: Final = 2**30
MAX_LINE_BYTES: Final = 16 * 2**20

#: Frames that are tried at the end of a file: the last one can be incomplete, and compressed
#: data can look like a beginning.
MAX_TRIED_FRAMES: Final = 100

#: Largest note, and longest text of a note or a trailer that is shown.
MAX_NOTE_BYTES: Final = 64 * 2**10
MAX_TEXT: Final = 500

#: Times that a date can show: up to the year 9999.
MAX_T: Final = 253_402_300_799.0

#: Age from which an empty file on a full disk cannot be one that was just created.
NEW_SECONDS: Final = 2.0

#: Details of a note, and of a trace, that cannot be read.
UNREADABLE_NOTE: Final = "the note cannot be read"
NOT_A_FILE: Final = "it is not a regular file"

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
    if not path.is_dir():
        yield condition(path)
        return
    # Traces can lie beside segments, which any user of the folder can put there.
    if _segments(path):
        yield from _readable(path, Path.is_dir, condition)
    for entry in sorted(path.iterdir()):
        name = entry.name.removesuffix(health.NOTE_ENDING)
        if name != entry.name and name.strip("."):
            yield from _readable(path / name, lambda trace: not _is_trace(trace), _of_note)
        else:
            yield from _readable(entry, _is_trace, condition)


def _readable(
    trace: Path, is_listed: Callable[[Path], bool], read: Callable[[Path], Condition]
) -> Iterator[Condition]:
    """Yield what is read of a trace, or one line about the error of what cannot be read."""
    try:
        if is_listed(trace):
            yield read(trace)
    except (FileNotFoundError, PermissionError):
        pass  # retention has removed it, or it belongs to another user
    except OSError as error:
        detail = f"it cannot be read: {error.strerror}"
        yield Condition(str(trace), health.FAILING, detail, dropped=None)


def _is_trace(path: Path) -> bool:
    """Return whether a path in a folder is that of a trace, or has the name of one."""
    if path.name.endswith(ENDINGS) and not SEGMENT_NAME.fullmatch(path.name):
        return os.path.lexists(path)
    return path.is_dir() and bool(_segments(path))


def _segments(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if SEGMENT_NAME.fullmatch(file.name))


def condition(trace: Path) -> Condition:
    """Return the condition of one trace; raise OSError if it cannot be read."""
    files = (_segments(trace) if trace.is_dir() else None) or [trace]
    first, last = files[0], files[-1]
    with _opened(last) as file:
        status = os.fstat(file.fileno())
        header = oldest = _first_record(file, last.suffix)
        if first != last:
            with _opened(first) as beginning:
                oldest = _first_record(beginning, first.suffix)
        found = Condition(str(trace), "", nbytes=_nbytes(files))
        found.start_t = valid_time(oldest.get("t"))
        found.written_t = valid_time(status.st_mtime)
        noted, age = _noted_problem(trace), time() - status.st_mtime
        if header:
            _read_end(found, file, last.suffix, header)
        if found.state:
            return found
        if header and _is_written(file, age):
            found.detail = noted or _problem(last, header, age)
        elif header:
            found.detail = ": ".join(filter(None, ("stopped without a trailer", noted)))
        elif not status.st_size and _is_written(file, age):
            found.detail = noted or _problem_of_empty(last, age)
        else:
            found.detail = noted or "it has no record"
        found.state = health.FAILING if found.detail else health.RECORDING
    if not (found.is_well or found.dropped):
        found.dropped = None  # what was dropped since the last write is in no file
    return found


def _read_end(found: Condition, file: BinaryIO, suffix: str, header: dict[str, Any]) -> None:
    """Set how a trace ended, if it has, and its dropped records."""
    end, found.dropped = _last_record(file, suffix), _count_of(header)
    reason = "data was imported" if end.get("kind") in _IMPORTED else None
    if end.get("kind") == "trailer":
        reason, found.written_t = _text(end.get("reason")), valid_time(end.get("t"))
        found.dropped += _count_of(end)
    elif reason is None:
        found.dropped = _dropped_in(file, suffix, found.dropped)
    if reason is not None and reason != "rotated":
        found.state, found.detail = health.ENDED, reason


def _of_note(trace: Path) -> Condition:
    note = _note(trace) or {}
    detail = _text(note.get("problem")) or UNREADABLE_NOTE
    if note:
        scheduler, host = (_text(note.get(name)) or "?" for name in ("scheduler", "host"))
        detail += f" ({scheduler} on {host})"
    t = valid_time(note.get("t"))
    return Condition(str(trace), "not recorded", detail, t, dropped=None)


def _note(trace: Path) -> dict[str, Any] | None:
    """Return the note beside a trace; empty if it cannot be read, None if there is none."""
    try:
        with _opened(health.note_of(str(trace))) as file:
            note = orjson.loads(file.read(MAX_NOTE_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _noted_problem(trace: Path) -> str:
    """Return the problem in the note beside a trace; empty if there is no note."""
    note = _note(trace)
    if note is None:
        return ""
    # On a full disk, a note is created and remains empty.
    return _text(note.get("problem")) or _full_disk(trace) or UNREADABLE_NOTE


def _is_written(file: BinaryIO, age: float) -> bool:
    """Return whether a process is writing a file: it has the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        # A recording that begins must find it unlocked.
        fcntl.flock(file, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    except OSError as error:
        # Some network file systems have no locks.
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS):
            raise
        return age < SILENT_SECONDS
    return False


def _problem(file: Path, header: dict[str, Any], age: float) -> str:
    """Return what keeps a trace that is open from being written; empty if nothing is known."""
    settings = header.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    # Without samples, or between two flushes, an idle scheduler has nothing to write. What it
    # then cannot write is in the note.
    names = ("flush_interval_seconds", "sample_interval_seconds")
    interval = sum(_number(settings.get(name)) or 0.0 for name in names)
    kinds = settings.get("kinds")
    has_samples = isinstance(kinds, list) and "scheduler_sample" in kinds
    if age <= 2 * interval or not has_samples:
        return ""
    is_silent = age > SILENT_SECONDS + 2 * interval
    return _full_disk(file) or (f"nothing was written for {age:.0f} s" if is_silent else "")


def _problem_of_empty(file: Path, age: float) -> str:
    """Return what keeps the first record from being written; empty if the file is new.

    The preload writes a header at once. Without it, nothing is known of the settings.
    """
    if age <= NEW_SECONDS:
        return ""
    silent = f"nothing was written for {age:.0f} s" if age > SILENT_SECONDS else ""
    return _full_disk(file) or silent


def _full_disk(file: Path) -> str:
    """Return that the disk of a file has no space that a trace may use; empty if it has."""
    disk = os.statvfs(file.parent)
    is_full = disk.f_bavail < min(
        MIN_FREE_BYTES / disk.f_frsize, disk.f_blocks * MIN_FREE_SHARE
    )
    return "the disk is almost full" if is_full else ""


# -- values -------------------------------------------------------------------------------


def valid_time(value: Any) -> float | None:
    """Return a time since the epoch; None if it is no date up to the year 9999."""
    t = _number(value)
    return t if t is not None and 0 <= t <= MAX_T else None


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and type(value) is not bool else None


def _text(value: Any) -> str:
    """Return a text of a record or a note as one line; empty if it is none."""
    return " ".join(value[:MAX_TEXT].split()) if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 1


def _count_of(record: dict[str, Any]) -> int:
    dropped = record.get("dropped_by_kind")
    return sum(map(_count, dropped.values())) if isinstance(dropped, dict) else 0


# -- files --------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file; raise OSError for anything else, which could block or not end."""
    # Before it is opened, too: opening a FIFO resumes the process that writes it.
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, NOT_A_FILE, str(path))
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with open(os.open(path, flags), "rb") as file:  # noqa: PTH123 - a descriptor
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it was replaced
            raise OSError(errno.EINVAL, NOT_A_FILE, str(path))
        yield file


def _nbytes(files: list[Path]) -> int:
    nbytes = 0
    for file in files:
        with contextlib.suppress(FileNotFoundError):  # retention has removed it
            nbytes += file.stat().st_size
    return nbytes


class _LimitError(Exception):
    """The content of a file is beyond the limit."""


def _lines(file: BinaryIO, suffix: str, limit: list[int]) -> Iterator[bytes]:
    """Yield the lines from here to the end of a file, or raise the error of what is damaged.

    The limit is the number of bytes that may still be read of the content.
    """
    lines: Any = file
    if suffix == ".gz":
        lines = gzip.GzipFile(fileobj=file)
    elif suffix == ".zst":
        decompressor = zstandard.ZstdDecompressor()
        lines = BufferedReader(
            decompressor.stream_reader(file, read_across_frames=True, closefd=False)
        )
    while line := lines.readline(MAX_LINE_BYTES):
        limit[0] -= len(line)
        if limit[0] < 0 or len(line) == MAX_LINE_BYTES:
            raise _LimitError
        yield line


def _first_record(file: BinaryIO, suffix: str) -> dict[str, Any]:
    """Return the first record of a file; empty if there is none."""
    with contextlib.suppress(Exception):
        file.seek(0)
        record = orjson.loads(next(_lines(file, suffix, [MAX_CONTENT_BYTES])))
        return record if isinstance(record, dict) else {}
    return {}


def _last_record(file: BinaryIO, suffix: str) -> dict[str, Any]:
    """Return the last whole record of a file; empty if there is none."""
    nbytes, size, limit = TAIL_BYTES, os.fstat(file.fileno()).st_size, [MAX_CONTENT_BYTES]
    while True:
        start = max(size - nbytes, 0)
        file.seek(start)
        tail = file.read(size - start)
        for at in _frames_in(tail, suffix):
            line = b""
            # The last line can be incomplete.
            with contextlib.suppress(Exception):
                file.seek(start + at)
                for one in _lines(file, suffix, limit):
                    line = one if one.endswith(b"\n") else line
            with contextlib.suppress(ValueError):
                record = orjson.loads(line)
                return record if isinstance(record, dict) else {}
        if nbytes >= min(size, MAX_COUNTED_BYTES):
            return {}
        nbytes *= 8


def _frames_in(tail: bytes, suffix: str) -> Iterator[int]:
    """Yield where frames may begin in the end of a file: the last one first."""
    if suffix not in _BEGINNINGS:
        # Only the last two lines: the rest need not be read again.
        yield tail.rfind(b"\n", 0, max(tail.rfind(b"\n"), 0)) + 1
        return
    at = len(tail)
    for _ in range(MAX_TRIED_FRAMES):
        if (at := tail.rfind(_BEGINNINGS[suffix], 0, at)) < 0:
            return
        yield at


def _dropped_in(file: BinaryIO, suffix: str, before: int) -> int | None:
    """Return the dropped records of a segment without trailer and of those before it.

    They are unknown, None, if the segment is large.
    """
    if os.fstat(file.fileno()).st_size > MAX_COUNTED_BYTES:
        return None
    dropped = before
    try:
        file.seek(0)
        for line in _lines(file, suffix, [MAX_CONTENT_BYTES]):
            record = orjson.loads(line)
            if isinstance(record, dict) and record.get("kind") == "loss":
                dropped += _count(record.get("records", 1))
    except _LimitError:
        return None
    except Exception:  # noqa: BLE001 - the end can be incomplete
        return dropped
    return dropped
