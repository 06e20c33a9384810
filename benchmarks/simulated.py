"""A real Scheduler with real WorkerStates, but without worker processes and network.

Messages of workers are simulated by calling the scheduler's handlers, as the stream from a
worker does. The overhead of a recorder can thus be measured without the noise of processes
and sockets.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from time import time
from typing import Any

from dask._expr import LLGExpr
from dask._task_spec import Task
from distributed import Scheduler
from distributed.protocol import Serialized, serialize

CLIENT = "Client-simulated"


class SilentComm:
    """The comm of a simulated worker or client: discards all messages and sends none."""

    peer_address = "inproc://nobody"
    name = "silent"

    def __init__(self) -> None:
        self._closed = asyncio.Event()

    async def read(self) -> Any:
        # A stream that ends would remove the worker.
        await self._closed.wait()
        return [{"op": "close-stream"}]

    async def write(self, _message: Any, **_: Any) -> int:
        return 0

    def closed(self) -> bool:
        return self._closed.is_set()

    async def close(self) -> None:
        self._closed.set()

    def abort(self) -> None:
        self._closed.set()


def metrics(**others: Any) -> dict[str, Any]:
    """Return the content of a worker's heartbeat."""
    return {
        "task_counts": {"executing": 1, "ready": 3},
        "bandwidth": {"total": 1e8, "workers": {}, "types": {}},
        "digests_total_since_heartbeat": {("get-data", "network", "seconds"): 0.1},
        "managed_bytes": 1000,
        "spilled_bytes": {"memory": 0, "disk": 0},
        "transfer": {"incoming_bytes": 0, "incoming_count": 0, "incoming_count_total": 0,
                     "outgoing_bytes": 0, "outgoing_count": 0, "outgoing_count_total": 0},
        "event_loop_interval": 0.02,
        "cpu": 50.0,
        "memory": 200_000_000,
        "time": time(),
        "host_net_io": {"read_bps": 1.0, "write_bps": 1.0},
        "host_disk_io": {"read_bps": 1.0, "write_bps": 1.0},
        "num_fds": 30,
        **others,
    }  # fmt: skip


@asynccontextmanager
async def simulated_scheduler(workers: int) -> AsyncIterator[Scheduler]:
    """Start a scheduler with `workers` simulated workers of one thread each."""
    # Validation is slow, and meant for Dask's own tests.
    async with Scheduler(protocol="inproc", dashboard=False, validate=False) as scheduler:
        streams = [
            asyncio.create_task(_add_worker(scheduler, number)) for number in range(workers)
        ]
        streams.append(asyncio.create_task(scheduler.add_client(SilentComm(), CLIENT, {})))
        while len(scheduler.workers) < workers or CLIENT not in scheduler.clients:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        yield scheduler
        for stream in streams:
            stream.cancel()


async def _add_worker(scheduler: Scheduler, number: int) -> None:
    await scheduler.add_worker(
        SilentComm(),
        address=f"tcp://10.0.{number // 250}.{number % 250 + 1}:40000",
        status="running",
        server_id=f"Worker-{number}",
        nthreads=1,
        name=str(number),
        resolve_address=False,
        now=time(),
        resources={},
        memory_limit=4 * 2**30,
        metrics=metrics(),
        pid=1000 + number,
        services={},
        local_directory="/tmp",
        versions={},
        nanny="",
        extra={},
        stimulus_id=f"add-worker-{time()}",
    )


def nothing() -> None:
    """Do nothing; the function of the simulated tasks."""


async def run_tasks(scheduler: Scheduler, keys: list[str]) -> None:
    """Submit independent tasks, finish each of them, and forget them."""
    graph = {key: Task(key, nothing) for key in keys}
    await scheduler.update_graph(
        client=CLIENT,
        expr_ser=Serialized(*serialize(LLGExpr(graph))),
        keys=set(keys),
        span_metadata={"collections": []},
        # Otherwise the scheduler would order the graph in another thread.
        internal_priority={key: number for number, key in enumerate(keys)},
        submitting_task=None,
    )
    finish_tasks(scheduler)
    scheduler.client_releases_keys(keys, CLIENT, f"client-releases-keys-{time()}")


def finish_tasks(scheduler: Scheduler) -> None:
    """Report success for all processing tasks until none is left."""
    while processing := [
        (task, worker.address)
        for worker in scheduler.workers.values()
        for task in worker.processing
    ]:
        for task, worker in processing:
            now = time()
            scheduler.handle_task_finished(
                key=task.key,
                worker=worker,
                stimulus_id=f"task-finished-{now}",
                run_id=task.run_id,
                status="OK",
                nbytes=28,
                # A pickle of `int`.
                type=b"\x80\x05\x95\x14\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94\x8c\x03int\x94\x93\x94.",
                typename="int",
                metadata={},
                thread=140_263_267_907_264,
                startstops=({"action": "compute", "start": now - 0.01, "stop": now},),
            )


def fresh_keys(*, tuples: bool = False) -> Iterator[Any]:
    """Return an endless iterator of keys as long as Dask's.

    Tuples are keys as those of one collection, which share its name.
    """
    if tuples:
        return ((f"work-{0:032x}", *divmod(number, 100)) for number in itertools.count())
    return (f"work-{number:032x}" for number in itertools.count())
