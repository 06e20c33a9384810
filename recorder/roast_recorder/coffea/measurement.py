"""Measure one attempt at a chunk, in the thread that processes it.

Nothing here may change or stop the user's task: an error of the recorder is logged at level
debug, and the value is left out.

Listeners receive :data:`Records`: the ``chunk``, its ``section`` records, and a ``loss`` if
some sections were dropped. Key, run_id and worker are added by the listener.
"""

from __future__ import annotations

import logging
import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep, thread_time, time
from typing import Any

import psutil

from roast_recorder.coffea.branches import (
    OverlappingBytes,
    branch_name,
    count_branches,
    storage_format,
)
from roast_recorder.exception_text import exception_text
from roast_recorder.process_state import here
from roast_recorder.scheduler.wire_format import loss
from roast_schemas.records import Measured

#: Time between two samples of the process's memory while chunks are processed.
MEMORY_INTERVAL_SECONDS = 0.05

#: Samples without any chunk after which the sampling thread ends.
MEMORY_IDLE_SAMPLES = 20

#: Maximum number of sections recorded per chunk; more are counted.
MAX_SECTIONS = 1_000

#: Counters of uproot's source of a file.
COUNTERS = "num_requested_bytes", "num_requests"

#: Fields that a record has in ``measured``; all others are on its top level.
_MEASURED_FIELDS = frozenset(Measured.__annotations__)

Fields = dict[str, Any]

#: Kind and fields of each record.
Records = list[tuple[str, Fields]]


