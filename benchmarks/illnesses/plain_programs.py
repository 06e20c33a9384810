"""Illnesses of plain Dask programs.

Tasks sleep unless the illness concerns CPU time, so that other load on the machine does not
change a run.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import threading
import time
from pathlib import Path

import dask
import numpy as np
from dask.utils import SerializableLock
from distributed import Client, Worker, WorkerPlugin, wait
from distributed.diagnostics.plugin import SchedulerPlugin
from illness import Run, cause, illness

MEGABYTE = 10**6

#: Environment variable of a worker: the factor by which it is slower than others.
SLOWNESS = "ILLNESS_SLOWNESS"


def set_slowness(client: Client, factor: float, workers: list[str]) -> None:
    def set_variable() -> None:
        os.environ[SLOWNESS] = str(factor)

    client.run(set_variable, workers=workers)


def nap(number: float, seconds: float = 0.25) -> float:
    time.sleep(seconds * float(os.environ.get(SLOWNESS, "1")))
    return number


# -- workers and hosts -----------------------------------------------------------------------


@illness(cause("slow-worker", "3"))
def slow_worker(run: Run) -> None:
    """200 tasks of 0.25 s on 4 workers; on worker 3 they take three times as long."""

    def prepare(client: Client) -> None:
        set_slowness(client, 3.0 if run.ill else 1.0, [run.address(3)])

    with run.recorded(prepare=prepare) as client:
        client.gather(client.map(nap, range(200)))


@illness(cause("slow-host", "127.0.0.2"))
def slow_host(run: Run) -> None:
    """Tasks on two hosts with two workers each; those of 127.0.0.2 take twice as long."""

    def prepare(client: Client) -> None:
        set_slowness(client, 2.0 if run.ill else 1.0, [run.address(2), run.address(3)])

    hosts = ("127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2")
    with run.recorded(hosts=hosts, prepare=prepare) as client:
        client.gather(client.map(nap, range(160)))


@illness(cause("late-workers"))
def late_workers(run: Run) -> None:
    """160 tasks of 0.25 s; three of four workers join after 6 s."""
    with run.recorded(workers=1 if run.ill else 4) as client:
        timer = threading.Timer(6.0, run.cluster.scale, [4])
        timer.start()
        client.gather(client.map(nap, range(160)))
        timer.join()


@illness(cause("late-workers"))
def early_leavers(run: Run) -> None:
    """160 tasks of 0.25 s; two of four workers are retired after 3 s."""
    with run.recorded() as client:
        leaving = [run.address(number) for number in (2, 3)]
        timer = threading.Timer(3.0, client.retire_workers, [leaving])
        if run.ill:
            timer.start()
        client.gather(client.map(nap, range(160)))


@illness(cause("excess-workers low-parallelism"), saves="core")
def excess_workers(run: Run) -> None:
    """Steps of two tasks of 0.5 s, each after the one before, on 8 workers instead of 2."""
    with run.recorded(workers=8 if run.ill else 2) as client:
        pair = [client.submit(nap, number, 0.5) for number in range(2)]
        for _ in range(20):
            pair = [client.submit(step, pair, number) for number in range(2)]
        client.gather(pair)


def step(values: list, number: int, seconds: float = 0.5) -> float:
    time.sleep(seconds)
    return number


@illness(cause("silent-worker", "2"))
def silent_worker(run: Run) -> None:
    """160 tasks of 0.25 s; the process of worker 2 is stopped (SIGSTOP) from 4 s to 16 s."""
    with run.recorded() as client:
        pid = run.pid(2)
        stop = threading.Timer(4.0, os.kill, [pid, signal.SIGSTOP])
        go_on = threading.Timer(16.0, os.kill, [pid, signal.SIGCONT])
        if run.ill:
            stop.start()
            go_on.start()
        client.gather(client.map(nap, range(160)))


class BlockingPlugin(WorkerPlugin):
    """Block the worker's event loop repeatedly, as a synchronous request in it does."""

    async def setup(self, worker) -> None:
        self._task = asyncio.create_task(self._block())

    async def _block(self) -> None:
        while True:
            time.sleep(0.8)  # noqa: ASYNC251 - the illness
            await asyncio.sleep(0.3)

    async def teardown(self, worker) -> None:
        self._task.cancel()


