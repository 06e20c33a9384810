"""Core time: a sweep over the instants of all changes, in the whole cluster at once."""

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from nightly.chunks import chunk_attempts
from nightly.processes import extent, presence, process_of, processes
from nightly.recording import Recording, Row, once
from nightly.states import stays
from nightly.tasks import attempts, task_runs
from nightly.totals import grouped
from nightly.workers import statuses

#: Use of the compute time of an attempt, by its outcome.
USES = {
    "erred": "failed attempt", "retried": "failed attempt", "lost": "lost attempt",
    "unfinished": "unfinished attempt", "rescheduled": "rescheduled attempt",
    "cancelled": "cancelled attempt",
}  # fmt: skip

#: Statuses of a worker that explain free threads.
STATUSES = {"paused": "paused", "closing_gracefully": "leaving", "closing": "leaving"}

#: Longest time for which a worker counts as joining.
JOINING_SECONDS = 5.0

#: Rows of less than a nanosecond are left out.
NOTHING = 1e-9

#: Possible bucket widths, in seconds.
WIDTHS = sorted(Fraction(10) ** power * n for power in range(-9, 9) for n in (1, 2, 5))


@once
def buckets(recording: Recording) -> list[Row]:
    """Divide the recording into at most 400 buckets; the last one ends with it.

    `start` and `stop` are in seconds since it began.
    """
    start_t, stop_t = extent(recording)
    length = stop_t - start_t
    width = float(next(width for width in WIDTHS if length / width <= 400))
    return [
        {"t": start_t + n * width, "start": n * width, "stop": min((n + 1) * width, length)}
        for n in range(math.ceil(length / width))
    ]


@dataclass(frozen=True, eq=False)
class Part:
    """An interval of an attempt on its worker."""

    kind: str
    use: str
    stop_t: float
    of_task: tuple


@dataclass
class Worker:
    """The state of a worker process between two instants."""

    nthreads: int = 0
    parts: dict[str, list[Part]] = field(default_factory=lambda: defaultdict(list))
    conditions: Counter = field(default_factory=Counter)


@dataclass
class Cluster:
    """The state of the cluster between two instants."""

    workers: dict[int, Worker] = field(default_factory=lambda: defaultdict(Worker))
    states: Counter = field(default_factory=Counter)
    #: Compute seconds of waiting tasks.
    waiting: list[float] = field(default_factory=list)


def core_time(recording: Recording) -> list[Row]:
    """Return one row per bucket, worker, use, prefix, dataset and span."""
    changes = defaultdict(list)
    start_t, stop_t = extent(recording)
    # Seconds since the start of the recording, for precision.
    for t, change, *what in _changes(recording):
        changes[t - start_t].append((change, what))
    cuts = [bucket["start"] for bucket in buckets(recording)]
    instants = sorted({*changes, *cuts, 0.0, stop_t - start_t})
    unfinished = [t for t in changes if any(change == "state" for change, _ in changes[t])]
    active = (min(unfinished), max(unfinished)) if unfinished else (math.inf, math.inf)

    cluster, spent = Cluster(), Counter()
    for start, stop in pairwise(instants):
        for change, what in changes[start]:
            _apply(cluster, change, what)
        bucket = cuts[max(bisect_right(cuts, start) - 1, 0)]
        when = (
            "before first graph" if start < active[0]
            else "between graphs" if start < active[1]
            else "after last result"
        )  # fmt: skip
        for number, category, use, of_task, threads in _uses(cluster, start, stop, when):
            spent[bucket, number, category, use, of_task] += threads * (stop - start)
    rows = []
    for (cut, number, category, use, of_task), seconds in spent.items():
        process = processes(recording)[number]
        names = dict(zip(("prefix", "dataset", "span_id"), of_task, strict=True))
        row = {
            "t": start_t + cut,
            "category": category,
            "use": use,
            "worker": process.address,
            **names,
        }
        added = {name: process.added.get(name) for name in ("name", "server_id")}
        rows.append(row | added | {"seconds": seconds})
    return [row for row in rows if row["seconds"] > NOTHING]


