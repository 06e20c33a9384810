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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final

from roast_analyze.algorithms.outcomes import FAILED
from roast_analyze.export.lanes import Slice, assign_lanes
from roast_analyze.export.scope import MOVES_PREFIX, recording_start, rows
from roast_analyze.safe_text import one_line, visible

if TYPE_CHECKING:
    from roast_analyze.export.scope import Scope
    from roast_analyze.open.session import Session

Event = dict[str, Any]
Row = dict[str, Any]

#: Apparent overlap of tasks of one thread, in microseconds: workers convert times to the
#: scheduler's clock and estimate the offset at each heartbeat. The sample traces have 0.1 s.
JITTER: Final = 200_000

#: Task runs sorted by one query, of whole workers.
GROUP_RUNS: Final = 200_000

#: Colors of chrome://tracing by rank of the prefix. Perfetto colors by name.
_COLORS: Final = (
    "thread_state_runnable", "rail_response", "thread_state_iowait", "rail_animation",
    "thread_state_running", "olive", "rail_load", "rail_idle",
    "cq_build_attempt_runnig",  # spelled like this in its list of colors
    "generic_work",
)  # fmt: skip
#: Reserved colors: failures must not look like a prefix.
_COLOR_OF_FAILURE: Final = "terrible"
_COLOR_OF_TRANSFER: Final = "grey"

#: Columns that place a slice; the others are its arguments.
_PLACE: Final = ("worker", "thread", "start", "stop", "chunks")
#: Times further from the start than this, in seconds, are clipped as invalid.
_LONGEST: Final = 1e9

#: Computed tasks, with the chunks that they read, which can be several.
_TASKS: Final = """
WITH picked AS (
    SELECT
        trace_id, key, prefix, attempt, worker, thread, outcome, typename, nbytes, exception,
        compute_seconds, transfer_seconds, deserialize_seconds, disk_seconds, queued_seconds,
        compute_start_t AS start, compute_stop_t AS stop
    FROM task_runs
    WHERE compute_start_t IS NOT NULL AND {condition}
),
read AS (
    SELECT
        trace_id, key, attempt, count(*) AS chunks, first(dataset) AS dataset,
        first(filename) AS filename, first(treename) AS treename,
        min(entry_start) AS entry_start, max(entry_stop) AS entry_stop,
        try_cast(sum(events) AS BIGINT) AS events,
        try_cast(sum(bytes_read) AS BIGINT) AS bytes_read
    FROM chunks
    SEMI JOIN picked USING (trace_id, key)
    GROUP BY trace_id, key, attempt
)
SELECT * EXCLUDE (trace_id)
FROM picked LEFT JOIN read USING (trace_id, key, attempt)
ORDER BY worker, thread, start, stop, trace_id, key
"""

#: Chunks of runs without a cluster.
_CHUNKS_ALONE: Final = """
SELECT
    key, worker, thread, outcome, exception, dataset, filename, treename, entry_start,
    entry_stop, events, bytes_read, compute_seconds, 1 AS chunks,
    start_t AS start, stop_t AS stop
FROM chunks ANTI JOIN task_runs USING (trace_id, key)
WHERE start_t IS NOT NULL AND {condition}
ORDER BY worker, thread, start, stop, key
"""

#: Recorded transfers, which also include those that no task waited for.
_TRANSFERS: Final = """
SELECT
    destination AS worker, source, bytes, cardinality(keys)::BIGINT AS results,
    map_keys(keys)[1] AS key,
    start_t AS start, stop_t AS stop
FROM transfers
WHERE start_t IS NOT NULL AND destination IS NOT NULL AND {condition}
ORDER BY worker, start, stop
"""

# Reported with the end of each task: all that is known if transfers are not recorded.
_FETCHES: Final = """
SELECT worker, key AS for_task, source, start_t AS start, stop_t AS stop
FROM task_phases ANTI JOIN transfers USING (trace_id)
WHERE action = 'transfer' AND start_t IS NOT NULL AND {condition}
ORDER BY worker, start, stop
"""

