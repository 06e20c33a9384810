"""A trace: one file, or a folder of numbered segments, written so that it survives.

Every segment can be read alone. It begins with the header and, after the first, repeats
what still holds: the facts of the environment and the workers that are there. If it ends
in order it closes with a trailer, whose counts are those of the file, and whose checksum
is that of all before it.

What cannot be written is counted by kind and said in ``loss`` records as soon as
something can be written again, so that of every kind the records that were handed over
are the records written plus the records dropped.

The process that writes may be killed at any moment. :attr:`Segments.state`, taken after
each call, is all that another one needs to go on: it cuts the file back to what that
state knows of. Segments are therefore uploaded and removed at the earliest one call after
the call that finished them.
"""

from __future__ import annotations

import contextlib
import copy
import errno
import fcntl
import re
import stat
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Any, TypedDict

import orjson

from roast_recorder.writer.sink import ENDINGS, TraceFile

Record = dict[str, Any]

#: How many records, and the ``t`` of the first and of the last of them, by kind.
Tally = dict[str, tuple[int, float, float]]

#: Why something is lost.
UNWRITTEN = "the trace could not be written: {why}"
UNENCODABLE = "a record could not be encoded: {why}"
NOT_RETAINED = "an older segment was removed to keep within retain_bytes"

#: Names of segments. Nothing else is ever removed from a folder.
SEGMENT_NAME = re.compile(r"\d{6,}\.jsonl(\.zst|\.gz)?")

#: What later segments repeat, and what ends that.
STANDING_KINDS = {"environment", "worker_added", "worker_removed"}

#: How many of the newest flushes can be given back for a trailer on a full disk.
FLUSHES_KEPT = 64

