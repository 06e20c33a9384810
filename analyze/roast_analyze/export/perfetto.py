"""Trace events for Perfetto: the tasks of every thread, transfers and counters, as JSON.

The format is Chrome's, which https://ui.perfetto.dev and chrome://tracing open
(https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU). A process
is a worker. Its lanes are its threads, one lane each, with a slice per computed task
(category ``task``, named by prefix, or by dataset and file if it is a chunk), and one lane
per concurrent transfer to it (``transfer``). Chunks that were measured without a cluster are
slices of the category ``chunk``. Numbers of processes and threads (``pid``, ``tid``) are all
different. Times are in whole microseconds since the start of the recording.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from roast_analyze.export.lanes import Slice, assign_lanes
from roast_analyze.export.rows import rows
from roast_analyze.export.scope import MOVES_PREFIX, recording_start
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import IO

    from roast_analyze.export.scope import Scope
    from roast_analyze.open.session import Session

Event = dict[str, Any]
Row = dict[str, Any]

#: Worker, thread and slice.
_Placed = tuple[str | None, int | None, Slice]

#: Apparent overlap of tasks of one thread, in microseconds: workers convert times to the
#: scheduler's clock and estimate the offset at each heartbeat. The sample traces have 0.1 s.
JITTER: Final = 200_000

#: Task runs sorted by one query, of whole workers.
GROUP_RUNS: Final = 200_000

#: Colors of chrome://tracing by rank of the prefix. Perfetto colors by name.
_COLORS: Final = (
    "thread_state_runnable",
    "rail_response",
    "thread_state_iowait",
    "rail_animation",
    "thread_state_running",
    "olive",
    "rail_load",
    "rail_idle",
    "cq_build_attempt_runnig",  # spelled like this in its list of colors
    "generic_work",
)
_COLOR_OF_FAILURE: Final = "terrible"
_COLOR_OF_TRANSFER: Final = "grey"
_FAILED: Final = ("erred", "retried")

#: Times further from the start than this, in seconds, are clipped as invalid.
_LONGEST: Final = 1e9

_TASKS: Final = """
WITH picked AS (
    SELECT
        key, prefix, attempt, worker, thread, outcome, typename, nbytes, exception,
        compute_seconds, transfer_seconds, deserialize_seconds, disk_seconds, queued_seconds,
        compute_start_t AS start, compute_stop_t AS stop
    FROM task_runs
    WHERE compute_start_t IS NOT NULL AND {condition}
),
read AS (
    SELECT
        key, attempt, count(*) AS chunks, first(dataset) AS dataset,
        first(filename) AS filename, first(treename) AS treename,
        min(entry_start) AS entry_start, max(entry_stop) AS entry_stop,
        sum(events)::BIGINT AS events, sum(bytes_read)::BIGINT AS bytes_read
    FROM chunks
    WHERE key IN (SELECT key FROM picked)
    GROUP BY key, attempt
)
SELECT picked.*, read.* EXCLUDE (key, attempt)
FROM picked LEFT JOIN read ON picked.key = read.key AND picked.attempt = read.attempt
ORDER BY worker, thread, start, stop, picked.key
"""

_CHUNKS_ALONE: Final = """
SELECT
    key, worker, thread, outcome, exception, dataset, filename, treename, entry_start,
    entry_stop, events, bytes_read, compute_seconds, 1 AS chunks,
    start_t AS start, stop_t AS stop
FROM chunks
WHERE start_t IS NOT NULL AND key NOT IN (SELECT key FROM task_runs) AND {condition}
ORDER BY worker, thread, start, stop, key
"""

_TRANSFERS: Final = """
SELECT
    destination AS worker, source, bytes, cardinality(keys)::BIGINT AS results,
    map_keys(keys)[1] AS key,
    start_t AS start, stop_t AS stop
FROM transfers
WHERE start_t IS NOT NULL AND destination IS NOT NULL AND {condition}
ORDER BY worker, start, stop
"""

# Reported with the end of each task, also if transfers are not recorded.
_FETCHES: Final = """
SELECT worker, key AS for_task, source, start_t AS start, stop_t AS stop
FROM task_phases
WHERE action = 'transfer' AND start_t IS NOT NULL AND {condition}
ORDER BY worker, start, stop
"""

_SAMPLES: Final = """
SELECT
    t, worker, memory_bytes, managed_bytes, spilled_bytes, cpu_percent, processing, executing,
    ready