@illness(cause("blocked-event-loop"))
def blocked_event_loop(run: Run) -> None:
    """160 tasks of 0.15 s; the event loop of every worker is blocked for 0.8 of 1.1 s."""

    def prepare(client: Client) -> None:
        if run.ill:
            client.register_plugin(BlockingPlugin())

    with run.recorded(prepare=prepare) as client:
        client.gather(client.map(functools.partial(nap, seconds=0.15), range(160)))


@illness(cause("blocked-event-loop", "1"))
def blocked_event_loop_of_one(run: Run) -> None:
    """Three steps of 60 tasks of 0.15 s; a coroutine on worker 1 blocks its event loop."""

    async def block(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(1.5)  # noqa: ASYNC251 - the illness
            await asyncio.sleep(0.1)

    with run.recorded() as client:
        if run.ill:
            client.run(block, 12.0, workers=[run.address(1)], wait=False)
        for number in range(3):
            client.gather(
                client.map(
                    functools.partial(nap, seconds=0.15), range(60 * number, 60 * number + 60)
                )
            )


# -- memory ----------------------------------------------------------------------------------


def produce(number: int, nbytes: int, seconds: float = 0.2) -> np.ndarray:
    time.sleep(seconds)
    return np.full(nbytes, number % 100, dtype="u1")


def consume(*parts: np.ndarray, seconds: float = 0.2) -> int:
    time.sleep(seconds)
    return sum(len(part) for part in parts)


#: Bytes per second of the disk to which workers spill.
DISK_SPEED = 60 * MEGABYTE


class Table:
    """Data on a slow disk when it is spilled, as on nodes with a network file system."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __sizeof__(self) -> int:
        return self.values.nbytes

    def __getstate__(self) -> np.ndarray:
        time.sleep(self.values.nbytes / DISK_SPEED)
        return self.values

    def __setstate__(self, values: np.ndarray) -> None:
        time.sleep(values.nbytes / DISK_SPEED)
        self.values = values


def produce_table(number: int, nbytes: int) -> Table:
    return Table(produce(number, nbytes))


def consume_table(table: Table) -> int:
    return consume(table.values)


@illness(cause("spilling"))
def spilling(run: Run) -> None:
    """Two passes over 80 tables of 12 MB, of which a part does not fit into memory."""
    config = {
        "distributed.worker.memory.target": 0.3,
        "distributed.worker.memory.spill": 0.7,
        "distributed.worker.memory.pause": 0.9,
    }
    with run.recorded(memory="500MB" if run.ill else "4GB", config=config) as client:
        tables = client.map(produce_table, range(80), nbytes=12 * MEGABYTE)
        wait(tables)
        client.gather(client.map(consume_table, tables))


@illness(cause("paused-workers", "1"))
def paused_workers(run: Run) -> None:
    """160 tasks of 0.25 s; 800 MB in the memory of worker 1 pause it for the whole run."""
    config = {
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
    }
    with run.recorded(memory="1GB" if run.ill else "4GB", config=config) as client:
        table = client.submit(produce, 0, 800 * MEGABYTE, workers=[run.address(1)])
        wait(table)
        client.gather(client.map(nap, range(160)))
        del table


CACHE: list[np.ndarray] = []


def remember(number: int, nbytes: int) -> int:
    """Compute, and add to a cache that is never emptied."""
    if nbytes:
        CACHE.append(np.ones(nbytes, dtype="u1"))
    return nap(number, 0.2)


@illness(cause("unmanaged-memory killed-workers paused-workers"))
def unmanaged_memory(run: Run) -> None:
    """180 tasks of 0.2 s that cache 28 MB each in a global: at 1 GB, workers are killed."""
    # Pausing is disabled; otherwise all workers would pause forever.
    config = {
        "distributed.worker.memory.pause": False,
        "distributed.scheduler.allowed-failures": 20,
    }
    with run.recorded(memory="1GB", config=config) as client:
        nbytes = 28 * MEGABYTE if run.ill else 0
        # If all results were wanted at once, each death could lose more than was computed since
        # the last one, and the run would not end.
        for first in range(0, 180, 60):
            numbers = range(first, first + 60)
            client.gather(client.map(remember, numbers, nbytes=nbytes))


@illness(cause("unmanaged-memory paused-workers", "2"))
def unmanaged_memory_of_one(run: Run) -> None:
    """160 tasks of 0.25 s; a library on worker 2 leaks until the worker is paused at 80 %."""

    def leak(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            CACHE.append(np.ones(20 * MEGABYTE, dtype="u1"))
            time.sleep(0.05)
            if len(CACHE) > 40:
                return

    def start_leak() -> None:
        threading.Thread(target=leak, args=[30.0], daemon=True).start()

    with run.recorded(memory="1GB") as client:
        if run.ill:
            client.run(start_leak, workers=[run.address(2)])
        client.gather(client.map(nap, range(160)))


def spike(number: int, spikes: bool, folder: str) -> np.ndarray:
    """Take too much memory at the first attempt, after most of the work is done."""
    time.sleep(0.4)
    if spikes and is_first(folder, number):
        buffer = np.ones(1_500 * MEGABYTE, dtype="u1")
        time.sleep(5)
        del buffer
    return np.full(MEGABYTE, number % 100, dtype="u1")


def is_first(folder: str, name: int | str) -> bool:
    """Claim a name in a folder; return False if any process has claimed it before."""
    try:
        Path(folder, str(name)).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@illness(cause("killed-workers"))
def killed_workers(run: Run) -> None:
    """100 tasks of 0.4 s whose results stay; two of them exceed the memory limit once."""
    with run.recorded(memory="1GB") as client:
        attempts = Path.cwd() / "attempts"
        attempts.mkdir()
        heavy = {45, 70}
        spikes = [run.ill and number in heavy for number in range(100)]
        parts = client.map(spike, range(100), spikes, folder=str(attempts))
        client.submit(consume_all, parts).result()


def consume_all(parts: list[np.ndarray]) -> int:
    return consume(*parts)


# -- failures --------------------------------------------------------------------------------


def unreliable(number: int, folder: str, fails: bool) -> int:
    """Fail at the first two attempts, at the end of the work."""
    time.sleep(0.3)
    if fails and (is_first(folder, number) or is_first(folder, -number)):
        raise ConnectionResetError(f"connection lost while reading part {number}")
    return number


@illness(cause("retries", "ConnectionResetError"))
def retries(run: Run) -> None:
    """120 tasks of 0.3 s; each third one fails twice with a ConnectionResetError."""
    with run.recorded() as client:
        attempts = Path.cwd() / "attempts"
        attempts.mkdir()
        client.gather(
            [
                client.submit(
                    unreliable, number, str(attempts), run.ill and number % 3 == 1, retries=5
                )
                for number in range(120)
            ]
        )


# -- graphs and scheduling -------------------------------------------------------------------


@illness(cause("long-tail", "fit"))
def long_tail(run: Run) -> None:
    """160 fits of 0.2 s and one of 8 s, which is submitted last instead of first."""
    seconds = [0.2] * 160 + [8.0]
    with run.recorded() as client:
        order = seconds if run.ill else seconds[::-1]
        client.gather(client.map(fit, range(len(order)), order))


def fit(number: int, seconds: float) -> int:
    time.sleep(seconds)
    return number


def tiny(numbers: range) -> int:
    time.sleep(0.004 * len(numbers))
    return len(numbers)


@illness(cause("short-tasks scheduler-saturated", "tiny"))
def short_tasks(run: Run) -> None:
    """3,000 rows of 4 ms each, a task for each row instead of one for 50."""
    rows = 1 if run.ill else 50
    with run.recorded() as client:
        parts = [range(first, first + rows) for first in range(0, 3_000, rows)]
        client.submit(sum, client.map(tiny, parts)).result()


class SlowPlugin(SchedulerPlugin):
    """Write to a slow log for every finished task, in the scheduler's event loop."""

    def transition(self, key, start, finish, *args, **kwargs) -> None:
        if finish == "memory":
            time.sleep(0.03)


@illness(cause("scheduler-saturated"))
def scheduler_saturated(run: Run) -> None:
    """500 tasks of 0.05 s; a plugin blocks the scheduler for 30 ms at the end of each."""

    def prepare(client: Client) -> None:
        if run.ill:
            client.register_plugin(SlowPlugin(), name="slow log")

    with run.recorded(prepare=prepare) as client:
        client.gather(client.map(functools.partial(nap, seconds=0.05), range(500)))


def look_up(number: int, table: np.ndarray) -> int:
    time.sleep(0.25)
    return int(table[number])


@illness(cause("large-graph"))
def large_graph(run: Run) -> None:
    """Five graphs of 12 tasks, each task with a table of 12 MB of its own in the graph."""
    table = np.random.default_rng(0).integers(0, 200, 12 * MEGABYTE, dtype="u1")
    with run.recorded() as client:
        delayed = dask.delayed(look_up)
        shared = client.scatter(table, broadcast=True)
        for _ in range(5):
            if run.ill:
                tasks = [delayed(number, table + number) for number in range(12)]
                dask.compute(*tasks)
            else:
                client.gather(client.map(look_up, range(12), table=shared, pure=False))


def limit_network(bytes_per_second: float, dask_worker: Worker) -> None:
    """Slow down the network of this worker: delay its answers to other workers."""
    get_data = dask_worker.handlers["get_data"]

    async def slow_get_data(comm, keys, **keywords):
        nbytes = sum(
            dask_worker.state.tasks[key].nbytes or 0
            for key in keys
            if key in dask_worker.state.tasks
        )
        await asyncio.sleep(nbytes / bytes_per_second)
        return await get_data(comm, keys=keys, **keywords)

    dask_worker.handlers["get_data"] = slow_get_data


@illness(cause("transfers", "combine"))
def transfers(run: Run) -> None:
    """Four rounds of combining blocks of 8 MB from all workers over a network of 20 MB/s."""

    def prepare(client: Client) -> None:
        client.run(limit_network, 20 * MEGABYTE if run.ill else 2_000 * MEGABYTE)

    with run.recorded(prepare=prepare) as client:
        addresses = [run.address(number) for number in range(4)]
        for turn in range(4):
            blocks = [
                client.submit(produce, 100 * turn + number, 8 * MEGABYTE, workers=address)
                for number, address in enumerate(addresses * 3)
            ]
            wait(blocks)
            client.gather(
                [
                    client.submit(
                        combine, blocks[number : number + 4], turn, number, workers=address
                    )
                    for number, address in zip(range(8), addresses * 2, strict=True)
                ]
            )


def combine(blocks: list[np.ndarray], turn: int, number: int) -> int:
    return consume(*blocks, seconds=0.3)


@illness(cause("client-gaps"))
def client_gaps(run: Run) -> None:
    """Six graphs of 24 tasks; the client draws figures for 1.5 s between them."""
    with run.recorded() as client:
        for turn in range(6):
            client.gather(client.map(nap, range(100 * turn, 100 * turn + 24)))
            if run.ill and turn < 5:
                time.sleep(1.5)


def merge(parts: list, seconds: float = 0.12) -> int:
    time.sleep(seconds * len(parts))
    return len(parts)


@illness(cause("low-parallelism", "merge"))
def one_merge(run: Run) -> None:
    """64 tasks of 0.25 s and a merge of all at 0.12 s each, instead of a tree of merges."""
    fan_in = 64 if run.ill else 4
    with run.recorded() as client:
        parts = client.map(nap, range(64))
        while len(parts) > 1:
            groups = [parts[first : first + fan_in] for first in range(0, len(parts), fan_in)]
            parts = client.map(merge, groups)
        parts[0].result()


def advance(before: float, number: int) -> int:
    time.sleep(0.4)
    return number


@illness(cause("low-parallelism", "advance"))
def serial_chain(run: Run) -> None:
    """40 tasks of 0.25 s and a chain of 25 steps of 0.4 s that could be independent."""
    with run.recorded() as client:
        first = client.map(nap, range(40))
        last: object = 0
        steps = []
        for number in range(25):
            last = client.submit(advance, last if run.ill else 0, number)
            steps.append(last)
        client.gather(first + steps)


# -- CPU: these need a quiet machine ---------------------------------------------------------


def count_primes(first: int, last: int) -> int:
    """Count primes in pure Python, which holds the GIL."""
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(first, last))