#: What a disk says that has no room for more.
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Segments:
    """Writes the records of one trace.

    Parameters
    ----------
    target : str
        A name with one of :data:`~roast_recorder.writer.sink.ENDINGS` is one file, which is
        never rotated. Anything else, and whatever is a folder already, is a folder of
        segments; it is made if it is missing, and so is the folder that it is in.
    header : dict
        Fields of the header record. Its ``clock_offset_seconds`` tells this process's
        clock from that of the trace.
    limit_bytes : int
        Size on disk at which a segment of a folder is followed by the next.
    limit_seconds : float
        Age at which it is.
    retain_bytes : int, optional
        Most that the segments of the folder may take together, up to a hundredth of it
        and what one call adds. Beyond it the oldest finished ones are removed.
    retain_root : str, optional
        Count and remove the segments of all traces in the folders of this folder, but
        for those that are being written.
    level : int
        How hard to compress.
    upload_url : str, optional
        Any URL of fsspec's. Finished segments are moved to
        ``<upload_url>/<name of the folder>/<segment>``, a single file to
        ``<upload_url>/<its name>``.
    resume : dict, optional
        A :attr:`state`: go on with this trace, whose writer was killed.
    warn : callable
        Takes one line for the user, at most one for each sort of trouble.
    clock : callable
        Seconds since the epoch.

    Attributes
    ----------
    records_by_kind : Counter
        Records in the trace so far, uploaded and removed segments included, repeated
        records not.
    dropped_by_kind : Counter
        Records that never reached it.

    Raises
    ------
    ValueError
        If the folder holds another trace, another recording writes there, or the trace to
        resume has ended or is not what it was.
    OSError
        If the folder or the file cannot be made.
    ImportError
        If what reaches the place of `upload_url` is not installed.
    """

    def __init__(
        self,
        target: str,
        header: Record,
        *,
        limit_bytes: int,
        limit_seconds: float,
        retain_bytes: int | None,
        retain_root: str | None = None,
        level: int,
        upload_url: str | None = None,
        resume: Record | None = None,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time,
    ) -> None:
        self._target = Path(target)
        self._is_folder = _is_folder(target)
        self._header = header
        self._limit_bytes = limit_bytes
        self._limit_seconds = limit_seconds
        self._level = level
        self._warn = warn
        self._clock = clock
        resumed = resume is not None
        resume = copy.deepcopy(resume) or {"trace": {}, "segment": {}}
        self._trace = _Trace(**resume["trace"])
        self._segment = _Segment(**resume["segment"])
        self._upload = _Upload(upload_url) if upload_url else None
        self._upload_due = True
        self._retention: _Retention | None = None
        if retain_bytes is not None and self._is_folder:
            self._retention = _Retention(retain_bytes, self._target, retain_root)
        if self._is_folder:
            self._prepare_folder(resumed=resumed)
        self._file: TraceFile | None = None
        self._opened()

    @property
    def records_by_kind(self) -> Counter[str]:
        """Records in the trace so far."""
        return self._trace.records_by_kind

    @property
    def dropped_by_kind(self) -> Counter[str]:
        """Records that had to be left out so far."""
        return self._trace.dropped_by_kind

    @property
    def nbytes(self) -> int:
        """Size of all that was written so far, in bytes."""
        return self._trace.finished_nbytes + self._segment.nbytes

    @property
    def state(self) -> Record:
        """All that another process needs to go on, as plain values.

        It is that of the last call if it is taken before the next one; an older one does
        not know of segments that may be uploaded or removed by now.
        """
        return copy.deepcopy({"trace": vars(self._trace), "segment": vars(self._segment)})

    def write(self, records: Iterable[Record]) -> None:
        """Write records with one append, after the losses that are to be told.

        It never raises: what cannot be written is counted.

        Parameters
        ----------
        records : iterable of dict
            Each with ``kind`` and ``t``. None at all is fine, and writes the losses.
        """
        batch = self._encode(records)
        if self._upload_due:
            self._upload_finished()
        self._retain()
        if batch.lines or self._trace.losses:
            try:
                if self._is_due():
                    self._end(self._now(), "rotated", {})
                    self._close()
                self._put(batch)
            except Exception as error:  # noqa: BLE001 - the run goes on, whatever it is
                self._drop(batch.tally, UNWRITTEN.format(why=_why(error)))
                self._warn_unwritten(error)
        # Not before: a segment that begins with this call has them among its records.
        for record, line in batch.standing:
            self._trace.note(record, line)

    def lose(
        self, reason: str, record_kind: str, records: int, start_t: float, stop_t: float
    ) -> None:
        """Write down and count records that were lost before they came here.

        Parameters
        ----------
        reason : str
        record_kind : str
        records : int
            How many.
        start_t, stop_t : float
            When the first and the last of them happened.
        """
        self._drop({record_kind: (records, start_t, stop_t)}, reason)
        self.write(())

    def finish(self, t: float, reason: str, **more_fields: Any) -> None:
        """End the trace in order: trailer, close, upload.

        On a full disk the newest records make room for the trailer that counts them.

        Parameters
        ----------
        t : float
            When the recording ended.
        reason : str
            Why.
        **more_fields
            Further fields of the trailer.
        """
        self._retain()
        try:
            self._end_on_any_disk(t, reason, more_fields)
        except Exception as error:  # noqa: BLE001 - the run goes on, whatever it is
            self._warn_unwritten(error)
        self._leave()

    def abandon(self) -> None:
        """Close the trace without a trailer; upload what there is."""
        if self._trace.losses:
            self.write(())
        self._leave()

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
            if int(path.name.partition(".")[0]) > self._segment.number:
                # The writer that was killed had begun it after it gave its last state.
                path.unlink()

    def _opened(self) -> TraceFile:
        """Give the file of the segment, which is open as long as anything is in it."""
        if self._trace.ended:
            raise ValueError("the trace has ended")
        if self._file is None:
            self._file = TraceFile(
                self._path(self._segment.number),
                level=self._level,
                resume_nbytes=self._segment.nbytes or None,
            )
        return self._file

    def _close(self) -> None:
        """Leave the segment as it is; the next one is opened with what comes next."""
        segment = self._segment
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._warn_unwritten(error)
            self._file = None
        if segment.nbytes:
            self._trace.finished_nbytes += segment.nbytes
            if self._upload or self._retention:
                self._trace.finished.append({"number": segment.number, "tally": segment.tally})
            self._upload_due = True
            self._segment = _Segment(number=segment.number + 1)

    def _leave(self) -> None:
        self._close()
        self._trace.ended = True
        self._upload_finished()

    # -- one segment ---------------------------------------------------------------------

    def _now(self) -> float:
        """Tell the time on the clock of the trace."""
        return self._clock() - float(self._header.get("clock_offset_seconds", 0.0))

    def _is_due(self) -> bool:
        """Tell whether the segment has had its time."""
        segment = self._segment
        if not self._is_folder or not segment.nbytes:
            return False
        age_seconds = self._clock() - segment.begun_at
        return segment.nbytes >= self._limit_bytes or age_seconds >= self._limit_seconds

    def _encode(self, records: Iterable[Record]) -> _Batch:
        lines: list[bytes] = []
        standing: list[tuple[Record, bytes]] = []
        ts_by_kind: defaultdict[str, list[float]] = defaultdict(list)
        for record in records:
            kind, t = record["kind"], record["t"]
            try:
                line = _line(record)
            except orjson.JSONEncodeError as error:
                self._drop({kind: (1, t, t)}, UNENCODABLE.format(why=error))
                self._warn_once("encode", f"a {kind} record cannot be encoded ({error})")
                continue
            lines.append(line)
            ts_by_kind[kind].append(t)
            if self._is_folder and kind in STANDING_KINDS:
                standing.append((record, line))
        tally = {kind: (len(ts), min(ts), max(ts)) for kind, ts in ts_by_kind.items()}
        return _Batch(b"".join(lines), tally, standing)

    def _put(self, batch: _Batch) -> None:
        """Append a batch to the segment, after all that must stand before it.

        Raises
        ------
        OSError
            If the segment cannot take it; then nothing has changed.
        """
        trace, segment, begins = self._trace, self._segment, not self._segment.nbytes
        told = _loss_lines(trace.losses, self._now())
        file = self._opened()
        lines = b"".join([self._beginning() if begins else b"", *told, batch.lines])
        file.append(lines)

        counts = Counter({kind: records for kind, (records, _, _) in batch.tally.items()})
        counts["loss"] += len(told)
        if begins:
            counts["header"] += 1
            segment.begun_at = self._clock()
            segment.records_by_kind.update(trace.standing_by_kind())
        trace.records_by_kind.update(+counts)
        segment.count(
            _Flush(
                nbytes_before=segment.nbytes,
                crc32_before=segment.crc32,
                records_by_kind=+counts,
                tally=batch.tally,
                losses=trace.losses,
            )
        )
        segment.nbytes = file.nbytes
        segment.crc32 = zlib.crc32(lines, segment.crc32)
        trace.losses = []

    def _beginning(self) -> bytes:
        """Give the lines that a segment begins with."""
        number = self._segment.number
        header = {"kind": "header", "t": self._now(), **self._header, "segment": number}
        if number > 1:
            header["t"] = self._now()
        return _line(header) + self._trace.standing_lines()

    def _end(self, t: float, reason: str, more_fields: Record) -> None:
        """Close the segment with a trailer.

        Raises
        ------
        OSError
            If it does not fit; the segment goes on then.
        """
        segment = self._segment
        if self._trace.losses or not segment.nbytes:
            self._put(_Batch(b"", {}, []))
        file = self._opened()
        trailer = {
            "kind": "trailer",
            "t": t,
            "segment": segment.number,
            "reason": reason,
            # Without the kinds of which all was given back.
            "records_by_kind": +segment.records_by_kind,
            "dropped_by_kind": segment.dropped_by_kind,
            **more_fields,
        }
        # Nothing else tells that a digit in the middle of a plain file is another one now.
        told = _line(trailer).removesuffix(b"}\n")
        file.append(told + b',"crc32":%d}\n' % zlib.crc32(told, segment.crc32))
        segment.nbytes = file.nbytes
        self.records_by_kind["trailer"] += 1

    # -- what is lost --------------------------------------------------------------------

    def _drop(self, tally: Tally, reason: str) -> None:
        """Count records as dropped, and remember to say so."""
        for kind, (records, _, _) in tally.items():
            self.dropped_by_kind[kind] += records
            self._segment.dropped_by_kind[kind] += records
        self._trace.add_loss(reason, tally)

    def _end_on_any_disk(self, t: float, reason: str, more_fields: Record) -> None:
        """Close the segment with a trailer, if need be in the place of its newest records."""
        while True:
            try:
                return self._end(t, reason, more_fields)
            except OSError as error:
                if error.errno not in NO_ROOM or not self._give_back(error):
                    raise

    def _give_back(self, error: OSError) -> bool:
        """Drop the newest flush that has records, and what was appended after it.

        Returns
        -------
        bool
            False if there is none, and nothing has changed.
        """
        flushes = self._segment.flushes
        if self._file is None or not any(flush["tally"] for flush in flushes):
            return False
        tally: Tally = {}
        while not tally:
            self._file.give_back(flushes[-1]["nbytes_before"])
            flush = self._segment.uncount()
            self.records_by_kind.subtract(flush["records_by_kind"])
            for loss in flush["losses"]:
                self._trace.add_loss(**loss)
            tally = flush["tally"]
        self._drop(tally, UNWRITTEN.format(why=_why(error)))
        return True

    def _warn_unwritten(self, error: Exception) -> None:
        self._warn_once("write", f"{self._target} cannot be written ({_why(error)})")

    def _warn_once(self, trouble: str, line: str) -> None:
        if trouble not in self._trace.warned:
            self._trace.warned.append(trouble)
            self._warn(f"{line}; the run goes on")

    # -- what is finished ----------------------------------------------------------------

    def _upload_finished(self) -> None:
        self._upload_due = False
        if self._upload is None:
            return
        for segment in list(self._trace.finished):
            path = self._path(segment["number"])
            try:
                self._upload.move(path, str(path.relative_to(self._target.parent)))
            except Exception as error:  # noqa: BLE001 - storages raise whatever they like
                where = f"{path} cannot be uploaded to {self._upload.url} ({_why(error)})"
                self._warn_once("upload", f"{where}, is kept and tried again")
                return
            self._trace.finished.remove(segment)

    def _retain(self) -> None:
        """Remove what is too much, and say what of this trace is not there any more."""
        if self._retention is None or not self._retention.is_due(self.nbytes):
            return
        finished = {self._path(done["number"]): done for done in self._trace.finished}
        if self._retention.make_room(set(finished)):
            limit = f"retain_bytes={self._retention.limit_bytes}"
            self._warn_once("retain", f"{self._target}: older segments are removed, {limit}")
        # Another trace's writer may have removed some, or one of this trace that was killed.
        with contextlib.suppress(OSError):
            for path, done in finished.items():
                if not path.exists():
                    detail = f"segment {done['number']}"
                    self._trace.add_loss(NOT_RETAINED, done["tally"], detail)
                    self._trace.finished.remove(done)


