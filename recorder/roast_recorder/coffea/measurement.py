"""One attempt at a chunk, measured in the thread that makes it.

Nothing here may change or stop what it measures: whatever goes wrong while measuring is
logged, and the figure is left out.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep, thread_time, time
from typing import Any

import psutil

from roast_recorder.coffea.branches import Pieces, count_branches, source_of
from roast_recorder.process_state import here
from roast_schemas.records import Measured

#: How often memory is looked at while chunks are being processed.
MEMORY_INTERVAL_SECONDS = 0.05

#: How long the thread that looks stays when there is nothing to look at.
MEMORY_LINGER_LOOKS = 20

#: Passages through named sections that are recorded of one chunk; more are counted.
MAX_SECTIONS = 1_000

#: Text of an exception beyond this many characters is left out.
MAX_EXCEPTION_LENGTH = 10_000

#: What the source of a file counts from its opening on.
_COUNTERS = ("num_requested_bytes", "num_requests")

#: Names of fields that lie together in a record.
_MEASURED = tuple(Measured.__annotations__)

Record = dict[str, Any]


class Measurement:
    """What is known of an attempt at a chunk until it ends.

    Parameters
    ----------
    identity : dict
        Fields of a ``chunk`` record that say what the chunk is.
    until : {"processed", "read"}
        What the end of the measurement is the end of.

    Attributes
    ----------
    memory_peak : int
        Bytes; whoever looks at the process's memory raises it.
    is_reading : bool
        Whether the time is being taken already: what an earlier recording put in can still
        be there, inside of what somebody else has put around it.
    """

    def __init__(self, identity: Record, until: str) -> None:
        self._fields = {**identity, "until": until}
        self._table: Any = None
        self._file: Any = None
        self._mapping: Any = None
        self._counted_before: dict[str, int | None] = {}
        self._access_log: Any = None
        self._accessed_before = 0
        self._branches: dict[str, Any] = {}
        self._seconds_by_branch: dict[str, float] = {}
        self._basket_sizes: dict[tuple[int, int], int] = {}
        self._alive: dict[int, Any] = {}
        self._other_read_seconds = 0.0
        self._sections: list[Record] = []
        self._more_sections = 0
        self._ready: float | None = None
        self._processed = until == "processed"
        self.is_reading = False
        self.memory_peak = self._memory_before = memory_bytes()
        self._highest_before = _highest_memory_bytes()
        self.start_t, self._begun = both_clocks()
        self._cpu_begun = thread_time()

    # -- what the hooks see --------------------------------------------------------------

    def opened(
        self, table: Any, file: Any, events: int, entries: tuple[int, int], *, timed: bool
    ) -> None:
        """Note that there are events to be processed, of these entries of this table.

        Parameters
        ----------
        table, file : object
            Of uproot's or pyarrow's.
        events : int
        entries : tuple of int
            First entry, and the one after the last.
        timed : bool
            Whether the file was opened since the measurement began.
        """
        if self._ready is not None:
            return  # the user reads another file meanwhile
        self._ready = perf_counter()
        self._table = table
        self._file = file
        if not timed:
            # A file that was open before has been read before.
            self._counted_before = {name: _counter(file, name) for name in _COUNTERS}
        self._fields.pop("from_checkpoint", None)
        self._fields["events"] = events
        self._fields["entry_start"], self._fields["entry_stop"] = map(int, entries)
        if timed:
            self._fields["open_seconds"] = self._ready - self._begun

    def opened_by(self, factory: Any, events: Any, *, timed: bool) -> None:
        """Note the same of a NanoEventsFactory, and where it notes what it reads."""
        if self._ready is not None:
            return
        mapping = factory._mapping  # coffea tells it nowhere else
        table: Any = next(iter(mapping._cache.values()), None)
        entries = mapping._start, mapping._stop
        file = factory.file_handle or table
        self.opened(table, file, len(events), entries, timed=timed)
        self._mapping = mapping
        self._access_log = factory.access_log
        self._accessed_before = len(self._access_log or ())
        for name in getattr(mapping, "preloaded_arrays", None) or ():
            self.touches(name, table[name], None)

    def reads_from(self, mapping: Any) -> bool:
        """Tell whether this mapping of coffea's begins to read the chunk's own events."""
        return mapping is self._mapping and not self.is_reading

    def touches(self, name: str, branch: Any, seconds: float | None) -> None:
        """Note that a branch was read, and what that took if it is known."""
        self._branches[name] = branch
        if seconds is not None:
            self._seconds_by_branch[name] = self._seconds_by_branch.get(name, 0.0) + seconds

    def reads(self, seconds: float) -> None:
        """Note the time that reading branches took, if it is not known of each."""
        self._other_read_seconds += seconds

    def decompresses(self, branch: Any, number: int, nbytes: int) -> None:
        """Note the size of a basket that was read."""
        self._basket_sizes[id(branch), number] = nbytes
        # Its identity must not become another branch's meanwhile.
        self._alive[id(branch)] = branch

    def bytes_read(self) -> int | None:
        """Give the bytes that were requested from the file so far."""
        return self._counted("num_requested_bytes")

    def _counted(self, name: str) -> int | None:
        now = _counter(self._file, name)
        return None if now is None else now - (self._counted_before.get(name) or 0)

    def add_section(self, section: Record) -> None:
        """Take a passage through a named section."""
        if len(self._sections) < MAX_SECTIONS:
            self._sections.append(section)
        else:
            self._more_sections += 1

    # -- the end -------------------------------------------------------------------------

    def end(self, result: Any = None, error: BaseException | None = None) -> Record:
        """Close the measurement.

        Returns
        -------
        dict
            ``chunk``: fields of the record; ``sections``: those of the sections that were
            passed through; ``more_sections``: how many more there were.
        """
        ended = perf_counter()
        cpu_seconds = thread_time() - self._cpu_begun
        fields = self._fields
        fields |= {
            "thread": threading.get_ident(),
            "start_t": self.start_t,
            # The clock of the day may be set meanwhile.
            "stop_t": self.start_t + (ended - self._begun),
            "memory_before": self._memory_before,
            "memory_after": memory_bytes(),
        }
        fields["memory_peak"] = max(
            self.memory_peak, fields["memory_after"], _risen_to(self._highest_before)
        )
        if error is not None:
            fields["exception"] = text_of(error)
            fields.pop("from_checkpoint", None)
        if self._ready is not None:
            seconds = sum(self._seconds_by_branch.values())
            fields["read_seconds"] = seconds + self._other_read_seconds
        if self._processed:
            fields["cpu_seconds"] = cpu_seconds
            if self._ready is not None:
                fields["process_seconds"] = _told_by_coffea(result) or ended - self._ready
        for facts in (self._facts_of_file, self._facts_of_columns, self._facts_of_branches):
            with quietly("a chunk is not wholly measured"):
                fields |= facts()
        return {
            "chunk": {name: value for name, value in fields.items() if value is not None},
            "sections": self._sections,
            "more_sections": self._more_sections,
        }

    def _facts_of_file(self) -> Record:
        table = self._table
        if table is None:
            return {}
        return {
            "source": source_of(table),
            "bytes_read": self.bytes_read(),
            "requests": self._counted("num_requests"),
            "file_branches": count_branches(table),
            "file_bytes": _size_of(self._file) or _size_of(table),
        }

    def _facts_of_columns(self) -> Record:
        if self._access_log is None:
            return {}
        # As coffea's own report names them: the branch, and which of its buffers.
        accessed = list(self._access_log)[self._accessed_before :]
        columns = {f"{name}-{_buffer_of(key)}" for name, key in accessed}
        return {"columns": sorted(columns)}

    def _facts_of_branches(self) -> Record:
        start, stop = self._fields.get("entry_start"), self._fields.get("entry_stop")
        if self._table is None or start is None or stop is None:
            return {}
        pieces = Pieces(start, stop, self._basket_sizes)
        branches = []
        for name, branch in sorted(self._branches.items()):
            compressed = uncompressed = None
            with quietly("the size of a branch is not known"):
                compressed, uncompressed = pieces.bytes_of(branch)
            told = {
                "branch": name,
                "compressed_bytes": compressed,
                "uncompressed_bytes": uncompressed,
                "read_seconds": self._seconds_by_branch.get(name),
            }
            branches.append({key: value for key, value in told.items() if value is not None})
        return {"branches": branches}


def both_clocks() -> tuple[float, float]:
    """Read the clock of the day and ``perf_counter`` at one moment.

    Returns
    -------
    tuple of float
        Both in seconds, less than 0.1 ms apart unless the thread had to wait each time.
    """
    for _ in range(3):
        seconds = perf_counter()
        t = time()
        # On a busy machine, another thread can have its turn between the two.
        if perf_counter() - seconds < 1e-4:
            break
    return t, seconds


def current() -> Any:
    """Give the measurement that this thread is in, or None."""
    return getattr(here().local, "measurement", None)


@contextmanager
def quietly(complaint: str) -> Iterator[None]:
    """Let no exception of ours get into the user's task."""
    try:
        yield
    except Exception:
        logging.getLogger("roast_recorder").debug("roast: %s", complaint, exc_info=True)


