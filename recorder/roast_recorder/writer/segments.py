"""A trace on disk: one file, or a folder of numbered segments.

Every segment can be read alone. It begins with the header, which counts the records of all
earlier segments, because those may be removed at any time. The second and later ones then
repeat the records that still apply: facts of the environment and the workers that have
joined and not left. A segment that ends cleanly closes with a trailer, which has its
record counts and the checksum of all bytes before it.

Records that cannot be written are counted by kind and reported in ``loss`` records with
the next successful write. For each kind, records passed in = records written + records
dropped.

The writing process may be killed at any moment. A copy of :attr:`Segments.state` after each
call is all that another process needs to continue: it cuts the file back to that state.
A finished segment is therefore removed only by a later call than the one that finished it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import os
import re
import stat
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import IO, Any

import orjson

from roast_recorder.scheduler import wire_format
from roast_recorder.writer.trace_file import ENDINGS, TraceFile
from roast_schemas.documentation import docs
from roast_schemas.redact import Redactor

Record = dict[str, Any]

#: Number of records, and the first and last ``t`` among them.
Extent = tuple[int, float, float]

#: Reasons in ``loss`` records.
UNWRITTEN = "the trace could not be written: {why}"
UNENCODABLE = "a record could not be encoded: {why}"

#: Names of segments. Retention removes no other file.
SEGMENT_NAME = re.compile(r"\d{6,}\.jsonl(\.zst|\.gz)?")

#: Kinds that later segments repeat, and the kind that ends a repetition.
STANDING_KINDS = {"environment", "worker_added", "worker_removed"}

#: Disk space held in an unnamed file for the last losses and the trailer: some 300 losses.
RESERVE_BYTES = 64 * 2**10

#: Space that the traces leave free on their disk: this much, or a share of a smaller disk.
MIN_FREE_BYTES = 256 * 2**20
MIN_FREE_SHARE = 0.01

#: Size of all traces of Dask's preload without ``retain_limit_bytes``, and the share of the
#: space that they and the free disk have together. The smaller one applies.
PRELOAD_LIMIT_BYTES = 16 * 2**30
PRELOAD_SHARE = 0.5


@dataclass
class _Segment:
    """State of the segment that is being written."""

    number: int = 1
    nbytes: int = 0
    crc32: int = 0
    begun_at: float = 0.0
    records_by_kind: Counter[str] = field(default_factory=Counter)
    dropped_by_kind: Counter[str] = field(default_factory=Counter)


@dataclass
class State:
    """State of a trace, from which another process can continue it after the last call."""

    #: Number of the last batch in the trace.
    received: int = 0
    segment: _Segment = field(default_factory=_Segment)
    #: Records in the trace: removed segments included, repetitions not.
    records_by_kind: Counter[str] = field(default_factory=Counter)
    dropped_by_kind: Counter[str] = field(default_factory=Counter)
    redacted_values: int = 0
    #: Of the marks of secrets. It is in memory only, of this process and of its client.
    redaction_key: bytes = field(default_factory=lambda: os.urandom(16), repr=False)
    finished_nbytes: int = 0
    #: Losses not reported yet, by reason and kind.
    losses: dict[tuple[str, str], Extent] = field(default_factory=dict)
    #: Lines that the next segment repeats, by kind and subject.
    standing: dict[str, dict[str, bytes]] = field(default_factory=dict)
    warned: set[str] = field(default_factory=set)
    ended: bool = False
    #: True if it has ended in order: the trailer is in the trace.
    closed: bool = False
    #: True if the trace was removed, moved or replaced when it was last written.
    removed: bool = False

    @property
    def nbytes(self) -> int:
        """Size of everything written so far."""
        return self.finished_nbytes + self.segment.nbytes


class Segments:
    """Writes the records of one trace.

    A target with one of the endings of :mod:`~roast_recorder.writer.trace_file` is one file,
    which is never rotated. Any other name, and any existing folder, is a folder of segments;
    the folder and its parent are created if missing, and the folder is removed if the
    trace ends without a record. The segments of all traces in
    `retain_root` count for ``retain_limit_bytes``, except those that are being written. With
    that folder, the limit has a default. No trace uses the last free space of a disk.

    Problems become `warnings`, lines for the user, at most one per kind of problem. But a
    ValueError is raised if the target is not a valid name, holds another trace or is being
    recorded to, or if the trace to resume has ended or was changed; an OSError if the folder
    or the file cannot be created.
    """

    def __init__(
        self,
        target: str,
        header: Record,
        settings: dict[str, Any],
        *,
        retain_root: str | None = None,
        resume: State | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        self._target = Path(target)
        self._is_folder = _is_folder(target)
        self._made_folder = False
        self._settings = settings
        self._retain_root = Path(retain_root) if retain_root else None
        self._clock = clock
        self.state = resume or State()
        redactor = Redactor(settings["redact_patterns"], self.state.redaction_key)
        self._redactor = redactor
        self._redact = redactor.record if settings["redact"] else lambda record: record
        self._header = self._redact(header)
        if resume is None:
            self.state.redacted_values = redactor.replaced
        # The redactions in the header were counted when the trace began.
        redactor.replaced = self.state.redacted_values
        self.warnings: list[str] = []
        self._listed_nbytes: int | None = None
        self._retain_limit_bytes = self._limit_of(0)
        self._reserve: IO[bytes] | None = None
        self._file: TraceFile | None = None
        # Of a folder of segments, the parent is created as well.
        above = self._target.parent.parent if self._is_folder else self._target.parent
        if not above.is_dir():
            raise FileNotFoundError(
                f"folder {str(above)!r} does not exist: create it, or name another"
            )
        if self._is_folder:
            for folder in (self._target.parent, self._target):
                self._made_folder = not folder.exists()
                # File names and error messages of the user are private, as in a single file.
                folder.mkdir(mode=0o700, exist_ok=True)
            for path in self._target.iterdir():
                if SEGMENT_NAME.fullmatch(path.name) and path.stat().st_size:
                    if resume is None:
                        raise ValueError(
                            f"{str(self._target)!r} already holds the segments of a trace; "
                            "choose another folder, or remove it first"
                        )
                    if int(path.name.partition(".")[0]) > self.state.segment.number:
                        # The killed writer began it after its last answer.
                        path.unlink()
        self._open()

    def begin(self) -> None:
        """Write the header, so that the file shows a recording that has no record yet.

        It never raises. If it fails, the first write tries it again.
        """
        if not self.state.nbytes:
            try:
                self._require_space()
                self._append()
            except Exception as error:  # noqa: BLE001 - recording must not end the run
                self._warn_unwritten(error)

    def write_batches(self, batches: Iterable[tuple[int, bytes]]) -> None:
        """Write encoded rows, by the number of their batch, unless the trace has them."""
        for number, batch in batches:
            if number > self.state.received:
                self.write(wire_format.records(batch))
                self.state.received = number

    def write(self, records: Iterable[Record]) -> None:
        """Write records in one append, after the losses not reported yet.

        It never raises: records that cannot be written are counted. Those of kind ``loss``
        count as dropped records.
        """
        lines, extents, standing = self._encode(records)
        self.state.redacted_values = self._redactor.replaced
        self._retain()
        segment, settings = self.state.segment, self._settings
        # Only finished segments can be removed.
        limit_bytes = min(settings["segment_limit_bytes"], self._retain_limit_bytes / 4)
        is_due = self._is_folder and (
            segment.nbytes >= limit_bytes
            or self._clock() - segment.begun_at >= settings["segment_limit_seconds"]
        )
        if lines or self.state.losses:
            try:
                self._require_space()
                if is_due and segment.nbytes:
                    self._append(trailer={"t": self._now(), "reason": "rotated"})
                    self._close()
                self._append(lines, extents)
            except Exception as error:  # noqa: BLE001 - recording must not end the run
                for kind, extent in extents.items():
                    self._drop(kind, extent, UNWRITTEN.format(why=_reason(error)))
                self._warn_unwritten(error)
        # Only now: a segment that began with this batch has these among its records.
        for record, line in standing:
            self._repeat(record, line)

    def finish(self, t: float, reason: str) -> None:
        """End the trace in order at time `t`, with a trailer, also on a full disk.

        Without a reason, the recording did not end cleanly, and there is no trailer.
        """
        self._retain()
        redacted_values = self.state.redacted_values
        trailer = {"t": t, "reason": reason, "redacted_values": redacted_values}
        self._end(trailer if reason else None)

    def abandon(self) -> None:
        """End the trace without a trailer."""
        self._end(None)

    # -- files ---------------------------------------------------------------------------

    def _path(self, number: int) -> Path:
        return self._target / f"{number:06d}.jsonl.zst" if self._is_folder else self._target

    def _open(self) -> TraceFile:
        """Return the file of the segment, opened if it is not open."""
        if self.state.ended:
            raise ValueError("the trace has ended")
        if self._file is None:
            segment, level = self.state.segment, self._settings["compression_level"]
            path = self._path(segment.number)
            self._file = TraceFile(path, level=level, resume_nbytes=segment.nbytes)
        if self._reserve is None and self._file.regular:
            with contextlib.suppress(OSError):
                reserve = tempfile.TemporaryFile(dir=self._file.path.parent, buffering=0)  # noqa: SIM115
                # A file system that compresses would allocate nothing for zeros.
                reserve.write(os.urandom(RESERVE_BYTES))
                self._reserve = reserve
        return self._file

    def _close(self) -> None:
        """Close the segment; the next write begins another."""
        state, segment = self.state, self.state.segment
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._warn_unwritten(error)
            self._file = None
        if segment.nbytes:
            state.finished_nbytes += segment.nbytes
            state.segment = _Segment(number=segment.number + 1)

    def _end(self, trailer: Record | None) -> None:
        try:
            if not self.state.ended and (trailer or self.state.losses):
                self._open()
                if self._reserve is not None:
                    # Its space is for the lines that follow.
                    self._reserve.close()
                self._append(trailer=trailer)
                self.state.closed = trailer is not None
        except Exception as error:  # noqa: BLE001 - recording must not end the run
            self._warn_unwritten(error)
        if self._reserve is not None:
            self._reserve.close()
        self._close()
        self.state.ended = True
        if self._made_folder:
            with contextlib.suppress(OSError):  # it has segments
                self._target.rmdir()

    # -- one segment ---------------------------------------------------------------------

    def _now(self) -> float:
        """Return the time on the clock of the trace."""
        return self._clock() - float(self._header.get("clock_offset_seconds", 0.0))

    def _encode(
        self, records: Iterable[Record]
    ) -> tuple[bytes, dict[str, Extent], list[tuple[Record, bytes]]]:
        """Return lines, extents by kind, and records that matter to later segments."""
        lines: list[bytes] = []
        ts_by_kind: defaultdict[str, list[float]] = defaultdict(list)
        standing = []
        for record in map(self._redact, records):
            kind, t = record["kind"], record["t"]
            if kind == "loss":
                extent = record.get("records", 0), record["start_t"], record["stop_t"]
                self._drop(record["record_kind"], extent, record["reason"])
                continue
            try:
                line = _line(record)
            except orjson.JSONEncodeError as error:
                self._drop(kind, (1, t, t), UNENCODABLE.format(why=error))
                self._warn_once(
                    "encode", f"a record of kind {kind} cannot be encoded ({error})"
                )
                continue
            lines.append(line)
            ts_by_kind[kind].append(t)
            if self._is_folder and kind in STANDING_KINDS:
                standing.append((record, line))
        extents = {kind: (len(ts), min(ts), max(ts)) for kind, ts in ts_by_kind.items()}
        return b"".join(lines), extents, standing

    def _append(
        self,
        lines: bytes = b"",
        extents: dict[str, Extent] | None = None,
        trailer: Record | None = None,
    ) -> None:
        """Append lines and a trailer, after what must precede them.

        After an exception, nothing has changed.
        """
        file, state, segment, now = self._open(), self.state, self.state.segment, self._now()
        extents = extents or {}
        counts = Counter({kind: records for kind, (records, _, _) in extents.items()})
        losses = [
            _line({"kind": "loss", "t": now, **wire_format.loss(reason, kind, *extent)})
            for (reason, kind), extent in state.losses.items()
        ]
        counts["loss"] += len(losses)
        before, repeated = losses, Counter[str]()
        if not segment.nbytes:
            header = {"kind": "header", "t": now, **self._header, "segment": segment.number}
            if segment.number > 1:
                header["t"] = now
                header["records_by_kind"] = state.records_by_kind
                header["dropped_by_kind"] = state.dropped_by_kind - segment.dropped_by_kind
            counts["header"] += 1
            standing = [line for facts in state.standing.values() for line in facts.values()]
            repeated.update({kind: len(facts) for kind, facts in state.standing.items()})
            before = [_line(header), *standing, *losses]
        lines = b"".join([*before, lines])
        in_segment = segment.records_by_kind + counts + repeated
        # Of the uncompressed lines, so that compressing a trace again does not change it.
        crc32 = zlib.crc32(lines, segment.crc32)
        if trailer:
            trailer = {
                "kind": "trailer",
                **trailer,
                "segment": segment.number,
                "records_by_kind": in_segment,
                "dropped_by_kind": segment.dropped_by_kind,
            }
            last = _line(trailer).removesuffix(b"}\n")
            # Nothing else detects a changed digit in a plain file.
            lines += last + b',"crc32":%d}\n' % zlib.crc32(last, crc32)
            counts["trailer"] += 1
        file.append(lines)

        if not segment.nbytes:
            segment.begun_at = self._clock()
        segment.nbytes, segment.crc32 = file.nbytes, crc32
        segment.records_by_kind = in_segment
        state.records_by_kind += counts
        # Only now, because an append that fails must leave them for the next one.
        state.losses = {}
        state.removed = False

    def _repeat(self, record: Record, line: bytes) -> None:
        """Repeat a record in the next segments, or end a repetition."""
        kind, standing = record["kind"], self.state.standing
        subject = str(record.get("server_id") or record.get("worker"))
        if kind == "worker_removed":
            standing.get("worker_added", {}).pop(subject, None)
            standing.get("environment", {}).pop(f"process/worker/{subject}", None)
            return
        if kind == "environment":
            fact = f"{record.get('section')}/{record.get('name')}"
            subject = f"{fact}/{subject}" if record.get("server_id") else fact
        standing.setdefault(kind, {})[subject] = line

    # -- dropped records -----------------------------------------------------------------

    def _drop(self, kind: str, extent: Extent, reason: str) -> None:
        """Count records as dropped, to be reported by the next write.

        If their number is unknown, it is 0 in the extent, and counts as one.
        """
        self.state.dropped_by_kind[kind] += extent[0] or 1
        self.state.segment.dropped_by_kind[kind] += extent[0] or 1
        records, start_t, stop_t = extent
        loss = reason, kind
        before, first_t, last_t = self.state.losses.get(loss, (0, start_t, stop_t))
        self.state.losses[loss] = before + records, min(start_t, first_t), max(stop_t, last_t)

    def _warn_unwritten(self, error: Exception) -> None:
        self.state.removed = isinstance(error, (FileNotFoundError, NotADirectoryError))
        line = f"{self._target} cannot be written ({_reason(error)})"
        self._warn_once("write", line, f" {docs('reference/trace-format')}")

    def _warn_once(self, problem: str, line: str, reference: str = "") -> None:
        if problem not in self.state.warned:
            self.state.warned.add(problem)
            self.warnings.append(f"{line}; the run continues{reference}")

    # -- retention -----------------------------------------------------------------------

    def _retain(self) -> None:
        """Remove the oldest segments beyond the limit, or on a disk that is almost full."""
        if not self._is_folder or self._retain_limit_bytes == math.inf:
            return
        # Listing all folders for each batch would be slow on a network file system.
        listed, missing = self._listed_nbytes, self._missing_space()
        growth = self.state.nbytes - (listed or 0)
        if listed is not None and growth < self._retain_limit_bytes / 100 and missing <= 0:
            return
        self._listed_nbytes = self.state.nbytes
        current = self._path(self.state.segment.number)
        with contextlib.suppress(OSError):
            segments = sorted(self._segments_on_disk())
            used = sum(nbytes for _, _, nbytes in segments)
            limit = self._retain_limit_bytes = self._limit_of(used)
            excess = max(used - limit, missing)
            for _, path, nbytes in segments:
                if path == current or excess <= 0:
                    continue
                if _remove(path, lock=path.parent != self._target):
                    excess -= nbytes
                    self._warn_once(
                        "retain",
                        f"{self._target}: older segments are removed, "
                        f"retain_limit_bytes={limit:.0f}",
                    )
                    if path.parent != self._target:
                        with contextlib.suppress(OSError):  # it has other files
                            path.parent.rmdir()

    def _limit_of(self, used: int) -> float:
        """Return the limit of all segments, which have `used` bytes."""
        if self._settings["retain_limit_bytes"] is not None:
            return float(self._settings["retain_limit_bytes"])
        if self._retain_root is None:
            return math.inf
        free, _ = self._disk()
        return min(PRELOAD_LIMIT_BYTES, (used + free) * PRELOAD_SHARE)

    def _missing_space(self) -> float:
        """Return how many bytes the disk lacks of the space that is left free."""
        free, total = self._disk()
        return min(MIN_FREE_BYTES, total * MIN_FREE_SHARE) - free

    def _require_space(self) -> None:
        """Raise an OSError if the disk is almost full."""
        if self._missing_space() > 0:
            raise OSError(errno.ENOSPC, "the disk is almost full")

    def _disk(self) -> tuple[float, float]:
        """Return the free and the total bytes of the disk; both are infinite if unknown."""
        with contextlib.suppress(OSError):
            disk = os.statvfs(self._target if self._is_folder else self._target.parent)
            if disk.f_blocks:  # some virtual file systems have no size
                return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
        return math.inf, math.inf

    def _segments_on_disk(self) -> Iterator[tuple[int, Path, int]]:
        """Yield modification time, path and size of every segment under the limit."""
        root = self._retain_root
        for folder in [self._target] if root is None else root.iterdir():
            # A link could lead out of the root.
            if folder != self._target and (folder.is_symlink() or not folder.is_dir()):
                continue
            with contextlib.suppress(OSError):
                for path in folder.iterdir():
                    status = path.lstat()
                    if SEGMENT_NAME.fullmatch(path.name) and stat.S_ISREG(status.st_mode):
                        yield status.st_mtime_ns, path, status.st_size


def _is_folder(target: str) -> bool:
    """Return whether a target is a folder of segments; refuse the name of another file."""
    if target.endswith("/") or Path(target).is_dir():
        return True
    if target.endswith(ENDINGS):
        return False
    if Path(target).suffix or Path(target).exists():
        raise ValueError(
            f"invalid trace name {target!r}: use {', '.join(ENDINGS)} for a file, or a "
            "final / for a folder of segments"
        )
    return True


def _remove(path: Path, *, lock: bool) -> bool:
    """Remove a segment unless another writer has locked it; return whether it was removed."""
    # Network file systems grant the lock only for a file open for writing.
    with contextlib.suppress(OSError), path.open("r+b") as file:
        if lock:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
        return True
    return False


def _line(record: Record) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