FROM worker_samples
WHERE t IS NOT NULL AND {condition}
"""

#: Counters of a worker: name, and column of each series.
_COUNTERS: Final = {
    "memory": {
        "process_bytes": "memory_bytes",
        "managed_bytes": "managed_bytes",
        "spilled_bytes": "spilled_bytes",
    },
    "CPU": {"percent": "cpu_percent"},
    "queue": {"processing": "processing", "executing": "executing", "ready": "ready"},
}


def write(trace: Session, scope: Scope, file: IO[str]) -> None:
    """Write the trace events in a scope of a trace.

    Parameters
    ----------
    trace : Session
    scope : Scope
    file : text file
    """
    separator = "[\n"
    for event in events(trace, scope):
        file.write(separator + json.dumps(event, allow_nan=False, separators=(",", ":")))
        separator = ",\n"
    file.write("[]\n" if separator == "[\n" else "\n]\n")


def events(trace: Session, scope: Scope) -> Iterator[Event]:
    """Yield the trace events in a scope of a trace, not ordered by time."""
    processes = _Processes(dict(trace.sql("SELECT worker, name FROM workers").fetchall()))
    clock = _Clock(recording_start(trace))
    prefixes = trace.sql(
        "SELECT prefix FROM prefixes ORDER BY compute_seconds DESC NULLS LAST, prefix"
    ).fetchall()
    colors = {prefix: _COLORS[rank % len(_COLORS)] for rank, (prefix,) in enumerate(prefixes)}
    [(transfers,)] = trace.sql("SELECT count(*) FROM transfers").fetchall()
    if scope.scheduler:
        return
    times = {"begin": "start_t", "end": "stop_t"}
    for group in _groups(trace, scope):
        select = partial(_select, trace, group)
        for runs in (
            select(_TASKS, begin="compute_start_t", end="compute_stop_t"),
            # Without a task, a chunk has no prefix.
            select(_CHUNKS_ALONE, prefix="$prefix IS NULL", **times),
        ):
            slices = _task_slices(runs, clock, colors)
            yield from _lane_events(processes, slices, "thread", JITTER)
        if transfers:
            moved = select(_TRANSFERS, workers=("destination",), prefix=MOVES_PREFIX, **times)
        else:
            moved = select(_FETCHES, **times)
        yield from _lane_events(processes, _transfer_slices(moved, clock), "transfer")
        samples = select(_SAMPLES, prefix=None, begin="t", end="t")
        yield from _counters(processes, samples, clock)


@dataclass(frozen=True)
class _Clock:
    """Conversion to microseconds since the start of the recording."""

    start_t: float

    def microseconds(self, t: float) -> int:
        return round(1e6 * min(max(0.0, t - self.start_t), _LONGEST))

    def slice(self, start_t: float, stop_t: float | None, event: Event) -> Slice:
        """Return a slice of at least one microsecond, so that it is visible."""
        start = self.microseconds(start_t)
        stop = start if stop_t is None else self.microseconds(stop_t)
        return Slice(start, max(stop, start + 1), event)


def _groups(trace: Session, scope: Scope) -> list[Scope]:
    """Split a scope into groups of workers; rows without a worker are in the first."""
    counted = trace.sql(
        "SELECT worker, sum(task_runs) FROM workers GROUP BY worker ORDER BY worker"
    ).fetchall()
    groups: list[list[str]] = []
    room = 0
    for address, runs in counted:
        if scope.workers is not None and address not in scope.workers:
            continue
        if not groups or runs > room:
            groups.append([])
            room = GROUP_RUNS
        groups[-1].append(address)
        room -= runs
    if len(groups) < 2:
        return [scope]
    return [replace(scope, workers=tuple(group)) for group in groups]


def _select(trace: Session, scope: Scope, query: str, **columns: Any) -> Iterator[Row]:
    """Yield the rows of a query in a scope, which has these columns."""
    condition = scope.condition(**columns)
    return rows(trace, query.format(condition=condition.sql), condition.parameters)


@dataclass
class _Processes:
    """Numbers of workers and their lanes, and the events that name them."""

    names: dict[str, str | None]
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    pids: dict[str | None, int] = field(default_factory=dict)
    tids: dict[tuple[object, ...], int] = field(default_factory=dict)
    threads: dict[int, list[object]] = field(default_factory=dict)
    pending: list[Event] = field(default_factory=list)

    def new_names(self) -> list[Event]:
        """Return the events that name what was numbered since the last call."""
        events, self.pending = self.pending, []
        return events

    def pid(self, worker: str | None) -> int:
        """Return the number of a worker."""
        if worker not in self.pids:
            pid = self.pids[worker] = next(self.numbers)
            name = "unknown worker"
            if worker is not None:
                called = self.names.get(worker)
                name = f"worker {worker}" if called in (None, worker) else f"{called} {worker}"
            self.pending += (
                _metadata("process_name", pid, pid, name=_text(name)),
                _metadata("process_sort_index", pid, pid, sort_index=pid),
            )
        return self.pids[worker]

    def tid(self, worker: str | None, kind: str, thread: object, lane: int) -> tuple[int, int]:
        """Return the numbers of a worker and of one of its lanes."""
        pid = self.pid(worker)
        key = (pid, kind, thread, lane)
        if key not in self.tids:
            tid = self.tids[key] = next(self.numbers)
            self.pending += (
                _metadata(
                    "thread_name", pid, tid, name=self._lane_name(pid, kind, thread, lane)
                ),
                _metadata("thread_sort_index", pid, tid, sort_index=tid),
            )
        return pid, self.tids[key]

    def _lane_name(self, pid: int, kind: str, thread: object, lane: int) -> str:
        if kind == "transfer":
            return f"transfers {lane + 1}"
        if thread is None:
            return f"unknown thread {lane + 1}"
        known = self.threads.setdefault(pid, [])
        if thread not in known:
            known.append(thread)
        number = known.index(thread) + 1
        return f"thread {number}, overlapping" if lane else f"thread {number}"


def _metadata(event: str, pid: int, tid: int, **args: object) -> Event:
    return {"ph": "M", "name": event, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _task_slices(
    runs: Iterable[Row], clock: _Clock, colors: dict[str | None, str]
) -> Iterator[_Placed]:
    for run in runs:
        times = run.pop("start"), run.pop("stop")
        thread = run.pop("worker"), run.pop("thread")
        chunks = run.pop("chunks")
        prefix = run.get("prefix")
        color = colors.get(prefix, _COLORS[0])
        event = {
            "cat": "task" if "prefix" in run else "chunk",
            "name": _chunk_name(run, chunks) if chunks else _text(prefix or run["key"]),
            "cname": _COLOR_OF_FAILURE if run["outcome"] in _FAILED else color,
            "args": _arguments(run),
        }
        yield *thread, clock.slice(*times, event)


def _transfer_slices(transfers: Iterable[Row], clock: _Clock) -> Iterator[_Placed]:
    for transfer in transfers:
        times = transfer.pop("start"), transfer.pop("stop")
        worker, source = transfer.pop("worker"), transfer["source"]
        event = {
            "cat": "transfer",
            "name": "transfer" if source is None else _text(f"from {source}"),
            "cname": _COLOR_OF_TRANSFER,
            "args": _arguments(transfer),
        }
        yield worker, None, clock.slice(*times, event)


def _chunk_name(run: Row, chunks: int) -> str:
    file = (run["filename"] or "").rstrip("/").rpartition("/")[2]
    entries = ""
    if chunks > 1:
        entries = f"{chunks} chunks"
    elif run["entry_start"] is not None and run["entry_stop"] is not None:
        entries = f"{run['entry_start']}–{run['entry_stop']}"
    parts = [part for part in (run["dataset"], file, entries) if part]
    return _text(" · ".join(parts) if parts else "chunk")


def _text(text: str) -> str:
    return shortened(" ".join(visible(text).split())) or "?"


def _arguments(row: Row) -> dict[str, Any]:
    """Return the values of a row that are not null, as JSON can represent them."""
    return {
        name: visible(value) if isinstance(value, str) else value
        for name, value in row.items()
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    }


def _lane_events(
    processes: _Processes, slices: Iterator[_Placed], kind: str, tolerance: int = 0
) -> Iterator[Event]:
    """Yield slices, sorted by worker and thread, as events on lanes."""
    for (worker, thread), group in itertools.groupby(slices, key=lambda placed: placed[:2]):
        jitter = 0 if thread is None else tolerance
        for lane, slice_ in assign_lanes((slice_ for _, _, slice_ in group), jitter):
            pid, tid = processes.tid(worker, kind, thread, lane)
            yield from processes.new_names()
            times = {"ts": slice_.start, "dur": slice_.stop - slice_.start}
            yield {"ph": "X", "pid": pid, "tid": tid, **times, **slice_.data}


def _counters(processes: _Processes, samples: Iterable[Row], clock: _Clock) -> Iterator[Event]:
    for sample in samples:
        place = {"pid": processes.pid(sample["worker"]), "ts": clock.microseconds(sample["t"])}
        yield from processes.new_names()
        for name, series in _COUNTERS.items():
            values = _arguments({label: sample[column] for label, column in series.items()})
            if values:
                yield {"ph": "C", **place, "name": name, "args": values}
