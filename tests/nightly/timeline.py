"""Time buckets: concurrency and utilization."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from nightly.chunks import chunk_attempts
from nightly.latencies import stays
from nightly.processes import extent, presence, process_of, processes
from nightly.recording import Recording, Row, once
from nightly.tasks import attempts, task_runs
from nightly.totals import ratio

#: Possible bucket widths, in seconds.
WIDTHS = sorted(Fraction(10) ** power * n for power in range(-9, 9) for n in (1, 2, 5))

#: Columns of concurrency that count tasks by state.
STATES = {
    "processing": "processing",
    "queued": "queued",
    "no_worker": "no-worker",
    "waiting": "waiting",
}


@dataclass
class Interval:
    """An interval with an amount."""

    what: str
    start_t: float
    stop_t: float
    #: Amount: threads of a worker, or the share of the time.
    amount: float = 1.0
    #: Number of the process, if known.
    process: int | None = None
    failed: bool = False


@dataclass
class Bucket:
    """A part of the recording, in seconds since it began."""

    t: float
    start: float
    stop: float

    @property
    def seconds(self) -> float:
        return self.stop - self.start


@once
def buckets(recording: Recording) -> list[Bucket]:
    """Divide the recording into at most 400 buckets; the last one ends with it."""
    start_t, stop_t = extent(recording)
    length = stop_t - start_t
    width = float(next(width for width in WIDTHS if length / width <= 400))
    return [
        Bucket(start_t + n * width, n * width, min((n + 1) * width, length))
        for n in range(math.ceil(length / width))
    ]


def amounts(recording: Recording, intervals: Iterable[Interval]) -> dict[int, float]:
    """Return the sum of amount times seconds of intervals in each bucket.

    An interval that ends before it begins, by the scheduler's clock, counts 0.
    """
    cut = buckets(recording)
    start_t, stop_t = extent(recording)
    found: Counter = Counter()
    for interval in intervals:
        begin = max(interval.start_t - start_t, 0.0)
        end = min(interval.stop_t, stop_t) - start_t
        n = max(int(begin / cut[0].seconds) - 1, 0) if begin < end else len(cut)
        while n < len(cut) and cut[n].start < end:
            shared = min(end, cut[n].stop) - max(begin, cut[n].start)
            if shared > 0:
                found[n] += shared * interval.amount
            n += 1
    return found


@once
def work(recording: Recording) -> list[Interval]:
    """Return the intervals of computing and transfers, including chunks without a task."""
    found = []
    for attempt, run in zip(attempts(recording), task_runs(recording), strict=True):
        process = process_of(recording, run["worker"], run["processing_t"])
        found += [
            Interval(
                part["action"], part["start"], part["stop"],
                process=process, failed=run["outcome"] != "memory",
            )
            for part in attempt.phases
        ]  # fmt: skip
    alone = [row for row in chunk_attempts(recording) if not row["has_task"]]
    return found + [
        Interval(
            "compute", row["start_t"], row["stop_t"],
            ratio(row["compute_seconds"], row["stop_t"] - row["start_t"]) or 0.0,
            row["process"], failed=row["outcome"] != "memory",
        )
        for row in alone
    ]  # fmt: skip


def concurrency(recording: Recording) -> list[Row]:
    """Return one row per bucket: mean numbers of tasks by state and of threads.

    Workers with an unknown number of threads count 0; None if unknown for all.
    """
    _, stop_t = extent(recording)
    computed, moved = (
        amounts(recording, (s for s in work(recording) if s.what == action))
        for action in ("compute", "transfer")
    )
    states = {
        name: amounts(
            recording,
            (
                Interval(state, stay.from_t, stay.end["t"] if stay.end else stop_t)
                for stay in stays(recording)
                if stay.state == state
            ),
        )
        for name, state in STATES.items()
    }
    there = presence(recording)
    workers = amounts(recording, (Interval("there", come, go) for come, go, _ in there))
    threads = amounts(
        recording, (Interval("there", come, go, n) for come, go, n in there if n is not None)
    )
    rows = []
    for n, bucket in enumerate(buckets(recording)):
        thread_seconds = threads.get(n) if n in workers else 0.0
        means = {"executing": computed, "transferring": moved, **states, "workers": workers}
        rows.append(
            {
                "t": bucket.t,
                "seconds": bucket.seconds,
                **{name: some.get(n, 0.0) / bucket.seconds for name, some in means.items()},
                "nthreads": ratio(thread_seconds, bucket.seconds),
                "compute_seconds": computed.get(n, 0.0),
                "thread_seconds": thread_seconds,
            }
        )
    return rows


def utilization(recording: Recording) -> list[Row]:
    """Return one row per bucket and process, in the order of buckets and processes."""
    rows = []
    for number, process in enumerate(processes(recording)):
        come, go, nthreads = presence(recording)[number]
        mine = [interval for interval in work(recording) if interval.process == number]
        there = amounts(recording, [Interval("there", come, go)])
        computed, moved = (
            amounts(recording, (s for s in mine if s.what == action))
            for action in ("compute", "transfer")
        )
        failed = amounts(recording, (s for s in mine if s.what == "compute" and s.failed))
        for n, bucket in enumerate(buckets(recording)):
            if n not in there.keys() | computed.keys() | moved.keys():
                continue
            threads = None if nthreads is None else nthreads * there.get(n, 0.0)
            busy = computed.get(n, 0.0)
            row = {
                "t": bucket.t,
                "seconds": bucket.seconds,
                "worker": process.address,
                "name": process.added.get("name"),
                "compute_seconds": busy,
                "failed_seconds": failed.get(n, 0.0),
                "transfer_seconds": moved.get(n, 0.0),
                "thread_seconds": threads,
                "idle_seconds": None if threads is None else max(threads - busy, 0.0),
                "utilization": ratio(busy, threads),
                "server_id": process.added.get("server_id"),
            }
            rows.append((n, row))
    return [row for _, row in sorted(rows, key=lambda numbered: numbered[0])]
