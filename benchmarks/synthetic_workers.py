"""Simulated workers: threads, results in memory, and samples."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from recorded_shape import ProfileShape, Record, as_json

if TYPE_CHECKING:
    from synthetic_graphs import Kind, Task

SLOW_WORKER_SHARE = 0.03
WORKERS_PER_HOST = 8
#: Dask's default.
PROFILE_INTERVAL_SECONDS = 0.01
#: Typical address of thread stacks on Linux; a thread's identifier is such an address.
THREAD_IDENTITY = 139_600_000_000_000


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a task on a thread of a worker.

    Parameters
    ----------
    task : Task
    run_id : int
    worker : Worker
    thread : int
        Number of the thread in its worker, from 0.
    parts : list of tuple
        Action, start, stop, and the source of a transfer.
    start, stop : float
        Time range of the computation.
    """

    task: Task
    run_id: int
    worker: Worker
    thread: int
    parts: list[tuple[str, float, float, str | None]]
    start: float
    stop: float

    @property
    def seconds(self) -> float:
        return self.stop - self.start

    @property
    def thread_id(self) -> int:
        return self.worker.thread_ids[self.thread]


@dataclass(slots=True)
class Activity:
    """Totals of a worker for tasks of a kind since its last heartbeat."""

    seconds: float = 0.0
    failed_seconds: float = 0.0
    executor_seconds: float = 0.0
    reads: int = 0
    read_bytes: int = 0


