"""Core time: the use of every thread-second of the workers.

The sweep is exact: between two changes, all counts are constant. A thread-second belongs to one
use, which these rules determine.

1. On each worker, threads compute first, or prepare to (`busy`).
2. Of the other threads, each waits for one attempt that was assigned to the worker: none if the
   worker is silent or paused; then one that fetches its inputs (`transfer`), one of which only
   the end is known (`unreported`, then `doubtful`; none if the worker is leaving, since it
   starts no task), and one that is being dispatched (`dispatch`).
3. If samples show a method of an actor of the worker, which has a thread of its own, a free
   thread counts as its; so does one for each task of the worker that has seceded: whether such
   a task computes or waits is not known.
4. The remaining threads have no assigned task. Counts of the whole cluster decide why, again
   one thread each: tasks that are ready and wait for the scheduler, then tasks that wait on
   other workers.
5. All others lack tasks: dependencies are unfinished, or the run is near its end. Both are true
   at once when a final merge waits for the last tasks, so these threads are divided like the
   work: seconds of waiting tasks against seconds that running tasks still need.

All intervals are first divided at the boundaries of time buckets. Only a few buckets are swept
at a time, which bounds the memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from roast_analyze.algorithms.attempt_intervals import KINDS
from roast_analyze.algorithms.task_states import STATES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[Any]

#: Conditions of a worker that explain threads without tasks.
CONDITIONS: Final = ("silent", "paused", "leaving", "joining")

#: Columns of the result. Rows of attempts have a label and no use, the others the reverse.
CORE_TIME: Final = pl.Schema(
    {
        "bucket": pl.Int64(),
        "process": pl.Int64(),
        "label": pl.Int64(),
        "use": pl.String(),
        "seconds": pl.Float64(),
    }
)

#: Uses of threads without a task: of tasks that exist, then of times without tasks.
_LACKING: Final = (
    "scheduler",
    "imbalance",
    "dependencies",
    "tail",
    "before first graph",
    "between graphs",
    "after last result",
)

#: Uses that are replaced by `joining worker` if the worker has just joined.
_JOINING: Final = ("scheduler", "imbalance")

#: Uses of threads that no attempt explains.
_FREE: Final = (
    "silent worker", "paused worker", "leaving worker", "joining worker", *_LACKING
)  # fmt: skip

#: Shorter times are rounding errors.
_NOTHING_SECONDS: Final = 1e-9

#: Buckets are swept together until they have this many intervals.
_INTERVALS_PER_SWEEP: Final = 30_000


@dataclass(frozen=True)
class Recording:
    """Facts about one trace; times are seconds since the start of the recording.

    Attributes
    ----------
    seconds : float
        Duration of the recording.
    bucket_seconds : float
        Length of a time bucket; the last one ends with the recording.
    presence : DataFrame
        process, nthreads, start, stop: processes of workers while they were connected.
    intervals : DataFrame
        What attempts and actors did, with the columns of
        :data:`roast_analyze.algorithms.attempt_intervals.INTERVALS`.
    conditions : DataFrame
        process, condition (position in :data:`CONDITIONS`), start, stop.
    states : DataFrame
        From :func:`roast_analyze.algorithms.task_states.task_states`; of a time range, those of
        the whole run.
    """

    seconds: float
    bucket_seconds: float
    presence: pl.DataFrame
    intervals: pl.DataFrame
    conditions: pl.DataFrame
    states: pl.DataFrame


def core_time(recording: Recording) -> pl.DataFrame:
    """Return the seconds of each use.

    Returns
    -------
    DataFrame
        With the columns of ``CORE_TIME``, in the order of the first three.
    """
    workers = recording.presence.filter(
        (pl.col("nthreads") > 0) & (pl.col("start") < pl.col("stop"))
    ).sort("process")
    if workers.is_empty():
        return pl.DataFrame(schema=CORE_TIME)
    # Instants between the buckets.
    buckets = int(np.ceil(recording.seconds / recording.bucket_seconds))
    edges = recording.bucket_seconds * np.arange(1, buckets, dtype=np.float64)
    presence, intervals, conditions = (
        _Pieces(frame, workers, edges)
        for frame in (workers, recording.intervals, recording.conditions)
    )
    outside = _Outside(recording, edges)
    #: Cells, labels (free threads have negative ones) and seconds.
    found: list[tuple[Ints, Ints, Floats]] = []
    for window in _windows(intervals.offsets):
        sweep = _Sweep(window, presence, intervals, conditions)
        found += [sweep.assigned(), _free(sweep, outside)]
    cell, label, seconds = (np.concatenate(column) for column in zip(*found, strict=True))
    [lasting] = np.nonzero(seconds > _NOTHING_SECONDS)
    # A stable sort is fast, because most elements are already in order.
    order = lasting[
        np.argsort(cell[lasting] * (np.ptp(label) + 1) + label[lasting], kind="stable")
    ]
    bucket, row = np.divmod(cell[order], workers.height)
    is_free = pl.col("label") < 0
    return pl.DataFrame(
        {"bucket": bucket, "row": row, "label": label[order], "seconds": seconds[order]}
    ).select(
        "bucket",
        pl.lit(workers["process"]).gather("row").alias("process"),
        pl.when(~is_free).then("label").alias("label"),
        pl.lit(pl.Series(_FREE)).gather(pl.when(is_free).then("label")).alias("use"),
        "seconds",
    )


class _Pieces:
    """Intervals of connected processes, divided at the boundaries of buckets.

    Attributes
    ----------
    values : dict of array
        The columns of the intervals.
    rows : int
        Number of processes.
    offsets : array
        Number of pieces before each bucket, and in total.
    """

    def __init__(self, frame: pl.DataFrame, workers: pl.DataFrame, edges: Floats) -> None:
        processes, joined, left = _arrays(workers, "process", "start", "stop")
        self.values = {column: frame[column].to_numpy() for column in frame.columns}
        process, start, stop = (self.values[name] for name in ("process", "start", "stop"))
        self.rows = len(processes)
        # Intervals of processes that were not connected have no pieces.
        row = np.searchsorted(processes, process)
        known = np.append(processes, -1)[row] == process
        row[~known] = 0
        self._row = row.astype(np.int32)
        self._start = np.maximum(start, joined[row])
        self._stop = np.minimum(stop, left[row])
        first = np.searchsorted(edges, self._start, "right")
        counts = np.searchsorted(edges, self._stop, "left") + 1 - first
        counts[~known | (self._start >= self._stop)] = 0
        place = np.repeat(np.arange(len(row), dtype=np.int32), counts)
        bucket = np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts - first, counts)
        order, self.offsets = _by_bucket(bucket, edges)
        self._place = place[order]
        self._edges = np.concatenate([[-np.inf], edges, [np.inf]])

    def within(self, buckets: range) -> tuple[Ints, Ints, Floats, Floats]:
        """Return interval, cell, start and stop of the pieces in some buckets.

        Cells are pairs of a bucket and a process, numbered in this order.
        """
        offsets = self.offsets[buckets.start : buckets.stop + 1]
        place = self._place[offsets[0] : offsets[-1]]
        bucket = np.repeat(buckets, np.diff(offsets))
        return (
            place,
            bucket * self.rows + self._row[place],
            np.maximum(self._start[place], self._edges[bucket]),
            np.minimum(self._stop[place], self._edges[bucket + 1]),
        )


class _Outside:
    """Tasks without a result that are on no worker.

    Attributes
    ----------
    edges : array
        Instants between the buckets.
    seconds : float
        End of the recording.
    unfinished : array
        Starts and stops of the times with tasks that have no result, in turn.
    levels : list of float
        The numbers of :meth:`changes`, at the end of the buckets so far.
    """

    def __init__(self, recording: Recording, edges: Floats) -> None:
        self.edges, self.seconds = edges, recording.seconds
        self.levels = [0.0] * 4
        state, start, stop, compute_seconds = _arrays(
            recording.states, "state", "start", "stop", "compute_seconds"
        )
        # Times outside of a time range show that the range is between two graphs of the run.
        lasts = start < stop
        self.unfinished = _union(start[lasts], stop[lasts])
        start, stop = np.maximum(start, 0.0), np.minimum(stop, recording.seconds)
        lasts = start < stop
        # Tasks that are processing are on a worker, where the sweep counts them.
        [some] = np.nonzero(lasts & (state != STATES.index("processing")))
        instant = np.concatenate([start[some], stop[some]])
        order, self._offsets = _by_bucket(np.searchsorted(edges, instant, "right"), edges)
        task = np.tile(some, 2)[order]
        self._instant, self._sign = instant[order], np.where(order < len(some), 1.0, -1.0)
        self._is_waiting = state[task] == STATES.index("waiting")
        self._compute_seconds = compute_seconds[task] * self._is_waiting

    def edges_of(self, buckets: range) -> Floats:
        """Return the boundaries of some buckets."""
        return np.concatenate([[0.0], self.edges, [self.seconds]])[
            buckets.start : buckets.stop + 1
        ]

    def changes(self, buckets: range) -> tuple[Floats, list[Floats]]:
        """Return the instants of changes in some buckets, and the change of each number.

        The numbers are tasks that wait for the scheduler, tasks that wait for others, those of
        them whose compute time is known, and this time.
        """
        some = slice(self._offsets[buckets.start], self._offsets[buckets.stop])
        is_waiting, seconds = self._is_waiting[some], self._compute_seconds[some]
        numbers = (1.0 - is_waiting, is_waiting, np.sign(seconds), seconds)
        return self._instant[some], [self._sign[some] * number for number in numbers]


def _by_bucket(bucket: Ints, edges: Floats) -> tuple[Ints, Ints]:
    """Return the order by bucket, and the number of elements before each and in total."""
    counts = np.bincount(bucket, minlength=len(edges) + 1)
    # Small integers are sorted in linear time.
    order = np.argsort(bucket.astype(np.min_scalar_type(len(edges))), kind="stable")
    return order, np.concatenate([[0], np.cumsum(counts)])


def _windows(offsets: Ints) -> Iterator[range]:
    """Yield ranges of buckets that are swept together."""
    begin, buckets = 0, len(offsets) - 1
    while begin < buckets:
        enough = int(np.searchsorted(offsets, offsets[begin] + _INTERVALS_PER_SWEEP))
        end = min(max(enough, begin + 1), buckets)
        yield range(begin, end)
        begin = end


class _Sweep:
    """The threads of each worker process in some buckets, between two changes.

    Arrays have one element per change, ordered by cell and time, for the slice of time until
    the next change of the cell.

    Attributes
    ----------
    cell, instant, seconds : array
        Cell, start and duration of each slice.
    unassigned : array
        Threads without a task that no condition of their worker explains.
    is_joining : array
        Whether the worker has just joined.
    busy : tuple of array
        Start and stop of the pieces of busy intervals, and the end of the interval.
    explained : list of array
        Threads without a task that a condition explains: silent, paused, leaving.
    """

    def __init__(
        self, buckets: range, presence: _Pieces, intervals: _Pieces, conditions: _Pieces
    ) -> None:
        self.buckets, self.rows = buckets, presence.rows
        parts = [pieces.within(buckets) for pieces in (presence, intervals, conditions)]
        cell = np.concatenate([np.tile(part[1], 2) for part in parts])
        instant = np.concatenate([t for part in parts for t in part[2:]])
        # Small integers are sorted in linear time.
        small = (cell - buckets.start * self.rows).astype(
            np.min_scalar_type(len(buckets) * self.rows)
        )
        by_instant = np.argsort(instant)
        order = by_instant[np.argsort(small[by_instant], kind="stable")]
        self.cell, self.instant = cell[order], instant[order]
        follows = np.append(self.cell[1:] == self.cell[:-1], False)
        self.seconds = np.where(follows, np.append(self.instant[1:], 0.0) - self.instant, 0.0)
        ends = np.cumsum([2 * len(part[0]) for part in parts])

        def level(part: int, amount: NDArray[Any]) -> Floats:
            """Return the sum of the amounts of intervals that have started and not stopped."""
            change = np.zeros(len(order))
            if not amount.any():
                return change
            np.split(change, ends)[part][:] = np.concatenate([amount, -amount])
            return np.cumsum(change[order])

        idle = level(0, presence.values["nthreads"][parts[0][0]].astype(float))
        condition = conditions.values["condition"][parts[2][0]]
        silent, paused, leaving, joining = (
            level(2, (condition == i).astype(float)) > 0 for i in range(len(CONDITIONS))
        )
        self.is_joining = joining
        interval, of_cell, start, stop = parts[1]
        self._cell = of_cell
        self._kind, self._label = (
            intervals.values[name][interval] for name in ("kind", "label")
        )
        received = []
        for kind, name in enumerate(KINDS):
            attempts = level(1, (self._kind == kind).astype(float))
            used = np.minimum(idle, attempts)
            if name != "busy":
                used[silent | paused] = 0
            if name in ("unreported", "doubtful"):
                used[leaving] = 0
            if name == "dispatch":
                #: Attempts that wait for a thread of their worker.
                self.backlog = attempts - used
            idle = idle - used
            share = np.divide(used, attempts, out=np.zeros(len(used)), where=attempts > 0)
            received.append(_sum_before(share * self.seconds))
        paused &= ~silent
        leaving &= ~(silent | paused)
        self.explained = [
            np.where(condition, idle, 0.0) for condition in (silent, paused, leaving)
        ]
        self.unassigned = np.where(silent | paused | leaving, 0.0, idle)
        is_busy = self._kind == KINDS.index("busy")
        self.busy = (
            start[is_busy],
            stop[is_busy],
            intervals.values["stop"][interval[is_busy]],
        )
        #: First slice of each run: slices of a cell with equal numbers.
        self.run_starts = _starts(self.cell, self.unassigned, self.is_joining)
        # Seconds of a thread that attempts of each kind have received up to each change.
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        begin, end = np.split(place[ends[0] : ends[1]], 2)
        so_far = np.concatenate(received)
        offset = self._kind * np.int64(len(order))
        self._received = so_far[offset + end] - so_far[offset + begin]

    def assigned(self) -> tuple[Ints, Ints, Floats]:
        """Return cells, labels and seconds of attempts."""
        labels = int(self._label.max(initial=0)) + 1
        groups, group = np.unique(self._cell * labels + self._label, return_inverse=True)
        cell, label = np.divmod(groups, labels)
        return cell, label, np.bincount(group, self._received, len(groups)).astype(float)

    def runs(self) -> tuple[Floats, Floats, Floats]:
        """Return the number of threads without a task, the start and the stop of each run."""
        start, cell = self.instant[self.run_starts], self.cell[self.run_starts]
        stop = np.where(
            np.append(cell[1:] == cell[:-1], False), np.append(start[1:], 0.0), start
        )
        return self.unassigned[self.run_starts], start, stop

    def changes(self) -> tuple[Floats, Floats, Floats]:
        """Return instants, and the change of unassigned threads and of the backlog then."""
        slices = _starts(self.cell, self.unassigned, self.backlog)
        unassigned, backlog = self.unassigned[slices], self.backlog[slices]
        return (
            self.instant[slices],
            np.diff(unassigned, prepend=0.0),
            np.diff(backlog, prepend=0.0),
        )


def _free(sweep: _Sweep, outside: _Outside) -> tuple[Ints, Ints, Floats]:
    """Return cells, labels (negative) and seconds of threads that no attempt explains."""
    begin, cells = sweep.buckets.start * sweep.rows, len(sweep.buckets) * sweep.rows
    cell = sweep.cell - begin
    spent = np.zeros((len(_FREE), cells))
    for row, threads in enumerate(sweep.explained):
        if threads.any():
            spent[row] = np.bincount(cell, threads * sweep.seconds, cells)
    cell, is_joining = cell[sweep.run_starts], sweep.is_joining[sweep.run_starts]
    for use, seconds in _unassigned(sweep, outside):
        if use in _JOINING and is_joining.any():
            spent[_FREE.index("joining worker")] += np.bincount(
                cell, np.where(is_joining, seconds, 0.0), cells
            )
            seconds[is_joining] = 0.0
        spent[_FREE.index(use)] = np.bincount(cell, seconds, cells)
    label, cell = np.nonzero(spent)
    return begin + cell, label - len(_FREE), spent[label, cell]


def _unassigned(sweep: _Sweep, outside: _Outside) -> Iterator[tuple[str, Floats]]:
    """Yield uses of threads without a task, with their seconds per run of the sweep."""
    changed, unassigned_by, backlog_by = sweep.changes()
    # Shares are means between two instants, so boundaries of buckets are among them.
    edges = outside.edges_of(sweep.buckets)
    unfinished = outside.unfinished
    turns = unfinished[slice(*np.searchsorted(unfinished, edges[[0, -1]]))]
    moved, moved_by = outside.changes(sweep.buckets)
    begun, stopped, until = sweep.busy
    parts = [changed, np.concatenate([begun, stopped]), moved, turns, edges[:-1]]
    instant = np.concatenate(parts)
    order = np.argsort(instant)
    at = instant[order]
    ends = np.cumsum([len(part) for part in parts])

    def level(part: int, amount: NDArray[Any], before: float = 0.0) -> Floats:
        """Return the sum of the changes so far."""
        if not amount.any():
            return np.full(len(order), before)
        change = np.zeros(len(order))
        np.split(change, ends)[part][:] = amount
        return before + np.cumsum(change[order])

    numbers = [level(2, *some) for some in zip(moved_by, outside.levels, strict=True)]
    outside.levels = [float(number[-1]) for number in numbers]
    unassigned, seconds = level(0, unassigned_by), np.diff(at, append=edges[-1])
    counted = (unassigned > 0) & (seconds > 0)
    unassigned, seconds, at = unassigned[counted], seconds[counted], at[counted]
    ready, waiting, known, waiting_seconds = (number[counted] for number in numbers)
    # Rounding leaves a remainder where no such task is left.
    waiting_seconds = np.where(known > 0, waiting_seconds, 0.0)
    running, running_until = (
        level(1, np.concatenate([amount, -amount]))[counted]
        for amount in (np.ones(len(until)), until)
    )
    from_scheduler = np.minimum(ready, unassigned)
    from_workers = np.minimum(level(0, backlog_by)[counted], unassigned - from_scheduler)
    lacking = unassigned - from_scheduler - from_workers
    dependent = lacking * _dependent_share(
        waiting_seconds,
        waiting,
        running,
        np.maximum(running_until - running * at, 0.0),
        seconds,
    )
    # Even numbers are times without an unfinished task.
    place = np.searchsorted(unfinished, at, "right")
    is_between = (place > 0) & (place < len(unfinished))
    shares = (
        *(np.where(place % 2, threads, 0.0) / unassigned
          for threads in (from_scheduler, from_workers, dependent, lacking - dependent)),
        place == 0,
        is_between & (place % 2 == 0),
        ~is_between & (place > 0),
    )  # fmt: skip

    threads, start, stop = sweep.runs()
    lasting = np.flatnonzero((threads > 0) & (start < stop))
    start, stop = start[lasting], stop[lasting]
    first, last = np.searchsorted(at, start, "right") - 1, np.searchsorted(at, stop) - 1
    for use, share in zip(_LACKING, shares, strict=True):
        if not share.any():
            continue
        # Seconds of a thread without a task up to each change.
        so_far = _sum_before(share * seconds)
        spent = np.zeros(len(threads))
        spent[lasting] = threads[lasting] * (
            so_far[last]
            + share[last] * (stop - at[last])
            - so_far[first]
            - share[first] * (start - at[first])
        )
        yield use, spent


def _arrays(frame: pl.DataFrame, *columns: str) -> list[NDArray[Any]]:
    return [frame[column].to_numpy() for column in columns]


def _starts(*values: NDArray[Any]) -> Ints:
    """Return the places at which any of some arrays changes, the first one included."""
    changed = np.zeros(len(values[0]), bool)
    changed[:1] = True
    for value in values:
        changed[1:] |= value[1:] != value[:-1]
    return np.flatnonzero(changed)


def _sum_before(values: Floats) -> Floats:
    """Return the sum of all values before each."""
    return np.concatenate([[0.0], np.cumsum(values)[:-1]]) if len(values) else values


def _union(start: Floats, stop: Floats) -> Floats:
    """Return the starts and stops of the times that intervals cover, in turn."""
    if not len(start):
        return start
    start, stop = np.sort(start), np.sort(stop)
    # There is a gap where as many intervals have stopped as have started.
    [last] = np.nonzero(np.append(start[1:], np.inf) > stop)
    return np.column_stack([start[np.append(0, last[:-1] + 1)], stop[last]]).ravel()


def _dependent_share(
    waiting_seconds: Floats,
    waiting: Floats,
    running: Floats,
    running_seconds: Floats,
    seconds: Floats,
) -> Floats:
    """Return the share of waiting tasks in the work that is left, on average over each slice.

    It is the mean of ``waiting_seconds / (waiting_seconds + running_seconds)``, an integral of
    1 / x, since ``running_seconds`` falls evenly by ``running`` seconds a second.
    """
    done = running * seconds
    # The rest at the end; rounding can make it slightly negative.
    left = np.where(running > 0, np.maximum(running_seconds - done, 0.0), 0.0) + waiting_seconds
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.select(
            [waiting_seconds < _NOTHING_SECONDS, done < 1e-5 * left],
            [
                ((waiting > 0) & (running == 0)).astype(float),
                waiting_seconds / (left + done / 2),
            ],
            waiting_seconds * np.log1p(done / left) / done,
        )