class _Loss(TypedDict):
    """What is to be said of records of several kinds that were lost in one way."""

    reason: str
    tally: Tally
    detail: str


class _Flush(TypedDict):
    """One append to a segment: enough to undo it."""

    nbytes_before: int
    crc32_before: int
    #: Without what a segment repeats.
    records_by_kind: Counter[str]
    #: Of the records that were handed over.
    tally: Tally
    losses: list[_Loss]


class _Finished(TypedDict):
    """A segment that is on disk still, to be uploaded or removed."""

    number: int
    tally: Tally


@dataclass
class _Batch:
    """The records of one call."""

    lines: bytes
    tally: Tally
    #: Those that later segments repeat, or that end such a repetition.
    standing: list[tuple[Record, bytes]]


@dataclass
class _Segment:
    """What a new process has to know of the segment that is being written."""

    number: int = 1
    nbytes: int = 0
    #: Of the lines that are in it.
    crc32: int = 0
    begun_at: float = 0.0
    #: As they are in the file.
    records_by_kind: Counter[str] = field(default_factory=Counter)
    dropped_by_kind: Counter[str] = field(default_factory=Counter)
    #: Without header and repeated records.
    tally: Tally = field(default_factory=dict)
    flushes: list[_Flush] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.records_by_kind = Counter(self.records_by_kind)
        self.dropped_by_kind = Counter(self.dropped_by_kind)

    def count(self, flush: _Flush) -> None:
        """Count what was appended."""
        self.records_by_kind.update(flush["records_by_kind"])
        for kind, span in flush["tally"].items():
            _add(self.tally, kind, span)
        self.flushes.append(flush)
        del self.flushes[:-FLUSHES_KEPT]

    def uncount(self) -> _Flush:
        """Undo the last :meth:`count`, but for the tally, which only removal asks for."""
        flush = self.flushes.pop()
        self.nbytes, self.crc32 = flush["nbytes_before"], flush["crc32_before"]
        self.records_by_kind.subtract(flush["records_by_kind"])
        if not self.nbytes:
            self.records_by_kind.clear()
        return flush


