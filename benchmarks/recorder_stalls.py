"""Measure how long single events block the scheduler's event loop: ``make benchmark-recorder``.

Each case happens on a real Scheduler with simulated workers, once without a recorder and once
with a recorder whose batches are pulled as by a client. A task that only yields measures the
longest pause of the event loop, in CPU time of its thread.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from time import thread_time, time
from typing import Any

from dask._expr import LLGExpr
from dask._task_spec import Task
from distributed import Scheduler
from distributed.core import Server
from distributed.protocol import Serialized, serialize

from roast_recorder.scheduler import worker_plugins
from roast_recorder.scheduler.plugin import Recorder, RecorderPlugin
from roast_recorder.scheduler.tap import Tap
from roast_recorder.settings import Settings
from simulated import CLIENT, finish_tasks, nothing, simulated_scheduler

Keys = list[Any]


@dataclass
class Pauses:
    """Pauses of the event loop, and sizes of what the recorder held."""

    longest_seconds: float = 0.0
    largest_batch: int = 0
    largest_buffer: int = 0


async def watch(pauses: Pauses) -> None:
    """Measure the longest pause of the event loop until the task is cancelled."""
    # In CPU time, because other programs may use the machine.
    before = thread_time()
    while True:
        await asyncio.sleep(0)
        now = thread_time()
        pauses.longest_seconds = max(pauses.longest_seconds, now - before)
        before = now


async def pull(recorder: Recorder, pauses: Pauses) -> None:
    """Pull all batches, as a client does."""
    received = 0
    while True:
        answer = await recorder.pull(received)
        if answer is None or answer["ending"]:
            return
        for number, content in answer["batches"]:
            received = number
            pauses.largest_batch = max(pauses.largest_batch, len(content))
        waiting = recorder._buffer._waiting_bytes
        pauses.largest_buffer = max(pauses.largest_buffer, waiting)
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def measured(
    scheduler: Scheduler, *, recorder: bool, attached: bool = True
) -> AsyncIterator[Pauses]:
    """Measure the pauses of a block; with `attached`, the recorder starts before it."""
    pauses, tasks = Pauses(), []
    plugin = RecorderPlugin("stalls", CLIENT, Settings().as_dict())
    if recorder and attached:
        await plugin.start(scheduler)
        tasks.append(asyncio.create_task(pull(plugin.recorder, pauses)))
        await asyncio.sleep(1)
    gc.collect()
    gc.disable()  # a collection can take longer than everything else
    watching = asyncio.create_task(watch(pauses))
    await asyncio.sleep(0)
    pauses.longest_seconds = 0.0
    try:
        if recorder and not attached:
            await plugin.start(scheduler)
            tasks.append(asyncio.create_task(pull(plugin.recorder, pauses)))
        yield pauses
        await asyncio.sleep(1.5)
        if recorder:
            await plugin.recorder.detach()
            await asyncio.wait(tasks, timeout=60)
    finally:
        watching.cancel()
        gc.enable()


def new_tasks(scheduler: Scheduler, keys: Keys, state: str = "released") -> None:
    """Add tasks to the scheduler's state, without submitting them."""
    for key in keys:
        scheduler.new_task(key, Task(key, nothing), state)


def text_keys(number: int) -> Keys:
    return [f"work-{index:032x}" for index in range(number)]


def tuple_keys(number: int) -> Keys:
    return [("work-0123456789abcdef0123456789abcdef", index, 0) for index in range(number)]


# -- cases -----------------------------------------------------------------------------------


async def desired_keys(scheduler: Scheduler, keys: Keys) -> None:
    """Let a client want many keys at once, as `client.map` does."""
    scheduler.client_desires_keys(keys, CLIENT)


async def some_desired_keys(scheduler: Scheduler, keys: Keys) -> None:
    """Let a client want many keys, of which it wants some already."""
    scheduler.client_desires_keys(keys[::2], CLIENT)
    await asyncio.sleep(1)
    scheduler.client_desires_keys(keys, CLIENT)


async def event(scheduler: Scheduler, payload: Any) -> None:
    scheduler.log_event("tcp://10.0.0.1:40000", payload)


async def submitted_graph(scheduler: Scheduler, keys: Keys) -> None:
    """Submit a graph of tasks with priorities and annotations."""
    graph = {key: Task(key, nothing) for key in keys}
    await scheduler.update_graph(
        client=CLIENT,
        expr_ser=Serialized(*serialize(LLGExpr(graph))),
        keys=set(keys),
        span_metadata={"collections": []},
        internal_priority={key: number for number, key in enumerate(keys)},
        submitting_task=None,
    )


async def erred_tasks(scheduler: Scheduler, keys: Keys) -> None:
    """Let tasks fail with texts of 10 MB."""
    text = "x" * 10_000_000
    await submitted_graph(scheduler, keys)
    for worker in list(scheduler.workers.values()):
        for task in list(worker.processing):
            scheduler.handle_task_erred(
                key=task.key, worker=worker.address, stimulus_id=f"task-erred-{time()}",
                run_id=task.run_id, exception=Serialized({}, []), traceback=None,
                exception_text=text, traceback_text=text, thread=1, startstops=(),
            )  # fmt: skip