class Worker:
    """A worker process.

    Attributes
    ----------
    identity : str
        JSON of its address and its server ID.
    relative_duration : float
        Factor on the durations of its tasks.
    free_at : list of float
        Time at which each thread has finished its assigned attempts.
    idle_threads : list of int
    ready : list
        Heap of tasks that wait for a thread, by rank.
    processing, results : dict of Task to None
        Tasks that were sent to it, and results that it holds, in order.
    loaded : set of Kind
        Kinds of tasks whose code has been deserialized.
    """

    def __init__(self, number: int, threads: int, rng: random.Random, t: float) -> None:
        host, port = divmod(number, WORKERS_PER_HOST)
        self.number = number
        self.host = f"10.{host // 62500}.{host // 250 % 250}.{host % 250 + 1}"
        self.address = f"tcp://{self.host}:{40000 + port}"
        self.nanny = f"tcp://{self.host}:{30000 + port}"
        self.server_id = f"Worker-{UUID(int=rng.getrandbits(128))}"
        self.identity = f'"worker":"{self.address}","server_id":"{self.server_id}"'
        is_slow = rng.random() < SLOW_WORKER_SHARE
        self.relative_duration = rng.uniform(2, 4) if is_slow else rng.lognormvariate(0, 0.05)
        self.is_alive = True
        first = THREAD_IDENTITY + rng.randrange(10**9) * 4096
        # A stack takes 8 MiB and a guard page.
        self.thread_ids = [first + thread * 8_392_704 for thread in range(threads)]
        self.free_at = [t] * threads
        self.idle_threads = list(range(threads))[::-1]
        self.ready: list[tuple[int, int, Task]] = []
        self.processing: dict[Task, None] = {}
        self.results: dict[Task, None] = {}
        self.nbytes = 0
        self.loaded: set[Kind] = set()
        self._own_memory = rng.randrange(200, 400) * 2**20
        self._activities: dict[Kind, Activity] = {}
        self._profiled: dict[Kind, float] = {}
        self._profiled_from = t

    def hold(self, task: Task) -> None:
        """Add the result of a task."""
        task.worker = self
        self.results[task] = None
        self.nbytes += task.nbytes

    def drop(self, task: Task) -> None:
        """Remove the result of a task, if it is in memory."""
        if task in self.results:
            del self.results[task]
            self.nbytes -= task.nbytes

    def added_fields(self, recorded: Record) -> Record:
        """Return the fields of ``worker_added``: recorded ones with new names."""
        own = {
            "worker": self.address,
            "server_id": self.server_id,
            "name": str(self.number),
            "host": self.host,
            "pid": 10_000 + self.number,
            "nthreads": len(self.thread_ids),
            "nanny": self.nanny,
        }
        return {**recorded, **own}

    def note(self, attempt: Attempt) -> None:
        """Count an attempt that has ended, for metrics and profiles."""
        task = attempt.task
        kind = task.model.kind
        activity = self._activities.setdefault(kind, Activity())
        if task.is_rescheduled:
            return
        if task.failures:
            activity.failed_seconds += attempt.seconds
        else:
            dependencies = task.dependencies()
            activity.seconds += attempt.seconds
            activity.reads += len(dependencies)
            activity.read_bytes += sum([dependency.nbytes for dependency in dependencies])
        activity.executor_seconds += attempt.start - task.sent_t
        self._profiled[kind] = self._profiled.get(kind, 0.0) + attempt.seconds

    def fine_metrics(self) -> Iterator[str]:
        """Return the fields of ``fine_metric`` records since the last call."""
        for kind, activity in self._activities.items():
            cpu_seconds = activity.seconds * kind.shape.cpu_share
            deltas: tuple[tuple[str, str, float], ...] = (
                ("memory-read", "count", activity.reads),
                ("memory-read", "bytes", activity.read_bytes),
                ("thread-cpu", "seconds", cpu_seconds),
                ("thread-noncpu", "seconds", activity.seconds - cpu_seconds),
                ("executor", "seconds", activity.executor_seconds),
                ("failed", "seconds", activity.failed_seconds),
            )
            for name, unit, delta in deltas:
                if delta:
                    yield (
                        f'{self.identity},"context":"execute","span_id":{kind.span},'
                        f'"prefix":{kind.prefix},"activity":"{name}","unit":"{unit}",'
                        f'"delta":{delta!r}'
                    )
        self._activities.clear()

    def sample(self, t: float, recorded: Record, memory_limit: int, rng: random.Random) -> str:
        """Return the fields of a sample: recorded metrics, updated with simulated values."""
        threads = len(self.thread_ids)
        executing = threads - len(self.idle_threads)
        metrics = {
            **recorded,
            "cpu": round(100 * executing * rng.uniform(0.6, 1.0), 1),
            "memory": self._own_memory + self.nbytes,
            "managed_bytes": self.nbytes,
            "ready": len(self.ready),
        }
        return (
            f'{self.identity},"memory_limit":{memory_limit},"nthreads":{threads},'
            f'"processing":{len(self.processing)},"executing":{executing},'
            f'"occupancy":{len(self.processing) * 0.1!r},"nbytes":{self.nbytes},'
            f'"last_seen":{t - rng.random() / 2:.7f},"metrics":{as_json(metrics)}'
        )

    def profiles(self, t: float, rng: random.Random) -> Iterator[str]:
        """Return the fields of ``profile`` records since the last call."""
        for kind, seconds in self._profiled.items():
            samples = int(seconds / PROFILE_INTERVAL_SECONDS)
            if samples and kind.shape.profiles:
                shape = rng.choice(kind.shape.profiles)
                yield self._profile(t, kind, shape, max(1, round(samples / shape.samples)))
        self._profiled.clear()
        self._profiled_from = t

    def _profile(self, t: float, kind: Kind, shape: ProfileShape, times: int) -> str:
        """Return a recorded profile, scaled to a number of samples."""
        span = f'"start_t":{self._profiled_from:.7f},"stop_t":{t:.7f}'
        counts = f'"counts":{_multiplied(shape.counts, times)}'
        if shape.innermost:
            counts += f',"innermost":{_multiplied(shape.innermost, times)}'
        return (
            f'{self.identity},"prefix":{kind.prefix},{span},'
            f'"interval_seconds":{PROFILE_INTERVAL_SECONDS},"tree":{shape.tree},'
            f'"slices":[{{{span},"nodes":{shape.nodes},{counts}}}]}}'
        )


def _multiplied(counts: Iterable[int], times: int) -> str:
    return "[" + ",".join([str(count * times) for count in counts]) + "]"