def _uses(cluster: Cluster, start: float, stop: float, when: str) -> Iterator[tuple]:
    """Return the uses of threads: process, category, use, task and number."""
    nobody = (None, None, None)
    free, backlog = {}, 0
    for number, worker in cluster.workers.items():
        if not worker.nthreads:
            continue
        idle = worker.nthreads
        order = ["busy", "transfer", "unreported", "doubtful", "dispatch"]
        if worker.conditions["leaving"]:
            order = ["busy", "transfer", "dispatch"]
        if worker.conditions["silent"] or worker.conditions["paused"]:
            order = ["busy"]
        for kind in order:
            parts = worker.parts[kind]
            threads = min(idle, len(parts))
            for part in parts:
                category = "assigned" if kind in ("transfer", "dispatch") else "busy"
                yield number, category, part.use, part.of_task, threads / len(parts)
            idle -= threads
        backlog += len(worker.parts["dispatch"])
        if "dispatch" in order:
            backlog -= threads
        if worker.conditions["silent"]:
            yield number, "unknown", "silent worker", nobody, idle
        elif worker.conditions["paused"]:
            yield number, "assigned", "paused worker", nobody, idle
        elif worker.conditions["leaving"]:
            yield number, "idle", "leaving worker", nobody, idle
        elif idle:
            free[number] = idle
    for use, share in _reasons(cluster, sum(free.values()), backlog, start, stop, when):
        for number, threads in free.items():
            is_joining = cluster.workers[number].conditions["joining"]
            late = is_joining and use in ("scheduler", "imbalance")
            yield number, "idle", "joining worker" if late else use, nobody, share * threads


def _reasons(
    cluster: Cluster, free: int, backlog: int, start: float, stop: float, when: str
) -> Iterator[tuple[str, float]]:
    """Return the reasons for threads without a task, as shares."""
    if not cluster.states.total():
        yield when, 1.0
    elif free:
        ready = min(cluster.states["queued"] + cluster.states["no-worker"], free)
        elsewhere = min(backlog, free - ready)
        yield "scheduler", ready / free
        yield "imbalance", elsewhere / free
        lacking = (free - ready - elsewhere) / free
        waiting = _waiting_share(cluster, start, stop)
        yield "dependencies", lacking * waiting
        yield "tail", lacking * (1 - waiting)


def _waiting_share(cluster: Cluster, start: float, stop: float) -> float:
    """Return the mean share of waiting tasks in the remaining compute time."""
    running = [
        part.stop_t for worker in cluster.workers.values() for part in worker.parts["busy"]
    ]
    waiting = sum(cluster.waiting)
    if not waiting:
        return float(cluster.states["waiting"] > 0 and not running)
    at_start, at_stop = (waiting + sum(stop_t - t for stop_t in running) for t in (start, stop))
    if at_start - at_stop < 1e-5 * at_stop:
        return waiting / ((at_start + at_stop) / 2)
    return waiting * math.log(at_start / at_stop) / (at_start - at_stop)


def _apply(cluster: Cluster, change: str, what: list) -> None:
    """Apply a change to the state of the cluster."""
    if change == "threads":
        cluster.workers[what[0]].nthreads += what[1]
    elif change == "condition":
        cluster.workers[what[0]].conditions[what[1]] += what[2]
    elif change == "begin":
        cluster.workers[what[0]].parts[what[1].kind].append(what[1])
    elif change == "end":
        cluster.workers[what[0]].parts[what[1].kind].remove(what[1])
    else:
        state, by, seconds = what
        cluster.states[state] += by
        if state == "waiting" and seconds:
            (cluster.waiting.append if by > 0 else cluster.waiting.remove)(seconds)


def _changes(recording: Recording) -> Iterator[tuple]:
    """Return the changes: time, kind, subject and amount."""
    start_t, stop_t = extent(recording)
    there = {}
    for number, (come, go, nthreads) in enumerate(presence(recording)):
        begin, end = max(come, start_t), min(go, stop_t)
        if nthreads and begin < end:
            there[number] = begin, end
            yield begin, "threads", number, nthreads
            yield end, "threads", number, -nthreads

    def clipped(number: int, start: float, stop: float) -> tuple[float, float]:
        come, go = there.get(number, (math.inf, -math.inf))
        return max(start, come), min(stop, go)

    for number, start, stop, *described in _parts(recording):
        begin, end = clipped(number, start, stop)
        if begin < end:
            part = Part(*described[:2], stop - start_t, described[2])
            yield begin, "begin", number, part
            yield end, "end", number, part
    for number, condition, start, stop in _conditions(recording):
        begin, end = clipped(number, start, stop)
        if begin < end:
            yield begin, "condition", number, condition, 1
            yield end, "condition", number, condition, -1
    durations: dict[str, float] = {}
    for run in task_runs(recording):
        known = [
            s for s in (durations.get(run["key"]), run["compute_seconds"]) if s is not None
        ]
        durations |= {run["key"]: max(known)} if known else {}
    # A chunk without a task counts like a task that is processing.
    for chunk in _alone(recording):
        begin, end = max(chunk["start_t"], start_t), min(chunk["stop_t"], stop_t)
        if begin < end:
            yield begin, "state", "processing", 1, None
            yield end, "state", "processing", -1, None
    for stay in stays(recording):
        begin = max(stay.from_t, start_t)
        end = min(stay.end["t"], stop_t) if stay.end else stop_t
        if stay.state in ("waiting", "queued", "no-worker", "processing") and begin < end:
            yield begin, "state", stay.state, 1, durations.get(stay.key)
            yield end, "state", stay.state, -1, durations.get(stay.key)


