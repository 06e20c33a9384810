"""Make a trace of any size that looks like recorded ones.

    python tests/benchmarks/synthetic.py -o big.jsonl --tasks 1_000_000 --workers 500

A cluster is simulated, event by event. Its graphs are those of recorded runs, again and again
under fresh names, so that prefixes, their proportions, fan-in, keys and chunks are real ones.
How long tasks take, how large results are and how often tasks fail or are rescheduled is
drawn from what was recorded of their prefix; exceptions, typenames, profiles and measurements
of chunks are the recorded texts. Added to that are stragglers, slow workers and workers that
are lost. The simulated scheduler is as busy as Dask's: what takes it time sets the pace.

The same arguments give the same bytes. Memory does not grow with the number of tasks: a graph
is submitted when most of the one before it is done. Workers are sampled, report metrics and
send profiles less often where there are many of them, so that tasks stay most of the trace.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from recorded_shape import (
    TOKEN,
    Chunk,
    LogNormal,
    ProfileShape,
    Shape,
    TaskShape,
    as_json,
    read_shape,
)
from synthetic_trace import SyntheticTrace, metrics_as_json, parts_as_json

SAMPLE_TRACES = Path(__file__).parents[2] / "sample_traces"

#: Runs that traces are like if nobody names others: coffea's chunks with failures, and many
#: small tasks with transfers.
DEFAULT_FIT = (
    SAMPLE_TRACES / "coffea_failures.jsonl.zst",
    SAMPLE_TRACES / "shuffle_reduce.jsonl.zst",
)

# What a recorded run of seconds is too short to tell.
STRAGGLER_SHARE = 0.003  # tasks that take many times as long as others of their prefix
STRAGGLER_SHAPE = 1.2  # of the Pareto distribution of how many times
STRAGGLER_LIMIT = 60.0
SLOW_WORKER_SHARE = 0.03
LEAST_FAILING_SHARE = 2e-5
FATAL_SHARE = 0.1  # of the failing tasks, those that no retry saves
TASKS_PER_LOST_WORKER = 100_000

# Seconds that things take, in the mean.
TRANSITION_SECONDS = 25e-6
STIMULUS_SECONDS = 80e-6
HANDOVER_SECONDS = 0.0008  # from the scheduler to the worker's thread
REPORT_SECONDS = 0.002  # from the end of a computation to the scheduler
CLIENT_SECONDS = 0.05  # until the client lets go of a result
REPLACEMENT_SECONDS = 20.0  # until a new worker stands in for a lost one

#: Dask's: tasks that wait in the scheduler's queue are sent to workers that have fewer tasks
#: than this times their threads.
SATURATION = 1.1

# Records for each task, in the mean, beyond which workers are asked less often.
SAMPLES_PER_TASK = 0.1
FINE_METRICS_PER_TASK = 0.5
PROFILES_PER_TASK = 0.01

PROFILE_INTERVAL_SECONDS = 0.01
DATASETS = 40  # for each recorded one
THREAD_IDENTITY = 139_600_000_000_000


@dataclass
class Made:
    """What a synthetic trace holds, as its maker knows it.

    Attributes
    ----------
    runs : Counter
        Attempts at tasks by outcome, as the view ``task_runs`` names them.
    compute_seconds : float
        Of all attempts that told their times.
    chunks : int
        Attempts at chunks.
    workers : int
        Worker processes, those that came later included.
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


def make_trace(
    path: Path,
    *,
    tasks: int,
    workers: int = 500,
    threads: int = 1,
    seed: int = 1,
    fit: Sequence[Path] = DEFAULT_FIT,
    graph_tasks: int = 20_000,
    segment_bytes: int = 256 * 2**20,
) -> Made:
    """Write a synthetic trace.

    Parameters
    ----------
    path : path
        A file, or a folder if it has none of the endings of a trace.
    tasks : int
    workers, threads : int
        Worker processes, and threads of each.
    seed : int
        Other seeds give other traces of the same kind.
    fit : sequence of path
        Recorded traces, each a file. Their graphs take turns.
    graph_tasks : int
        Tasks that are submitted at once, about.
    segment_bytes : int
        Size of a segment, of a folder.

    Returns
    -------
    Made
    """
    shapes = [read_shape(path) for path in fit]
    cluster = _Cluster(shapes, path, tasks, workers, threads, seed, graph_tasks, segment_bytes)
    return cluster.run()


class _Text:
    """JSON text in which the tokens of a run have places."""

    def __init__(self, text: str, numbers: dict[str, int]) -> None:
        found = TOKEN.findall(text)
        self._places = [numbers.setdefault(token, len(numbers)) for token in found]
        self._text = TOKEN.sub("%s", text.replace("%", "%%"))

    def filled(self, tokens: list[str]) -> str:
        return self._text % tuple([tokens[place] for place in self._places])


