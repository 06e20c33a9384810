"""Measure the overhead of recording on the scheduler: ``make benchmark-recorder``.

It prints two tables.

**A transition**: Scheduler objects without a network (``simulated.py``) compute small graphs,
alternately without a plugin and with one: an empty plugin, a plugin that appends its arguments
to a list, or the recorder with its listeners, hooks, task records and encoding in the
scheduler's process. Numbers are medians of paired differences.

**A run**: processes compute no-op tasks, with the scheduler in a separate process. Runs with
and without each recorder alternate, and the CPU time of the scheduler is compared. Starting
and stopping a recorder is timed separately, since it happens once.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import itertools
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from distributed import Client, Scheduler, SchedulerPlugin, performance_report

import roast_recorder
from roast_recorder.probes.samples import OnScheduler as Samples
from roast_recorder.scheduler.plugin import Recorder, RecorderPlugin
from roast_recorder.settings import Settings
from simulated import CLIENT, fresh_keys, metrics, run_tasks, simulated_scheduler

#: Intervals of what is measured by itself.
RARELY: dict[str, Any] = {"sample_interval_seconds": 86_400, "host_interval_seconds": 86_400}

#: Pairs of schedulers for each plugin.
SCHEDULERS = 5

# -- a transition ----------------------------------------------------------------------------


class Empty(SchedulerPlugin):
    """A plugin that does nothing: the cost of the call."""

    name = "an empty plugin"

    def transition(self, *_: Any, **__: Any) -> None:
        pass

    def drain(self) -> None:
        pass


class BareAppend(SchedulerPlugin):
    """A plugin that only appends the arguments of each transition to a list."""

    name = "a bare append"

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def transition(
        self, key: Any, start: str, finish: str, *_: Any, stimulus_id: str, **kwargs: Any
    ) -> None:
        self.rows.append((time.time(), key, start, finish, stimulus_id, kwargs))

    def drain(self) -> None:
        self.rows.clear()


class Counting(SchedulerPlugin):
    name = "counting"
    transitions = 0

    def transition(self, *_: Any, **__: Any) -> None:
        self.transitions += 1


class Recorded:
    """A scheduler's recorder with default settings, whose buffer is emptied by hand."""

    recorder: Recorder

    async def attach(self, scheduler: Scheduler) -> None:
        # What clocks drive would be measured at random.
        plugin = RecorderPlugin("benchmark", None, Settings(**RARELY).as_dict())
        await plugin.start(scheduler)
        self.recorder = plugin.recorder
        await asyncio.wait(self.recorder._running)

    def sample(self) -> None:
        """Sample all workers."""
        [samples] = [probe for _, probe in self.recorder._probes if isinstance(probe, Samples)]
        samples.finish()

    def finish(self) -> None:
        """Make and encode all rows, also those of later pulls."""
        while not self.recorder._buffer.empty:
            self.drain()

    def drain(self) -> None:
        for append in self.recorder._before_pull:
            append()
        buffer = self.recorder._buffer
        while batches := buffer.pull(buffer._last_number):
            del batches