class Measurement:
    """Values of one attempt at a chunk, collected by wrappers of coffea and uproot."""

    def __init__(self, identity: Fields, until: str) -> None:
        # `until` is the step with which the measurement ends: "processed" or "read".
        self._fields = {**identity, "until": until}
        self._opened_at: float | None = None
        self._table: Any = None
        self._file: Any = None
        self._mapping: Any = None
        self._counters_before: dict[str, int | None] = {}
        self._access_log: Any = None
        self._accesses_before = 0
        # One read can pass two wrappers: a wrapper of an earlier recording stays inside of
        # another library's wrapper.
        self._is_reading = False
        self._read_seconds = 0.0
        self._decompress_seconds = 0.0
        self._algorithms: set[str] = set()
        #: Branch, and the seconds of reading it and of decompressing it, by name.
        self._branches: dict[str, tuple[Any, float | None, float | None]] = {}
        self._decompress_seconds_before = 0.0
        self._basket_sizes: dict[tuple[int, int], int] = {}
        self._basket_branches: list[Any] = []
        self._sections: list[Fields] = []
        self._dropped_sections = 0
        #: Raised by the thread that samples the process's memory.
        self.memory_peak = self._memory_before = memory_bytes()
        self._highest_before = _highest_memory_bytes()
        self._start_t, self._started_at = read_clocks()
        self._cpu_before = thread_time()

    # -- called by the wrappers of coffea and uproot -------------------------------------

    def open_events(self, factory: Any, events: Any, *, timed: bool) -> None:
        """Record the events of a NanoEventsFactory; `timed` if this call opened the file."""
        mapping = factory._mapping  # there is no public attribute
        table: Any = next(iter(mapping._cache.values()), None)
        file = factory.file_handle or table
        if self._open(table, file, len(events), mapping._start, mapping._stop, timed):
            self._mapping = mapping
            self._access_log = factory.access_log
            self._accesses_before = len(self._access_log or ())
            for name in getattr(mapping, "preloaded_arrays", None) or ():
                self._branches[name] = table[name], None, None

    def begin_column(self, mapping: Any, branch: Any, *_arguments: Any) -> bool:
        """Return whether to time the read of a column."""
        # None: the file lacks the branch. The processor may also read columns of other files.
        is_ours = branch is not None and mapping is self._mapping
        return is_ours and self._begin_read()

    def end_column(self, seconds: float, mapping: Any, branch: Any, *_arguments: Any) -> None:
        """Record the read of a column."""
        self._end_read(seconds)
        log = mapping._access_log
        name = log[-1].branch if log else branch_name(branch)
        _, before, decompress_before = self._branches.get(name, (None, None, None))
        decompress_seconds = self._decompress_seconds - self._decompress_seconds_before
        self._branches[name] = (
            branch,
            (before or 0.0) + seconds,
            (decompress_before or 0.0) + decompress_seconds,
        )

    def begin_tree(self, reader: Any, tree: Any, start: int, stop: int) -> bool:
        """Record the entries that dask-awkward reads; return whether to time it."""
        # The reader of files that were open before has them as `ttrees`.
        timed = not hasattr(reader, "ttrees")
        self._open(tree, tree, int(stop - start), start, stop, timed)
        return self._begin_read()

    def end_tree(self, seconds: float, reader: Any, tree: Any, *_entries: int) -> None:
        """Record the branches that dask-awkward read."""
        self._end_read(seconds)
        self._branches |= {
            name: (tree[name], None, None) for name in reader.common_keys if name in tree
        }

    def add_basket(self, basket: Any) -> None:
        """Record the uncompressed size of a basket, which is known only once it is read."""
        branch = basket.parent
        self._basket_sizes[id(branch), basket.basket_num] = int(basket.uncompressed_bytes)
        # Keeps the object alive, so that no other branch gets its id.
        self._basket_branches.append(branch)

    def add_decompression(self, algorithm: Any, seconds: float) -> None:
        """Record the decompression of a block, if it is a part of reading columns."""
        if self._is_reading:
            self._decompress_seconds += seconds
            self._algorithms.add(algorithm.name)

    def add_section(self, section: Fields) -> None:
        """Record a section, or count it as dropped."""
        if len(self._sections) < MAX_SECTIONS:
            self._sections.append(section)
        else:
            self._dropped_sections += 1

    def requested(self, counter: str = "num_requested_bytes") -> int | None:
        """Return what was requested from the file so far: bytes, or "num_requests"."""
        now = _counter(self._file, counter)
        return None if now is None else now - (self._counters_before.get(counter) or 0)

    def _open(
        self, table: Any, file: Any, events: int, start: int, stop: int, timed: bool
    ) -> bool:
        if self._opened_at is not None:
            return False  # the processor opens another file
        self._opened_at = perf_counter()
        self._table, self._file = table, file
        self._fields.pop("from_checkpoint", None)
        entries = {"entry_start": int(start), "entry_stop": int(stop)}
        self._fields |= {"events": events, **entries}
        if timed:
            self._fields["open_seconds"] = self._opened_at - self._started_at
        else:
            # The counters of a file begin when it is opened.
            self._counters_before = {name: _counter(file, name) for name in COUNTERS}
        return True

    def _begin_read(self) -> bool:
        begins = not self._is_reading
        self._is_reading = True
        if begins:
            self._decompress_seconds_before = self._decompress_seconds
        return begins

    def _end_read(self, seconds: float) -> None:
        self._is_reading = False
        self._read_seconds += seconds

    # -- the end -------------------------------------------------------------------------

    def end(self, result: Any, error: BaseException | None) -> Records:
        """Finish the measurement of a call that returned or raised; return its records."""
        stopped_at = perf_counter()
        cpu_seconds = thread_time() - self._cpu_before
        memory_after = memory_bytes()
        # A short chunk can end before it is sampled.
        peaks = [self.memory_peak, memory_after]
        highest = _highest_memory_bytes()
        if highest > self._highest_before:
            peaks.append(highest)  # the process's record was set during this chunk
        fields = self._fields
        fields |= {
            "thread": threading.get_ident(),
            "start_t": self._start_t,
            # From the monotonic clock, because the system clock can be set.
            "stop_t": self._start_t + (stopped_at - self._started_at),
            "memory_before": self._memory_before,
            "memory_after": memory_after,
            "memory_peak": max(peaks),
        }
        if error is not None:
            fields["exception"] = exception_text(error)
            # A call that failed has no result, and so none from the checkpoint.
            fields.pop("from_checkpoint", None)
        if fields["until"] == "processed":
            fields["cpu_seconds"] = cpu_seconds
        if self._opened_at is not None:
            fields["read_seconds"] = self._read_seconds
            if fields["until"] == "processed":
                fields["process_seconds"] = stopped_at - self._opened_at
                match result:  # coffea measures it if savemetrics is True
                    case {"processed": _, "metrics": {"processtime": int() | float() as own}}:
                        fields["process_seconds"] = float(own)
        if self._table is not None:
            # A failure of one must not affect the others.
            for read in (self._file_fields, self._column_fields, self._branch_fields):
                with errors_logged("measure all of a chunk"):
                    fields |= read()
        records = [("chunk", fields)] + [("section", section) for section in self._sections]
        if self._dropped_sections:
            reason = f"a chunk had more than {MAX_SECTIONS} sections"
            times = fields["start_t"], fields["stop_t"]
            records.append(("loss", loss(reason, "section", self._dropped_sections, *times)))
        return records

    def _file_fields(self) -> Fields:
        bytes_read, requests = map(self.requested, COUNTERS)
        return {
            "source": storage_format(self._table),
            "decompress_seconds": self._decompress_seconds if self._algorithms else None,
            "compression": ", ".join(sorted(self._algorithms)) or None,
            "bytes_read": bytes_read,
            "requests": requests,
            "file_branches": count_branches(self._table),
            "file_bytes": _file_size(self._file) or _file_size(self._table),
        }

    def _column_fields(self) -> Fields:
        if self._access_log is None:
            return {}
        # Named as in coffea's report: branch and buffer. A buffer's key is
        # ``uuid/tree/0-100/offsets/…``.
        accesses = list(self._access_log)[self._accesses_before :]
        columns = {f"{branch}-{buffer_key.split('/')[3]}" for branch, buffer_key in accesses}
        for name in {branch for branch, _ in accesses} - self._branches.keys():
            # Read in a thread of the processor's own.
            if name in self._table:
                self._branches[name] = self._table[name], None, None
        return {"columns": sorted(columns)}

    def _branch_fields(self) -> Fields:
        start, stop = self._fields["entry_start"], self._fields["entry_stop"]
        overlapping = OverlappingBytes(start, stop, self._basket_sizes)
        branches = []
        for name, (branch, seconds, decompress_seconds) in sorted(self._branches.items()):
            compressed = uncompressed = None
            with errors_logged("determine the size of a branch"):
                compressed, uncompressed = overlapping.of(branch)
            fields = {
                "branch": name,
                "read_seconds": seconds,
                "decompress_seconds": decompress_seconds if self._algorithms else None,
                "compressed_bytes": compressed,
                "uncompressed_bytes": uncompressed,
            }
            branches.append({key: value for key, value in fields.items() if value is not None})
        return {"branches": branches}


