"""Changed plans: other workers, other chunk sizes, causes of lost time removed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from roast_analyze.algorithms.plan import Floats, Overhead, Plan, Presence
from roast_analyze.algorithms.simulation import simulate

#: An attempt of this multiple of the usual duration is a straggler, as in the view.
STRAGGLER_RATIO: Final = 2.0
_MIN_TASKS: Final = 10
#: Fewer stragglers of a prefix may be tasks that always take long, rather than chance.
_MIN_STRAGGLERS: Final = 3

Flags = npt.NDArray[np.bool_]
T = TypeVar("T")


@dataclass(frozen=True)
class Chunk:
    """A coffea chunk: its task in the plan, its file, and the number of events."""

    task: int
    dataset: str
    filename: str
    events: int


@dataclass(frozen=True)
class ChunkCost:
    """Measured cost of chunks of a dataset."""

    fixed_seconds: float
    event_seconds: float


def worker_slots(workers: Sequence[Presence]) -> list[list[Presence]]:
    """Return worker processes by slot: a process takes the slot of one that left.

    There are as many slots as workers at the same time.
    """
    slots: list[list[Presence]] = []
    for worker in sorted(workers, key=lambda worker: worker.from_seconds):
        for slot in slots:
            if slot[-1].to_seconds <= worker.from_seconds:
                slot.append(worker)
                break
        else:
            slots.append([worker])
    return slots


def with_workers(plan: Plan, workers: int, threads: int | None = None) -> Plan:
    """Return the plan with another number of workers, and of threads per worker.

    The workers arrive as the recorded ones did; those that Dask retired stay to the end. Tasks
    have the usual overhead.
    """
    slots = worker_slots(plan.workers)
    # Evenly, so that early and late workers keep their shares.
    taken = [slots[number * len(slots) // workers] for number in range(workers)]
    return replace(
        plan,
        overhead=plan.usual_overhead or plan.overhead,
        placement=None,
        workers=[
            replace(worker, nthreads=threads or worker.nthreads)
            for slot in taken
            for worker in _until_one_stays(slot)
        ],
    )


def _until_one_stays(slot: list[Presence]) -> Iterator[Presence]:
    """Yield the workers of a slot up to the first that is not lost, which stays to the end."""
    for worker in slot:
        if not worker.is_lost:
            yield replace(worker, to_seconds=math.inf)
            return
        yield worker


def with_shared_cores(plan: Plan, tasks: float) -> Plan:
    """Return the plan on a host that runs this number of tasks at full speed.

    While more tasks run, all of them take longer by the same factor.
    """
    ends = simulate(plan).end_seconds
    starts = ends - plan.seconds
    # Tasks that never ran have no end.
    ran = np.isfinite(ends)
    times = np.sort(np.concatenate([[0.0], starts[ran], ends[ran]]))
    started, ended = (
        np.searchsorted(np.sort(each[ran]), times, side="right") for each in (starts, ends)
    )
    factors = np.maximum((started - ended) / tasks, 1.0)
    # The time at which a host with these cores reaches each instant of the simulation.
    clock = np.concatenate([[0.0], np.cumsum(np.diff(times) * factors[:-1])])
    stretched = np.interp(ends, times, clock) - np.interp(starts, times, clock)
    return replace(plan, seconds=np.where(ran, stretched, plan.seconds))


def without_stragglers(plan: Plan) -> Plan:
    """Return the plan with the usual duration of each straggler, of chunks by their events."""
    seconds = plan.seconds.copy()
    for mask, own, usual in _usual_seconds(plan):
        seconds[mask] = np.where(own >= STRAGGLER_RATIO * usual, np.minimum(usual, own), own)
    return replace(plan, seconds=seconds)


def resampled(plan: Plan, seed: int) -> Plan:
    """Return the plan with the durations of another run of the program, drawn from this one.

    The ratios of durations to the usual one are drawn among the tasks of a prefix. If it has
    one or two stragglers, these may be tasks that always take longer: durations only change
    places.
    """
    random = np.random.default_rng(seed)
    seconds = plan.seconds.copy()
    for mask, own, usual in _usual_seconds(plan):
        base = np.where(usual > 0, usual, 1.0)
        ratios = own / base
        stragglers = int((own >= STRAGGLER_RATIO * usual).sum())
        is_rare = 0 < stragglers < _MIN_STRAGGLERS
        seconds[mask] = base * random.choice(ratios, len(own), replace=not is_rare)
    return replace(plan, seconds=seconds)


def _usual_seconds(plan: Plan) -> Iterator[tuple[Flags, Floats, Floats]]:
    """Yield where the tasks of a prefix are, their seconds, and those usual for their events.

    Prefixes of few tasks are left out.
    """
    for prefix in np.unique(plan.prefixes):
        mask = plan.prefixes == prefix
        own = plan.seconds[mask]
        if len(own) < _MIN_TASKS:
            continue
        sizes = np.ones(len(own))
        if plan.events is not None and (plan.events[mask] > 0).all():
            sizes = plan.events[mask]
        usual = np.full(len(own), np.median(own))
        if sizes.max() > 1.5 * sizes.min():
            # Fit again without stragglers, which bend the line.
            slope, intercept = np.polyfit(sizes, own, 1)
            kept = own < STRAGGLER_RATIO * np.maximum(slope * sizes + intercept, usual / 10)
            if kept.sum() >= _MIN_TASKS and np.ptp(sizes[kept]) > 0:
                slope, intercept = np.polyfit(sizes[kept], own[kept], 1)
            usual = np.maximum(slope * sizes + intercept, 0.0)
        yield mask, own, usual


def without_failures(plan: Plan) -> Plan:
    """Return the plan without failed attempts, in which no worker is lost.

    A worker that took the place of a lost one is not needed.
    """
    workers = []
    for slot in worker_slots(plan.workers):
        for worker in slot:
            workers.append(replace(worker, to_seconds=math.inf) if worker.is_lost else worker)
            if worker.is_lost:
                break
    return replace(plan, failed_seconds={}, workers=workers, placement=None)


def without_transfers(plan: Plan) -> Plan:
    """Return the plan with transfers that take no time."""
    overhead = replace(
        plan.overhead, transfer_latency_seconds=0.0, transfer_bytes_per_second=math.inf
    )
    return replace(plan, overhead=overhead)


def without_scheduler(plan: Plan) -> Plan:
    """Return the plan without overhead per task: scheduler, messages, start of the task."""
    overhead = Overhead(
        transfer_latency_seconds=plan.overhead.transfer_latency_seconds,
        transfer_bytes_per_second=plan.overhead.transfer_bytes_per_second,
    )
    return replace(plan, overhead=overhead)


def without_client_gaps(plan: Plan) -> Plan:
    """Return the plan in which graphs follow the results that the client waited for at once.

    A worker stays for a shorter time by the gaps in it, and the one that takes its place joins
    earlier. Otherwise it would leave later in the work than it did, or after the end.
    """
    ends = simulate(plan).end_seconds
    gaps = []
    for submission in plan.submissions:
        if submission.after:
            start = float(ends[list(submission.after)].max())
            gaps.append((start, start + submission.delay_seconds))
    moved = {}
    for slot in worker_slots(plan.workers):
        earlier = 0.0
        for worker in slot:
            from_seconds = worker.from_seconds - earlier
            earlier += _seconds_within(gaps, worker.from_seconds, worker.to_seconds)
            moved[worker] = replace(
                worker, from_seconds=from_seconds, to_seconds=worker.to_seconds - earlier
            )
    return replace(
        plan,
        submissions=[
            replace(submission, delay_seconds=0.0) if submission.after else submission
            for submission in plan.submissions
        ],
        workers=[moved[worker] for worker in plan.workers],
    )


def _seconds_within(gaps: Sequence[tuple[float, float]], start: float, stop: float) -> float:
    """Return the length of the gaps between two instants; those of clients can overlap."""
    seconds = 0.0
    # The end of a gap is NaN if the tasks before it never ran.
    for opened, closed in sorted(gap for gap in gaps if gap[1] > start):
        seconds += max(min(closed, stop) - max(opened, start), 0.0)
        start = max(start, closed)
    return seconds


#: What can be removed from a run.
CAUSES: Final[Mapping[str, Callable[[Plan], Plan]]] = {
    "stragglers": without_stragglers,
    "failures": without_failures,
    "transfers": without_transfers,
    "scheduler": without_scheduler,
    "client-gaps": without_client_gaps,
}


def chunk_bounds(events: int, size: int) -> list[int]:
    """Return the numbers of events of the chunks into which coffea divides a file."""
    count = max(round(events / size), 1)
    actual = math.ceil(events / count)
    return [min(actual, events - start) for start in range(0, events, actual)]


class _NewTask(NamedTuple):
    #: Task of the recorded plan with the same prefix, group, graph and priority.
    like: int
    seconds: float
    nbytes: float
    events: float
    dependencies: list[int]


def with_chunk_size(
    plan: Plan,
    chunks: Sequence[Chunk],
    merges: Sequence[int],
    costs: Mapping[str, ChunkCost],
    size: int,
) -> Plan:
    """Return the plan with another chunk size of a coffea Runner, and its merges.

    Files keep their cost relative to their dataset. The results of chunks keep their size, the
    merges their cost per input.

    Raises
    ------
    ValueError
        If tasks other than merges depend on chunks: not a graph of a coffea Runner.
    """
    chunk_tasks = {chunk.task for chunk in chunks}
    removed = chunk_tasks | set(merges)
    for task, needed in enumerate(plan.dependencies):
        if task not in removed and not chunk_tasks.isdisjoint(needed):
            raise ValueError("tasks other than merges depend on chunks")
    kept = [task for task in range(len(plan.seconds)) if task not in removed]
    numbers = {task: number for number, task in enumerate(kept)}
    # The last merge takes the place of all chunks and merges of its graph.
    final: dict[int, int] = {}
    wanted: dict[int, int | None] = {}
    added: list[_NewTask] = []

    def add(*fields: Any) -> int:
        added.append(_NewTask(*fields))
        return len(kept) + len(added) - 1

    by_graph: dict[int, list[Chunk]] = defaultdict(list)
    # Files in the order in which their chunks run.
    for chunk in sorted(chunks, key=lambda chunk: int(plan.priorities[chunk.task])):
        by_graph[int(plan.graphs[chunk.task])].append(chunk)
    for own in by_graph.values():
        first = own[0].task
        inputs = [numbers[needed] for needed in plan.dependencies[first]]
        nbytes = float(np.mean([plan.nbytes[chunk.task] for chunk in own]))
        results = [
            add(first, seconds, nbytes, events, inputs)
            for seconds, events in _new_chunks(plan, own, costs, size)
        ]
        # The merges of these chunks, level by level.
        level, pending = {chunk.task for chunk in own}, sorted(merges)
        own_merges: list[int] = []
        while level:
            level = {task for task in pending if not level.isdisjoint(plan.dependencies[task])}
            own_merges += sorted(level)
            pending = [task for task in pending if task not in level]
        if own_merges:
            counts = [len(plan.dependencies[task]) for task in own_merges]
            seconds = sum(float(plan.seconds[task]) for task in own_merges)
            seconds /= max(sum(counts), 1)
            fan_in = max(2, *counts)
            nbytes = float(np.mean([plan.nbytes[task] for task in own_merges]))
            while len(results) > 1:
                parts = [results[i : i + fan_in] for i in range(0, len(results), fan_in)]
                results = [
                    add(own_merges[0], seconds * len(part), nbytes, 0.0, part) for part in parts
                ]
        last = results[-1]
        final |= dict.fromkeys([*(chunk.task for chunk in own), *own_merges], last)
        wanted[last] = plan.wanted.get(max(own_merges, default=first))

    sources = np.array(kept + [task.like for task in added])
    # New tasks come after the task that they are modeled on, in their own order.
    order = np.lexsort((np.arange(len(sources)), plan.priorities[sources]))
    priorities = np.empty(len(sources), dtype=np.int64)
    priorities[order] = np.arange(len(sources))
    events = np.zeros(len(kept)) if plan.events is None else plan.events[kept]
    replaced = final | numbers
    return replace(
        plan,
        keys=(),
        seconds=np.append(plan.seconds[kept], [task.seconds for task in added]),
        nbytes=np.append(plan.nbytes[kept], [task.nbytes for task in added]),
        events=np.append(events, [task.events for task in added]),
        priorities=priorities,
        prefixes=plan.prefixes[sources],
        groups=plan.groups[sources],
        placement=None,
        graphs=plan.graphs[sources],
        dependencies=[
            *(sorted({replaced[other] for other in plan.dependencies[task]}) for task in kept),
            *(task.dependencies for task in added),
        ],
        submissions=[
            # Other chunks have another number of results.
            replace(
                submission,
                after=tuple({replaced[task] for task in submission.after}),
                after_results=None,
            )
            for submission in plan.submissions
        ],
        failed_seconds=_of_kept(plan.failed_seconds, numbers),
        restrictions=_of_kept(plan.restrictions, numbers),
        wanted={replaced[task]: graph for task, graph in plan.wanted.items()} | wanted,
    )


def _of_kept(values: Mapping[int, T], numbers: Mapping[int, int]) -> dict[int, T]:
    """Return the values of tasks that a changed plan still contains."""
    return {numbers[task]: value for task, value in values.items() if task in numbers}


def _new_chunks(
    plan: Plan, chunks: Sequence[Chunk], costs: Mapping[str, ChunkCost], size: int
) -> list[tuple[float, int]]:
    """Return duration and events of the new chunks of a graph, file by file."""
    files: dict[tuple[str, str], list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        files[chunk.dataset, chunk.filename].append(chunk)
    result = []
    for (dataset, _), own in files.items():
        cost = costs[dataset]
        expected = sum(cost.fixed_seconds + cost.event_seconds * c.events for c in own)
        actual = sum(float(plan.seconds[chunk.task]) for chunk in own)
        relative = actual / expected if expected > 0 else 1.0
        result += [
            (max(relative * (cost.fixed_seconds + cost.event_seconds * events), 0.0), events)
            for events in chunk_bounds(sum(chunk.events for chunk in own), size)
        ]
    return result