#: Samples of workers, which are drawn as counters.
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
        "process_bytes": "memory_bytes", "managed_bytes": "managed_bytes",
        "spilled_bytes": "spilled_bytes",
    },
    "CPU": {"percent": "cpu_percent"},
    "queue": {"processing": "processing", "executing": "executing", "ready": "ready"},
}  # fmt: skip


def write(trace: Session, scope: Scope, file: IO[str]) -> None:
    """Write the trace events in a scope of a trace to a text file."""
    separator = "[\n"
    for event in events(trace, scope):
        file.write(separator + json.dumps(event, allow_nan=False, separators=(",", ":")))
        separator = ",\n"
    file.write("[]\n" if separator == "[\n" else "\n]\n")


def events(trace: Session, scope: Scope) -> Iterator[Event]:
    """Yield the trace events in a scope of a trace, not ordered by time."""
    # The scheduler runs no tasks.
    if scope.scheduler:
        return
    workers = dict(trace.rows("SELECT worker, name FROM workers"))
    processes = _Processes(workers, recording_start(trace))
    prefixes = trace.rows(
        "SELECT prefix FROM prefixes ORDER BY compute_seconds DESC NULLS LAST, prefix"
    )
    # The prefixes with the most time get the most distinct colors.
    colors = {prefix: _COLORS[rank % len(_COLORS)] for rank, (prefix,) in enumerate(prefixes)}
    task = partial(_task, colors=colors)
    for group in _groups(trace, scope):
        computed = group.condition()
        yield from processes.slices("thread", rows(trace, _TASKS, computed), task, JITTER)
        # Without a task, a chunk has no prefix.
        alone = group.condition(prefix="$prefix IS NULL")
        yield from processes.slices("thread", rows(trace, _CHUNKS_ALONE, alone), task, JITTER)
        # Fetches of inputs have the prefix of the task that waits; recorded transfers, that of
        # the data.
        fetched = group.condition()
        yield from processes.slices("transfer", rows(trace, _FETCHES, fetched), _transfer)
        moved = group.condition(workers=("destination",), prefix=MOVES_PREFIX)
        yield from processes.slices("transfer", rows(trace, _TRANSFERS, moved), _transfer)
        sampled = group.condition(prefix=None)
        yield from processes.counters(rows(trace, _SAMPLES, sampled))
    yield from processes.metadata()


def _groups(trace: Session, scope: Scope) -> list[Scope]:
    """Split a scope into groups of workers; the first is of the rows without a worker."""
    groups: list[list[str]] = []
    room = 0
    for address, runs in trace.rows(
        "SELECT worker, sum(task_runs) FROM workers GROUP BY worker ORDER BY worker"
    ):
        if scope.workers is not None and address not in scope.workers:
            continue
        if not groups or runs > room:
            groups.append([])
            room = GROUP_RUNS
        groups[-1].append(address)
        room -= runs
    if len(groups) < 2:
        return [scope]
    if scope.workers is None:
        groups.insert(0, [])
    return [replace(scope, workers=tuple(group)) for group in groups]