def cost_of_a_transition(
    rounds: int, tasks: int, *, tuples: bool = False
) -> list[tuple[str, float, float]]:
    """Return the name of each plugin, and its time per transition and per task (µs)."""
    # Two schedulers without plugins can differ by 0.3 µs per transition, so several are made.
    measured = [
        asyncio.run(_extra_seconds(max(1, rounds // SCHEDULERS), tasks, tuples=tuples))
        for _ in range(SCHEDULERS)
    ]
    per_task = measured[0][1] / tasks
    rows = []
    for name in measured[0][0]:
        seconds = [value for extra, _ in measured for value in extra[name]]
        per = 1e6 * statistics.median(seconds) / tasks
        rows.append((name, per / per_task, per))
    return rows


async def _extra_seconds(
    rounds: int, tasks: int, *, tuples: bool
) -> tuple[dict[str, list[float]], int]:
    """Return the additional time of each graph by plugin, and the transitions of a graph."""
    recorder = Recorded()
    names: dict[str, Any] = {
        "an empty plugin": Empty(),
        "a bare append": BareAppend(),
        "the recorder": recorder,
    }
    async with contextlib.AsyncExitStack() as stack:
        # Each plugin has its own scheduler, and a second one without plugins that does the same
        # work: the recorder's listeners would slow down a shared scheduler.
        pairs = {}
        for name in names:
            pairs[name] = [
                await stack.enter_async_context(simulated_scheduler(workers=20))
                for _ in range(2)
            ]
        keys = fresh_keys(tuples=tuples)
        with_recorder = pairs["the recorder"][1]
        with_recorder.add_plugin(counting := Counting())
        await run_tasks(with_recorder, list(itertools.islice(keys, tasks)))
        with_recorder.remove_plugin(counting.name)
        await recorder.attach(with_recorder)
        for name, plugin in names.items():
            if plugin is not recorder:
                pairs[name][1].add_plugin(plugin)

        alone = "the scheduler alone"
        extra: dict[str, list[float]] = {name: [] for name in (alone, *names)}
        for turn in range(rounds):
            for name, plugin in names.items():
                without, with_plugin = pairs[name]
                # Alternate the order, so that a change of the machine's speed favors neither.
                turns = [(without, None), (with_plugin, plugin)]
                seconds = {
                    used: await _timed_graph(scheduler, used, keys, tasks)
                    for scheduler, used in (turns if turn % 2 else reversed(turns))
                }
                extra[name].append(seconds[plugin] - seconds[None])
                extra[alone].append(seconds[None])
        recorder.recorder._remove()
    return extra, counting.transitions


async def _timed_graph(
    scheduler: Scheduler, plugin: Any, keys: Iterator[str], tasks: int
) -> float:
    graph = list(itertools.islice(keys, tasks))
    # Collect the garbage of the previous turn before this one is timed.
    gc.collect(0)
    begun = time.thread_time()
    await run_tasks(scheduler, graph)
    if plugin is not None:
        plugin.drain()
    return time.thread_time() - begun


async def cost_of_a_tick(workers: int) -> dict[str, float]:
    """Return the time per worker of a sample, and the overhead of a heartbeat (µs)."""
    async with simulated_scheduler(workers) as scheduler:
        addresses = list(scheduler.workers)

        def beat() -> None:
            reported = metrics()
            spans = {
                ("execute", "span", "work", name, "seconds"): 0.1
                for name in ("thread-cpu", "thread-noncpu", "executor", "other")
            }
            for address in addresses:
                scheduler.handlers["heartbeat_worker"](
                    address=address, metrics=reported, extensions=_Absorbed(spans=spans)
                )

        alone = _median_seconds(beat)
        recorder = Recorded()
        await recorder.attach(scheduler)

        def sample() -> None:
            recorder.sample()
            recorder.drain()

        def beat_and_drain() -> None:
            beat()
            recorder.drain()

        costs = {
            "a sample of a worker": _median_seconds(sample) / workers * 1e6,
            "a heartbeat without the recorder": alone / workers * 1e6,
            "additional time with the recorder": (_median_seconds(beat_and_drain) - alone)
            / workers
            * 1e6,
        }
        recorder.recorder._remove()
    return costs


async def cost_of_wanted_keys(tuples: bool) -> dict[str, float]:
    """Return the additional time of a key, from desired to released, by how many at once (µs).

    Rows are made and encoded, as by the next pulls.
    """
    number = 20_000
    costs = {}
    for at_once in (1, 100, number):
        extra = []
        async with simulated_scheduler(workers=1) as scheduler:
            keys = list(itertools.islice(fresh_keys(tuples=tuples), number))
            for key in keys:
                scheduler.new_task(key, None, "released")
            # Otherwise the scheduler would forget them.
            scheduler.client_desires_keys(keys, "another client")
            parts = [keys[first : first + at_once] for first in range(0, number, at_once)]

            change = partial(_change_wanted_keys, scheduler, parts)
            change()
            for _ in range(7):
                alone = _seconds(change)
                recorder = Recorded()
                await recorder.attach(scheduler)
                recorder.finish()
                extra.append(_seconds(change) + _seconds(recorder.finish) - alone)
                recorder.recorder._remove()
        costs[f"{at_once:,} at once"] = statistics.median(extra) / number * 1e6
    return costs


def _change_wanted_keys(scheduler: Scheduler, parts: list[list[Any]]) -> None:
    for part in parts:
        scheduler.client_desires_keys(part, CLIENT)
    for part in parts:
        scheduler.client_releases_keys(part, CLIENT, "release")


async def cost_of_a_pull() -> float:
    """Return the time of a pull that finds nothing (µs)."""
    async with simulated_scheduler(workers=1) as scheduler:
        recorder = Recorded()
        await recorder.attach(scheduler)
        recorder.finish()
        own = recorder.recorder
        own._woken.set()
        own._closing = True  # so that the next pull does not wait
        own.on_all_left = lambda: None
        seconds = []
        for _ in range(2_000):
            begun = time.thread_time()
            await own.pull(own._buffer._last_number)
            seconds.append(time.thread_time() - begun)
        own._closing = False
        own._remove()
    return statistics.median(seconds) * 1e6


class _Absorbed(dict[str, Any]):
    """Extension data that only the recorder processes: the scheduler iterates over no items."""

    def items(self) -> Any:
        return ()


def _median_seconds(function: Callable[[], None]) -> float:
    return statistics.median(_seconds(function) for _ in range(15))


def _seconds(function: Callable[[], Any]) -> float:
    begun = time.thread_time()
    function()
    return time.thread_time() - begun


# -- a run -----------------------------------------------------------------------------------


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[tuple[Client, psutil.Process]]:
    """Start a scheduler and workers in separate processes."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        file = Path(folder) / "scheduler.json"
        scheduler = _start(
            stack, "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file
        )
        for _ in range(workers):
            _start(stack, "worker", "--scheduler-file", file, "--nthreads", "1")
        until = time.monotonic() + 30
        while not file.exists() and time.monotonic() < until:
            time.sleep(0.1)
        with Client(scheduler_file=str(file)) as client:
            client.wait_for_workers(workers, timeout=60)
            yield client, psutil.Process(scheduler.pid)


def _start(stack: contextlib.ExitStack, *arguments: Any) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *map(str, arguments), "--no-dashboard"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # Callbacks run in reverse order.
    stack.callback(process.wait, 10)
    stack.callback(process.terminate)
    return process


@contextlib.contextmanager
def nothing(_: Client, __: Path) -> Iterator[None]:
    yield


@contextlib.contextmanager
def roast(client: Client, folder: Path) -> Iterator[None]:
    with roast_recorder.record(client, folder / "trace.jsonl.zst"):
        yield


@contextlib.contextmanager
def dask_report(_: Client, folder: Path) -> Iterator[None]:
    with performance_report(filename=str(folder / "report.html")):
        yield


@contextlib.contextmanager
def polling(client: Client, _: Path) -> Iterator[None]:
    """Request the workers' metrics from the scheduler every second, as roastcoffea does."""

    def look(dask_scheduler: Scheduler) -> dict[str, Any]:
        return {
            address: (dict(worker.metrics), worker.nthreads, len(worker.processing))
            for address, worker in dask_scheduler.workers.items()
        }

    ended = threading.Event()
    seen = []

    def poll() -> None:
        while not ended.wait(1.0):
            seen.append(client.run_on_scheduler(look))

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


RECORDERS = {"roast": roast, "performance_report": dask_report, "polling each second": polling}


def cost_of_a_run(
    names: list[str], pairs: int, tasks: int, workers: int
) -> list[dict[str, Any]]:
    """Return the paired differences of each recorder."""
    rows = []
    with cluster(workers) as (client, scheduler), tempfile.TemporaryDirectory() as folder:
        _timed_run(client, scheduler, nothing, Path(folder), tasks)
        for name in names:
            recorder = RECORDERS[name]
            shares, per_task, once, without = [], [], [], []
            for turn in range(pairs):
                order = [nothing, recorder] if turn % 2 else [recorder, nothing]
                run = {
                    used: _timed_run(client, scheduler, used, Path(folder), tasks)
                    for used in order
                }
                alone, around = run[nothing][0], run[recorder]
                shares.append((around[0] - alone) / alone * 100)
                per_task.append((around[0] - alone) / tasks * 1e6)
                once.append(around[1] - run[nothing][1])
                without.append(alone)
                _say(f"{name} {turn + 1}/{pairs}: {shares[-1]:+.1f} %")
            rows.append(
                {
                    "recorder": name,
                    "pairs": pairs,
                    "extra_percent": statistics.median(shares),
                    "quartiles_percent": statistics.quantiles(shares, n=4)[::2],
                    "extra_us_a_task": statistics.median(per_task),
                    "once_milliseconds": statistics.median(once) * 1e3,
                    "scheduler_us_a_task": statistics.median(without) / tasks * 1e6,
                }
            )
    return rows


def _timed_run(
    client: Client, scheduler: psutil.Process, recorder: Any, folder: Path, tasks: int
) -> tuple[float, float]:
    """Return the scheduler's CPU seconds during the tasks, and before and after them."""
    begun = _cpu_seconds(scheduler)
    with recorder(client, folder):
        # Attaching is timed separately, because it happens once per run.
        time.sleep(0.2)
        before = _cpu_seconds(scheduler)
        # Not pure, because Dask would return the results of the previous run.
        futures = client.map(lambda number: number, range(tasks), pure=False)
        client.gather(futures)
        del futures
        time.sleep(1.0)  # include late flushes and forgotten tasks
        during = _cpu_seconds(scheduler) - before
    return during, _cpu_seconds(scheduler) - begun - during


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _say(text: str) -> None:
    print(text, file=sys.stderr)


# -- tables ----------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="rounds of the first table")
    parser.add_argument(
        "--pairs", type=int, default=16, help="pairs of runs of the second table"
    )
    parser.add_argument("--tasks", type=int, default=5_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--recorders", nargs="+", choices=RECORDERS, default=list(RECORDERS), metavar="NAME"
    )
    parser.add_argument("--json", type=Path, help="write the numbers to this file, too")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)

    transitions = cost_of_a_transition(options.rounds, 250)
    print(
        "| plugin of the scheduler | time per transition (µs) | time per task (µs) |\n"
        "| --- | ---: | ---: |"
    )
    for name, a_transition, a_task in transitions:
        print(f"| {name} | {a_transition:.2f} | {a_task:.1f} |")
    tuples = cost_of_a_transition(options.rounds, 250, tuples=True)
    print(
        "\n| keys that are tuples: time per task (µs) | text | tuple |\n| --- | ---: | ---: |"
    )
    for (name, _, a_task), (_, _, with_tuples) in zip(transitions, tuples, strict=True):
        print(f"| {name} | {a_task:.1f} | {with_tuples:.1f} |")
    ticks = {workers: asyncio.run(cost_of_a_tick(workers)) for workers in (10, 1_000)}
    print("\n| time per worker (µs) | 10 workers | 1,000 workers |\n| --- | ---: | ---: |")
    for name in ticks[10]:
        print(f"| {name} | {ticks[10][name]:.1f} | {ticks[1_000][name]:.1f} |")
    wanted = {
        kind: asyncio.run(cost_of_wanted_keys(kind == "tuple")) for kind in ("text", "tuple")
    }
    print("\n| time per wanted key (µs) | text | tuple |\n| --- | ---: | ---: |")
    for name in wanted["text"]:
        print(f"| {name} | {wanted['text'][name]:.1f} | {wanted['tuple'][name]:.1f} |")
    print(f"\nA pull that finds nothing: {asyncio.run(cost_of_a_pull()):.0f} µs")
    runs = cost_of_a_run(options.recorders, options.pairs, options.tasks, options.workers)
    print(
        "\n| recorder | pairs | extra scheduler CPU | quartiles | µs a task | once |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    for row in runs:
        low, high = row["quartiles_percent"]
        print(
            f"| {row['recorder']} | {row['pairs']} | {row['extra_percent']:+.1f} % | "
            f"{low:+.1f} to {high:+.1f} % | {row['extra_us_a_task']:+.1f} | "
            f"{row['once_milliseconds']:.0f} ms |"
        )
    if options.json:
        options.json.write_text(
            json.dumps({"transitions": transitions, "ticks": ticks, "runs": runs})
        )


if __name__ == "__main__":
    main()