@dataclass
class _Trace:
    """What a new process has to know of all the rest of the trace."""

    records_by_kind: Counter[str] = field(default_factory=Counter)
    dropped_by_kind: Counter[str] = field(default_factory=Counter)
    finished_nbytes: int = 0
    finished: list[_Finished] = field(default_factory=list)
    losses: list[_Loss] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    ended: bool = False
    #: Lines that a segment repeats, by kind and by what they are about.
    standing: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.records_by_kind = Counter(self.records_by_kind)
        self.dropped_by_kind = Counter(self.dropped_by_kind)

    def add_loss(self, reason: str, tally: Tally, detail: str = "") -> None:
        """Remember a loss until it is written down, together with its like."""
        for loss in self.losses:
            if (loss["reason"], loss["detail"]) == (reason, detail):
                break
        else:
            loss = _Loss(reason=reason, tally={}, detail=detail)
            self.losses.append(loss)
        for kind, span in tally.items():
            _add(loss["tally"], kind, span)

    def note(self, record: Record, line: bytes) -> None:
        """Remember a record that the next segments repeat, or that it is over."""
        kind = record["kind"]
        about = str(record.get("server_id") or record.get("worker"))
        if kind == "environment":
            fact = f"{record.get('section')}/{record.get('name')}"
            about = f"{fact}/{about}" if record.get("server_id") else fact
        if kind == "worker_removed":
            self.standing.get("worker_added", {}).pop(about, None)
            self.standing.get("environment", {}).pop(f"process/worker/{about}", None)
        else:
            self.standing.setdefault(kind, {})[about] = line.decode()

    def standing_lines(self) -> bytes:
        """Give what a segment repeats."""
        return "".join(
            line for lines in self.standing.values() for line in lines.values()
        ).encode()

    def standing_by_kind(self) -> dict[str, int]:
        """Count what a segment repeats."""
        return {kind: len(lines) for kind, lines in self.standing.items()}