async def large_keys(scheduler: Scheduler, keys: Keys) -> None:
    """Run and forget tasks whose keys have 100 kB."""
    await submitted_graph(scheduler, keys)
    finish_tasks(scheduler)
    scheduler.client_releases_keys(keys, CLIENT, f"client-releases-keys-{time()}")


async def wait_for_samples(_: Scheduler, __: Any) -> None:
    """Wait for two samples of all workers."""
    await asyncio.sleep(2.2)


async def flush_of_workers(scheduler: Scheduler, count: int) -> None:
    """Request the last measurements of many workers, which one process answers here."""
    async with Server({"run": _answer}) as server:
        await server.listen("tcp://0.0.0.0")
        port = server.address.rpartition(":")[2]
        addresses = [f"tcp://127.0.{n // 250}.{n % 250 + 1}:{port}" for n in range(count)]
        ignore = Tap(lambda *_: None)
        plugins = worker_plugins.WorkerPlugins(
            scheduler, "stalls", None, lambda _: None, ignore
        )
        plugins._scheduler = _Addresses(scheduler, addresses)  # type: ignore[assignment]
        if any(name.startswith("roast") for name in scheduler.plugins):
            await plugins.flush()


async def _answer(**_: Any) -> dict[str, str]:
    return {"status": "OK"}


class _Addresses:
    """A scheduler with other workers."""

    def __init__(self, scheduler: Scheduler, addresses: list[str]) -> None:
        self.workers = dict.fromkeys(addresses)
        self.connection_args = scheduler.connection_args


Case = tuple[str, Callable[[Scheduler, Any], Awaitable[None]], Any, dict[str, Any]]


def cases(number: int) -> Iterator[Case]:
    """Yield name, function, its argument, and how to prepare."""
    few = number // 10
    texts, tuples = text_keys(number), tuple_keys(number)
    yield f"{number:,} wanted keys", desired_keys, texts, {"tasks": texts}
    yield f"{number:,} wanted keys that are tuples", desired_keys, tuples, {"tasks": tuples}
    yield (
        f"{number:,} wanted keys, half of them already",
        some_desired_keys,
        texts,
        {"tasks": texts},
    )
    yield f"recording begins with {number:,} tasks", wait_for_samples, None, {
        "tasks": texts, "wanted": True, "attached": False,
    }  # fmt: skip
    for kind, keys in (("texts", texts[:few]), ("tuples", tuples[:few])):
        removal = {
            "action": "remove-worker", "processing-tasks": {*keys},
            "lost-computed-tasks": {*keys},
            "lost-scattered-tasks": set(), "expected": False, "stimulus_id": "x",
        }  # fmt: skip
        yield f"removal of a worker with {few:,} keys that are {kind}", event, removal, {}
        scatter = {"action": "scatter", "client": CLIENT, "count": few, "keys": keys}
        yield f"scatter event with {few:,} keys that are {kind}", event, scatter, {}
    nested = {"action": "user", "values": [{"n": n, "v": [1.5, None]} for n in range(few)]}
    yield f"user's event with {few:,} dicts", event, nested, {}
    yield f"user's event with a text of {few * 100:,} characters", event, "x" * few * 100, {}
    yield f"graph of {few:,} tasks", submitted_graph, texts[:few], {}
    yield f"graph of {few:,} tasks with tuple keys", submitted_graph, tuples[:few], {}
    yield "20 tasks that fail with 10 MB", erred_tasks, text_keys(20), {}
    yield "1,000 tasks with keys of 100 kB", large_keys, [
        f"{index:06d}" + "k" * 100_000 for index in range(1_000)
    ], {}  # fmt: skip
    yield "samples of 1,000 workers", wait_for_samples, None, {"workers": 1_000}
    yield "samples of 5,000 workers", wait_for_samples, None, {"workers": 5_000}
    yield "end with 1,000 workers", flush_of_workers, 1_000, {"workers": 1}


async def pauses_of(case: Case, *, recorder: bool) -> Pauses:
    """Return the pauses of one case."""
    _, function, argument, how = case
    workers = how.get("workers", 50)
    async with simulated_scheduler(workers) as scheduler:
        new_tasks(scheduler, how.get("tasks", []))
        if how.get("wanted"):
            scheduler.client_desires_keys(how["tasks"], CLIENT)
        attached = how.get("attached", True)
        async with measured(scheduler, recorder=recorder, attached=attached) as pauses:
            await function(scheduler, argument)
    return pauses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    print(
        "| event | scheduler alone (ms) | with the recorder (ms) | largest batch (MiB) | "
        "most in the buffer (MiB) |\n| --- | ---: | ---: | ---: | ---: |"
    )
    for case in cases(options.keys):
        if options.only not in case[0]:
            continue
        alone = asyncio.run(pauses_of(case, recorder=False))
        recorded = asyncio.run(pauses_of(case, recorder=True))
        print(
            f"| {case[0]} | {alone.longest_seconds * 1e3:.0f} | "
            f"{recorded.longest_seconds * 1e3:.0f} | {recorded.largest_batch / 2**20:.1f} | "
            f"{recorded.largest_buffer / 2**20:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