def _parts(recording: Recording) -> Iterator[tuple]:
    """Return the parts of attempts on their workers: process, begin, end, kind, use, task."""
    silent_t = {
        number: begin
        for number, condition, begin, _ in _conditions(recording)
        if condition == "silent"
    }
    released = _released(recording)
    unknown: list[tuple] = []
    datasets = {}
    for row in chunk_attempts(recording):
        datasets.setdefault((row["key"], row["attempt"]), row["dataset"])
    for attempt, run in zip(attempts(recording), task_runs(recording), strict=True):
        number = process_of(recording, run["worker"], run["processing_t"])
        if number is None:
            continue
        dataset = datasets.get((run["key"], run["attempt"]))
        of_task = (run["prefix"], dataset, run["span_id"])
        result = "kept result" if run["kept"] else "recomputed result"
        use = result if run["outcome"] == "memory" else USES[run["outcome"]]
        sent = -math.inf if run["processing_t"] is None else run["processing_t"]
        # Until its first phase, a stolen attempt waits on the worker it was sent to.
        first = process_of(recording, run["stolen_from"], run["processing_t"])
        first = number if first is None else first
        phases = [
            phase for phase in attempt.phases
            if phase["start"] < phase["stop"]
        ]  # fmt: skip
        busy = [phase for phase in phases if phase["action"] != "transfer"]
        if not busy:
            end = math.inf if run["end_t"] is None else run["end_t"]
            begin, finish = released.get(id(run), (None, None))
            begin = run["execute_start_t"] if begin is None else begin
            end = end if finish is None else max(end, finish)
            if begin is None:
                is_known = run["outcome"] != "cancelled" or finish is not None
                unknown.append((number, sent, end, is_known, use, of_task))
            else:
                yield number, sent, begin, "dispatch", "dispatch", of_task
                yield number, begin, min(end, silent_t.get(number, end)), "busy", use, of_task
            continue
        for phase in busy:
            name = {"compute": use, "deserialize": "deserialize"}.get(phase["action"], "disk")
            yield number, phase["start"], phase["stop"], "busy", name, of_task
        latest = math.inf
        for phase in sorted(busy, key=lambda phase: (phase["start"], phase["stop"])):
            yield number, latest, phase["start"], "dispatch", "dispatch", of_task
            latest = phase["stop"] if latest == math.inf else max(latest, phase["stop"])
        computes = min(phase["start"] for phase in busy)
        fetches = [phase for phase in phases if phase["action"] == "transfer"]
        if not fetches:
            yield first, sent, computes, "dispatch", "dispatch", of_task
            continue
        begin = min(max(min(phase["start"] for phase in fetches), sent), computes)
        end = min(max(phase["stop"] for phase in fetches), computes)
        yield first, sent, begin, "dispatch", "dispatch", of_task
        yield number, begin, end, "transfer", "transfer", of_task
        yield number, end, computes, "dispatch", "dispatch", of_task

    # Each holds a thread to its end; the others wait.
    holders: dict[tuple[int, bool], list[float]] = defaultdict(list)
    for number, sent, end, is_known, use, of_task in sorted(unknown, key=lambda row: row[1]):
        ends = holders[number, is_known]
        nthreads = presence(recording)[number][2] or 1
        begin = sent if len(ends) < nthreads else max(sent, min(ends))
        if begin < end:
            if len(ends) == nthreads:
                ends.remove(min(ends))
            ends.append(end)
            kind = "unreported" if is_known else "doubtful"
            yield number, begin, end, kind, use, of_task

    for chunk in _alone(recording):
        number = chunk["process"]
        if number is not None:
            use = "kept result" if chunk["outcome"] == "memory" else "failed attempt"
            end = min(chunk["stop_t"], silent_t.get(number, math.inf))
            yield number, chunk["start_t"], end, "busy", use, (None, chunk["dataset"], None)