class _Upload:
    """Moves finished segments to another place.

    Raises
    ------
    ValueError
        If there is no such kind of place.
    ImportError
        If what reaches it is not installed.
    """

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        self.url = url
        self._storage, self._root = url_to_fs(url)

    def move(self, path: Path, name: str) -> None:
        """Put a file there under a name, and remove it here once it is there whole.

        What is not here any more was moved by a writer that was killed after that.
        """
        if not path.exists():
            return
        there = f"{self._root.rstrip('/')}/{name}"
        self._storage.makedirs(there.rpartition("/")[0], exist_ok=True)
        self._storage.put_file(str(path), there)
        here_nbytes, there_nbytes = path.stat().st_size, self._storage.size(there)
        if here_nbytes != there_nbytes:
            raise OSError(f"{there_nbytes} of {here_nbytes} bytes arrived")
        path.unlink()


class _Retention:
    """Keeps the segments of a folder, or of all folders in a root, within some bytes."""

    def __init__(self, limit_bytes: int, folder: Path, root: str | None) -> None:
        self.limit_bytes = limit_bytes
        self._folder = folder
        self._root = Path(root) if root is not None else None
        self._checked_nbytes: int | None = None

    def is_due(self, trace_nbytes: int) -> bool:
        """Tell whether the trace has grown enough for another look at the folders."""
        checked = self._checked_nbytes
        if checked is not None and trace_nbytes - checked < self.limit_bytes / 100:
            return False
        self._checked_nbytes = trace_nbytes
        return True

    def make_room(self, own: set[Path]) -> bool:
        """Remove the oldest segments until the others fit.

        Parameters
        ----------
        own : set of Path
            The finished segments of this trace: they need not be claimed first.

        Returns
        -------
        bool
            Whether any was removed.
        """
        with contextlib.suppress(OSError):
            return self._remove_oldest(sorted(self._segments()), own)
        return False

    def _remove_oldest(self, segments: list[tuple[int, Path, int]], own: set[Path]) -> bool:
        excess = sum(nbytes for _, _, nbytes in segments) - self.limit_bytes
        removed = False
        for _, path, nbytes in segments:
            if excess > 0 and _remove(path, claim=path not in own):
                excess -= nbytes
                removed = True
                self._remove_if_empty(path.parent)
        return removed

    def _segments(self) -> Iterator[tuple[int, Path, int]]:
        """Give age, path and size of every segment that counts."""
        for folder in [self._folder] if self._root is None else self._root.iterdir():
            # A link would lead out of the root.
            if folder != self._folder and (folder.is_symlink() or not folder.is_dir()):
                continue
            with contextlib.suppress(OSError):
                for path in folder.iterdir():
                    found = path.lstat()
                    if SEGMENT_NAME.fullmatch(path.name) and stat.S_ISREG(found.st_mode):
                        yield found.st_mtime_ns, path, found.st_size

    def _remove_if_empty(self, folder: Path) -> None:
        if folder != self._folder:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _remove(path: Path, *, claim: bool) -> bool:
    """Remove a segment, unless a writer has claimed it or it cannot be known."""
    try:
        if claim:
            # Network file systems give this lock only for a file that can be written.
            with path.open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        else:
            path.unlink()
    except OSError:
        return False
    return True