def measured(
    identity: Callable[[], Record | None],
    until: str,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    """Call a function; measure it if anybody listens and the chunk is known.

    Parameters
    ----------
    identity : callable
        Gives the fields that say what the chunk is; None if it is not to be measured.
    until : {"processed", "read"}
        As :class:`Measurement` takes it.
    function, arguments, keywords
        What to call.

    Returns
    -------
    object
        What the function returns; what it raises passes through.
    """
    state = here()
    if not state.listeners or current() is not None:
        return function(*arguments, **keywords)
    measurement = None
    with quietly("a chunk cannot be measured"):
        fields = identity()
        if fields is not None:
            measurement = Measurement(fields, until)
    if measurement is None:
        return function(*arguments, **keywords)
    state.local.measurement = measurement
    with quietly("the process's memory is not looked at"):
        _watch_memory_for(measurement)
    try:
        result = function(*arguments, **keywords)
    except BaseException as error:
        _tell_end_of(measurement, error=error)
        raise
    else:
        _tell_end_of(measurement, result=result)
        return result
    finally:
        state.local.measurement = None
        state.measured.pop(id(measurement), None)


def tell_section(section: Record) -> None:
    """Take the fields of a ``section`` record, within a chunk or in any other task."""
    measurement = current()
    if measurement is not None:
        measurement.add_section(section)
    else:
        _tell({"chunk": None, "sections": [section], "more_sections": 0})


def as_record(fields: Record) -> Record:
    """Lay out what :meth:`Measurement.end` gives as a record does.

    Parameters
    ----------
    fields : dict
        Of a chunk or a section; what was measured stands beside what it is.

    Returns
    -------
    dict
        Fields of a record of its kind: what was measured lies in ``measured``.
    """
    record = {name: value for name, value in fields.items() if name not in _MEASURED}
    record["measured"] = {name: fields[name] for name in _MEASURED if name in fields}
    return record


def loss_of_sections(told: Record) -> Record:
    """Make the fields of a ``loss`` record of the sections that were too many."""
    chunk = told["chunk"]
    return {
        "reason": "a chunk passed through more named sections than are recorded",
        "record_kind": "section",
        "records": told["more_sections"],
        "start_t": chunk["start_t"],
        "stop_t": chunk["stop_t"],
    }


def _tell_end_of(measurement: Measurement, **how: Any) -> None:
    with quietly("a chunk is measured in vain"):
        _tell(measurement.end(**how))


def _tell(told: Record) -> None:
    """Tell all who listen."""
    for listener in list(here().listeners.values()):
        with quietly("somebody cannot be told of a chunk"):
            listener(told)


# -- memory ----------------------------------------------------------------------------------


def memory_bytes() -> int:
    """Give the memory that this process has in RAM."""
    state = here()
    pid, read = state.memory_reader
    if pid != os.getpid():
        read = _memory_reader()
        state.memory_reader = os.getpid(), read
    memory: int = read()
    return memory


def _memory_reader() -> Callable[[], int]:
    """Make what reads the memory of this process.

    A thread that opens, reads and closes a file lets three times others run before it;
    where there are many, that costs more than all that is measured here.
    """
    try:
        # It is closed when the last listener goes, and this function with it.
        statm = Path("/proc/self/statm").open("rb", buffering=0)  # noqa: SIM115
        page_size = os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError, ValueError):  # not Linux
        process = psutil.Process()
        return lambda: int(process.memory_info().rss)
    return lambda: int(os.pread(statm.fileno(), 256, 0).split()[1]) * page_size


