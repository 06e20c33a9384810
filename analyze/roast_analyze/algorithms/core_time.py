"""Core time: what every thread-second that the workers offered was used for.

The sweep is exact: between two changes, all counts are constant. A thread-second belongs to one
use, which these rules determine.

1. On each worker, threads compute first, or prepare to (`busy`).
2. Of the other threads, each waits for one attempt that was assigned to the worker: none if the
   worker is silent or paused; then one that fetches its inputs (`transfer`), one of which only
   the end is known (`unreported`; none if the worker is leaving, since it starts no task), and
   one that is on its way (`dispatch`).
3. What is left has no assigned task. For that, counts of the whole cluster decide, again one
   thread each: tasks that are ready and wait for the scheduler, then tasks that wait on other
   workers.
4. What is left lacks tasks: dependencies are unfinished, or the run is near its end. Both are
   true at once when a final merge waits for the last tasks, so these threads are divided as the
   work is: seconds of waiting tasks against seconds that running tasks still need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.int64]

#: Kinds of intervals of attempts, in the order in which they claim threads.
KINDS: Final = ("busy", "transfer", "unreported", "dispatch")

#: Conditions of a worker that explain threads without tasks.
CONDITIONS: Final = ("silent", "paused", "leaving", "joining")

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

#: Uses that a worker which has just joined explains better.
_JOINING: Final = ("scheduler", "imbalance")

#: Rounding can leave less than this.
_NOTHING_SECONDS: Final = 1e-9


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
        process, kind, label, start, stop: what attempts did, see :data:`KINDS`. A label is any
        integer from 0.
    conditions : DataFrame
        process, condition, start, stop: see :data:`CONDITIONS`.
    states : DataFrame
        state, compute_seconds, start, stop: tasks that have no result yet, and the compute time
        of the task if it is known.
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
        process, bucket, label, use, seconds. Rows of attempts have a label and no use, the
        others a use and no label.
    """
    sweep = _Sweep(recording)
    parts = [sweep.assigned()]
    for use, threads in sweep.explained.items():
        parts.append(sweep.totals(use, threads * sweep.seconds))
    joining = np.zeros(len(sweep.run_starts))
    for use, seconds in _unassigned(recording, sweep):
        of_joining = seconds * (sweep.is_joining[sweep.run_starts] & (use in _JOINING))
        joining += of_joining
        parts.append(sweep.totals(use, seconds - of_joining, sweep.run_starts))
    parts.append(sweep.totals("joining worker", joining, sweep.run_starts))
    return pl.concat(parts).filter(pl.col("seconds") > _NOTHING_SECONDS)


