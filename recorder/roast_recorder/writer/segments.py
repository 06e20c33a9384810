"""A trace on disk: one file, or a folder of numbered segments.

Every segment can be read alone. It begins with the header; the second and later ones then
repeat the records that still apply: facts of the environment and the workers that have
joined and not left. A segment that ends in order closes with a trailer, which has its
record counts and the checksum of all bytes before it.

Records that cannot be written are counted by kind and reported in ``loss`` records with
the next successful write. For each kind, records passed in = records written + records
dropped.

The writing process may be killed at any moment. :attr:`Segments.state`, taken after each
call, is all that another process needs to continue: it cuts the file back to that state.
A finished segment is therefore removed only by a later call than the one that finished it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
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

from roast_recorder.writer.trace_file import ENDINGS, TraceFile
from roast_schemas.redact import Redactor

Record = dict[str, Any]

#: Number of records and the first and last ``t`` among them, by kind.
Tally = dict[str, tuple[int, float, float]]

#: Reasons in ``loss`` records.
UNWRITTEN = "the trace could not be written: {why}"
UNENCODABLE = "a record could not be encoded: {why}"
NOT_RETAINED = "an older segment was removed to keep within retain_bytes"

#: Names of segments. Retention removes no other file.
SEGMENT_NAME = re.compile(r"\d{6,}\.jsonl(\.zst|\.gz)?")

#: Kinds that later segments repeat, and the kind that ends a repetition.
STANDING_KINDS = {"environment", "worker_added", "worker_removed"}

#: Disk space that is held for the last losses and the trailer: some 300 losses.
RESERVE_BYTES = 64 * 2**10


class Segments:
    """Writes the records of one trace.

    Parameters
    ----------
    target : str
        A name with one of :data:`~roast_recorder.writer.trace_file.ENDINGS` is one file,
        which is never rotated. Any other name, and any existing folder, is a folder of
        segments; the folder and its parent are made if they are missing.
    header : dict
        Fields of the header record. ``clock_offset_seconds`` is the difference between
        this process's clock and the clock of the trace.
    settings : dict
        Settings by name, as in :meth:`roast_recorder.settings.Settings.as_dict`.
    retain_root : str, optional
        Apply ``retain_limit_bytes`` to the segments of all traces in this folder's
        folders, except segments that are being written.
    resume : bytes, optional
        A :attr:`state`: continue that trace, whose writer was killed.
    warn : callable
        Called with one line for the user, at most once per kind of problem.
    clock : callable
        Returns seconds since the epoch.

    Raises
    ------
    ValueError
        If `target` is no valid name, the folder holds another trace, another recording
        writes there, or the trace to resume has ended or was changed.
    OSError
        If the folder or the file cannot be made.
    """

    def __init__(
        self,
        target: str,
        header: Record,
        settings: dict[str, Any],
        *,
        retain_root: str | None = None,
        resume: bytes | None = None,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time,
    ) -> None:
        self._target = Path(target)
        self._is_folder = _is_folder(target)
        self._settings = settings
        self._warn = warn
        self._clock = clock
        self._redactor = Redactor(settings["redact_patterns"]) if settings["redact"] else None
        self._header = self._redactor.record(header) if self._redactor else header
        self._state = _State()
        if resume is not None:
            self._state = pickle.loads(resume)  # noqa: S301 - made by `state`
            if self._redactor:
                # The redactions in the header were counted when the trace began.
                self._redactor.replaced = self._state.redacted_values
        self._retain_root = Path(retain_root) if retain_root is not None else None
        self._retained_nbytes: int | None = None
        self._reserve: IO[bytes] | None = None
        if self._is_folder:
            self._prepare_folder(resumed=resume is not None)
        self._file: TraceFile | None = None
        self._open()

    @property
    def records_by_kind(self) -> Counter[str]:
        """Records in the trace so far: removed segments included, repetitions not."""
        return self._state.records_by_kind

    @property
    def dropped_by_kind(self) -> Counter[str]:
        """Records that were dropped so far."""
        return self._state.dropped_by_kind

    @property
    def nbytes(self) -> int:
        """Size of everything written so far, in bytes."""
        return self._state.finished_nbytes + self._state.segment.nbytes

    @property
    def state(self) -> bytes:
        """State from which another process can continue the trace after the last call."""
        self._state.redacted_values = self._redactor.replaced if self._redactor else 0
        return pickle.dumps(self._state)

    def write(self, records: Iterable[Record]) -> None:
        """Write records in one append, after the losses not reported yet.

        It never raises: records that cannot be written are counted.

        Parameters
        ----------
        records : iterable of dict
            Each with ``kind`` and ``t``. Those of kind ``loss`` count as dropped records.
        """
        batch = self._encode(records)
        self._retain()
        if batch.lines or self._state.losses:
            try:
                if self._is_due():
                    self._append(trailer={"t": self._now(), "reason": "rotated"})
                    self._close()
                self._append(batch)
            except Exception as error:  # noqa: BLE001 - recording must not end the run
                self._drop(batch.tally, UNWRITTEN.format(why=_reason(error)))
                self._warn_unwritten(error)
        # Only now: a segment that began with this batch has these among its records.
        for record, line in batch.standing:
            self._state.repeat(record, line)

    def finish(self, t: float, reason: str) -> None:
        """End the trace in order, with a trailer, also on a full disk.

        Parameters
        ----------
        t : float
            When the recording ended.
        reason : str
            Why it ended.
        """
        self._retain()
        replaced = self._redactor.replaced if self._redactor else 0
        self._end({"t": t, "reason": reason, "redacted_values": replaced})

    def abandon(self) -> None:
        """End the trace without a trailer."""
        self._end(None)

    # -- files ---------------------------------------------------------------------------

    def _path(self, number: int) -> Path:
        return self._target / f"{number:06d}.jsonl.zst" if self._is_folder else self._target

    def _prepare_folder(self, *, resumed: bool) -> None:
        for folder in (self._target.parent, self._target):
            folder.mkdir(mode=0o700, exist_ok=True)
        for path in self._target.iterdir():
            if not SEGMENT_NAME.fullmatch(path.name) or not path.stat().st_size:
                continue
            if not resumed:
                raise ValueError(
                    f"{str(self._target)!r} already holds the segments of a trace; choose "
                    "another folder, or remove it first"
                )
            if int(path.name.partition(".")[0]) > self._state.segment.number:
                # The killed writer began it after its last answer.
                path.unlink()

    def _open(self) -> TraceFile:
        """Return the file of the segment, opened if it is not open."""
        if self._state.ended:
            raise ValueError("the trace has ended")
        if self._file is None:
            self._file = TraceFile(
                self._path(self._state.segment.number),
                level=self._settings["compression_level"],
                resume_nbytes=self._state.segment.nbytes or None,
            )
        if self._reserve is None and self._file.regular:
            self._reserve = _reserve_space(self._file.path.parent)
        return self._file

    def _close(self) -> None:
        """Close the segment; the next write begins another."""
        segment = self._state.segment
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._warn_unwritten(error)
            self._file = None
        if segment.nbytes:
            self._state.finished_nbytes += segment.nbytes
            if self._is_folder and self._settings["retain_limit_bytes"] is not None:
                self._state.finished[segment.number] = segment.tally
            self._state.segment = _Segment(number=segment.number + 1)

    def _end(self, trailer: Record | None) -> None:
        try:
            if not self._state.ended and (trailer or self._state.losses):
                self._open()
                if self._reserve is not None:
                    # Its space is for the lines that follow.
                    self._reserve.close()
                self._append(trailer=trailer)
        except Exception as error:  # noqa: BLE001 - recording must not end the run
            self._warn_unwritten(error)
        if self._reserve is not None:
            self._reserve.close()
        self._close()
        self._state.ended = True

    # -- one segment ---------------------------------------------------------------------

    def _now(self) -> float:
        """Return the time on the clock of the trace."""
        return self._clock() - float(self._header.get("clock_offset_seconds", 0.0))

    def _is_due(self) -> bool:
        """Return whether the segment has reached its size or age limit."""
        segment = self._state.segment
        if not self._is_folder or not segment.nbytes:
            return False
        settings, age_seconds = self._settings, self._clock() - segment.begun_at
        return bool(
            segment.nbytes >= settings["segment_limit_bytes"]
            or age_seconds >= settings["segment_limit_seconds"]
        )

    def _encode(self, records: Iterable[Record]) -> _Batch:
        lines: list[bytes] = []
        batch = _Batch()
        ts_by_kind: defaultdict[str, list[float]] = defaultdict(list)
        redacted = map(self._redactor.record, records) if self._redactor else records
        for record in redacted:
            kind, t = record["kind"], record["t"]
            if kind == "loss":
                span = record["records"], record["start_t"], record["stop_t"]
                self._drop({record["record_kind"]: span}, record["reason"])
                continue
            try:
                line = _line(record)
            except orjson.JSONEncodeError as error:
                self._drop({kind: (1, t, t)}, UNENCODABLE.format(why=error))
                self._warn_once("encode", f"a {kind} record cannot be encoded ({error})")
                continue
            lines.append(line)
            ts_by_kind[kind].append(t)
            if self._is_folder and kind in STANDING_KINDS:
                batch.standing.append((record, line))
        batch.lines = b"".join(lines)
        batch.tally = {kind: (len(ts), min(ts), max(ts)) for kind, ts in ts_by_kind.items()}
        return batch

    def _append(self, batch: _Batch | None = None, trailer: Record | None = None) -> None:
        """Append a batch and a trailer to the segment, with the lines required before them.

        Raises
        ------
        OSError
            If the segment cannot be written; then nothing has changed.
        """
        batch = batch or _Batch()
        file, state, segment = self._open(), self._state, self._state.segment
        losses = self._loss_lines()
        counts = Counter({kind: records for kind, (records, _, _) in batch.tally.items()})
        counts["loss"] += len(losses)
        beginning, repeated = b"", Counter[str]()
        if not segment.nbytes:
            header = {"kind": "header", "t": self._now(), **self._header}
            header["segment"] = segment.number
            if segment.number > 1:
                header["t"] = self._now()
            counts["header"] += 1
            standing = [line for lines in state.standing.values() for line in lines.values()]
            repeated.update({kind: len(lines) for kind, lines in state.standing.items()})
            beginning = _line(header) + b"".join(standing)
        in_segment = segment.records_by_kind + counts + repeated
        lines = b"".join([beginning, *losses, batch.lines])
        crc32 = zlib.crc32(lines, segment.crc32)
        if trailer:
            line = _line(
                {
                    "kind": "trailer",
                    "t": trailer["t"],
                    "segment": segment.number,
                    "reason": trailer["reason"],
                    "records_by_kind": in_segment,
                    "dropped_by_kind": segment.dropped_by_kind,
                    **trailer,
                }
            ).removesuffix(b"}\n")
            # A changed digit in a plain file is detected by nothing else.
            lines += line + b',"crc32":%d}\n' % zlib.crc32(line, crc32)
            counts["trailer"] += 1
        file.append(lines)

        if not segment.nbytes:
            segment.begun_at = self._clock()
        segment.nbytes, segment.crc32 = file.nbytes, crc32
        segment.records_by_kind = in_segment
        _add(segment.tally, batch.tally)
        state.records_by_kind += counts
        state.losses = {}

    # -- dropped records -----------------------------------------------------------------

    def _drop(self, tally: Tally, reason: str) -> None:
        """Count records as dropped, to be reported by the next write."""
        for kind, (records, _, _) in tally.items():
            self._state.dropped_by_kind[kind] += records
            self._state.segment.dropped_by_kind[kind] += records
        self._state.lose(reason, "", tally)

    def _loss_lines(self) -> list[bytes]:
        t = self._now()
        return [
            _line(
                {
                    "kind": "loss",
                    "t": t,
                    "reason": reason,
                    "record_kind": kind,
                    "records": records,
                    "start_t": start_t,
                    "stop_t": stop_t,
                    **({"detail": detail} if detail else {}),
                }
            )
            for (reason, detail), tally in self._state.losses.items()
            for kind, (records, start_t, stop_t) in tally.items()
        ]

    def _warn_unwritten(self, error: Exception) -> None:
        self._warn_once("write", f"{self._target} cannot be written ({_reason(error)})")

    def _warn_once(self, problem: str, line: str) -> None:
        if problem not in self._state.warned:
            self._state.warned.add(problem)
            self._warn(f"{line}; the run continues")

    # -- retention -----------------------------------------------------------------------

    def _retain(self) -> None:
        """Remove the oldest segments beyond the limit, and report those of this trace."""
        limit = self._settings["retain_limit_bytes"]
        if limit is None or not self._is_folder:
            return
        # Listing all folders for each batch would be slow on a network file system.
        listed = self._retained_nbytes
        if listed is not None and self.nbytes - listed < limit / 100:
            return
        self._retained_nbytes = self.nbytes
        finished = {self._path(number): number for number in self._state.finished}
        removed = False
        with contextlib.suppress(OSError):
            segments = sorted(self._segments_on_disk())
            excess = sum(nbytes for _, _, nbytes in segments) - limit
            for _, path, nbytes in segments:
                if excess > 0 and _remove(path, claim=path not in finished):
                    excess -= nbytes
                    removed = True
                    if path.parent != self._target:
                        with contextlib.suppress(OSError):  # it has other files
                            path.parent.rmdir()
        if removed:
            warning = f"{self._target}: older segments are removed, retain_bytes={limit}"
            self._warn_once("retain", warning)
        # Also those that another trace's writer removed, or a killed one of this trace.
        with contextlib.suppress(OSError):
            for path, number in finished.items():
                if not path.exists():
                    tally = self._state.finished.pop(number)
                    self._state.lose(NOT_RETAINED, f"segment {number}", tally)

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


@dataclass
class _Batch:
    """The encoded records of one call."""

    lines: bytes = b""
    tally: Tally = field(default_factory=dict)
    #: Records that later segments repeat, or that end a repetition, and their lines.
    standing: list[tuple[Record, bytes]] = field(default_factory=list)


@dataclass
class _Segment:
    """State of the segment that is being written."""

    number: int = 1
    nbytes: int = 0
    #: Checksum of its lines so far.
    crc32: int = 0
    begun_at: float = 0.0
    records_by_kind: Counter[str] = field(default_factory=Counter)
    dropped_by_kind: Counter[str] = field(default_factory=Counter)
    #: Its records without header and repetitions.
    tally: Tally = field(default_factory=dict)


@dataclass
class _State:
    """State of the trace, in values that another process can unpickle."""

    segment: _Segment = field(default_factory=_Segment)
    records_by_kind: Counter[str] = field(default_factory=Counter)
    dropped_by_kind: Counter[str] = field(default_factory=Counter)
    redacted_values: int = 0
    finished_nbytes: int = 0
    #: Finished segments that retention may remove, by number.
    finished: dict[int, Tally] = field(default_factory=dict)
    #: Losses not reported yet, by reason and detail.
    losses: dict[tuple[str, str], Tally] = field(default_factory=dict)
    #: Lines that the next segment repeats, by kind and subject.
    standing: dict[str, dict[str, bytes]] = field(default_factory=dict)
    warned: set[str] = field(default_factory=set)
    ended: bool = False

    def lose(self, reason: str, detail: str, tally: Tally) -> None:
        """Add to the losses not reported yet."""
        _add(self.losses.setdefault((reason, detail), {}), tally)

    def repeat(self, record: Record, line: bytes) -> None:
        """Repeat a record in the next segments, or end a repetition."""
        kind = record["kind"]
        subject = str(record.get("server_id") or record.get("worker"))
        if kind == "worker_removed":
            self.standing.get("worker_added", {}).pop(subject, None)
            self.standing.get("environment", {}).pop(f"process/worker/{subject}", None)
            return
        if kind == "environment":
            fact = f"{record.get('section')}/{record.get('name')}"
            subject = f"{fact}/{subject}" if record.get("server_id") else fact
        self.standing.setdefault(kind, {})[subject] = line


def _is_folder(target: str) -> bool:
    """Return whether a target is a folder of segments.

    Raises
    ------
    ValueError
        If the name is a file's, but no trace's.
    """
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


def _reserve_space(folder: Path) -> IO[bytes] | None:
    """Hold disk space in an unnamed file, whose space is free once it is closed.

    Returns
    -------
    file or None
        None if it cannot be made. On a nearly full disk it can be smaller than
        :data:`RESERVE_BYTES`.
    """
    with contextlib.suppress(OSError):
        reserve = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        # A file system that compresses would allocate nothing for zeros.
        reserve.write(os.urandom(RESERVE_BYTES))
        return reserve
    return None


def _remove(path: Path, *, claim: bool) -> bool:
    """Remove a segment unless another writer has claimed it; return whether it was removed."""
    try:
        if claim:
            # Network file systems grant the lock only for a file open for writing.
            with path.open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        else:
            path.unlink()
    except OSError:
        return False
    return True


def _add(tally: Tally, more: Tally) -> None:
    """Add to a tally in place."""
    for kind, (records, start_t, stop_t) in more.items():
        before, first_t, last_t = tally.get(kind, (0, start_t, stop_t))
        tally[kind] = before + records, min(start_t, first_t), max(stop_t, last_t)


def _line(record: Record) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
