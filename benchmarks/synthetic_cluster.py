"""Discrete-event simulation of a cluster.

:class:`Cluster` simulates a scheduler, its workers and a client with one event queue. It
satisfies the invariants of recorded traces: a task is sent to a worker when all its
dependencies are in memory, a thread runs one task at a time, and results stay in memory as
long as they are needed. Operations of the scheduler take time, so the scheduler limits the
throughput if there are enough workers. Work stealing is not simulated.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

from recorded_shape import LogNormal, Record, Shape, as_json
from synthetic_graphs import Copy, Graph, Task
from synthetic_trace import SyntheticTrace, parts_as_json
from synthetic_workers import Attempt, Worker

# Not fitted, because a recorded run of seconds is too short.
STRAGGLER_SHARE = 0.003  # share of tasks that are many times slower than others of their prefix
STRAGGLER_SHAPE = 1.2  # shape parameter of the Pareto distribution of that factor
STRAGGLER_LIMIT = 60.0

# Mean durations in seconds.
TRANSITION_SECONDS = 25e-6
STIMULUS_SECONDS = 80e-6
HANDOVER_SECONDS = 0.0008  # from the scheduler to the worker's thread
REPORT_SECONDS = 0.002  # from the end of a computation to the scheduler
CLIENT_SECONDS = 0.05  # until the client releases its results
REPLACEMENT_SECONDS = 20.0  # until a new worker replaces a lost one

#: Dask's default of ``worker-saturation``: queued tasks are sent to workers that have fewer
#: tasks than this times their threads.
SATURATION = 1.1

# Mean number of records per task; intervals are lengthened to stay below it.
SAMPLES_PER_TASK = 0.1
FINE_METRICS_PER_TASK = 0.5
PROFILES_PER_TASK = 0.01


@dataclass(frozen=True)
class Plan:
    """Size and parameters of a synthetic trace.

    Parameters
    ----------
    tasks : int
    workers, threads : int
        Worker processes, and threads of each.
    seed : int
        Seed of the random numbers.
    graph_tasks : int
        Approximate number of tasks submitted at once.
    tasks_per_lost_worker : int
        Mean number of computed tasks between two losses of a worker.
    """

    tasks: int
    workers: int
    threads: int
    seed: int
    graph_tasks: int
    tasks_per_lost_worker: int


@dataclass
class Made:
    """Totals of a synthetic trace, counted while it is written.

    Attributes
    ----------
    runs : Counter
        Attempts at tasks by outcome, as the view ``task_runs`` names them.
    compute_seconds : float
        Total of all attempts whose times were reported.
    output_bytes : int
        Total size of all results.
    chunks : int
        Attempts at chunks.
    workers : int
        Worker processes, including replacements.
    run_seconds : float
        From the first record to the last.
    nbytes : int
        Size of the files.
    records : Counter
        Records by kind.
    """

    tasks: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    compute_seconds: float = 0.0
    output_bytes: int = 0
    chunks: int = 0
    workers: int = 0
    lost_workers: int = 0
    run_seconds: float = 0.0
    nbytes: int = 0
    records: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Pace:
    """Intervals of worker samples, metrics and profiles."""

    sample_seconds: float
    beat_seconds: float
    cycle_seconds: float

    @classmethod
    def of(cls, plan: Plan, graphs: list[Graph]) -> Pace:
        """Choose intervals from the expected duration, so that most records are of tasks."""
        sizes = [len(graph.models) for graph in graphs]
        seconds = sum(
            graph.run.mean_seconds * size for graph, size in zip(graphs, sizes, strict=True)
        ) / sum(sizes)
        on_workers = 1.2 * seconds / (plan.workers * plan.threads)
        on_scheduler = STIMULUS_SECONDS + 5.3 * TRANSITION_SECONDS
        worker_seconds = max(on_workers, on_scheduler) * plan.workers
        kinds = max(graph.kinds for graph in graphs) / 2
        return cls(
            sample_seconds=max(1.0, round(worker_seconds / SAMPLES_PER_TASK)),
            beat_seconds=max(0.5, worker_seconds * kinds * 5 / FINE_METRICS_PER_TASK),
            cycle_seconds=max(10.0, worker_seconds * kinds / PROFILES_PER_TASK),
        )


#: The simulated transitions, as JSON.
STATES = {
    (start, end): f'"start":"{start}","finish":"{end}"'
    for start, end in (
        ("released", "waiting"), ("waiting", "waiting"), ("waiting", "queued"),
        ("processing", "memory"), ("processing", "released"), ("processing", "erred"),
        ("memory", "released"), ("memory", "forgotten"), ("released", "forgotten"),
        ("waiting", "released"), ("released", "erred"), ("erred", "released"),
    )
}  # fmt: skip


class Cluster:
    """A scheduler, its workers, and a client that submits graphs.

    Parameters
    ----------
    shapes : list of Shape
        Runs whose graphs take turns; workers and environment are those of the first.
    path : path
        Path of the trace.
    plan : Plan
    segment_bytes : int
        Size of a segment, if the path is a folder.
    """

    def __init__(self, shapes: list[Shape], path: Path, plan: Plan, segment_bytes: int) -> None:
        self.made = Made()
        self._plan = plan
        self._rng = random.Random(plan.seed)
        self._graphs = [Graph(shape) for shape in shapes]
        self._pace = Pace.of(plan, self._graphs)
        round_tasks = sum(len(graph.models) for graph in self._graphs)
        self._copies_at_once = max(1, min(plan.graph_tasks, plan.tasks // 4) // round_tasks)
        self._low_water = max(
            min(plan.graph_tasks, plan.tasks) // 2, 4 * plan.workers * plan.threads
        )
        self._slots = math.ceil(SATURATION * plan.threads)
        self._now = self._start_t = float(shapes[0].header["t"])
        self._trace = SyntheticTrace(path, self._header(shapes[0].header), segment_bytes)
        clients = [fact["client"] for fact in shapes[0].preamble if "client" in fact]
        self._client = as_json(clients[0])
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = itertools.count()
        self._run_ids = itertools.count()
        self._copies = itertools.count()
        self._submissions = 0
        self._queue: list[tuple[int, int, Task]] = []
        self._alive: list[Worker] = []
        self._open: dict[Worker, None] = {}  # workers that take tasks from the queue
        self._unresolved = 0
        self._unforgotten = 0
        self._done = 0
        self._next_loss = self._rng.uniform(0.3, 0.7) * min(
            plan.tasks, plan.tasks_per_lost_worker
        )
        for _ in range(plan.workers):
            self._add_worker()

    def _header(self, recorded: Record) -> Record:
        intervals = {
            "sample_interval_seconds": self._pace.sample_seconds,
            "profile_interval_seconds": self._pace.cycle_seconds,
        }
        return {
            **recorded,
            "trace_id": f"{self._rng.getrandbits(128):032x}",
            "settings": {**recorded.get("settings", {}), **intervals},
        }

    # Event loop

    def run(self) -> Made:
        """Run the simulation; return the summary of the trace."""
        for fact in self._graphs[0].run.preamble:
            self._trace.record(fact["kind"], self._now, fact)
        self._at(self._now + 0.2, self._submit)
        self._at(self._now, self._sample_workers)
        self._at(self._now + self._pace.cycle_seconds, self._report_profiles)
        while self._unforgotten or self.made.tasks < self._plan.tasks:
            t, _, happen, arguments = heapq.heappop(self._events)
            self._now = max(self._now, t)
            happen(*arguments)
        for worker in self._alive:
            self._report_metrics(worker)
        self._report_profiles()
        self._sample_workers()
        self._trace.close(self._now)
        self.made.run_seconds = self._now - self._start_t
        self.made.nbytes = self._trace.nbytes
        self.made.records = self._trace.written
        return self.made

    def _at(self, t: float, happen: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._events, (t, next(self._numbers), happen, arguments))

    def _stimulus(self, name: str) -> str:
        """Begin a stimulus: return its id, and advance the clock by its cost."""
        stimulus = f"{name}-{self._now:.7f}"
        self._now += STIMULUS_SECONDS
        return stimulus

    def _move(self, task: Task, finish: str, stimulus: str, more: str = "") -> None:
        self._now += TRANSITION_SECONDS * (0.5 + self._rng.random())
        states = STATES[task.state, finish]
        self._trace.moved(self._now, task.key, states, stimulus, more)
        task.state = finish

    # The client

    def _submit(self) -> None:
        """Submit the next graph: some copies of a recorded one."""
        graph = self._graphs[self._submissions % len(self._graphs)]
        if self._submissions < len(self._graphs):
            for span in graph.run.spans:
                self._trace.record("span", self._now, span)
        self._submissions += 1
        stimulus = self._stimulus("update-graph")
        new: list[Task] = []
        for _ in range(self._copies_at_once):
            if room := self._plan.tasks - self.made.tasks:
                copy = graph.copied(next(self._copies), self.made.tasks, room, self._rng)
                self.made.tasks += len(copy.tasks)
                new += copy.tasks
        self._unresolved += len(new)
        self._unforgotten += len(new)
        first = new[0].rank
        for task in new:
            order = task.rank - first
            fields = task.fields(self._submissions, order, self._client, stimulus)
            self._trace.line("task", self._now, fields)
        for task in new:
            if task.model.chunk:
                self._trace.line("chunk", self._now, f'"key":{task.key},{task.identity}')
        for task in new:
            self._move(task, "waiting", stimulus)
            if not task.missing:
                self._find_place(task, stimulus)
        payload = {
            "action": "update-graph",
            "stimulus_id": stimulus,
            "metrics": {"tasks": len(new), "new_tasks": len(new), "key_collisions": 0},
            "status": "OK",
        }
        for topic in ("scheduler", self._client.strip('"')):
            self._trace.record("event", self._now, {"topic": topic, "payload": payload})

    def _release_results(self, copy: Copy) -> None:
        """Release all results of a copy once the client has them."""
        if copy.unresolved or copy.is_released:  # a lost worker held some of them
            return
        copy.is_released = True
        stimulus = self._stimulus("client-releases-keys")
        for task in copy.tasks:
            if task.state == "erred" or (task.state == "memory" and task.model.dependents):
                self._move(task, "released", stimulus)
            self._move(task, "forgotten", stimulus)
            if task.worker is not None:
                task.worker.drop(task)
        self._unforgotten -= len(copy.tasks)
        copy.tasks = []

    # Scheduling

    def _find_place(self, task: Task, stimulus: str) -> None:
        """Send a waiting task to a worker, or queue it."""
        if not task.model.kind.shape.waits_in_queue:
            # Prefer the worker with the most data; if it is busy, use the less occupied one.
            candidates = [self._rng.choice(self._alive)]
            if dependencies := task.dependencies():
                holder = max(dependencies, key=attrgetter("nbytes")).worker
                if holder is not None and holder.is_alive:
                    candidates.insert(0, holder)
            elif self._open:
                candidates.insert(0, next(iter(self._open)))
            worker = candidates[0]
            if len(worker.processing) > 2 * self._plan.threads:
                worker = min(candidates, key=lambda worker: len(worker.processing))
            self._send(task, worker, stimulus)
        elif self._open:
            self._send(task, next(iter(self._open)), stimulus)
        else:
            self._move(task, "waiting", stimulus)
            self._move(task, "queued", stimulus)
            heapq.heappush(self._queue, (task.rank, next(self._numbers), task))

    def _send(self, task: Task, worker: Worker, stimulus: str) -> None:
        self._now += TRANSITION_SECONDS
        task.run_id = next(self._run_ids)
        self._trace.sent(self._now, task.key, task.state, stimulus, task.run_id, worker.address)
        task.state = "processing"
        task.worker = worker
        task.sent_t = self._now
        if task.model.chunk and task.model.chunk.has_entries:
            self.made.chunks += 1
        worker.processing[task] = None
        if len(worker.processing) >= self._slots:
            self._open.pop(worker, None)
        if worker.idle_threads:
            self._start(task, worker, worker.idle_threads.pop())
        else:
            heapq.heappush(worker.ready, (task.rank, next(self._numbers), task))

    def _feed(self, worker: Worker, stimulus: str) -> None:
        """Send queued tasks to a worker until it is saturated."""
        while self._queue and len(worker.processing) < self._slots:
            self._send(heapq.heappop(self._queue)[2], worker, stimulus)
        if len(worker.processing) < self._slots:
            self._open[worker] = None

    def _start(self, task: Task, worker: Worker, thread: int) -> None:
        """Start an attempt on a thread of a worker, and schedule its end."""
        rng, kind, held = self._rng, task.model.kind, task.dependencies()
        delay = rng.expovariate(1 / HANDOVER_SECONDS)
        begin = max(worker.free_at[thread], task.sent_t) + delay
        sources = {
            result.worker.address: None
            for result in held
            if result.worker is not None and result.worker is not worker
        }
        parts: list[tuple[str, float, float, str | None]] = [
            ("transfer", begin, begin + _drawn(rng, kind.run.transfer_seconds), source)
            for source in sources
        ]
        latest = max((stop for _, _, stop, _ in parts), default=begin)
        if kind not in worker.loaded:
            worker.loaded.add(kind)
            stop = latest + _drawn(rng, kind.run.deserialize_seconds)
            parts.append(("deserialize", latest, stop, None))
            latest = stop
        if held and rng.random() < kind.run.disk_share:
            stop = latest + _drawn(rng, kind.run.disk_seconds)
            parts.append(("disk-read", latest, stop, None))
            latest = stop
        start = latest + 5e-5
        seconds = _drawn(rng, kind.shape.seconds) * worker.relative_duration
        if rng.random() < STRAGGLER_SHARE:
            seconds *= min(rng.paretovariate(STRAGGLER_SHAPE) + 2, STRAGGLER_LIMIT)
        stop = start + seconds
        parts.append(("compute", start, stop, None))
        worker.free_at[thread] = stop
        attempt = Attempt(task, task.run_id, worker, thread, parts, start, stop)
        self._at(stop + rng.expovariate(1 / REPORT_SECONDS), self._end, attempt)

    # Ends of attempts

    def _end(self, attempt: Attempt) -> None:
        """Process the end of an attempt on the scheduler."""
        task, worker = attempt.task, attempt.worker
        if not worker.is_alive:
            return
        del worker.processing[task]
        worker.note(attempt)
        if task.is_rescheduled:
            task.is_rescheduled = False
            self.made.runs["rescheduled"] += 1
            stimulus = self._stimulus("reschedule")
            self._move(task, "released", stimulus, f',"run_id":{task.run_id}')
            self._move(task, "waiting", stimulus)
            self._find_place(task, stimulus)
        elif task.failures:
            stimulus = self._end_failed(attempt)
        else:
            stimulus = self._end_well(attempt)
        if worker.ready:
            self._start(heapq.heappop(worker.ready)[2], worker, attempt.thread)
        else:
            worker.idle_threads.append(attempt.thread)
        self._feed(worker, stimulus)
        if self._unresolved < self._low_water and self.made.tasks < self._plan.tasks:
            self._submit()

    def _end_failed(self, attempt: Attempt) -> str:
        task = attempt.task
        task.failures -= 1
        failure = self._rng.choice(task.model.kind.run.failures)
        self._report_chunk(attempt, failure.exception)
        stimulus = self._stimulus("task-erred")
        more = self._end_fields(attempt)
        said = f',"exception":{failure.exception},"traceback":{failure.traceback}'
        if task.is_doomed and not task.failures:
            self.made.runs["erred"] += 1
            self._move(task, "erred", stimulus, f'{more},"cause":{task.key}{said}')
            self._resolve(task.copy)
            # The dependents of a failed task fail with it.
            given_up = [task]
            for one in given_up:
                for dependent in one.dependents():
                    if dependent.state == "waiting":
                        self._move(dependent, "released", stimulus)
                        self._move(dependent, "erred", stimulus)
                        self._resolve(dependent.copy)
                        given_up.append(dependent)
            for one in given_up:
                for dependency in one.dependencies():
                    self._lose_waiter(dependency, stimulus)
        else:
            self.made.runs["retried"] += 1
            self._move(task, "released", stimulus, more + said)
            self._move(task, "waiting", stimulus)
            self._find_place(task, stimulus)
        return stimulus

    def _end_well(self, attempt: Attempt) -> str:
        task, worker = attempt.task, attempt.worker
        shape = task.model.kind.shape
        self._report_chunk(attempt, None)
        task.nbytes = max(1, round(_drawn(self._rng, shape.nbytes)))
        stimulus = self._stimulus("task-finished")
        typename = self._rng.choice(shape.typenames)
        fields = self._end_fields(attempt, f'"nbytes":{task.nbytes},"typename":{typename},')
        self._move(task, "memory", stimulus, fields)
        self.made.runs["memory"] += 1
        self.made.output_bytes += task.nbytes
        worker.hold(task)
        for dependency in task.dependencies():
            self._lose_waiter(dependency, stimulus)
        for dependent in task.dependents():
            if dependent.state == "waiting":
                dependent.missing -= 1
                if not dependent.missing:
                    self._find_place(dependent, stimulus)
        if task.model.dependents and not task.waiters:
            self._release(task, stimulus)
        self._resolve(task.copy)
        self._done += 1
        if self._done >= self._next_loss:
            self._next_loss += self._plan.tasks_per_lost_worker * self._rng.uniform(0.5, 1.5)
            self._at(self._now, self._lose_worker)
        return stimulus

    def _end_fields(self, attempt: Attempt, result: str = "") -> str:
        """Return the fields of an attempt that follow the stimulus, as JSON."""
        self.made.compute_seconds += attempt.seconds
        return (
            f',"worker":"{attempt.worker.address}","run_id":{attempt.run_id},'
            f'"thread":{attempt.thread_id},{result}"startstops":[{parts_as_json(attempt.parts)}]'
        )

    def _lose_waiter(self, dependency: Task, stimulus: str) -> None:
        dependency.waiters -= 1
        if not dependency.waiters and dependency.state == "memory":
            self._release(dependency, stimulus)

    def _release(self, task: Task, stimulus: str) -> None:
        self._move(task, "released", stimulus)
        if task.worker is not None:
            task.worker.drop(task)

    def _resolve(self, copy: Copy) -> None:
        """Count a task as done; when all of a copy are, schedule the release of its results."""
        self._unresolved -= 1
        copy.unresolved -= 1
        if not copy.unresolved:
            delay = self._rng.expovariate(1 / CLIENT_SECONDS)
            self._at(self._now + delay, self._release_results, copy)

    # Workers joining and leaving

    def _add_worker(self) -> None:
        worker = Worker(self.made.workers, self._plan.threads, self._rng, self._now)
        self.made.workers += 1
        self._alive.append(worker)
        self._open[worker] = None
        recorded = self._graphs[0].run.worker
        self._trace.record("worker_added", self._now, worker.added_fields(recorded))
        self._at(self._now + self._pace.beat_seconds * self._rng.random(), self._beat, worker)

    def _replace_worker(self) -> None:
        self._add_worker()
        worker = self._alive[-1]
        payload = {"action": "add-worker"}
        fields = {"topic": worker.address, "payload": payload}
        self._trace.record("event", self._now, fields)
        self._feed(worker, self._stimulus("worker-status-change"))

    def _lose_worker(self) -> None:
        """Remove a worker; its tasks run elsewhere, and its results are computed again."""
        busy = [worker for worker in self._alive if worker.processing]
        if len(self._alive) < 2 or not busy:
            return
        worker = self._rng.choice(busy)
        worker.is_alive = False
        self._alive.remove(worker)
        self._open.pop(worker, None)
        self.made.lost_workers += 1
        stimulus = self._stimulus("handle-worker-cleanup")
        runs = list(worker.processing)
        more = f',"worker":"{worker.address}","run_id":'
        for task in runs:
            self.made.runs["lost"] += 1
            self._move(task, "released", stimulus, f"{more}{task.run_id}")
        results = [task for task in worker.results if not self._has_replica(task)]
        for task in results:
            self._move(task, "released", stimulus)
        for task in runs:
            self._wait_again(task, stimulus)
        for task in results:
            self._compute_again(task, stimulus)
        departed = {"worker": worker.address, "server_id": worker.server_id}
        self._trace.record("worker_removed", self._now, {**departed, "stimulus_id": stimulus})
        payload = {
            "action": "remove-worker",
            "processing-tasks": [task.key.strip('"') for task in runs],
            "lost-computed-tasks": [task.key.strip('"') for task in results],
            "lost-scattered-tasks": [],
            "stimulus_id": stimulus,
            "expected": False,
        }
        for topic, own in ((worker.address, {}), ("all", {"worker": worker.address})):
            fields = {"topic": topic, "worker": worker.address, "payload": {**payload, **own}}
            self._trace.record("event", self._now, fields)
        delay = self._rng.expovariate(1 / REPLACEMENT_SECONDS)
        self._at(self._now + delay, self._replace_worker)

    def _has_replica(self, task: Task) -> bool:
        """Return whether another worker has fetched a result; that worker then holds it."""
        for dependent in task.dependents():
            if dependent.state == "processing" and dependent.worker is not None:
                dependent.worker.hold(task)
                return True
            if dependent.state == "queued":
                self._rng.choice(self._alive).hold(task)
                return True
        return False

    def _compute_again(self, task: Task, stimulus: str) -> None:
        """Compute a lost result again, with its lost dependencies."""
        if task.state != "released":
            return
        task.copy.unresolved += 1
        self._unresolved += 1
        for dependency in task.dependencies():
            dependency.waiters += 1
            self._compute_again(dependency, stimulus)
        for dependent in task.dependents():
            if dependent.state == "waiting":
                dependent.count_missing()
        self._wait_again(task, stimulus)

    def _wait_again(self, task: Task, stimulus: str) -> None:
        task.count_missing()
        self._move(task, "waiting", stimulus)
        if not task.missing:
            self._find_place(task, stimulus)

    # Reports of workers

    def _beat(self, worker: Worker) -> None:
        if worker.is_alive:
            self._report_metrics(worker)
            self._at(self._now + self._pace.beat_seconds, self._beat, worker)

    def _report_metrics(self, worker: Worker) -> None:
        for fields in worker.fine_metrics():
            self._trace.line("fine_metric", self._now, fields)

    def _sample_workers(self) -> None:
        run = self._graphs[0].run
        limit = run.worker["memory_limit"]
        for worker in self._alive:
            recorded = self._rng.choice(run.samples)
            fields = worker.sample(self._now, recorded, limit, self._rng)
            self._trace.line("worker_sample", self._now, fields)
        self._at(self._now + self._pace.sample_seconds, self._sample_workers)

    def _report_profiles(self) -> None:
        for worker in self._alive:
            for fields in worker.profiles(self._now, self._rng):
                self._trace.line("profile", self._now, fields)
        self._at(self._now + self._pace.cycle_seconds, self._report_profiles)

    def _report_chunk(self, attempt: Attempt, exception: str | None) -> None:
        """Write the measurements of a chunk and of its sections."""
        task, chunk, seconds = attempt.task, attempt.task.model.chunk, attempt.seconds
        if chunk is None or chunk.measured is None:
            return
        thread = f'"thread":{attempt.thread_id}'
        who = f'"key":{task.key},"run_id":{attempt.run_id},"worker":"{attempt.worker.address}"'
        failed = f'"exception":{exception},' if exception else ""
        self._trace.line(
            "chunk",
            self._now,
            f'{task.identity},{thread},"start_t":{attempt.start:.7f},'
            f'"stop_t":{attempt.stop:.7f},{failed}{who},'
            f'"measured":{chunk.measured.filled(seconds)}',
        )
        for section in () if exception else chunk.sections:
            start = attempt.start + section.start_share * seconds
            stop = attempt.start + section.stop_share * seconds
            self._trace.line(
                "section",
                self._now,
                f'"name":{section.name},{thread},"start_t":{start:.7f},'
                f'"stop_t":{stop:.7f},{who},"measured":{section.measured.filled(seconds)}',
            )


def _drawn(rng: random.Random, distribution: LogNormal) -> float:
    return rng.lognormvariate(distribution.mu, distribution.sigma)
