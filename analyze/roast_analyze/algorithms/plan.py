"""The plan of a run: all that its simulation reads, and lower bounds of its wall time.

A plan has the graph, durations and sizes of tasks, the workers, the client's submissions and
the overheads. A changed run is a changed plan::

    simulate(dataclasses.replace(plan, seconds=shorter)).wall_seconds
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Presence:
    """A worker process; seconds are since the start of the run."""

    name: str
    host: str
    nthreads: int
    from_seconds: float = 0.0
    to_seconds: float = math.inf
    #: Whether its results are lost when it leaves, rather than moved to other workers.
    is_lost: bool = True
    address: str = ""


@dataclass(frozen=True)
class Submission:
    """A graph that a client submits `delay_seconds` after an earlier instant.

    The instant is the end of the last of the tasks `after`; without tasks, the submission of
    the graph `after_graph`; without either, the start of the run. A client that submits tasks
    as results arrive waits until `after_results` wanted tasks have ended, too.
    """

    delay_seconds: float
    after: tuple[int, ...] = ()
    after_graph: int | None = None
    after_results: int | None = None


@dataclass(frozen=True)
class Overhead:
    """Time per task beside its computation, and the cost of transfers."""

    #: From the decision of the scheduler to the start on a free thread.
    dispatch_seconds: float = 0.0
    #: Between two tasks of a thread when the second one is ready.
    turnaround_seconds: float = 0.0
    #: From the end of a task to the arrival of the message at the scheduler.
    report_seconds: float = 0.0
    #: Time of the scheduler per task, during which it handles no other task.
    scheduler_seconds: float = 0.0
    transfer_latency_seconds: float = 0.0
    transfer_bytes_per_second: float = math.inf
    #: Additional time of the first dispatch to a worker, which begins with a connection.
    first_dispatch_seconds: float = 0.0
    #: `dispatch_seconds` of the tasks of a prefix, where it was measured.
    dispatch_by_prefix: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Placement:
    """Recorded decisions of the scheduler; arrays have one element per task."""

    #: Index of the worker that ran it; -1 if none did, or if it was stolen from another one.
    workers: Integers
    #: Rank of its first assignment to a worker.
    assignment_order: Integers
    #: Rank of its start.
    start_order: Integers
    #: An instant at which work was stolen, None if none was.
    steal_seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """A run to simulate. Arrays and `dependencies` have one element per task."""

    seconds: Floats
    nbytes: Floats
    #: Ranks; lower values run first.
    priorities: Integers
    prefixes: Integers
    groups: Integers
    #: Index of the graph in `submissions`.
    graphs: Integers
    dependencies: Sequence[Sequence[int]]
    submissions: Sequence[Submission]
    workers: Sequence[Presence]
    overhead: Overhead = Overhead()
    #: Overhead of most tasks, without the effects of a loaded machine: with other numbers of
    #: workers, the load is different. None stands for `overhead`.
    usual_overhead: Overhead | None = None
    #: Durations of failed attempts that come before the last one, by task.
    failed_seconds: Mapping[int, Sequence[float]] = field(default_factory=dict)
    #: Names, addresses or hosts of the workers that may run a task, if restricted.
    restrictions: Mapping[int, frozenset[str]] = field(default_factory=dict)
    #: Additional time of the first task of a prefix on a process, by prefix.
    warmup_seconds: Mapping[int, float] = field(default_factory=dict)
    #: Tasks whose results clients want, and the graph at whose submission the result was
    #: released; None if it was not. Lost results are computed again if they are wanted.
    wanted: Mapping[int, int | None] = field(default_factory=dict)
    #: From the end of the last task to the end of the run.
    closing_seconds: float = 0.0
    #: `distributed.scheduler.worker-saturation`; infinity means no queuing.
    saturation: float = 1.1
    #: The simulation follows it wherever Dask's rules allow the recorded worker. Without it,
    #: choices that are arbitrary in Dask are random.
    placement: Placement | None = None
    #: Interval of work stealing, None if it is off.
    stealing_seconds: float | None = 1.0
    keys: Sequence[str] = ()
    #: Events of coffea chunks, 0 for other tasks.
    events: Floats | None = None


def critical_path_seconds(plan: Plan) -> float:
    """Return the wall time with unlimited workers and no overhead: a lower bound.

    Workers that join late, transfers and failed attempts are left out; the client's delays
    are part of it.
    """
    ends = _earliest_ends(plan)[: len(plan.seconds)]
    return max(ends, default=0.0) + plan.closing_seconds


def total_work_seconds(plan: Plan) -> float:
    """Return the wall time if all threads were busy from the first graph on: a lower bound."""
    changes = [(worker.from_seconds, 1, worker.nthreads) for worker in plan.workers]
    changes += [(worker.to_seconds, 0, -worker.nthreads) for worker in plan.workers]
    # The largest number of threads at the same time; at equal times, departures come first.
    threads = max(accumulate(change for _, _, change in sorted(changes)), default=0)
    if not threads or not len(plan.seconds):
        return 0.0
    first = min(_earliest_ends(plan)[len(plan.seconds) :])
    return first + float(plan.seconds.sum()) / threads + plan.closing_seconds


def awaited_nodes(plan: Plan) -> list[set[int]]:
    """Return the nodes that each graph is submitted after: tasks, or a graph.

    Graphs are numbered after the tasks.
    """
    tasks = len(plan.seconds)
    return [
        set(submission.after)
        if submission.after or submission.after_graph is None
        else {tasks + submission.after_graph}
        for submission in plan.submissions
    ]


def _earliest_ends(plan: Plan) -> list[float]:
    """Return the earliest end of each task, followed by the submission of each graph."""
    tasks = len(plan.seconds)
    before = [
        {*needed, tasks + graph}
        for needed, graph in zip(plan.dependencies, plan.graphs.tolist(), strict=True)
    ]
    before += awaited_nodes(plan)
    seconds = [*plan.seconds.tolist(), *(graph.delay_seconds for graph in plan.submissions)]
    followers: list[list[int]] = [[] for _ in before]
    for node, nodes in enumerate(before):
        for other in nodes:
            followers[other].append(node)
    left = [len(nodes) for nodes in before]
    ready = [node for node, count in enumerate(left) if not count]
    # In a damaged trace, a task can depend on itself: it is never ready, and ends at 0.
    ends = [0.0] * len(before)
    while ready:
        node = ready.pop()
        ends[node] = max((ends[other] for other in before[node]), default=0.0) + seconds[node]
        for follower in followers[node]:
            left[follower] -= 1
            if not left[follower]:
                ready.append(follower)
    return ends