def _highest_memory_bytes() -> int | None:
    """Give the most memory that this process ever had in RAM."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(highest) * (1 if psutil.MACOS else 1024)


def _risen_to(highest_before: int | None) -> int:
    """Give the most memory ever, if that was reached meanwhile; else 0."""
    highest = _highest_memory_bytes()
    if highest is None or highest_before is None or highest <= highest_before:
        return 0
    return highest


def _watch_memory_for(measurement: Measurement) -> None:
    """Have the process's memory looked at until the measurement ends."""
    state = here()
    state.measured[id(measurement)] = measurement
    if state.watcher is None or not state.watcher.is_alive():
        state.watcher = threading.Thread(
            target=_look_at_memory, name="roast-memory", daemon=True
        )
        state.watcher.start()


def _look_at_memory() -> None:
    """Raise the peaks of all measurements until nothing is measured any more."""
    idle_looks = 0
    while idle_looks < MEMORY_LINGER_LOOKS:
        sleep(MEMORY_INTERVAL_SECONDS)
        idle_looks = 0 if _raise_peaks() else idle_looks + 1


def _raise_peaks() -> bool:
    """Look once; tell whether anything is measured."""
    # Beyond this call nothing may be held: a measurement holds its file.
    running = list(here().measured.values())
    if running:
        now = memory_bytes()
        for measurement in running:
            measurement.memory_peak = max(measurement.memory_peak, now)
    return bool(running)


