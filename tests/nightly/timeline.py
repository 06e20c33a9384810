"""What went on in each bucket of time."""

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

#: Widths that buckets can have, in seconds.
WIDTHS = sorted(Fraction(10) ** power * n for power in range(-9, 9) for n in (1, 2, 5))

#: Columns of concurrency that count tasks by state.
STATES = {
    "processing": "processing",
    "queued": "queued",
    "no_worker": "no-worker",
    "waiting": "waiting",
}


@dataclass
class Stretch:
    """Something that went on from one instant to another."""

    what: str
    start_t: float
    stop_t: float
    #: How much of it: threads of a worker, or what part of the time was spent so.
    amount: float = 1.0
    #: Number of the process that did it, if it is known.
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
    """Cut the recording, finely, but into no more than 400 parts; the last ends with it."""
    start_t, stop_t = extent(recording)
    length = stop_t - start_t
    width = float(next(width for width in WIDTHS if length / width <= 400))
    return [
        Bucket(start_t + n * width, n * width, min((n + 1) * width, length))
        for n in range(math.ceil(length / width))
    ]


def amounts(recording: Recording, stretches: Iterable[Stretch]) -> dict[int, float]:
    """Give how much of some stretches lies in each bucket: time by amount, where there is any.

    A stretch that ends before it begins, as the scheduler's clock had it, has no time.
    """
    cut = buckets(recording)
    start_t, stop_t = extent(recording)
    found: Counter = Counter()
    for stretch in stretches:
        begin = max(stretch.start_t - start_t, 0.0)
        end = min(stretch.stop_t, stop_t) - start_t
        n = max(int(begin / cut[0].seconds) - 1, 0) if begin < end else len(cut)
        while n < len(cut) and cut[n].start < end:
            shared = min(end, cut[n].stop) - max(begin, cut[n].start)
            if shared > 0:
                found[n] += shared * stretch.amount
            n += 1
    return found


@once
def work(recording: Recording) -> list[Stretch]:
    """Find what attempts computed and transferred, those at chunks without a task, too."""
    found = []
    for attempt, run in zip(attempts(recording), task_runs(recording), strict=True):
        process = process_of(recording, run["worker"], run["processing_t"])
        found += [
            Stretch(
                part["action"], part["start"], part["stop"],
                process=process, failed=run["outcome"] != "memory",
            )
            for part in (attempt.end or {}).get("startstops") or []
        ]  # fmt: skip
    alone = [row for row in chunk_attempts(recording) if not row["has_task"]]
    return found + [
        Stretch(
            "compute", row["start_t"], row["stop_t"],
            ratio(row["compute_seconds"], row["stop_t"] - row["start_t"]) or 0.0,
            row["process"], failed=row["outcome"] != "memory",
        )
        for row in alone
    ]  # fmt: skip


def concurrency(recording: Recording) -> list[Row]:
    """One row per bucket: tasks by what they did, and threads, in the mean over the bucket.

    Of workers whose threads are not known the others count; if none are known, nothing is.
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
                Stretch(state, stay.from_t, stay.end["t"] if stay.end else stop_t)
                for stay in stays(recording)
                if stay.state == state
            ),
        )
        for name, state in STATES.items()
    }
    there = presence(recording)
    workers = amounts(recording, (Stretch("there", come, go) for come, go, _ in there))
    threads = amounts(
        recording, (Stretch("there", come, go, n) for come, go, n in there if n is not None)
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


def utilisation(recording: Recording) -> list[Row]:
    """One row per bucket and process that was there, or did something: how busy it was.

    Bucket by bucket, the processes in the order in which they came.
    """
    by_process = [_of_process(number, recording) for number in range(len(processes(recording)))]
    return [rows[n] for n in range(len(buckets(recording))) for rows in by_process if n in rows]


def _of_process(number: int, recording: Recording) -> dict[int, Row]:
    process = processes(recording)[number]
    come, go, nthreads = presence(recording)[number]
    mine = [stretch for stretch in work(recording) if stretch.process == number]
    there = amounts(recording, [Stretch("there", come, go)])
    computed, moved = (
        amounts(recording, (s for s in mine if s.what == action))
        for action in ("compute", "transfer")
    )
    failed = amounts(recording, (s for s in mine if s.what == "compute" and s.failed))
    rows = {}
    for n, bucket in enumerate(buckets(recording)):
        if n not in there.keys() | computed.keys() | moved.keys():
            continue
        threads = None if nthreads is None else nthreads * there.get(n, 0.0)
        busy = computed.get(n, 0.0)
        rows[n] = {
            "t": bucket.t,
            "seconds": bucket.seconds,
            "worker": process.address,
            "name": process.added.get("name"),
            "compute_seconds": busy,
            "failed_seconds": failed.get(n, 0.0),
            "transfer_seconds": moved.get(n, 0.0),
            "thread_seconds": threads,
            "idle_seconds": None if threads is None else max(threads - busy, 0.0),
            "utilisation": ratio(busy, threads),
            "server_id": process.added.get("server_id"),
        }
    return rows
