"""Programs of plain Dask: the kinds of the rules in other circumstances.

They were written by an author who had read neither the rules nor other programs. Sleeping
represents computing, as there are only two cores.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
from dask import delayed
from distributed import Client, SchedulerPlugin, get_worker
from illness import Run, cause, illness

#: Three nodes with two workers each.
NODES = ("127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3", "127.0.0.4", "127.0.0.4")


def load_block(number: int) -> np.ndarray:
    """Return a block of data of 8 MB that stays on its worker."""
    time.sleep(0.1)
    return np.random.default_rng(number).normal(size=1_000_000)


def gradient(block: np.ndarray, parameter: float, factor: float) -> float:
    """Take longer on the second node."""
    slow = get_worker().address.startswith("tcp://127.0.0.3:")
    time.sleep(0.25 * (factor if slow else 1))
    return float(block[:1000].mean() - parameter)


@illness(cause("slow-host", "127.0.0.3"))
def fit_with_throttled_node(run: Run) -> None:
    """A fit of 6 iterations, which wait for the gradients of 24 blocks of data (0.25 s each).

    The blocks stay on the 6 workers of 3 nodes. On one node, whose processor is throttled, a
    gradient takes 3.5 times as long; without the illness, all nodes are alike.
    """
    factor = 3.5 if run.ill else 1.0
    with run.recorded(hosts=NODES) as client:
        blocks = client.map(load_block, range(24))
        client.gather(client.map(np.size, blocks))
        parameter = 0.0
        for _ in range(6):
            futures = client.map(
                gradient, blocks, parameter=parameter, factor=factor, pure=False
            )
            parameter += sum(client.gather(futures)) / 24


def advance(state: np.ndarray, step: int, marker: str | None = None) -> np.ndarray:
    """Take one step; with a marker that does not exist, need more memory than there is."""
    time.sleep(0.4)
    if marker and not Path(marker).exists():
        Path(marker).touch()
        hoard = []
        for _ in range(40):
            hoard.append(np.ones(8_000_000))
            time.sleep(0.02)
        time.sleep(3)
    return state + step


@illness(cause("killed-workers"))
def chain_with_dead_worker(run: Run) -> None:
    """Four chains of 18 steps of 0.4 s; the results of earlier steps are released.

    In step 14, one chain needs more memory than its worker has: the worker is killed, and the
    entire chain is computed again. Without the illness, no step needs much memory.
    """
    marker = str(Path.cwd() / "marker")
    with run.recorded(memory="1GB") as client:
        chains = []
        for number in range(4):
            state = client.submit(np.full, 100_000, float(number))
            for step in range(18):
                doomed = run.ill and (number, step) == (2, 13)
                state = client.submit(advance, state, step, marker if doomed else None)
            chains.append(state)
        client.gather(client.map(np.sum, chains))


#: Buffers of a library that forgets them after a time.
BUFFERS: dict[int, np.ndarray] = {}


def read_through_cache(number: int, lifetime: float) -> float:
    """Leave a buffer of 120 MB in memory for a time."""
    buffer = np.ones(15_000_000)
    total = float(buffer[::1000].sum())
    if lifetime:
        BUFFERS[number] = buffer
        timer = threading.Timer(lifetime, BUFFERS.pop, [number])
        timer.daemon = True
        timer.start()
    time.sleep(0.22)
    return total


@illness(cause("unmanaged-memory paused-workers"))
def cache_with_expiry(run: Run) -> None:
    """100 tasks of 0.25 s on 4 workers of 1 GB.

    Each task leaves a buffer of 120 MB in a library's cache, which expires after 3 s: the
    workers pause at their limit until it does. Without the illness, no buffer is kept.
    """
    with run.recorded(memory="1GB") as client:
        futures = client.map(read_through_cache, range(100), lifetime=3.0 if run.ill else 0.0)
        client.gather(futures)


def simulate_hits(number: int) -> np.ndarray:
    """Return 12 MB that can be compressed."""
    time.sleep(0.3)
    return np.random.default_rng(number).integers(0, 1000, size=1_500_000)


def mix_events(first: np.ndarray, second: np.ndarray) -> int:
    """Combine the events of two blocks."""
    time.sleep(0.25)
    return int(first[:1000].sum() + second[:1000].sum())


@illness(cause("transfers", "simulate_hits", "mix_events"))
def mixing_with_zlib(run: Run) -> None:
    """24 blocks of 12 MB (0.3 s each) on four nodes; then 48 pairs are mixed, 0.25 s each.

    An administrator has configured compression by zlib for messages between the nodes, which
    takes longer than computing. Without the illness, messages are not compressed.
    """
    compression = "zlib" if run.ill else False
    hosts = ("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5")
    config = {"distributed.comm.compression": compression}
    with run.recorded(hosts=hosts, config=config, memory="3GB") as client:
        blocks = client.map(simulate_hits, range(24))
        client.gather(client.map(np.size, blocks))
        pairs = [
            client.submit(mix_events, blocks[i], blocks[(i + shift) % 24])
            for shift in (7, 11)
            for i in range(24)
        ]
        client.gather(pairs)


class AuditPlugin(SchedulerPlugin):
    """Writes a line for each transition, slowly."""

    name = "audit"

    def transition(self, key: str, start: str, finish: str, *args, **kwargs) -> None:
        end = time.perf_counter() + 0.005
        while time.perf_counter() < end:
            json.dumps({"key": str(key), "start": start, "finish": finish, "site": "T2" * 50})


def reconstruct(number: int) -> float:
    time.sleep(0.06)
    return float(number)


def register_audit(client: Client) -> None:
    client.register_plugin(AuditPlugin())


@illness(cause("scheduler-saturated"))
def scheduler_with_audit(run: Run) -> None:
    """440 tasks of 0.06 s on 4 workers, in two graphs.

    A site's plugin for the scheduler computes 5 ms for each transition of a task. Without the
    illness, there is no plugin.
    """
    with run.recorded(prepare=register_audit if run.ill else None) as client:
        for begin in (0, 220):
            client.gather(client.map(reconstruct, range(begin, begin + 220)))


async def fetch_conditions(number: int, blocking: bool) -> int:
    """Wait for a database, in the event loop of the worker."""
    if blocking:
        time.sleep(0.3)  # noqa: ASYNC251
    else:
        await asyncio.sleep(0.3)
    return number


def calibrate_run(conditions: int) -> int:
    time.sleep(0.3)
    return conditions


@illness(cause("blocked-event-loop"))
def coroutine_that_blocks(run: Run) -> None:
    """96 coroutines of 0.3 s, and a task of 0.3 s for each, on 3 workers with 3 threads.

    The coroutines sleep by ``time.sleep``, which blocks the event loops of the workers; without
    the illness, by ``asyncio.sleep``.
    """
    with run.recorded(workers=3, threads=3) as client:
        conditions = client.map(fetch_conditions, range(96), blocking=run.ill)
        client.gather(client.map(calibrate_run, conditions))


#: The C library, called without releasing the interpreter lock.
LIBC = ctypes.PyDLL(None)


def parse_lumi(number: int) -> int:
    """Wait for a file; read it by C that holds the interpreter lock, and parse it."""
    time.sleep(0.1)
    LIBC.usleep(70_000)
    text = json.dumps([{"run": i, "lumi": [[i, i + 1]]} for i in range(100)])
    end = time.thread_time() + 0.04
    count = 0
    while time.thread_time() < end:
        count += len(json.loads(text))
    return count


@illness(cause("gil"))
def parsing_in_threads(run: Run) -> None:
    """120 tasks, each of which waits 0.1 s; then it holds the interpreter lock for 0.11 s.

    It reads by an old extension in C, and parses JSON. One worker with 4 threads, which share
    one interpreter; without the illness, 4 workers with one thread each.
    """
    workers, threads = (1, 4) if run.ill else (4, 1)
    with run.recorded(workers=workers, threads=threads, memory="4GB") as client:
        client.gather(client.map(parse_lumi, range(120)))


def track(number: int) -> int:
    time.sleep(0.3)
    return number


def vertex(number: int) -> int:
    time.sleep(0.2)
    return number


@illness(cause("silent-worker", "4", "5", "127.0.0.4"))
def node_in_migration(run: Run) -> None:
    """80 tracks of 0.3 s, and a vertex of 0.2 s for each, on 6 workers of 3 nodes.

    After 2 s, the virtual machine of the third node stands still for 9 s. Without the illness,
    it does not.
    """
    with run.recorded(hosts=NODES) as client:
        timers = []
        if run.ill:
            pids = [run.pid(4), run.pid(5)]
            timers = [
                threading.Timer(delay, os.kill, [pid, number])
                for pid in pids
                for delay, number in ((2, signal.SIGSTOP), (11, signal.SIGCONT))
            ]
        for timer in timers:
            timer.start()
        client.gather(client.map(vertex, client.map(track, range(80))))
        for timer in timers:
            timer.join()


def generate(number: int) -> int:
    time.sleep(0.3)
    return number


def infer(number: int) -> int:
    time.sleep(0.25)
    return number


@illness(cause("restricted-tasks", "infer", "3"))
def inference_on_one_worker(run: Run) -> None:
    """48 tasks of 0.3 s generate events; for each, an inference takes 0.25 s, on 4 workers.

    The inference is restricted to the worker that had the model in an earlier version of the
    program. Without the illness, every worker can do it.
    """
    with run.recorded() as client:
        where = {"workers": [run.address(3)]} if run.ill else {}
        events = client.map(generate, range(48))
        client.gather(client.map(infer, events, **where))


def fill_histogram(number: int) -> np.ndarray:
    time.sleep(0.25)
    return np.full(1000, float(number))


def add_histograms(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    time.sleep(0.25)
    return first + second


@illness(cause("low-parallelism"))
def histograms_added_in_a_row(run: Run) -> None:
    """48 histograms are filled (0.25 s) and added in pairs (0.25 s each) on 4 workers.

    Each is added to the sum of those before it, one after the other; without the illness, in a
    tree of pairs.
    """
    with run.recorded() as client:
        parts = [delayed(fill_histogram)(number) for number in range(48)]
        if run.ill:
            total = parts[0]
            for part in parts[1:]:
                total = delayed(add_histograms)(total, part)
            parts = [total]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            rest = parts[-1:] if len(parts) % 2 else []
            parts = [delayed(add_histograms)(*pair) for pair in pairs] + rest
        client.compute(parts[0]).result()


def fit_region(seconds: float, number: int) -> float:
    time.sleep(seconds)
    return seconds * number


@illness(cause("late-workers"), cause("long-tail", "fit_region"))
def batch_jobs_and_last_fit(run: Run) -> None:
    """80 fits of 0.25 s and two of 4 s on 4 workers.

    Two of the workers come 4 and 5 s late, as batch jobs do, and the long fits are submitted
    last. Without the illnesses, all workers are there, and the long fits are first.
    """
    durations = [4.0] * 2 + [0.25] * 80
    with run.recorded(workers=2 if run.ill else 4) as client:
        timers = []
        if run.ill:
            durations.reverse()
            scale = run.cluster.scale
            timers = [threading.Timer(4 + i, scale, [3 + i]) for i in range(2)]
        for timer in timers:
            timer.start()
        client.gather(client.map(fit_region, durations, range(len(durations))))
        for timer in timers:
            timer.join()


def skim(number: int) -> np.ndarray:
    time.sleep(0.3)
    return np.random.default_rng(number).normal(size=50_000)


def summarize(parts: list[np.ndarray]) -> np.ndarray:
    time.sleep(0.15)
    return np.histogram(np.concatenate(parts), bins=50, range=(-3, 3))[0]


@illness()
def skim_and_summarize(run: Run) -> None:
    """Control: 88 skims of 0.3 s; each 4 are summarized in 0.15 s, on 4 workers."""
    with run.recorded() as client:
        skims = client.map(skim, range(88))
        groups = [skims[i : i + 4] for i in range(0, 88, 4)]
        client.gather(client.map(summarize, groups))


def toy(number: int, scale: float) -> float:
    time.sleep(0.25 + 0.01 * (number % 5))
    return scale * number


@illness()
def toys_in_two_threads(run: Run) -> None:
    """Control: two graphs of 66 toys of 0.25 to 0.29 s, on 3 workers with 2 threads."""
    with run.recorded(workers=3, threads=2) as client:
        for scale in (1.0, 2.0):
            client.gather(client.map(toy, range(66), scale=scale))