# -- what coffea and uproot tell -------------------------------------------------------------


def _told_by_coffea(result: Any) -> float | None:
    """Give the seconds in the processor if coffea took them itself (savemetrics)."""
    of_coffea = isinstance(result, dict) and "processed" in result
    metrics = result.get("metrics") if of_coffea else None
    seconds = metrics.get("processtime") if isinstance(metrics, dict) else None
    return float(seconds) if isinstance(seconds, (int, float)) else None


def _buffer_of(buffer_key: str) -> str:
    """Name the buffer in one of coffea's keys: ``uuid/tree/0-100/offsets/…``."""
    return buffer_key.split("/")[3]


def _counter(file: Any, name: str) -> int | None:
    """Read a counter of the source of one of uproot's files."""
    source = getattr(getattr(file, "file", file), "source", None)
    value = getattr(source, name, None)
    # Not all sources count requests for themselves.
    value = getattr(source, f"_{name}", None) if value is None else value
    return None if value is None else int(value)


def _size_of(file: Any) -> int | None:
    """Give the size of a file: a ROOT file's header tells it, else whoever opened it."""
    size = getattr(getattr(file, "file", file), "fEND", None)
    size = getattr(getattr(file, "openfile", None), "size", None) if size is None else size
    return None if size is None else int(size)


def text_of(error: BaseException) -> str:
    """Give the text of an exception, bounded."""
    try:
        return repr(error)[:MAX_EXCEPTION_LENGTH]
    except Exception:  # noqa: BLE001 - a user's __repr__ may do anything
        return f"<{type(error).__qualname__}>"