class _Processes:
    """Events of workers and of their lanes, the numbers of which are all different."""

    def __init__(self, names: dict[str | None, str | None], start_t: float) -> None:
        self._names = names
        self._start_t = start_t
        #: Of a worker; or of a lane: worker, kind of lane, thread, and number among these.
        self._numbers: dict[tuple[Any, ...], int] = {}

    def slices(
        self, kind: str, sorted_rows: Iterable[Row], describe: Callable[[Row], Event],
        tolerance: int = 0,
    ) -> Iterator[Event]:  # fmt: skip
        """Yield rows, sorted by worker and thread, as slices on lanes."""
        for (worker, thread), group in itertools.groupby(
            sorted_rows, key=lambda row: (row["worker"], row.get("thread"))
        ):
            slices = (
                Slice(
                    start := self._microseconds(row["start"]),
                    # At least one microsecond, so that it is visible.
                    max(self._microseconds(row["stop"] or 0.0), start + 1),
                    describe(row),
                )
                for row in group
            )
            for lane, slice_ in assign_lanes(slices, 0 if thread is None else tolerance):
                pid = self._number(worker)
                tid = self._number(worker, kind, thread, lane)
                times = {"ts": slice_.start, "dur": slice_.stop - slice_.start}
                yield {"ph": "X", "pid": pid, "tid": tid, **times, **slice_.data}

    def counters(self, samples: Iterable[Row]) -> Iterator[Event]:
        """Yield the quantities of each sample."""
        for sample in samples:
            pid, ts = self._number(sample["worker"]), self._microseconds(sample["t"])
            for name, series in _COUNTERS.items():
                values = _arguments({label: sample[column] for label, column in series.items()})
                if values:
                    yield {"ph": "C", "pid": pid, "ts": ts, "name": name, "args": values}

    def metadata(self) -> Iterator[Event]:
        """Yield the names and the order of workers and lanes."""
        threads: dict[str | None, dict[object, int]] = {}
        for (worker, *lane), number in self._numbers.items():
            match lane:
                case ["transfer", _, place]:
                    name = f"transfers {place + 1}"
                case [_, None, place]:
                    name = f"unknown thread {place + 1}"
                case [_, thread, place]:
                    # Numbered in order of appearance: identifiers have a dozen digits.
                    known = threads.setdefault(worker, {})
                    name = f"thread {known.setdefault(thread, len(known) + 1)}"
                    name += ", overlapping" if place else ""
                case _ if worker is None:
                    name = "unknown worker"
                case _:
                    called = self._names.get(worker)
                    is_named = called not in (None, worker)
                    name = f"{called} {worker}" if is_named else f"worker {worker}"
            what = "thread" if lane else "process"
            ids = {"pid": self._numbers[worker,], "tid": number, "ts": 0}
            for event, args in (
                (f"{what}_name", {"name": one_line(name)}),
                (f"{what}_sort_index", {"sort_index": number}),
            ):
                yield {"ph": "M", "name": event, **ids, "args": args}

    def _number(self, *key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers) + 1)

    def _microseconds(self, t: float) -> int:
        return round(1e6 * min(max(0.0, t - self._start_t), _LONGEST))


def _task(run: Row, colors: dict[str | None, str]) -> Event:
    prefix = run.get("prefix")
    name = prefix or run["key"]
    if run["chunks"]:
        file = (run["filename"] or "").rstrip("/").rpartition("/")[2]
        entries = ""
        if run["chunks"] > 1:
            entries = f"{run['chunks']} chunks"
        elif run["entry_start"] is not None and run["entry_stop"] is not None:
            entries = f"{run['entry_start']}–{run['entry_stop']}"
        name = " · ".join(filter(None, (run["dataset"], file, entries))) or "chunk"
    has_failed = run["outcome"] in FAILED
    return {
        "cat": "task" if "prefix" in run else "chunk",
        "name": one_line(name) or "?",
        "cname": _COLOR_OF_FAILURE if has_failed else colors.get(prefix, _COLORS[0]),
        "args": _arguments(run),
    }


def _transfer(transfer: Row) -> Event:
    source = transfer["source"]
    return {
        "cat": "transfer",
        "name": "transfer" if source is None else one_line(f"from {source}"),
        "cname": _COLOR_OF_TRANSFER,
        "args": _arguments(transfer),
    }


def _arguments(row: Row) -> dict[str, Any]:
    """Return the values of a row that are not null, as JSON can represent them."""
    return {
        name: visible(value) if isinstance(value, str) else value
        for name, value in row.items()
        if name not in _PLACE
        and value is not None
        and not (isinstance(value, float) and not math.isfinite(value))
    }