@illness(cause("gil"))
def gil(run: Run) -> None:
    """Pure Python in two threads of one worker instead of in two workers."""
    workers, threads = (1, 2) if run.ill else (2, 1)
    with run.recorded(workers=workers, threads=threads) as client:
        starts = [10**6 + 4_000 * number for number in range(150)]
        client.gather(client.map(count_primes, starts, [start + 4_000 for start in starts]))


@illness(cause("gil"))
def gil_many_threads(run: Run) -> None:
    """Pure Python in eight threads of one worker instead of in two workers."""
    workers, threads = (1, 8) if run.ill else (2, 1)
    with run.recorded(workers=workers, threads=threads) as client:
        starts = [10**6 + 4_000 * number for number in range(150)]
        client.gather(client.map(count_primes, starts, [start + 4_000 for start in starts]))


def read_locked(number: int) -> float:
    """Read with a library that lets one thread of a process read at a time."""
    with SerializableLock("file library"):
        return nap(number, 0.1)


@illness(cause("lock-waits", "read_locked"))
def lock_of_a_library(run: Run) -> None:
    """Four threads of one worker read under the lock of a library, instead of four workers."""
    workers, threads = (1, 4) if run.ill else (4, 1)
    with run.recorded(workers=workers, threads=threads) as client:
        client.gather(client.map(read_locked, range(80)))