class _Kind:
    """The tasks of one prefix and span: how they run, and their names as JSON."""

    def __init__(self, prefix: str, span_id: str, run: Shape) -> None:
        shape = run.prefixes[prefix]
        self.run = run
        self.prefix = as_json(prefix)
        self.span = as_json(span_id)
        self.shape = shape
        self.failing_share = max(shape.failing_share, LEAST_FAILING_SHARE)


class _Model:
    """A task of a recorded graph, ready to be made again."""

    def __init__(self, task: TaskShape, kind: _Kind, numbers: dict[str, int]) -> None:
        self.kind = kind
        self.key = _Text(as_json(task.key), numbers)
        self.group = _Text(as_json(task.group), numbers)
        self.dependencies = task.dependencies
        self.dependents = task.dependents
        self.order = task.order
        self.annotations = f'"annotations":{task.annotations},' if task.annotations else ""
        self.retries = task.retries
        self.chunk = task.chunk
        self.chunk_identity = _Text(task.chunk.identity if task.chunk else "", numbers)


class _Graph:
    """The graph of a recorded run, ready to be made again."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.spans = shape.spans
        numbers: dict[str, int] = {}
        kinds: dict[tuple[str, str], _Kind] = {}
        self.models: list[_Model] = []
        for task in shape.tasks:
            name = (task.prefix, task.span_id)
            if name not in kinds:
                kinds[name] = _Kind(*name, shape)
            self.models.append(_Model(task, kinds[name], numbers))
        self.tokens = len(numbers)
        self.kinds = len(kinds)


class _Copy:
    """A recorded graph made again: its tasks, and how many of them are not done."""

    __slots__ = ("is_released", "tasks", "unresolved")

    def __init__(self) -> None:
        self.tasks: list[_Task] = []
        self.unresolved = 0
        self.is_released = False


class _Task:
    """A task on the scheduler."""

    __slots__ = (
        "copy", "failures", "identity", "is_doomed", "is_rescheduled", "key", "missing",
        "model", "nbytes", "rank", "run_id", "sent_t", "state", "waiters", "worker",
    )  # fmt: skip

    def __init__(self, model: _Model, copy: _Copy, key: str, rank: int) -> None:
        self.model = model
        self.copy = copy
        self.key = key
        self.rank = rank
        self.state = "released"
        self.missing = len(model.dependencies)  # dependencies that are not in memory
        self.waiters = len(model.dependents)  # dependents that are not computed
        self.failures = 0  # attempts that are still to fail
        self.is_doomed = False  # whether the last of them is final
        self.is_rescheduled = False  # whether the next attempt asks for another worker
        self.run_id = -1
        self.sent_t = 0.0
        self.nbytes = 0
        self.worker: _Worker | None = None
        self.identity = ""  # of its chunk


class _Worker:
    """A worker process."""

    def __init__(self, number: int, threads: int, rng: random.Random, t: float) -> None:
        host, port = divmod(number, 8)
        self.host = f"10.{host // 62500}.{host // 250 % 250}.{host % 250 + 1}"
        self.address = f"tcp://{self.host}:{40000 + port}"
        self.server_id = f"Worker-{_uuid(rng)}"
        self.identity = f'"worker":"{self.address}","server_id":"{self.server_id}"'
        is_slow = rng.random() < SLOW_WORKER_SHARE
        self.slowness = rng.uniform(2, 4) if is_slow else rng.lognormvariate(0, 0.05)
        self.memory = rng.randrange(200, 400) * 2**20
        self.is_alive = True
        first = THREAD_IDENTITY + rng.randrange(10**9) * 4096
        self.thread_ids = [first + thread * 8_392_704 for thread in range(threads)]
        self.free_at = [t] * threads
        self.idle_threads = list(range(threads))[::-1]
        self.ready: list[tuple[int, int, _Task]] = []
        self.processing: dict[_Task, None] = {}
        self.results: dict[_Task, None] = {}
        self.nbytes = 0
        self.loaded: set[_Kind] = set()
        self.beat: dict[_Kind, _Activity] = {}
        self.profiled: dict[_Kind, float] = {}
        self.profiled_from = t


@dataclass(slots=True)
class _Activity:
    """What a worker did for tasks of a kind since its last heartbeat."""

    seconds: float = 0.0
    failed_seconds: float = 0.0
    handover_seconds: float = 0.0
    reads: int = 0
    read_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt at a task, as it goes on a worker's thread."""

    task: _Task
    run_id: int
    worker: _Worker
    thread: int
    parts: list[tuple[str, float, float, str | None]]
    start: float
    stop: float


