"""Discrete-event simulation of Dask's scheduling.

:func:`simulate` returns when each task of a :class:`roast_analyze.algorithms.plan.Plan` would
have run.

The scheduler is modeled after distributed's: root tasks queue on the scheduler up to the
worker saturation, other tasks go to the worker with the earliest expected start among those
that hold their dependencies, and idle workers steal at intervals. It handles one finished
task at a time. A worker fetches missing dependencies, then runs ready tasks by priority.
Paused workers, spilling, resources and limits of concurrent transfers are not modeled.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from roast_analyze.algorithms.plan import Floats, Integers, Plan, awaited_nodes

#: Constants of distributed.stealing: the assumed latency, the highest cost of moving a task,
#: and the least expected work of a worker from which tasks are stolen.
_STEAL_LATENCY: Final = 0.1
_MAX_STEAL_LEVEL: Final = 14
_MIN_VICTIM_SECONDS: Final = 0.2

#: A group whose tasks depend on as many groups or tasks is not root-ish.
_ROOTISH_DEPENDENCIES: Final = 5


@dataclass(frozen=True)
class Result:
    """A simulated run; seconds are since its start, NaN for tasks that never ran."""

    wall_seconds: float
    core_seconds: float
    end_seconds: Floats
    #: Index of the worker of each task, -1 if none.
    workers: Integers
    #: Tasks that could not run: no worker was there, or none that was allowed.
    unfinished: int


#: Simulated runs by seed, as long as their plan exists: a large one takes seconds.
_simulated: WeakKeyDictionary[Plan, dict[int, Result]] = WeakKeyDictionary()


def simulate(plan: Plan, seed: int = 0) -> Result:
    """Return the simulated run of a plan; arbitrary choices of Dask depend on the seed."""
    results = _simulated.setdefault(plan, {})
    if seed not in results:
        results[seed] = _Simulation(plan, seed).run()
    return results[seed]


@dataclass(eq=False, slots=True)
class _Worker:
    """The state of a worker, on the scheduler and on the worker itself."""

    index: int
    nthreads: int
    free: int
    #: The scheduler sends it queued tasks while it has fewer tasks than this.
    capacity: float
    names: tuple[str, str, str]
    is_alive: bool = False
    #: Expected seconds of the tasks that the scheduler assigned to it.
    processing: dict[int, float] = field(default_factory=dict)
    occupancy: float = 0.0
    #: Priority and task of those that the scheduler queues and that ran there when recorded.
    queued: list[tuple[int, int]] = field(default_factory=list)
    #: Priority, task and run of the tasks that wait for a thread.
    ready: list[tuple[int, int, int]] = field(default_factory=list)
    has: set[int] = field(default_factory=set)
    stored: float = 0.0
    #: Arrival of the first task.
    reachable: float | None = None
    fetching: dict[int, float] = field(default_factory=dict)
    #: End of the first task of each prefix.
    warm: dict[int, float] = field(default_factory=dict)

    def add(self, task: int, expected_seconds: float) -> None:
        self.processing[task] = expected_seconds
        self.occupancy += expected_seconds

    def is_unoccupied(self, mean: float) -> bool:
        """Return whether it has less than half of the average work for its threads."""
        return len(self.processing) < self.nthreads or self.occupancy < self.nthreads * mean / 2

    def is_saturated(self, mean: float) -> bool:
        """Return whether much work waits on it: SchedulerState.check_idle_saturated()."""
        tasks = len(self.processing)
        pending = self.occupancy * (tasks - self.nthreads) / (tasks * self.nthreads)
        return pending > max(0.4, 1.9 * mean)


_WAITING, _QUEUED, _PROCESSING, _MEMORY = range(4)


class _Simulation:
    def __init__(self, plan: Plan, seed: int) -> None:
        self._plan = plan
        self._random = Random(seed)  # noqa: S311
        count = len(plan.seconds)
        # Lists are faster than arrays where single elements are read.
        self._seconds: list[float] = plan.seconds.tolist()
        self._nbytes: list[float] = plan.nbytes.tolist()
        self._priorities = plan.priorities.tolist()
        self._prefixes = plan.prefixes.tolist()
        self._groups = plan.groups.tolist()
        self._dependencies = [tuple(set(needed)) for needed in plan.dependencies]
        self._dependents: list[list[int]] = [[] for _ in range(count)]
        # By priority: in this order, those of one task become ready.
        for task in np.argsort(plan.priorities, kind="stable").tolist():
            for other in self._dependencies[task]:
                self._dependents[other].append(task)
        self._recorded_workers: list[int] = [-1] * count
        self._recorded_order: list[int] | None = None
        # Tasks that wait for the same transfer start in any order.
        self._start_order: list[float] = [self._random.random() for _ in range(count)]
        if plan.placement is not None:
            self._recorded_workers = plan.placement.workers.tolist()
            self._recorded_order = plan.placement.assignment_order.tolist()
            self._start_order = plan.placement.start_order.tolist()
        # Dask plans with the mean duration of the prefix, not with that of the task.
        sums = np.bincount(plan.prefixes, weights=plan.seconds)
        means = sums / np.maximum(np.bincount(plan.prefixes), 1)
        self._expected: list[float] = means[plan.prefixes].tolist()
        # As SchedulerState.is_rootish(): tasks that are much more numerous than what they need.
        # A key that is submitted again is the same task to Dask.
        keyed = set(zip(self._groups, plan.keys or range(count), strict=True))
        self._group_sizes = Counter(group for group, _ in keyed)
        inputs: dict[int, set[int]] = defaultdict(set)
        for group, needed in zip(self._groups, self._dependencies, strict=True):
            if len(inputs[group]) < _ROOTISH_DEPENDENCIES:
                inputs[group].update(self._groups[other] for other in needed)
        self._groups_of_few_inputs = {
            group
            for group, others in inputs.items()
            if len(others) < _ROOTISH_DEPENDENCIES
            and sum(self._group_sizes[other] for other in others) < _ROOTISH_DEPENDENCIES
        }

        self._latency = plan.overhead.transfer_latency_seconds
        self._seconds_per_byte: float = 1 / plan.overhead.transfer_bytes_per_second

        self._state = [_WAITING] * count
        #: Dependencies that are not in memory, and the submission.
        self._left = [len(needed) + 1 for needed in self._dependencies]
        self._users = [len(users) for users in self._dependents]
        self._holders: list[set[int]] = [set() for _ in range(count)]
        #: Number of the current run of each task: events of earlier runs are stale.
        self._runs = [0] * count
        self._failures = {task: list(seconds) for task, seconds in plan.failed_seconds.items()}
        self._ends = [math.nan] * count
        self._ran_on = [-1] * count
        self._executing: set[int] = set()
        self._unfinished = count

        self._workers = [
            _Worker(
                index=index,
                nthreads=worker.nthreads,
                free=worker.nthreads,
                capacity=math.inf
                if math.isinf(plan.saturation)
                else max(math.ceil(plan.saturation * worker.nthreads), 1),
                names=(worker.name, worker.address, worker.host),
            )
            for index, worker in enumerate(plan.workers)
        ]
        self._alive: list[_Worker] = []
        #: Workers with fewer tasks than their capacity.
        self._open: dict[int, _Worker] = {}
        self._threads = 0
        self._queued: list[tuple[int, int]] = []
        #: Workers that may be open for tasks that queue for them.
        self._refill: set[int] = set()
        self._unassigned: list[int] = []
        #: Worker of the latest root task of a group, and how many follow it there.
        self._last_worker: dict[int, tuple[_Worker, int]] = {}
        self._scheduler_free = 0.0
        self._is_stealing = False
        self._refused: set[int] = set()
        # Stealing is at fixed intervals, of which the first is not recorded.
        self._steal_seconds = self._random.random() * (plan.stealing_seconds or 0.0)
        if plan.placement is not None and plan.placement.steal_seconds is not None:
            self._steal_seconds = plan.placement.steal_seconds

        self._events: list[tuple[float, float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self._graph_tasks: list[list[int]] = [[] for _ in plan.submissions]
        for task, graph in enumerate(plan.graphs.tolist()):
            self._graph_tasks[graph].append(task)
        self._wanted = set(plan.wanted)
        self._releases: dict[int | None, list[int]] = defaultdict(list)
        for task, released in plan.wanted.items():
            self._releases[released].append(task)
        self._graph_left: list[int] = []
        self._graphs_after: dict[int, list[int]] = defaultdict(list)
        #: Graphs after a number of results, and the wanted tasks that have none.
        self._graphs_after_results: dict[int, list[int]] = defaultdict(list)
        self._without_results = set(plan.wanted)
        for graph, nodes in enumerate(awaited_nodes(plan)):
            self._graph_left.append(len(nodes))
            for node in nodes:
                self._graphs_after[node].append(graph)
            results = plan.submissions[graph].after_results
            if results is not None:
                self._graph_left[graph] += 1
                self._graphs_after_results[results].append(graph)

    def run(self) -> Result:
        plan = self._plan
        for worker, presence in zip(self._workers, plan.workers, strict=True):
            self._push(presence.from_seconds, self._join, worker)
            if math.isfinite(presence.to_seconds):
                self._push(presence.to_seconds, self._leave, worker, presence.is_lost)
        # Other graphs are submitted when the nodes that they follow have ended.
        for graph, left in enumerate(self._graph_left):
            if not left:
                self._push(plan.submissions[graph].delay_seconds, self._submit, graph)
        # Events after the last result, such as stealing, do not matter.
        events = self._events
        while events and self._unfinished:
            t, _, _, action, arguments = heappop(events)
            action(t, *arguments)
        ends = np.array(self._ends)
        last = float(np.nanmax(ends)) if np.isfinite(ends).any() else 0.0
        wall = last + plan.closing_seconds
        return Result(
            wall_seconds=wall,
            core_seconds=sum(
                worker.nthreads * max(min(worker.to_seconds, wall) - worker.from_seconds, 0.0)
                for worker in plan.workers
            ),
            end_seconds=ends,
            workers=np.array(self._ran_on, dtype=np.int64),
            unfinished=self._unfinished,
        )

    def _push(
        self, t: float, action: Callable[..., None], *arguments: Any, order: float = 0.0
    ) -> None:
        # The number keeps simultaneous events in order, and prevents the comparison of actions.
        self._number += 1
        heappush(self._events, (t, order, self._number, action, arguments))

    # -- the client --------------------------------------------------------------------------

    def _submit(self, t: float, graph: int) -> None:
        for task in self._releases.get(graph, ()):
            self._wanted.discard(task)
            self._forget_unneeded(task)
        self._advance(t, self._in_dask_order(graph), len(self._state) + graph)

    def _in_dask_order(self, graph: int) -> list[int]:
        """Return the tasks of a graph in the order in which those without inputs become ready.

        Dask walks from the tasks that the client wants, by priority, to their dependencies,
        depth first. The order of the dependencies of a task is arbitrary.
        """
        tasks = self._graph_tasks[graph]
        if self._recorded_order is not None:
            return sorted(tasks, key=self._recorded_order.__getitem__)
        own = set(tasks)
        # Without wanted tasks, those that no other task needs.
        wanted = own & self._plan.wanted.keys() or {
            task for task in tasks if not self._dependents[task]
        }
        ordered: dict[int, None] = {}
        # Tasks that no wanted task needs come last.
        for start in [*self._by_priority(wanted), *self._by_priority(own - wanted)]:
            stack = [start]
            while stack:
                task = stack.pop()
                if task in ordered:
                    continue
                ordered[task] = None
                needed = [other for other in self._dependencies[task] if other in own]
                self._random.shuffle(needed)
                stack += needed
        return list(ordered)

    def _advance(self, t: float, tasks: Sequence[int], node: int) -> None:
        """Record that a condition of some tasks holds, and submit the graphs after a node.

        Tasks become ready in the given order.
        """
        ready = []
        for task in tasks:
            if self._state[task] != _MEMORY:
                self._left[task] -= 1
                if not self._left[task]:
                    ready.append(task)
        self._make_ready(t, ready)
        # Popped, because a result that is computed again triggers no second submission.
        self._submit_after(t, self._graphs_after.pop(node, ()))

    def _submit_after(self, t: float, graphs: Iterable[int]) -> None:
        """Submit graphs of which a condition holds, if it was the last one."""
        for graph in graphs:
            self._graph_left[graph] -= 1
            if not self._graph_left[graph]:
                delay = self._plan.submissions[graph].delay_seconds
                self._push(t + delay, self._submit, graph)

    # -- the scheduler -----------------------------------------------------------------------

    def _make_ready(self, t: float, tasks: list[int]) -> None:
        """Assign or queue tasks whose dependencies are in memory, and fill open slots."""
        for task in tasks:
            if self._state[task] != _WAITING:
                continue
            group = self._groups[task]
            is_rootish = (
                group in self._groups_of_few_inputs
                and self._group_sizes[group] > 2 * self._threads
                and task not in self._plan.restrictions
            )
            if self._alive and is_rootish and math.isfinite(self._plan.saturation):
                self._state[task] = _QUEUED
                recorded = self._recorded_workers[task]
                if recorded >= 0 and self._workers[recorded].is_alive:
                    heappush(self._workers[recorded].queued, (self._priorities[task], task))
                    self._refill.add(recorded)
                else:
                    heappush(self._queued, (self._priorities[task], task))
            elif worker := self._choose(task, is_rootish=is_rootish):
                self._assign(t, task, worker)
            else:
                self._unassigned.append(task)
        for index in sorted(self._refill):
            worker = self._workers[index]
            while worker.queued and index in self._open:
                task = heappop(worker.queued)[1]
                if self._state[task] == _QUEUED:
                    self._assign(t, task, worker)
        self._refill.clear()
        while self._queued and self._open:
            task = heappop(self._queued)[1]
            # A queued task can lose a dependency, and is queued again later.
            if self._state[task] == _QUEUED:
                workers = list(self._open.values())
                loads = [len(worker.processing) / worker.nthreads for worker in workers]
                self._assign(t, task, self._least(task, workers, loads))

    def _by_priority(self, tasks: Iterable[int]) -> list[int]:
        return sorted(tasks, key=self._priorities.__getitem__)

    def _choose(self, task: int, *, is_rootish: bool) -> _Worker | None:
        """Return the worker for a task that does not queue, None if no worker is allowed."""
        pool = self._alive
        allowed = self._plan.restrictions.get(task)
        if allowed is not None:
            pool = [worker for worker in pool if not allowed.isdisjoint(worker.names)]
        if not pool:
            return None
        if is_rootish:
            # Without queuing, neighbors go to the same worker.
            group = self._groups[task]
            last, left = self._last_worker.get(group, (None, 0))
            if last is None or not left or not last.is_alive:
                last = self._best(task, self._idle() or pool)
                left = math.floor(self._group_sizes[group] / self._threads * last.nthreads)
            self._last_worker[group] = (last, left - 1)
            return last
        recorded = self._recorded_workers[task]
        if self._dependencies[task]:
            holders = self._holders_of_inputs(task)
            if recorded in holders and self._workers[recorded].is_alive:
                return self._workers[recorded]
            # Usually there are few holders, and there can be hundreds of workers.
            candidates = [self._workers[index] for index in sorted(holders)]
            if allowed is not None:
                candidates = [worker for worker in candidates if worker in pool]
            return self._best(task, candidates or pool)
        if recorded >= 0 and self._workers[recorded].is_alive:
            return self._workers[recorded]
        if allowed is None:
            pool = self._idle() or pool
        return self._least(task, pool, [worker.occupancy for worker in pool])

    def _best(self, task: int, candidates: list[_Worker]) -> _Worker:
        """Return the worker with the earliest expected start."""
        if len(candidates) == 1:
            return candidates[0]
        transfer_seconds = {
            index: self._transfer_seconds(task, self._workers[index])
            for index in self._holders_of_inputs(task)
        }
        # Of the many workers without an input, each would fetch all of them.
        nbytes = sum(self._nbytes[other] for other in self._dependencies[task])
        all_seconds = nbytes * self._seconds_per_byte
        costs = [
            (
                worker.occupancy / worker.nthreads
                + transfer_seconds.get(worker.index, all_seconds),
                worker.stored,
            )
            for worker in candidates
        ]
        return self._least(task, candidates, costs)

    def _holders_of_inputs(self, task: int) -> set[int]:
        return set().union(*(self._holders[other] for other in self._dependencies[task]))

    def _least(self, task: int, workers: Sequence[_Worker], costs: Sequence[Any]) -> _Worker:
        """Return the worker of least cost: of several, the recorded one, or else any."""
        least = min(costs)
        equal = [worker for worker, cost in zip(workers, costs, strict=True) if cost == least]
        recorded = self._recorded_workers[task]
        if recorded >= 0 and self._workers[recorded] in equal:
            return self._workers[recorded]
        return self._random.choice(equal)

    def _transfer_seconds(self, task: int, worker: _Worker) -> float:
        missing: float = sum(
            self._nbytes[other] for other in self._dependencies[task] if other not in worker.has
        )
        return missing * self._seconds_per_byte

    def _assign(self, t: float, task: int, worker: _Worker) -> None:
        self._state[task] = _PROCESSING
        self._runs[task] += 1
        worker.add(task, self._expected[task])
        self._update_open(worker)
        overhead = self._plan.overhead
        arrival = t + overhead.dispatch_by_prefix.get(
            self._prefixes[task], overhead.dispatch_seconds
        )
        if worker.reachable is None:
            worker.reachable = arrival + overhead.first_dispatch_seconds
        arrival = max(arrival, worker.reachable)
        self._push(arrival, self._arrive, task, worker, self._runs[task])
        if len(worker.processing) > worker.nthreads:
            self._plan_stealing(t)

    def _release(self, task: int, worker: _Worker) -> None:
        """Remove a task from a worker."""
        worker.occupancy -= worker.processing.pop(task)
        # Rounding errors of many additions and subtractions would make it look busy.
        if not worker.processing:
            worker.occupancy = 0.0
        self._update_open(worker)

    def _update_open(self, worker: _Worker) -> None:
        if worker.is_alive and len(worker.processing) < worker.capacity:
            self._open[worker.index] = worker
            if worker.queued:
                self._refill.add(worker.index)
        else:
            self._open.pop(worker.index, None)

    def _finish(self, t: float, task: int, worker: _Worker, run: int) -> None:
        """Handle the message that a task has finished or failed."""
        if self._runs[task] != run or self._state[task] != _PROCESSING:
            return
        # The scheduler handles one message at a time.
        t = self._scheduler_free = (
            max(t, self._scheduler_free) + self._plan.overhead.scheduler_seconds
        )
        self._release(task, worker)
        if self._failures.get(task):
            self._failures[task].pop(0)
            self._state[task] = _WAITING
            self._make_ready(t, [task])
            return
        self._state[task] = _MEMORY
        self._unfinished -= 1
        self._ends[task] = t
        self._ran_on[task] = worker.index
        self._store(task, worker)
        for other in self._dependencies[task]:
            self._users[other] -= 1
            self._forget_unneeded(other)
        self._forget_unneeded(task)
        self._advance(t, self._dependents[task], task)
        if task in self._without_results:
            self._without_results.remove(task)
            results = len(self._plan.wanted) - len(self._without_results)
            self._submit_after(t, self._graphs_after_results.pop(results, ()))

    def _store(self, task: int, worker: _Worker) -> None:
        """Record that a worker has a result."""
        if task not in worker.has:
            worker.has.add(task)
            worker.stored += self._nbytes[task]
            self._holders[task].add(worker.index)

    def _forget_unneeded(self, task: int) -> None:
        """Release a result that neither a task nor a client needs any more."""
        if not self._users[task] and task not in self._wanted:
            for index in self._holders[task]:
                self._workers[index].has.discard(task)
                self._workers[index].stored -= self._nbytes[task]
            self._holders[task].clear()

    # -- workers -----------------------------------------------------------------------------

    def _join(self, t: float, worker: _Worker) -> None:
        worker.is_alive = True
        self._alive.append(worker)
        self._threads += worker.nthreads
        self._update_open(worker)
        waiting, self._unassigned = self._unassigned, []
        self._make_ready(t, self._by_priority(waiting))
        self._plan_stealing(t)

    def _leave(self, t: float, worker: _Worker, is_lost: bool) -> None:
        worker.is_alive = False
        self._alive.remove(worker)
        for entry in worker.queued:
            heappush(self._queued, entry)
        worker.queued.clear()
        self._threads -= worker.nthreads
        # Its tasks go to other workers, and its events are stale.
        again = list(worker.processing)
        for task in again:
            self._release(task, worker)
            self._runs[task] += 1
            self._executing.discard(task)
            self._state[task] = _WAITING
        self._update_open(worker)
        lost = []
        for task in worker.has:
            self._holders[task].discard(worker.index)
            if not self._holders[task]:
                if is_lost or not self._alive:
                    lost.append(task)
                else:
                    # A worker that retires moves its results to others first.
                    self._store(task, self._alive[task % len(self._alive)])
        worker.has.clear()
        # Lost results, and their missing dependencies, are computed again.
        while lost:
            task = lost.pop()
            if self._state[task] != _MEMORY:
                continue
            self._state[task] = _WAITING
            self._runs[task] += 1
            self._unfinished += 1
            again.append(task)
            for dependent in self._dependents[task]:
                if self._state[dependent] != _MEMORY:
                    self._left[dependent] += 1
                    if self._state[dependent] == _QUEUED:
                        self._state[dependent] = _WAITING
            for other in self._dependencies[task]:
                self._users[other] += 1
                if self._state[other] == _MEMORY and not self._holders[other]:
                    lost.append(other)
            # Those that are lost after it count themselves.
            self._left[task] = sum(
                self._state[other] != _MEMORY for other in self._dependencies[task]
            )
        ready = (task for task in again if not self._left[task])
        self._make_ready(t, self._by_priority(ready))

    def _arrive(
        self, t: float, task: int, worker: _Worker, run: int, is_fetched: bool = False
    ) -> None:
        """Fetch the missing dependencies of a task on its worker, then start it."""
        if self._runs[task] != run:
            return
        if is_fetched:
            for other in self._dependencies[task]:
                worker.fetching.pop(other, None)
                self._store(other, worker)
        else:
            ready = t
            for other in self._dependencies[task]:
                if other not in worker.has:
                    # Tasks that need the same result wait for one transfer.
                    fetched = worker.fetching.get(other, -math.inf)
                    if fetched < t:
                        seconds = self._nbytes[other] * self._seconds_per_byte
                        fetched = worker.fetching[other] = t + self._latency + seconds
                    ready = max(ready, fetched)
            if ready > t:
                order = self._start_order[task]
                self._push(ready, self._arrive, task, worker, run, True, order=order)
                return
        if worker.free:
            worker.free -= 1
            self._start(t, task, worker, run)
        else:
            heappush(worker.ready, (self._priorities[task], task, run))

    def _start(self, t: float, task: int, worker: _Worker, run: int) -> None:
        self._executing.add(task)
        failures = self._failures.get(task)
        seconds = failures[0] if failures else self._seconds[task]
        prefix = self._prefixes[task]
        warmup = self._plan.warmup_seconds.get(prefix)
        if warmup and not failures:
            # Tasks that run at the same time as the first one wait for the same imports.
            warm = worker.warm.setdefault(prefix, t + warmup)
            seconds += max(warm - t, 0.0)
        self._push(t + seconds, self._compute, task, worker, run)

    def _compute(self, t: float, task: int, worker: _Worker, run: int) -> None:
        """End a computation, and start the next one on its thread."""
        if self._runs[task] != run:
            return  # The worker left.
        self._executing.discard(task)
        report = self._plan.overhead.report_seconds
        self._push(t + report, self._finish, task, worker, run)
        while worker.ready:
            _, following, its_run = heappop(worker.ready)
            if self._runs[following] == its_run:
                t += self._plan.overhead.turnaround_seconds
                self._start(t, following, worker, its_run)
                return
        worker.free += 1

    # -- work stealing -----------------------------------------------------------------------

    def _idle(self) -> list[_Worker]:
        mean = self._mean_occupancy()
        return [worker for worker in self._alive if worker.is_unoccupied(mean)]

    def _mean_occupancy(self) -> float:
        """Return the expected work for each thread of the cluster."""
        return sum(worker.occupancy for worker in self._alive) / self._threads

    def _plan_stealing(self, t: float) -> None:
        interval = self._plan.stealing_seconds
        if interval and not self._is_stealing and len(self._alive) > 1:
            self._is_stealing = True
            # The next one of these instants; a rounding error must not repeat the present one.
            number = math.floor((t - self._steal_seconds) / interval + 1e-6) + 1
            self._push(self._steal_seconds + number * interval, self._steal)

    def _steal(self, t: float) -> None:
        """Move tasks from workers with much work to idle ones, as WorkStealing.balance()."""
        self._is_stealing = False
        crowded = [
            worker
            for worker in self._alive
            if len(worker.processing) > worker.nthreads
            and worker.occupancy > _MIN_VICTIM_SECONDS
        ]
        if not crowded:
            return
        if self._move_from(t, crowded):
            self._plan_stealing(t)
        elif self._events:
            # All attempts before the next event would be in vain, too.
            self._plan_stealing(self._events[0][0])

    def _move_from(self, t: float, crowded: list[_Worker]) -> bool:
        """Move tasks to idle workers; return whether any was moved or refused by its worker."""
        mean = self._mean_occupancy()
        thieves = self._idle()
        if not thieves or len(thieves) == len(self._alive):
            return False
        victims = [worker for worker in crowded if not worker.is_unoccupied(mean)]
        saturated = [worker for worker in victims if worker.is_saturated(mean)]
        victims = sorted(saturated or victims, key=lambda worker: -worker.occupancy)
        stealable = [
            (level, position, task)
            for position, victim in enumerate(victims)
            for task in victim.processing
            if (level := self._steal_level(task, victim)) is not None
        ]
        # Tasks that are cheap to move come first, those of the same cost in any order.
        self._random.shuffle(stealable)
        is_moved, rejected = False, []
        for _, position, task in sorted(stealable, key=lambda found: found[:2]):
            if not thieves:
                break
            victim, thief = victims[position], self._best(task, thieves)
            expected = self._expected[task]
            if (
                thief.occupancy + self._transfer_seconds(task, thief) + expected
                > victim.occupancy - (self._transfer_seconds(task, victim) + expected) / 2
            ):
                continue
            self._release(task, victim)
            if task in self._executing:
                # The victim refuses, but until then the scheduler counts the task as moved. It
                # does not ask for it again.
                thief.add(task, expected)
                rejected.append((task, victim, thief))
            else:
                # The victim confirms first: two more messages.
                is_moved = True
                self._assign(t + 2 * self._plan.overhead.report_seconds, task, thief)
            if not thief.is_unoccupied(mean):
                thieves.remove(thief)
        for task, victim, thief in rejected:
            self._refused.add(task)
            self._release(task, thief)
            victim.add(task, self._expected[task])
            self._update_open(victim)
        self._make_ready(t, [])
        return is_moved or bool(rejected)

    def _steal_level(self, task: int, victim: _Worker) -> int | None:
        """Return the cost of moving a task, in powers of two; None if it is not stolen."""
        if (
            task in self._plan.restrictions
            or task in self._refused
            or victim.index == self._recorded_workers[task]
        ):
            return None
        if not self._dependencies[task]:
            return 0
        nbytes = sum(self._nbytes[other] for other in self._dependencies[task])
        transfer_seconds = nbytes * self._seconds_per_byte + _STEAL_LATENCY
        level = round(math.log2(transfer_seconds / max(self._expected[task], 1e-9))) + 6
        return max(level, 1) if level <= _MAX_STEAL_LEVEL else None