def decompose(seed: int) -> float:
    """Compute with a library that starts its own threads."""
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(300, 300))
    return float(sum(np.linalg.eigvals(matrix + turn).real.max() for turn in range(3)))


@illness(cause("gil"))
def oversubscribed_threads(run: Run) -> None:
    """Linear algebra in two workers, each with eight threads of BLAS on two cores."""
    number = "8" if run.ill else "1"
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    config = {"distributed.nanny.pre-spawn-environ": dict.fromkeys(names, number)}
    # A forked worker would inherit the thread settings that BLAS has in the fork server.
    with run.recorded(workers=2, config=config, fork=False) as client:
        client.gather(client.map(decompose, range(40)))


# -- healthy controls ------------------------------------------------------------------------


@illness()
def control_map(run: Run) -> None:
    """200 tasks of 0.15 to 0.35 s on 4 workers."""
    seconds = np.random.default_rng(0).uniform(0.15, 0.35, 200)
    with run.recorded() as client:
        client.gather(client.map(nap, range(200), seconds))


@illness()
def control_tree(run: Run) -> None:
    """128 tasks of 0.3 s and a tree of short merges."""
    with run.recorded() as client:
        parts = client.map(functools.partial(nap, seconds=0.3), range(128))
        while len(parts) > 1:
            parts = client.map(
                functools.partial(merge, seconds=0.005),
                [parts[first : first + 8] for first in range(0, len(parts), 8)],
            )
        parts[0].result()


@illness()
def control_mixture(run: Run) -> None:
    """Three kinds of tasks of different length, longest first, in one graph."""
    with run.recorded() as client:
        random = np.random.default_rng(1)
        futures = client.map(fit, range(24), random.uniform(0.8, 1.2, 24))
        futures += client.map(nap, range(60), random.uniform(0.2, 0.3, 60))
        futures += client.map(nap, range(1000, 1060), random.uniform(0.08, 0.12, 60))
        client.gather(futures)


@illness()
def control_array(run: Run) -> None:
    """A real computation on Dask arrays in two workers."""
    import dask.array as da

    with run.recorded(workers=2):
        array = da.random.default_rng(0).normal(size=(8_000, 8_000), chunks=(2_000, 2_000))
        for power in range(2, 5):
            (np.sin(array) ** power + np.exp(-(array**2))).mean().compute()
