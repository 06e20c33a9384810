"""Count the instructions of a scheduler per task: ``make benchmark-recorder``.

A Scheduler object without a network (``simulated.py``) is driven by the messages of a client
and of workers, without a plugin, with an empty one and with the recorder, whose rows are
encoded within the count. What clocks drive, the garbage collector and the randomization of
hashes are off: counts of valgrind's callgrind then hardly differ between runs, where times
differ by several percent. The time of the thread is measured in further processes, without
valgrind.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import logging
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import distributed.scheduler

from recorder_cost import Empty, Recorded
from simulated import fresh_keys, run_tasks, simulated_scheduler

if TYPE_CHECKING:
    from distributed import Scheduler

#: Tasks of each count, and before it.
TASKS = 500
WARM_UP_TASKS = 200

KEYS = ("text", "tuple")
PLUGINS = ("none", "empty", "recorder")

#: Switches off what clocks drive.
WITHOUT_CLOCKS = {
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.worker-ttl": None,
    "distributed.scheduler.work-stealing": False,
    "distributed.admin.system-monitor.interval": "1 day",
}


def measure(control: Callable[[str], Any]) -> list[float]:
    """Return the seconds of the thread for each case of :data:`KEYS` and :data:`PLUGINS`.

    `control` is called with options of callgrind_control before and after what is counted.
    """
    logging.disable(logging.CRITICAL)
    dask.config.set(WITHOUT_CLOCKS)
    gc.disable()  # a collection would be counted for one of the cases
    distributed.scheduler.offload = _called_here
    return [seconds for keys in KEYS for seconds in asyncio.run(_measure(keys, control))]


async def _called_here(function: Callable[..., Any], *arguments: Any, **others: Any) -> Any:
    """Call a function here instead of in a thread, whose switches depend on time."""
    return function(*arguments, **others)


async def _measure(kind: str, control: Callable[[str], Any]) -> list[float]:
    keys = fresh_keys(tuples=kind == "tuple")
    # The same scheduler, because two of them can differ by a percent.
    async with simulated_scheduler(workers=20) as scheduler:
        for callback in scheduler.periodic_callbacks.values():
            callback.stop()
        return [await _seconds(scheduler, keys, plugin, control) for plugin in PLUGINS]


async def _seconds(
    scheduler: Scheduler, keys: Iterator[Any], plugin: str, control: Callable[[str], Any]
) -> float:
    recorded = Recorded()
    if plugin == "empty":
        scheduler.add_plugin(Empty())
    elif plugin == "recorder":
        await recorded.attach(scheduler)

    async def run(tasks: int) -> None:
        await run_tasks(scheduler, list(itertools.islice(keys, tasks)))
        if plugin == "recorder":
            recorded.drain()

    await run(WARM_UP_TASKS)
    gc.collect()
    control("--instr=on")
    begun = time.thread_time()
    await run(TASKS)
    seconds = time.thread_time() - begun
    control("--dump")
    control("--instr=off")
    if plugin == "empty":
        scheduler.remove_plugin(Empty.name)
    elif plugin == "recorder":
        recorded.recorder._remove()
    return seconds


def instructions(valgrind: str) -> list[int]:
    """Return the instructions of each case, counted in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        _run(valgrind, "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}")
        parts = [Path(f"{out}.{part}") for part in range(1, len(KEYS) * len(PLUGINS) + 1)]
        found = [re.search(r"(?m)^totals: (\d+)", part.read_text()) for part in parts]
    return [int(total[1]) for total in found if total]


def _control(option: str) -> None:
    # Not subprocess: what it executes in this process would be counted.
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    command = ["callgrind_control", option, str(os.getpid())]
    process = os.posix_spawnp(command[0], command, os.environ, file_actions=quiet)
    os.waitpid(process, 0)


def _run(*command: str) -> str:
    # The same hashes and, without further variables, the same addresses in each run.
    kept = ("PATH", "HOME", "PYTHONPATH", "LD_LIBRARY_PATH")
    environ = {name: os.environ[name] for name in kept if name in os.environ}
    return subprocess.run(
        [*command, sys.executable, __file__, "--measure", "valgrind" if command else "alone"],
        env={**environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--measure", choices=("alone", "valgrind"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(_control if options.measure == "valgrind" else str)))
        return
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print("instructions per task: not counted, because valgrind is not installed")
        return
    counts = [instructions(valgrind) for _ in range(options.runs)]
    times = [json.loads(_run()) for _ in range(3 * options.runs)]
    print("\n| keys | plugin | instructions per task | spread | more | µs per task | spread |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    alone = 0.0
    for case, (keys, plugin) in enumerate(itertools.product(KEYS, PLUGINS)):
        counted_here = [run[case] / TASKS for run in counts]
        seconds = [run[case] * 1e6 / TASKS for run in times]
        median = statistics.median(counted_here)
        alone = median if plugin == "none" else alone
        print(
            f"| {keys} | {plugin} | {median:,.0f} | {_spread(counted_here):.2f} % | "
            f"{(median / alone - 1) * 100:.2f} % | {statistics.median(seconds):.1f} | "
            f"{_spread(seconds):.1f} % |"
        )


def _spread(values: list[float]) -> float:
    """Return the range of values, in percent of their median."""
    return (max(values) - min(values)) / statistics.median(values) * 100


if __name__ == "__main__":
    main()