class _Sweep:
    """The threads of each worker process between two changes.

    Arrays have one element per change, ordered by process and time, for the slice of time until
    the next change of the process.
    """

    def __init__(self, recording: Recording) -> None:
        presence = recording.presence.filter(
            (pl.col("nthreads") > 0) & (pl.col("start") < pl.col("stop"))
        ).with_row_index("row")
        joined, left, nthreads = _arrays(presence, "start", "stop", "nthreads")
        self.intervals = _clip(recording.intervals, presence)
        conditions = _clip(recording.conditions, presence)
        self._processes = presence["process"]
        #: Instants between the buckets.
        self.edges = recording.bucket_seconds * np.arange(
            1, np.ceil(recording.seconds / recording.bucket_seconds)
        )

        # The levels of a process at the boundaries of buckets are needed, too.
        first = np.searchsorted(self.edges, joined, "right")
        counts = np.maximum(np.searchsorted(self.edges, left, "left") - first, 0)
        self._first_edge = first
        self._edge_offset = np.cumsum(counts) - counts
        edge_row = np.repeat(np.arange(presence.height), counts)
        edge = np.arange(counts.sum()) - self._edge_offset[edge_row] + first[edge_row]

        frames = (presence, self.intervals, conditions)
        rows = (np.tile(frame["row"].to_numpy(), 2) for frame in frames)
        row = np.concatenate([edge_row, *rows])
        instant = np.concatenate(
            [
                self.edges[edge],
                *(t for frame in frames for t in _arrays(frame, "start", "stop")),
            ]
        )
        order = np.lexsort((instant, row))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        sizes = [len(edge), 2 * len(joined), self.intervals.height, self.intervals.height]
        #: Change at each boundary of a bucket, and at the start and the stop of each interval.
        self._edge_place, of_presence, self._begin_place, self._end_place, of_conditions = (
            np.split(place, np.cumsum(sizes))
        )
        self.row, self.instant = row[order], instant[order]
        follows = np.append(self.row[1:] == self.row[:-1], False)
        self.seconds = np.where(follows, np.append(self.instant[1:], 0.0) - self.instant, 0.0)

        def level(place: Indices, amount: Indices) -> Indices:
            """Return the sum of all amounts so far; those of a process add up to zero."""
            change = np.zeros(len(order), np.int64)
            np.add.at(change, place, amount)
            return np.cumsum(change)

        def count(kind: str, kinds: pl.Series, begin: Indices, end: Indices) -> Indices:
            is_kind = (kinds == kind).to_numpy()
            places = np.concatenate([begin[is_kind], end[is_kind]])
            return level(places, np.repeat([1, -1], is_kind.sum()))

        threads = level(of_presence, np.concatenate([nthreads, -nthreads]))
        ends = np.split(of_conditions, 2)
        silent, paused, leaving, joining = (
            count(name, conditions["condition"], *ends) > 0 for name in CONDITIONS
        )
        self.is_joining = joining
        #: Seconds of a thread that an attempt of each kind has received up to each change.
        self._received: dict[str, Floats] = {}
        idle = threads
        for kind in KINDS:
            attempts = count(kind, self.intervals["kind"], self._begin_place, self._end_place)
            used = np.minimum(idle, attempts)
            if kind != "busy":
                used[silent | paused] = 0
            if kind == "unreported":
                used[leaving] = 0
            idle = idle - used
            share = np.divide(used, attempts, out=np.zeros(len(used)), where=attempts > 0)
            self._received[kind] = _sum_before(share * self.seconds)
        #: Attempts that wait for a thread of their worker.
        self._backlog = attempts - used
        paused &= ~silent
        leaving &= ~(silent | paused)
        #: Threads without an assigned task that a condition of their worker explains.
        self.explained = {
            f"{name} worker": np.where(is_so, idle, 0)
            for name, is_so in (("silent", silent), ("paused", paused), ("leaving", leaving))
        }
        self._unassigned = np.where(silent | paused | leaving, 0, idle)
        self._bucket = np.searchsorted(self.edges, self.instant, "right")
        #: First slice of each run: slices with equal numbers of a process in a time bucket.
        self.run_starts = _starts(self.row, self._bucket, self._unassigned, self.is_joining)

    def runs(self) -> tuple[Indices, Floats, Floats]:
        """Return the number of threads without a task, the start and the stop of each run."""
        start = self.instant[self.run_starts]
        row = self.row[self.run_starts]
        stop = np.where(np.append(row[1:] == row[:-1], False), np.append(start[1:], 0.0), start)
        return self._unassigned[self.run_starts], start, stop

    def changes(self) -> tuple[Indices, Floats]:
        """Return the slices that change a number of a process, and by how much.

        The numbers are threads without a task, and attempts that wait for a thread.
        """
        numbers = np.stack([self._unassigned, self._backlog])
        slices = _starts(self.row, *numbers)
        return slices, np.diff(numbers[:, slices], prepend=0).astype(float)

    def assigned(self) -> pl.DataFrame:
        """Return the seconds of attempts by process, bucket and label."""
        row, kind, start, stop = (
            self.intervals[n].to_numpy() for n in ("row", "kind", "start", "stop")
        )
        first = np.searchsorted(self.edges, start, "right")
        counts = np.searchsorted(self.edges, stop, "left") - first + 1
        piece = np.repeat(np.arange(len(row)), counts)
        bucket = np.arange(len(piece)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        begins, ends = bucket == first[piece], bucket == (first + counts - 1)[piece]
        edge = (self._edge_offset - self._first_edge)[row[piece]] + bucket
        begin, end = self._begin_place[piece], self._end_place[piece]
        begin[~begins] = self._edge_place[edge[~begins] - 1]
        end[~ends] = self._edge_place[edge[~ends]]
        seconds = np.zeros(len(piece))
        for name, received in self._received.items():
            is_kind = (kind == name)[piece]
            seconds[is_kind] = received[end[is_kind]] - received[begin[is_kind]]
        return (
            pl.DataFrame({
                "process": self._processes.gather(row[piece]),
                "bucket": bucket,
                "label": self.intervals["label"].gather(piece),
                "seconds": seconds,
            })
            .group_by("process", "bucket", "label")
            .agg(pl.lit(None, pl.String).alias("use"), pl.col("seconds").sum())
        )  # fmt: skip

    def totals(
        self, use: str, seconds: Floats, slices: Indices | slice = slice(None)
    ) -> pl.DataFrame:
        """Return the seconds of a use by process and bucket."""
        buckets = len(self.edges) + 1
        cell = self.row[slices] * buckets + self._bucket[slices]
        cells = np.bincount(cell, seconds).astype(float)  # integers if there is none
        used = np.flatnonzero(cells)
        return pl.DataFrame({
            "process": self._processes.gather(used // buckets),
            "bucket": used % buckets,
            "label": pl.Series([None] * len(used), dtype=pl.Int64),
            "use": pl.Series([use] * len(used), dtype=pl.String),
            "seconds": cells[used],
        })  # fmt: skip


def _clip(intervals: pl.DataFrame, presence: pl.DataFrame) -> pl.DataFrame:
    """Restrict intervals to the presence of their process; the column until keeps the end."""
    return (
        intervals.join(
            presence.select("process", "row", joined="start", left="stop"), on="process"
        )
        .with_columns(
            until="stop",
            start=pl.max_horizontal("start", "joined"),
            stop=pl.min_horizontal("stop", "left"),
        )
        .filter(pl.col("start") < pl.col("stop"))
    )


def _arrays(frame: pl.DataFrame, *columns: str) -> list[NDArray[Any]]:
    return [frame[column].to_numpy() for column in columns]


def _starts(*values: NDArray[Any]) -> Indices:
    """Return the places at which any of some arrays changes, the first one included."""
    changed = np.zeros(len(values[0]), bool)
    changed[:1] = True
    for value in values:
        changed[1:] |= value[1:] != value[:-1]
    return np.flatnonzero(changed)


def _sum_before(values: Floats) -> Floats:
    """Return the sum of all values before each."""
    return np.concatenate([[0.0], np.cumsum(values)[:-1]]) if len(values) else values


def _unassigned(recording: Recording, sweep: _Sweep) -> Iterator[tuple[str, Floats]]:
    """Yield each use of threads without a task, with its seconds by run of the sweep."""
    states = recording.states.with_columns(
        start=pl.col("start").clip(lower_bound=0.0),
        stop=pl.col("stop").clip(upper_bound=recording.seconds),
    ).filter(pl.col("start") < pl.col("stop"))
    unfinished = _union(states)
    # Tasks that are processing are on a worker, where the sweep counts them.
    outside = states.filter(pl.col("state") != "processing")
    busy = sweep.intervals.filter(pl.col("kind") == "busy")
    changed, (unassigned_by, backlog_by) = sweep.changes()
    # Shares are means between two instants, so boundaries of buckets are among them.
    instant = np.concatenate([
        sweep.instant[changed], unfinished, sweep.edges,
        *(t for frame in (outside, busy) for t in _arrays(frame, "start", "stop")),
    ])  # fmt: skip
    order = np.argsort(instant, kind="stable")
    at = instant[order]
    ends = np.cumsum([len(changed), len(unfinished) + len(sweep.edges), 2 * outside.height])

    def level(part: int, amount: NDArray[Any]) -> Floats:
        """Return the sum of the changes so far."""
        change = np.zeros(len(order))
        np.split(change, ends)[part][:] = amount
        return np.cumsum(change[order])

    def opened(part: int, amount: NDArray[Any]) -> Floats:
        """Return the sum of the amounts of intervals that have started and not stopped."""
        return level(part, np.concatenate([amount, -amount]))[counted]

    unassigned, seconds = level(0, unassigned_by), np.diff(at, append=at[-1:])
    counted = (unassigned > 0) & (seconds > 0)
    unassigned, seconds, at = unassigned[counted], seconds[counted], at[counted]
    is_waiting = (outside["state"] == "waiting").to_numpy().astype(float)
    compute_seconds = outside["compute_seconds"].fill_null(0.0).to_numpy() * is_waiting
    # Rounding leaves a remainder where no such task is left.
    waiting_seconds = np.where(
        opened(2, np.sign(compute_seconds)) > 0, opened(2, compute_seconds), 0.0
    )
    running = opened(3, np.ones(busy.height))
    from_scheduler = np.minimum(opened(2, 1 - is_waiting), unassigned)
    from_workers = np.minimum(level(0, backlog_by)[counted], unassigned - from_scheduler)
    lacking = unassigned - from_scheduler - from_workers
    dependent = lacking * _dependent_share(
        waiting_seconds,
        opened(2, is_waiting),
        running,
        np.maximum(opened(3, busy["until"].to_numpy()) - running * at, 0.0),
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


def _union(intervals: pl.DataFrame) -> Floats:
    """Return the starts and stops of the times that intervals cover, in turn."""
    covered = (
        intervals.sort("start")
        .with_columns(before=pl.col("stop").cum_max().shift(1))
        .with_columns(
            group=(pl.col("start") > pl.col("before")).fill_null(value=True).cum_sum()
        )
        .group_by("group", maintain_order=True)
        .agg(first=pl.col("start").min(), last=pl.col("stop").max())
    )
    return covered.select("first", "last").to_numpy().ravel()


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
    # What is left at the end; rounding can leave a remainder of nothing.
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
