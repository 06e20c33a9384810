"""Instruments that are independent of roast: in tasks, on the scheduler, and of processes."""

from __future__ import annotations

import functools
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from distributed.diagnostics.plugin import SchedulerPlugin

if TYPE_CHECKING:
    from distributed import Scheduler

#: Environment variable with the folder in which tasks write their measurements.
FOLDER = "ROAST_INSTRUMENTS"


def measured(function: Callable[..., Any]) -> Callable[..., Any]:
    """Write a line when a task begins, and one with its times when it ends."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        begin, cpu = time.perf_counter(), time.thread_time()
        _write({"task": function.__name__})
        try:
            return function(*arguments, **options)
        finally:
            _write(
                {
                    "task": function.__name__,
                    "seconds": time.perf_counter() - begin,
                    "cpu_seconds": time.thread_time() - cpu,
                }
            )

    return call


def _write(line: dict[str, Any]) -> None:
    # One file for each thread: lines of several would need a lock.
    path = Path(os.environ[FOLDER]) / f"{os.getpid()}-{threading.get_ident()}.jsonl"
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def read_tasks(folder: Path) -> dict[str, Any]:
    """Return what the tasks wrote: begun and ended calls, and their seconds."""
    lines = [json.loads(line) for path in folder.glob("*.jsonl") for line in path.open()]
    ended = [line for line in lines if "seconds" in line]
    return {
        "begun": len(lines) - len(ended),
        "ended": len(ended),
        "seconds": sum(line["seconds"] for line in ended),
        "cpu_seconds": sum(line["cpu_seconds"] for line in ended),
    }


class Moves(SchedulerPlugin):
    """Count what tasks and workers do while it is on."""

    name = "independent-moves"

    def start(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.is_on = False
        self.moves: Counter[str] = Counter()
        self.attempted: set[str] = set()
        self.failed: set[Any] = set()
        self.threads: dict[str, tuple[float, int]] = {}
        self.core_seconds = 0.0

    def switch(self, *, is_on: bool) -> None:
        now = time.time()
        if is_on:
            self.threads = {
                address: (now, state.nthreads)
                for address, state in self.scheduler.workers.items()
            }
        else:
            for address in list(self.threads):
                self._left(address, now)
        self.is_on = is_on

    def transition(
        self, key: Any, start: str, finish: str, *_: Any, stimulus_id: str = "", **__: Any
    ) -> None:
        if not self.is_on:
            return
        if finish == "processing":
            self.moves["attempts"] += 1
            self.attempted.add(str(key))
            if key in self.failed:
                self.failed.remove(key)
                self.moves["again after an error"] += 1
        elif start == "processing":
            how = "-".join(stimulus_id.split("-")[:2])
            self.moves[finish if finish in ("memory", "erred") else f"back by {how}"] += 1
            # An error also releases other tasks, which do not run again.
            if how == "task-erred" and finish != "erred":
                self.failed.add(key)

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        if self.is_on:
            self.moves["workers joined"] += 1
            self.threads[worker] = time.time(), scheduler.workers[worker].nthreads

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: Any) -> None:
        if self.is_on and worker in self.threads:
            self.moves["workers left"] += 1
            self._left(worker, time.time())

    def _left(self, worker: str, now: float) -> None:
        since, threads = self.threads.pop(worker)
        self.core_seconds += threads * (now - since)


def switch(dask_scheduler: Scheduler, is_on: bool) -> None:
    dask_scheduler.plugins[Moves.name].switch(is_on=is_on)


def facts(dask_scheduler: Scheduler) -> dict[str, Any]:
    plugin: Any = dask_scheduler.plugins[Moves.name]
    return {
        "moves": dict(plugin.moves),
        "attempted": len(plugin.attempted),
        "core_seconds": plugin.core_seconds,
        "workers": [state.address for state in dask_scheduler.workers.values()]
        + [str(state.name) for state in dask_scheduler.workers.values()],
        "processing": sum(len(w.processing) for w in dask_scheduler.workers.values()),
    }


class Memory(threading.Thread):
    """Sample the resident memory of the child processes of this one."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_bytes = 0
        self.is_done = threading.Event()

    def run(self) -> None:
        me = psutil.Process()
        while not self.is_done.wait(0.2):
            for child in me.children(recursive=True):
                try:
                    self.peak_bytes = max(self.peak_bytes, child.memory_info().rss)
                except psutil.Error:
                    continue
