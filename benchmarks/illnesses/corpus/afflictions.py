"""Afflictions outside of the work of tasks: of parameters, workers, and the scheduler."""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, Scheduler, Worker, WorkerPlugin, versions
from distributed.deploy.adaptive import Adaptive
from distributed.diagnostics.plugin import SchedulerPlugin
from illness import Affliction, Cluster, Run
from troubles import CACHE

# -- other parameters ------------------------------------------------------------------------


class Changed(Affliction):
    """A part of the program, which may have a name, has other parameters."""

    def __init__(self, name: str = "", /, **changes: Any) -> None:
        self.name, self.changes = name, changes

    def __repr__(self) -> str:
        parts = [repr(self.name)] if self.name else []
        parts += [f"{name}={value!r}" for name, value in self.changes.items()]
        return f"{type(self).__name__}({', '.join(parts)})"


class With(Changed):
    """The shape has other parameters."""

    def change(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        return replace(shape, **self.changes), cluster


class On(Changed):
    """The cluster is another one."""

    def change(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        return shape, replace(cluster, **self.changes)


class At(Changed):
    """A stage of the shape has other parameters."""

    def change(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        if hasattr(shape, "shapes"):
            return self.change_each(shape, cluster)
        stages = tuple(
            replace(stage, **self.changes) if stage.name == self.name else stage
            for stage in shape.stages
        )
        return replace(shape, stages=stages), cluster


@dataclass(frozen=True, repr=False)
class Split(Affliction):
    """Each task that depends on one task at most is split."""

    parts: int

    def change(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        def split(stage: Any) -> Any:
            is_short = stage.needs.is_single
            return replace(stage, seconds=stage.seconds / self.parts) if is_short else stage

        tasks = shape.tasks * self.parts
        if hasattr(shape, "stage"):
            return replace(shape, tasks=tasks, stage=split(shape.stage)), cluster
        return replace(shape, tasks=tasks, stages=tuple(map(split, shape.stages))), cluster


# -- workers that come and go ----------------------------------------------------------------


@contextmanager
def later(calls: list[tuple[float, Callable[..., Any], list[Any]]]) -> Iterator[None]:
    """Make calls after some seconds; wait for them at the end."""
    timers = [threading.Timer(*call) for call in calls]
    for timer in timers:
        timer.start()
    yield
    for timer in timers:
        timer.join()


@dataclass(frozen=True, repr=False)
class Late(Affliction):
    """The cluster has fewer workers at first, and is scaled to numbers of workers later."""

    first: int
    numbers: dict[float, int]

    def change(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        return shape, replace(cluster, workers=self.first, hosts=cluster.hosts[: self.first])

    def during(self, run: Run, client: Client) -> Any:
        return later([(at, run.cluster.scale, [number]) for at, number in self.numbers.items()])


@dataclass(frozen=True, repr=False)
class Adapting(Affliction):
    """The cluster starts with one worker, and adapts."""

    most: int

    def change(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        return shape, replace(cluster, workers=1)

    @contextmanager
    def during(self, run: Run, client: Client) -> Iterator[None]:
        adaptive = run.cluster.adapt(
            minimum=1, maximum=self.most, interval="4s", target_duration="2s"
        )
        yield
        adaptive.stop()


@dataclass(frozen=True, repr=False)
class Preloading(Affliction):
    """Workers that are requested at the beginning need some seconds before they join."""

    first: int
    most: int
    seconds: float

    def change(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        preload = (
            "import asyncio\nasync def dask_setup(worker):\n"
            f"    if worker.name >= {self.first}:\n"
            f"        await asyncio.sleep({self.seconds} + worker.name)\n"
        )
        config = {**cluster.config, "distributed.worker.preload": [preload]}
        return shape, replace(cluster, workers=self.first, config=config)

    @contextmanager
    def during(self, run: Run, client: Client) -> Iterator[None]:
        run.cluster.scale(self.most)
        yield


@dataclass(frozen=True, repr=False)
class Leaving(Affliction):
    """Workers leave after some seconds.

    `how` is ``retire`` (their results are moved), ``close`` (they finish their tasks), ``kill``
    (a signal, as from a batch system), or ``restart``.
    """

    times: dict[int, float]
    how: str = "retire"

    def during(self, run: Run, client: Client) -> Any:
        calls = {
            "retire": lambda name, address: client.retire_workers([address]),
            "close": lambda name, address: client.run(
                close_gracefully, workers=[address], wait=False
            ),
            "kill": lambda name, address: os.kill(run.pid(name), signal.SIGKILL),
            "restart": lambda name, address: client.restart_workers([address]),
        }

        def leave(name: int, address: str) -> None:
            with suppress(ProcessLookupError, ValueError):
                calls[self.how](name, address)

        return later(
            [(at, leave, [name, run.address(name)]) for name, at in self.times.items()]
        )


async def close_gracefully(dask_worker: Worker) -> None:
    """Finish the tasks of this worker, and leave."""
    dask_worker.loop.add_callback(dask_worker.close_gracefully)


@dataclass(frozen=True, repr=False)
class Stopped(Affliction):
    """The processes of workers are stopped (SIGSTOP) in ranges of seconds."""

    ranges: dict[int, tuple[tuple[float, float], ...]]

    def during(self, run: Run, client: Client) -> Any:
        return later(
            [
                (at, os.kill, [run.pid(name), what])
                for name, ranges in self.ranges.items()
                for first, last in ranges
                for at, what in ((first, signal.SIGSTOP), (last, signal.SIGCONT))
            ]
        )


# -- event loops and threads of workers ------------------------------------------------------


@dataclass(frozen=True, repr=False)
class BlockedLoops(Affliction):
    """The event loops of workers are blocked for some seconds, again and again.

    `by` is ``coroutine`` (which runs in the loop), ``client.run``, ``metric`` (at each
    heartbeat), or ``result`` (of a plugin, for each result).
    """

    seconds: float
    pause: float = 0.0
    by: str = "coroutine"
    workers: tuple[int, ...] = ()
    since: float = 0.0
    total: float = 1e9

    def prepare(self, run: Run, client: Client) -> None:
        if self.by == "result":
            client.register_plugin(Journal(self.seconds), name="journal")
        elif self.by == "metric":
            client.run(add_metric, self.seconds)

    def during(self, run: Run, client: Client) -> Any:
        workers = [run.address(name) for name in self.workers] or None
        if self.by == "client.run":
            return repeated(self.pause, lambda: client.run(time.sleep, self.seconds))
        if self.by == "coroutine":
            client.run(block_loop, self, workers=workers, wait=False)
        return nullcontext()


@contextmanager
def repeated(pause: float, call: Callable[[], Any]) -> Iterator[None]:
    """Make a call again and again, in a thread."""
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(pause):
            call()

    thread = threading.Thread(target=repeat)
    thread.start()
    yield
    done.set()
    thread.join()


async def block_loop(loops: BlockedLoops) -> None:
    await asyncio.sleep(loops.since)
    until = time.monotonic() + loops.total
    while time.monotonic() < until:
        time.sleep(loops.seconds)  # noqa: ASYNC251 - the illness
        await asyncio.sleep(loops.pause)


class Journal(WorkerPlugin):
    """Write a line for each result in the event loop."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def transition(self, key: Any, start: str, finish: str, **details: Any) -> None:
        if finish == "memory":
            time.sleep(self.seconds)


def add_metric(seconds: float, dask_worker: Worker) -> None:
    """Add a metric that runs a program at each heartbeat."""

    def ask_device(worker: Worker) -> float:
        time.sleep(seconds)
        return 1.0

    dask_worker.metrics["device"] = ask_device


@dataclass(frozen=True, repr=False)
class HeldGil(Affliction):
    """A thread of each worker holds the GIL for some seconds, again and again."""

    seconds: float
    pause: float
    workers: tuple[int, ...] = ()

    def during(self, run: Run, client: Client) -> Any:
        workers = [run.address(name) for name in self.workers] or None
        client.run(start_thread, hold_gil, self.seconds, self.pause, workers=workers)
        return nullcontext()


def start_thread(function: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=function, args=arguments, daemon=True).start()


def hold_gil(seconds: float, pause: float) -> None:
    library = ctypes.PyDLL(None)
    while True:
        time.sleep(pause)
        library.usleep(int(1e6 * seconds))


@dataclass(frozen=True, repr=False)
class Buffers(Affliction):
    """A thread of workers takes memory again and again.

    Each buffer is kept for some seconds, or, without `seconds`, until there are `most`.
    """

    nbytes: int
    pause: float
    seconds: float = 0.0
    most: int = 10**9
    workers: tuple[int, ...] = ()

    def during(self, run: Run, client: Client) -> Any:
        workers = [run.address(name) for name in self.workers] or None
        client.run(start_thread, take_memory, self, workers=workers)
        return nullcontext()


def take_memory(buffers: Buffers) -> None:
    while len(CACHE) < buffers.most:
        time.sleep(buffers.pause)
        CACHE.append(np.ones(buffers.nbytes, dtype="u1"))
        if buffers.seconds:
            time.sleep(buffers.seconds)
            CACHE.pop()


@dataclass(frozen=True, repr=False)
class OldPackage(Affliction):
    """Workers have another version of a package, by its metadata."""

    package: str
    version: str
    workers: tuple[int, ...] = ()

    def change(self, shape: Any, cluster: Cluster) -> tuple[Any, Cluster]:
        preload = (
            "from afflictions import use_old_version\ndef dask_setup(worker):\n"
            f"    if worker.name in {self.workers or tuple(range(99))}:\n"
            f"        use_old_version(worker, {self.package!r}, {self.version!r})\n"
        )
        config = {**cluster.config, "distributed.worker.preload": [preload]}
        return shape, replace(cluster, config=config)


def use_old_version(worker: Worker, name: str, version: str) -> None:
    """Let packages be found in a folder of the user first, where one of them is old."""
    folder = Path(worker.local_directory) / "user-site"
    metadata = folder / f"{name}-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    sys.path.insert(0, str(folder))
    importlib.import_module(name).__version__ = version
    versions._version_cached.cache_clear()


# -- the scheduler ---------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class SlowScheduler(Affliction):
    """The scheduler is blocked for some seconds.

    `at` is ``result`` (each finished task), ``transition``, ``event`` (each one of topic
    ``progress``), ``graph`` (each task that arrives), ``heartbeat``, ``client`` (functions that
    a client runs on it, every `pause` seconds), ``process`` (calls with the GIL),
    or ``adaptive`` (when it asks how many workers there may be).
    With `growth`, each time takes so many seconds longer than the one before.
    """

    seconds: float
    at: str = "result"
    pause: float = 0.3
    growth: float = 0.0

    def prepare(self, run: Run, client: Client) -> None:
        if self.at in ("result", "transition", "event", "graph"):
            client.register_plugin(SlowPlugin(self), name="slow log")
        elif self.at == "heartbeat":
            client.run_on_scheduler(archive_heartbeats, self.seconds)

    def during(self, run: Run, client: Client) -> Any:
        if self.at == "client":
            return repeated(
                self.pause, lambda: client.run_on_scheduler(time.sleep, self.seconds)
            )
        if self.at == "process":
            hold = ctypes.PyDLL(None).usleep
            return repeated(self.pause, lambda: hold(int(1e6 * self.seconds)))
        if self.at == "adaptive":
            number, Budget.seconds = len(run.cluster.workers), self.seconds
            run.cluster.adapt(Budget, minimum=number, maximum=number, interval="500ms")
        return nullcontext()


class SlowPlugin(SchedulerPlugin):
    """Write to a slow log in the scheduler's event loop."""

    def __init__(self, how: SlowScheduler) -> None:
        self.how, self.count = how, 0

    def write(self) -> None:
        time.sleep(self.how.seconds + self.how.growth * self.count)
        self.count += 1

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        ends = {"result": finish == "memory", "transition": True}
        arrives = start == "released" and finish == "waiting"
        if ends.get(self.how.at, self.how.at == "graph" and arrives):
            self.write()

    def log_event(self, topic: str, msg: Any) -> None:
        if self.how.at == "event" and topic == "progress":
            self.write()


def archive_heartbeats(seconds: float, dask_scheduler: Scheduler) -> None:
    """Write the metrics of each heartbeat to a database before it is handled."""
    handle = dask_scheduler.handlers["heartbeat_worker"]

    def archive_and_handle(*arguments: Any, **keywords: Any) -> Any:
        time.sleep(seconds)
        return handle(*arguments, **keywords)

    dask_scheduler.handlers["heartbeat_worker"] = archive_and_handle


class Budget(Adaptive):
    """Ask an accounting system for the number of workers, in the scheduler's event loop."""

    seconds = 0.0

    async def target(self) -> int:
        time.sleep(self.seconds)  # noqa: ASYNC251 - the illness
        return self.maximum