def current_measurement() -> Any:
    """Return the measurement of the chunk that this thread is processing, or None."""
    return getattr(here().local, "measurement", None)


@contextmanager
def errors_logged(action: str) -> Iterator[None]:
    """Suppress an error of the recorder, so that it does not reach the user's task."""
    try:
        yield
    except Exception:
        logging.getLogger("roast_recorder").debug("roast: failed to %s", action, exc_info=True)


def call_measured(
    identify: Callable[[], Fields | None],
    until: str,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    """Call a function, and measure it if there are listeners and the chunk is known.

    `identify` returns the fields that identify the chunk, or None to not measure the call.
    A call within a measured call is part of it. Exceptions are raised unchanged.
    """
    state = here()
    measurement = None
    if state.listeners and current_measurement() is None:
        with errors_logged("measure a chunk"):
            fields = identify()
            if fields is not None:
                measurement = Measurement(fields, until)
    if measurement is None:
        return function(*arguments, **keywords)
    state.local.measurement = measurement
    with errors_logged("sample the memory of the process"):
        state.measured[id(measurement)] = measurement
        if state.watcher is None or not state.watcher.is_alive():
            state.watcher = threading.Thread(
                target=_sample_memory, name="roast-memory", daemon=True
            )
            state.watcher.start()
    result = raised = None
    try:
        result = function(*arguments, **keywords)
    except BaseException as error:
        raised = error
        raise
    finally:
        try:
            with errors_logged("finish a measurement"):
                publish(measurement.end(result, raised))
        finally:
            state.local.measurement = None
            state.measured.pop(id(measurement), None)
            # The traceback refers to this frame: a cycle would keep the chunk's events.
            raised = None
    return result


def publish_section(section: Fields) -> None:
    """Add the fields of a section to the current chunk, or publish it outside of chunks."""
    measurement = current_measurement()
    if measurement is not None:
        measurement.add_section(section)
    else:
        publish([("section", section)])


def publish(found: Records) -> None:
    """Pass records to all listeners, without unknown values."""
    records: Records = []
    for kind, fields in found:
        record: Fields = {}
        measured: Fields = {}
        for name, value in fields.items():
            if value is not None:
                (measured if name in _MEASURED_FIELDS else record)[name] = value
        records.append((kind, {**record, "measured": measured} if measured else record))
    for listener in list(here().listeners.values()):
        with errors_logged("pass a chunk to a listener"):
            listener(records)


def read_clocks() -> tuple[float, float]:
    """Return ``time()`` and ``perf_counter()`` of one moment.

    They are less than 0.1 ms apart unless the thread was interrupted three times.
    """
    for _ in range(3):
        seconds = perf_counter()
        t = time()
        # On a busy machine, another thread can run between the two.
        if perf_counter() - seconds < 1e-4:
            break
    return t, seconds


# -- memory ----------------------------------------------------------------------------------


def memory_bytes() -> int:
    """Return the resident memory of this process."""
    state = here()
    pid, read = state.memory_reader
    # A fork must not read through its parent's file descriptor.
    if pid != os.getpid():
        read = _memory_reader()
        state.memory_reader = os.getpid(), read
    memory: int = read()
    return memory


def _memory_reader() -> Callable[[], int]:
    """Return a function that reads the memory of this process from a file kept open."""
    # Opening, reading and closing releases the GIL three times; with many
    # threads, waiting for it costs more than everything else here.
    try:
        # It is closed when the last listener is removed, together with the function.
        statm = Path("/proc/self/statm").open("rb", buffering=0)  # noqa: SIM115
    except OSError:  # not Linux
        process = psutil.Process()
        return lambda: int(process.memory_info().rss)
    page_size = os.sysconf("SC_PAGE_SIZE")
    return lambda: int(os.pread(statm.fileno(), 256, 0).split()[1]) * page_size


def _highest_memory_bytes() -> int:
    """Return the peak resident memory of this process."""
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest * (1 if psutil.MACOS else 1024)


def _sample_memory() -> None:
    idle_samples = 0
    while idle_samples < MEMORY_IDLE_SAMPLES:
        sleep(MEMORY_INTERVAL_SECONDS)
        idle_samples = 0 if _raise_peaks() else idle_samples + 1


def _raise_peaks() -> bool:
    """Update the peaks of all running measurements; return whether there are any."""
    # A separate function, because a reference in the loop would keep the chunk's file open.
    running = list(here().measured.values())
    if running:
        now = memory_bytes()
        for measurement in running:
            measurement.memory_peak = max(measurement.memory_peak, now)
    return bool(running)


# -- values of coffea, uproot and the user ---------------------------------------------------


def _counter(file: Any, name: str) -> int | None:
    """Return a counter of the source of a file that uproot opened."""
    source = getattr(getattr(file, "file", file), "source", None)
    # A source may forward all requests to a fallback.
    sources = source, getattr(source, "fallback", None)
    # Some sources have no public counter of requests.
    values = [getattr(each, name, getattr(each, f"_{name}", None)) for each in sources]
    return max((int(value) for value in values if value is not None), default=None)


def _file_size(file: Any) -> int | None:
    """Return the size of a file from the ROOT header, or from what opened it."""
    size = getattr(getattr(file, "file", file), "fEND", None)
    size = size or getattr(getattr(file, "openfile", None), "size", None)
    return None if size is None else int(size)