def _released(recording: Recording) -> dict[int, tuple[float | None, float | None]]:
    """Return when cancelled and rescheduled attempts began and finished, by the id of the row.

    Workers report a sum. Attempts that ended within a second of each other share what is
    reported from then until the next ones end: of the cancelled ones no more than threads.
    """
    reported = grouped(
        (
            line
            for line in recording.of("fine_metric")
            if (line["context"], line["activity"], line["unit"])
            == ("execute", "cancelled", "seconds")
        ),
        lambda line: (line["worker"], line["prefix"], line["span_id"]),
    )
    runs = grouped(
        (
            run
            for run in task_runs(recording)
            if run["outcome"] in ("cancelled", "rescheduled")
            and run["processing_t"] is not None
            and process_of(recording, run["worker"], run["processing_t"]) is not None
        ),
        lambda run: (run["worker"], run["prefix"], run["span_id"]),
    )  # fmt: skip
    found: dict[int, tuple[float | None, float | None]] = {}
    for name, of_name in runs.items():
        waves: list[list[Row]] = []
        for run in sorted(of_name, key=lambda run: run["end_t"]):
            if not waves or run["end_t"] - waves[-1][-1]["end_t"] > 1:
                waves.append([])
            waves[-1].append(run)
        begins = [wave[0]["end_t"] for wave in waves]
        for number, wave in enumerate(waves):
            lines = [
                line
                for line in reported.get(name, ())
                if bisect_right(begins, line["t"]) - 1 == number
            ]
            _divide(recording, wave, lines, found)
    return found


def _divide(
    recording: Recording,
    wave: list[Row],
    lines: list[Row],
    found: dict[int, tuple[float | None, float | None]],
) -> None:
    """Divide the reported seconds among attempts that ended together."""
    process = process_of(recording, wave[0]["worker"], wave[0]["processing_t"])
    nthreads = presence(recording)[process][2] or 0
    cancelled = sorted(
        (run for run in wave if run["outcome"] == "cancelled"),
        key=lambda run: (run["execute_start_t"] is None, run["processing_t"]),
    )[:nthreads]
    others = [run for run in wave if run["outcome"] == "rescheduled"]
    seconds = None
    if lines:
        seconds = sum(line["delta"] for line in lines) / len(cancelled + others)
    for run in others:
        begin = None if seconds is None else max(run["end_t"] - seconds, run["processing_t"])
        found[id(run)] = begin, run["end_t"]
    for run in cancelled:
        begin = run["execute_start_t"]
        finish = None
        if seconds is not None:
            since = run["processing_t"] if begin is None else begin
            finish = min(since + seconds, max(line["t"] for line in lines))
        found[id(run)] = begin, finish


def _alone(recording: Recording) -> list[Row]:
    """Return the chunk attempts without a task."""
    return [
        row
        for row in chunk_attempts(recording)
        if not row["has_task"] and None not in (row["start_t"], row["stop_t"])
    ]


def _conditions(recording: Recording) -> Iterator[tuple[int, str, float, float]]:
    """Return the conditions that explain free threads: paused, leaving, silent, joining."""
    for line, stop in statuses(recording):
        condition = STATUSES.get(line["payload"].get("status"))
        number = process_of(recording, line["worker"], line["t"])
        if condition is not None and number is not None:
            yield number, condition, line["t"], math.inf if stop is None else stop
    submitted = min((line["t"] for line in recording.of("task")), default=math.inf)
    for number, process in enumerate(processes(recording)):
        if not process.added:
            continue
        removed = process.removed["t"] if process.removed else math.inf
        if process.added["t"] > submitted:
            sent = [
                run["processing_t"]
                for run in task_runs(recording)
                if run["worker"] == process.address
                and run["processing_t"] is not None
                and run["processing_t"] >= process.added["t"]
            ]
            begin = process.added["t"]
            yield number, "joining", begin, min([*sent, removed, begin + JOINING_SECONDS])
        stimulus = (process.removed or {}).get("stimulus_id") or ""
        if stimulus.startswith("check-worker-ttl"):
            seen = [
                line["last_seen"]
                for line in recording.of("worker_sample")
                if process_of(recording, line["worker"], line["t"]) == number
                and line.get("last_seen") is not None
                and line["t"] <= removed
            ]
            if seen:
                yield number, "silent", max(seen), removed