def _states(*moves: str) -> dict[tuple[str, str], str]:
    pairs = (tuple(move.split(">")) for move in moves)
    return {(start, end): f'"start":"{start}","finish":"{end}"' for start, end in pairs}


#: The moves that occur, as JSON.
STATES = _states(
    "released>waiting", "waiting>waiting", "waiting>queued", "processing>memory",
    "processing>released", "processing>erred", "memory>released", "memory>forgotten",
    "released>forgotten", "waiting>released", "released>erred", "erred>released",
)  # fmt: skip


class _Cluster:
    """The simulated cluster: a scheduler, its workers, and a client that submits graphs."""

    def __init__(
        self,
        shapes: list[Shape],
        path: Path,
        tasks: int,
        workers: int,
        threads: int,
        seed: int,
        graph_tasks: int,
        segment_bytes: int,
    ) -> None:
        self._rng = random.Random(seed)
        self._graphs = [_Graph(shape) for shape in shapes]
        self._shape = shapes[0]
        self._wanted = tasks
        self._threads = threads
        self._slots = math.ceil(SATURATION * threads)
        round_tasks = sum(len(graph.models) for graph in self._graphs)
        self._copies_at_once = max(1, min(graph_tasks, tasks // 4) // round_tasks)
        self._low_water = max(min(graph_tasks, tasks) // 2, 4 * workers * threads)
        self.made = Made()
        self._now = float(self._shape.header["t"])
        self._start_t = self._now
        self._plan_intervals(tasks, workers)
        self._trace = SyntheticTrace(path, self._header(), segment_bytes)
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = itertools.count()
        self._run_ids = itertools.count()
        self._queue: list[tuple[int, int, _Task]] = []
        self._open: dict[_Worker, None] = {}  # workers that take tasks from the queue
        self._alive: list[_Worker] = []
        self._worker_numbers = itertools.count()
        self._submissions = 0
        self._copies = 0
        self._unresolved = 0
        self._unforgotten = 0
        self._done = 0
        self._next_loss = min(tasks, TASKS_PER_LOST_WORKER) * self._rng.uniform(0.3, 0.7)
        self._client = as_json(
            next((fact["client"] for fact in self._shape.preamble if "client" in fact), "C")
        )
        for _ in range(workers):
            self._add_worker()

    def _plan_intervals(self, tasks: int, workers: int) -> None:
        """Guess how long the run takes, and ask workers so often that tasks prevail."""
        mean_seconds = sum(
            graph.shape.mean_seconds * len(graph.models) for graph in self._graphs
        ) / sum(len(graph.models) for graph in self._graphs)
        on_workers = 1.2 * mean_seconds * tasks / (workers * self._threads)
        on_scheduler = tasks * (STIMULUS_SECONDS + 5.3 * TRANSITION_SECONDS)
        per_task = max(on_workers, on_scheduler) * workers / tasks
        kinds = max(graph.kinds for graph in self._graphs) / 2
        self._sample_seconds = max(1.0, round(per_task / SAMPLES_PER_TASK))
        self._beat_seconds = max(0.5, per_task * kinds * 5 / FINE_METRICS_PER_TASK)
        self._cycle_seconds = max(10.0, per_task * kinds / PROFILES_PER_TASK)

    def _header(self) -> dict[str, Any]:
        header = dict(self._shape.header)
        intervals = {
            "sample_interval_seconds": self._sample_seconds,
            "profile_interval_seconds": self._cycle_seconds,
        }
        return {
            **header,
            "trace_id": f"{self._rng.getrandbits(128):032x}",
            "settings": {**header.get("settings", {}), **intervals},
        }

    # The course of events

    def run(self) -> Made:
        """Let everything happen; give what was made."""
        for fact in self._shape.preamble:
            self._trace.record(fact["kind"], self._now, fact)
        self._at(self._now + 0.2, self._submit)
        self._at(self._now, self._sample_workers)
        self._at(self._now + self._cycle_seconds, self._tell_profiles)
        while self._unforgotten or self.made.tasks < self._wanted:
            t, _, happen, arguments = heapq.heappop(self._events)
            self._now = max(self._now, t)
            happen(*arguments)
        for worker in self._alive:
            self._tell_metrics(worker)
        self._tell_profiles()
        self._sample_workers()
        self._trace.close(self._now)
        self.made.run_seconds = self._now - self._start_t
        self.made.nbytes = self._trace.nbytes
        self.made.records = self._trace.written
        return self.made

    def _at(self, t: float, happen: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._events, (t, next(self._numbers), happen, arguments))

    def _stimulus(self, name: str) -> str:
        """Begin with what makes the scheduler act."""
        stimulus = f"{name}-{self._now:.7f}"
        self._now += STIMULUS_SECONDS
        return stimulus

    def _move(self, task: _Task, finish: str, stimulus: str, more: str = "") -> None:
        self._now += TRANSITION_SECONDS * (0.5 + self._rng.random())
        states = STATES[task.state, finish]
        self._trace.moved(self._now, task.key, states, stimulus, more)
        task.state = finish

    # The client

    def _submit(self) -> None:
        """Submit the next graph: some copies of a recorded one."""
        graph = self._graphs[self._submissions % len(self._graphs)]
        if self._submissions < len(self._graphs):
            for span in graph.spans:
                self._trace.record("span", self._now, span)
        self._submissions += 1
        stimulus = self._stimulus("update-graph")
        new = [
            task
            for _ in range(self._copies_at_once)
            if self.made.tasks < self._wanted
            for task in self._make_copy(graph, stimulus)
        ]
        for task in new:
            if task.model.chunk:
                self._trace.line("chunk", self._now, f'"key":{task.key},{task.identity}')
        for task in new:
            self._move(task, "waiting", stimulus)
            if not task.missing:
                self._find_place(task, stimulus)
        self._tell_of_graph(len(new), stimulus)

    def _make_copy(self, graph: _Graph, stimulus: str) -> list[_Task]:
        rng, number = self._rng, self._copies
        self._copies += 1
        tokens = [f"{rng.getrandbits(128):032x}" for _ in range(graph.tokens)]
        copy = _Copy()
        room = self._wanted - self.made.tasks
        for model in graph.models[:room]:
            key = model.key.filled(tokens)
            copy.tasks.append(_Task(model, copy, key, self.made.tasks))
            self.made.tasks += 1
        if room < len(graph.models):
            for task in copy.tasks:
                task.waiters = sum(place < room for place in task.model.dependents)
        for task in copy.tasks:
            self._decide_fate(task)
            self._tell_of_task(task, number, tokens, stimulus)
            if task.model.chunk:
                task.identity = _chunk_identity(task.model, number, tokens)
        copy.unresolved = len(copy.tasks)
        self._unresolved += len(copy.tasks)
        self._unforgotten += len(copy.tasks)
        return copy.tasks

    def _decide_fate(self, task: _Task) -> None:
        rng, kind, retries = self._rng, task.model.kind, task.model.retries
        if rng.random() < kind.failing_share:
            task.is_doomed = not retries or rng.random() < FATAL_SHARE
            task.failures = retries + 1 if task.is_doomed else rng.randint(1, retries)
        share = kind.shape.rescheduled_share
        task.is_rescheduled = share > 0 and rng.random() < share

    def _tell_of_task(self, task: _Task, number: int, tokens: list[str], stimulus: str) -> None:
        model, tasks = task.model, task.copy.tasks
        dependencies = ",".join([tasks[place].key for place in model.dependencies])
        order = number % self._copies_at_once * len(tasks) + model.order
        self._trace.line(
            "task",
            self._now,
            f'"key":{task.key},"prefix":{model.kind.prefix},'
            f'"group":{model.group.filled(tokens)},"dependencies":[{dependencies}],'
            f'"priority":[0,{self._submissions},{order}],{model.annotations}'
            f'"span_id":{model.kind.span},"client":{self._client},"stimulus_id":"{stimulus}"',
        )

    def _tell_of_graph(self, tasks: int, stimulus: str) -> None:
        payload = {
            "action": "update-graph",
            "stimulus_id": stimulus,
            "metrics": {"tasks": tasks, "new_tasks": tasks, "key_collisions": 0},
            "status": "OK",
        }
        for topic in ("scheduler", self._client.strip('"')):
            self._trace.record("event", self._now, {"topic": topic, "payload": payload})

    def _let_go(self, copy: _Copy) -> None:
        """The client has its results, and releases them all."""
        if copy.unresolved or copy.is_released:  # a lost worker took some with it
            return
        copy.is_released = True
        stimulus = self._stimulus("client-releases-keys")
        for task in copy.tasks:
            if task.state == "erred" or (task.state == "memory" and task.model.dependents):
                self._move(task, "released", stimulus)
            self._move(task, "forgotten", stimulus)
            self._drop_result(task)
        self._unforgotten -= len(copy.tasks)
        copy.tasks = []

    # Where tasks run

    def _find_place(self, task: _Task, stimulus: str) -> None:
        """Send a waiting task to a worker, or into the queue."""
        if not task.model.kind.shape.waits_in_queue:
            self._send(task, self._worker_for(task), stimulus)
        elif self._open:
            self._send(task, next(iter(self._open)), stimulus)
        else:
            self._move(task, "waiting", stimulus)
            self._move(task, "queued", stimulus)
            heapq.heappush(self._queue, (task.rank, next(self._numbers), task))

    def _worker_for(self, task: _Task) -> _Worker:
        """Choose where most of the data is, or who has less to do."""
        candidates = [self._rng.choice(self._alive)]
        held = [task.copy.tasks[place] for place in task.model.dependencies]
        if held:
            holder = max(held, key=_nbytes_of).worker
            if holder is not None and holder.is_alive:
                candidates.insert(0, holder)
        elif self._open:
            candidates.insert(0, next(iter(self._open)))
        if len(candidates[0].processing) <= 2 * self._threads:
            return candidates[0]
        return min(candidates, key=_load_of)

    def _send(self, task: _Task, worker: _Worker, stimulus: str) -> None:
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

    def _feed(self, worker: _Worker, stimulus: str) -> None:
        """Send a worker that has room what waits in the queue."""
        while self._queue and len(worker.processing) < self._slots:
            self._send(heapq.heappop(self._queue)[2], worker, stimulus)
        if len(worker.processing) < self._slots:
            self._open[worker] = None

    def _start(self, task: _Task, worker: _Worker, thread: int) -> None:
        """Let a thread of a worker attempt a task; its end is an event to come."""
        rng, shape = self._rng, task.model.kind.shape
        delay = rng.expovariate(1 / HANDOVER_SECONDS)
        begin = max(worker.free_at[thread], task.sent_t) + delay
        parts = self._preparations(task, worker, begin)
        start = max([begin, *(stop for _, _, stop, _ in parts)]) + 5e-5
        seconds = _drawn(rng, shape.seconds) * worker.slowness
        if rng.random() < STRAGGLER_SHARE:
            seconds *= min(rng.paretovariate(STRAGGLER_SHAPE) + 2, STRAGGLER_LIMIT)
        stop = start + seconds
        parts.append(("compute", start, stop, None))
        worker.free_at[thread] = stop
        attempt = _Attempt(task, task.run_id, worker, thread, parts, start, stop)
        self._at(stop + rng.expovariate(1 / REPORT_SECONDS), self._end, attempt)

    def _preparations(
        self, task: _Task, worker: _Worker, begin: float
    ) -> list[tuple[str, float, float, str | None]]:
        """Give the parts of an attempt before it computes."""
        rng, shape = self._rng, task.model.kind.run
        held = [task.copy.tasks[place] for place in task.model.dependencies]
        sources = {
            result.worker.address: None
            for result in held
            if result.worker is not None and result.worker is not worker
        }
        parts: list[tuple[str, float, float, str | None]] = [
            ("transfer", begin, begin + _drawn(rng, shape.transfer_seconds), source)
            for source in sources
        ]
        latest = max((stop for _, _, stop, _ in parts), default=begin)
        if task.model.kind not in worker.loaded:
            worker.loaded.add(task.model.kind)
            stop = latest + _drawn(rng, shape.deserialize_seconds)
            parts.append(("deserialize", latest, stop, None))
            latest = stop
        if held and rng.random() < shape.disk_share:
            stop = latest + _drawn(rng, shape.disk_seconds)
            parts.append(("disk-read", latest, stop, None))
        return parts

    # How attempts end

    def _end(self, attempt: _Attempt) -> None:
        """The scheduler hears that an attempt has ended."""
        task, worker = attempt.task, attempt.worker
        if not worker.is_alive:
            return
        del worker.processing[task]
        self._note_activity(attempt)
        if task.is_rescheduled:
            stimulus = self._end_rescheduled(task)
        elif task.failures:
            stimulus = self._end_failed(attempt)
        else:
            stimulus = self._end_well(attempt)
        if worker.ready:
            self._start(heapq.heappop(worker.ready)[2], worker, attempt.thread)
        else:
            worker.idle_threads.append(attempt.thread)
        self._feed(worker, stimulus)
        if self._unresolved < self._low_water and self.made.tasks < self._wanted:
            self._submit()

    def _end_rescheduled(self, task: _Task) -> str:
        task.is_rescheduled = False
        self.made.runs["rescheduled"] += 1
        stimulus = self._stimulus("reschedule")
        self._move(task, "released", stimulus, f',"run_id":{task.run_id}')
        self._move(task, "waiting", stimulus)
        self._find_place(task, stimulus)
        return stimulus

    def _end_failed(self, attempt: _Attempt) -> str:
        task = attempt.task
        task.failures -= 1
        failure = self._rng.choice(task.model.kind.run.failures)
        self._tell_of_chunk(attempt, failure.exception)
        stimulus = self._stimulus("task-erred")
        more = self._told(attempt)
        said = f',"exception":{failure.exception},"traceback":{failure.traceback}'
        if task.is_doomed and not task.failures:
            self.made.runs["erred"] += 1
            self._move(task, "erred", stimulus, f'{more},"cause":{task.key}{said}')
            self._give_up(task, stimulus)
        else:
            self.made.runs["retried"] += 1
            self._move(task, "released", stimulus, more + said)
            self._move(task, "waiting", stimulus)
            self._find_place(task, stimulus)
        return stimulus

    def _give_up(self, failed: _Task, stimulus: str) -> None:
        """Let everything fail that a failed task was needed for."""
        self._resolve(failed.copy)
        given_up = [failed]
        for task in given_up:
            for place in task.model.dependents:
                dependent = self._neighbour(task, place)
                if dependent is not None and dependent.state == "waiting":
                    self._move(dependent, "released", stimulus)
                    self._move(dependent, "erred", stimulus)
                    self._resolve(dependent.copy)
                    given_up.append(dependent)
        for task in given_up:
            for place in task.model.dependencies:
                self._lose_waiter(task.copy.tasks[place], stimulus)

    def _end_well(self, attempt: _Attempt) -> str:
        task, worker = attempt.task, attempt.worker
        shape = task.model.kind.shape
        self._tell_of_chunk(attempt, None)
        task.nbytes = max(1, round(_drawn(self._rng, shape.nbytes)))
        stimulus = self._stimulus("task-finished")
        typename = self._rng.choice(shape.typenames)
        told = self._told(attempt, f'"nbytes":{task.nbytes},"typename":{typename},')
        self._move(task, "memory", stimulus, told)
        self.made.runs["memory"] += 1
        self.made.output_bytes += task.nbytes
        worker.results[task] = None
        worker.nbytes += task.nbytes
        for place in task.model.dependencies:
            self._lose_waiter(task.copy.tasks[place], stimulus)
        for place in task.model.dependents:
            dependent = self._neighbour(task, place)
            if dependent is not None and dependent.state == "waiting":
                dependent.missing -= 1
                if not dependent.missing:
                    self._find_place(dependent, stimulus)
        if task.model.dependents and not task.waiters:
            self._release(task, stimulus)
        self._resolve(task.copy)
        self._done += 1
        if self._done >= self._next_loss:
            self._next_loss += TASKS_PER_LOST_WORKER * self._rng.uniform(0.5, 1.5)
            self._at(self._now, self._lose_worker)
        return stimulus

    def _told(self, attempt: _Attempt, result: str = "") -> str:
        """Give what a worker told of an attempt, as JSON after the stimulus."""
        self.made.compute_seconds += attempt.stop - attempt.start
        thread = attempt.worker.thread_ids[attempt.thread]
        return (
            f',"worker":"{attempt.worker.address}","run_id":{attempt.run_id},'
            f'"thread":{thread},{result}"startstops":[{parts_as_json(attempt.parts)}]'
        )

    def _neighbour(self, task: _Task, place: int) -> _Task | None:
        """Give a dependent of a task; the last copy of a graph may lack some."""
        tasks = task.copy.tasks
        return tasks[place] if place < len(tasks) else None

    def _lose_waiter(self, dependency: _Task, stimulus: str) -> None:
        dependency.waiters -= 1
        if not dependency.waiters and dependency.state == "memory":
            self._release(dependency, stimulus)

    def _release(self, task: _Task, stimulus: str) -> None:
        self._move(task, "released", stimulus)
        self._drop_result(task)

    def _drop_result(self, task: _Task) -> None:
        worker = task.worker
        if worker is not None and task in worker.results:
            del worker.results[task]
            worker.nbytes -= task.nbytes

    def _resolve(self, copy: _Copy) -> None:
        """Count a task as done; when all are, the client lets go of them."""
        self._unresolved -= 1
        copy.unresolved -= 1
        if not copy.unresolved:
            delay = self._rng.expovariate(1 / CLIENT_SECONDS)
            self._at(self._now + delay, self._let_go, copy)

    # Workers that come and go

    def _add_worker(self) -> None:
        number = next(self._worker_numbers)
        worker = _Worker(number, self._threads, self._rng, self._now)
        self._alive.append(worker)
        self._open[worker] = None
        self.made.workers += 1
        own = {
            "worker": worker.address,
            "server_id": worker.server_id,
            "name": str(number),
            "host": worker.host,
            "pid": 10_000 + number,
            "nthreads": self._threads,
            "nanny": f"tcp://{worker.host}:{30_000 + number % 8}",
        }
        self._trace.record("worker_added", self._now, {**self._shape.worker, **own})
        self._at(self._now + self._beat_seconds * self._rng.random(), self._beat, worker)

    def _replace_worker(self) -> None:
        self._add_worker()
        worker = self._alive[-1]
        payload = {"action": "add-worker"}
        fields = {"topic": worker.address, "payload": payload}
        self._trace.record("event", self._now, fields)
        self._feed(worker, self._stimulus("worker-status-change"))

    def _lose_worker(self) -> None:
        """A worker dies: what it was at is done elsewhere, what it held is computed again."""
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
        for task in results:
            self._compute_again(task, stimulus)
        for task in runs:
            self._wait_again(task, stimulus)
        departed = {"worker": worker.address, "server_id": worker.server_id}
        self._trace.record("worker_removed", self._now, {**departed, "stimulus_id": stimulus})
        self._tell_of_loss(worker, runs, results, stimulus)
        delay = self._rng.expovariate(1 / REPLACEMENT_SECONDS)
        self._at(self._now + delay, self._replace_worker)

    def _has_replica(self, task: _Task) -> bool:
        """Find whether another worker has fetched a result, and let that one hold it."""
        for place in task.model.dependents:
            dependent = self._neighbour(task, place)
            if dependent is None or dependent.state not in ("processing", "queued"):
                continue
            holder = dependent.worker if dependent.state == "processing" else None
            task.worker = holder or self._rng.choice(self._alive)
            task.worker.results[task] = None
            task.worker.nbytes += task.nbytes
            return True
        return False

    def _compute_again(self, task: _Task, stimulus: str) -> None:
        """Let a result that is gone be computed once more, and what it needs for that."""
        if task.state != "released":
            return
        task.copy.unresolved += 1
        self._unresolved += 1
        for place in task.model.dependencies:
            dependency = task.copy.tasks[place]
            dependency.waiters += 1
            self._compute_again(dependency, stimulus)
        for place in task.model.dependents:
            dependent = self._neighbour(task, place)
            if dependent is not None and dependent.state == "waiting":
                dependent.missing += 1
        self._wait_again(task, stimulus)

    def _wait_again(self, task: _Task, stimulus: str) -> None:
        states = [task.copy.tasks[place].state for place in task.model.dependencies]
        task.missing = sum(state != "memory" for state in states)
        self._move(task, "waiting", stimulus)
        if not task.missing:
            self._find_place(task, stimulus)

    def _tell_of_loss(
        self, worker: _Worker, runs: list[_Task], results: list[_Task], stimulus: str
    ) -> None:
        payload = {
            "action": "remove-worker",
            "processing-tasks": [task.key.strip('"') for task in runs],
            "lost-computed-tasks": [task.key.strip('"') for task in results],
            "lost-scattered-tasks": [],
            "stimulus_id": stimulus,
            "expected": False,
        }
        for topic in (worker.address, "all"):
            own = {"worker": worker.address} if topic == "all" else {}
            fields = {
                "topic": topic, "worker": worker.address, "payload": {**payload, **own}
            }  # fmt: skip
            self._trace.record("event", self._now, fields)

    # What workers say of themselves

    def _note_activity(self, attempt: _Attempt) -> None:
        task, worker = attempt.task, attempt.worker
        activity = worker.beat.setdefault(task.model.kind, _Activity())
        seconds = attempt.stop - attempt.start
        if task.failures:
            activity.failed_seconds += seconds
        elif not task.is_rescheduled:
            activity.seconds += seconds
            activity.reads += len(task.model.dependencies)
            activity.read_bytes += sum(
                task.copy.tasks[place].nbytes for place in task.model.dependencies
            )
        activity.handover_seconds += attempt.start - task.sent_t
        profiled = worker.profiled
        profiled[task.model.kind] = profiled.get(task.model.kind, 0.0) + seconds

    def _beat(self, worker: _Worker) -> None:
        if worker.is_alive:
            self._tell_metrics(worker)
            self._at(self._now + self._beat_seconds, self._beat, worker)

    def _tell_metrics(self, worker: _Worker) -> None:
        for kind, activity in worker.beat.items():
            cpu_seconds = activity.seconds * kind.shape.cpu_share
            deltas = (
                ("memory-read", "count", activity.reads),
                ("memory-read", "bytes", activity.read_bytes),
                ("thread-cpu", "seconds", cpu_seconds),
                ("thread-noncpu", "seconds", activity.seconds - cpu_seconds),
                ("executor", "seconds", activity.handover_seconds),
                ("failed", "seconds", activity.failed_seconds),
            )
            for name, unit, delta in deltas:
                if delta:
                    self._trace.line(
                        "fine_metric",
                        self._now,
                        f'{worker.identity},"context":"execute","span_id":{kind.span},'
                        f'"prefix":{kind.prefix},"activity":"{name}","unit":"{unit}",'
                        f'"delta":{delta!r}',
                    )
        worker.beat.clear()

    def _sample_workers(self) -> None:
        rng = self._rng
        for worker in self._alive:
            ready = len(worker.ready)
            processing = len(worker.processing)
            executing = self._threads - len(worker.idle_threads)
            metrics = metrics_as_json(
                rng.choice(self._shape.samples),
                cpu=round(100 * executing * rng.uniform(0.6, 1.0), 1),
                memory=worker.memory + worker.nbytes,
                managed_bytes=worker.nbytes,
                ready=ready,
            )
            self._trace.line(
                "worker_sample",
                self._now,
                f'{worker.identity},"memory_limit":{self._shape.worker["memory_limit"]},'
                f'"nthreads":{self._threads},"processing":{processing},'
                f'"executing":{executing},"occupancy":{processing * 0.1!r},'
                f'"nbytes":{worker.nbytes},"last_seen":{self._now - rng.random() / 2:.7f},'
                f'"metrics":{metrics}',
            )
        self._at(self._now + self._sample_seconds, self._sample_workers)

    def _tell_profiles(self) -> None:
        for worker in self._alive:
            for kind, seconds in worker.profiled.items():
                samples = int(seconds / PROFILE_INTERVAL_SECONDS)
                if samples and kind.shape.profiles:
                    shape = self._rng.choice(kind.shape.profiles)
                    self._tell_profile(worker, kind, shape, samples)
            worker.profiled.clear()
            worker.profiled_from = self._now
        self._at(self._now + self._cycle_seconds, self._tell_profiles)

    def _tell_profile(
        self, worker: _Worker, kind: _Kind, shape: ProfileShape, samples: int
    ) -> None:
        times = max(1, round(samples / shape.samples))
        span = f'"start_t":{worker.profiled_from:.7f},"stop_t":{self._now:.7f}'
        innermost = f',"innermost":{_multiplied(shape.innermost, times)}'
        self._trace.line(
            "profile",
            self._now,
            f'{worker.identity},"prefix":{kind.prefix},{span},'
            f'"interval_seconds":{PROFILE_INTERVAL_SECONDS},"tree":{shape.tree},'
            f'"slices":[{{{span},"nodes":{shape.nodes},'
            f'"counts":{_multiplied(shape.counts, times)}'
            f"{innermost if shape.innermost else ''}}}]}}",
        )

    def _tell_of_chunk(self, attempt: _Attempt, exception: str | None) -> None:
        """Write what a worker measured of a chunk, and of the sections in it."""
        task, chunk = attempt.task, attempt.task.model.chunk
        if chunk is None or chunk.measured is None:
            return
        thread = f'"thread":{attempt.worker.thread_ids[attempt.thread]}'
        who = f'"key":{task.key},"run_id":{attempt.run_id},"worker":"{attempt.worker.address}"'
        seconds = attempt.stop - attempt.start
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


def _chunk_identity(model: _Model, number: int, tokens: list[str]) -> str:
    """Name a chunk as one of its copy's own file, of one of many datasets."""
    chunk: Chunk | None = model.chunk
    assert chunk is not None
    path = PurePosixPath(chunk.filename)
    filename = path.with_name(f"{path.stem}_{number:06d}{path.suffix}")
    dataset = f"{chunk.dataset}_{number % DATASETS:02d}"
    return (
        f'"dataset":{as_json(dataset)},"filename":{as_json(str(filename))},'
        f"{model.chunk_identity.filled(tokens)}"
    )


def _drawn(rng: random.Random, distribution: LogNormal) -> float:
    return rng.lognormvariate(distribution.mu, distribution.sigma)


def _multiplied(counts: Iterable[int] | None, times: int) -> str:
    return "[" + ",".join([str(count * times) for count in counts or ()]) + "]"


def _nbytes_of(task: _Task) -> int:
    return task.nbytes


def _load_of(worker: _Worker) -> int:
    return len(worker.processing)


def _uuid(rng: random.Random) -> str:
    text = f"{rng.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="TRACE")
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1, help="threads of a worker")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--fit", type=Path, nargs="+", default=DEFAULT_FIT, help="recorded traces to be like"
    )
    parser.add_argument("--segment-bytes", type=int, default=256 * 2**20)
    options = parser.parse_args()
    if min(options.tasks, options.workers, options.threads) < 1:
        parser.error("--tasks, --workers and --threads count from 1")
    made = make_trace(
        options.output,
        tasks=options.tasks,
        workers=options.workers,
        threads=options.threads,
        seed=options.seed,
        fit=options.fit,
        segment_bytes=options.segment_bytes,
    )
    print(as_json({**vars(made), "records": dict(made.records), "runs": dict(made.runs)}))


if __name__ == "__main__":
    main()