def _is_folder(target: str) -> bool:
    """Tell a folder from a file by its name.

    Raises
    ------
    ValueError
        If the name looks like a file's that is no trace.
    """
    if target.endswith("/") or Path(target).is_dir():
        return True
    if target.endswith(ENDINGS):
        return False
    if Path(target).suffix or Path(target).exists():
        raise ValueError(
            f"{target!r} is no name for a trace: a file ends in {', '.join(ENDINGS)}, a folder "
            "of segments in /"
        )
    return True


def _line(record: Record) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def _loss_lines(losses: list[_Loss], t: float) -> list[bytes]:
    return [
        _line(
            {
                "kind": "loss",
                "t": t,
                "reason": loss["reason"],
                "record_kind": kind,
                "records": records,
                "start_t": start_t,
                "stop_t": stop_t,
                **({"detail": loss["detail"]} if loss["detail"] else {}),
            }
        )
        for loss in losses
        for kind, (records, start_t, stop_t) in loss["tally"].items()
    ]


def _add(tally: Tally, kind: str, span: tuple[int, float, float]) -> None:
    records, start_t, stop_t = span
    if kind in tally:
        more, first_t, last_t = tally[kind]
        span = records + more, min(start_t, first_t), max(stop_t, last_t)
    tally[kind] = span


def _why(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
