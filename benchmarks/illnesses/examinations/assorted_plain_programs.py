"""Programs of the kinds of the rules in other circumstances, of plain Dask.

They were written by an author who had read neither the rules nor other programs. Computing is
represented by sleeping where two cores are short.
"""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import dask
import numpy as np
from dask.distributed import Client, as_completed, get_worker
from illness import Run, cause, illness

CACHE: list[np.ndarray] = []


def spread(number: int) -> float:
    """Return a factor between 0.8 and 1.2 that depends on a number."""
    return 0.8 + 0.4 * ((number * 7919) % 101) / 100


def work(seconds: float, number: int) -> float:
    """Compute a little, wait for the rest of about some seconds; return a number."""
    values = np.random.default_rng(number).normal(size=20_000)
    time.sleep(seconds * spread(number))
    return float(np.sort(values)[10_000:].mean())


def average(values: list[float]) -> float:
    time.sleep(0.02)
    return float(np.mean(values))


# Transfers: whole blocks move although each receiver needs a slice of them.

N_BLOCKS = 20


def load_block(number: int) -> np.ndarray:
    time.sleep(0.6 * spread(number))
    return np.full((N_BLOCKS, 125_000), float(number))


def cut(block: np.ndarray, row: int) -> np.ndarray:
    return block[row, ::50].copy()


def collect(row: int, *blocks: np.ndarray) -> float:
    slices = [block[row, ::50] if block.ndim > 1 else block for block in blocks]
    time.sleep(0.5 * spread(row))
    return float(np.sum(slices))


@illness(cause("transfers", "load_block", "collect"))
def regroup_whole_blocks(run: Run) -> None:
    """20 blocks of 20 MB are regrouped by row; each of 20 tasks receives all blocks whole.

    Without the illness, each block is cut into small rows where it is, and those are moved.
    """
    with run.recorded(memory="4GB") as client:
        blocks = client.map(load_block, range(N_BLOCKS), pure=False)
        if run.ill:
            parts = [blocks] * N_BLOCKS
        else:
            parts = [
                [client.submit(cut, block, row, pure=False) for block in blocks]
                for row in range(N_BLOCKS)
            ]
        sums = [
            client.submit(collect, row, *blocks_of_row, pure=False)
            for row, blocks_of_row in enumerate(parts)
        ]
        client.gather(sums)


# Long tail: fits sorted by their number of bins.


def fit_region(seconds: float, number: int) -> float:
    return work(seconds, number)


@illness(cause("long-tail"))
def fits_by_size(run: Run) -> None:
    """79 fits, of 0.1 to 6 s, on 4 workers; they are submitted sorted by size, smallest first.

    Without the illness, the largest are submitted first.
    """
    seconds = sorted([0.1 + 0.003 * number for number in range(76)] + [1.0, 1.6, 5.6])
    with run.recorded() as client:
        numbers = range(len(seconds)) if run.ill else range(len(seconds))[::-1]
        order = [seconds[number] for number in numbers]
        fits = client.map(fit_region, order, numbers, pure=False)
        client.gather(client.submit(average, fits, pure=False))


# Short tasks: a task for each replica of a bootstrap.

N_REPLICAS = 8000


def resample(first: int, count: int) -> float:
    total = 0.0
    for number in range(first, first + count):
        total += np.random.default_rng(number).normal(size=100).mean()
        time.sleep(0.0028)
    return total


@illness(cause("short-tasks scheduler-saturated"))
def replicas_one_by_one(run: Run) -> None:
    """8000 replicas of a bootstrap of 3 ms, in two regions, on 2 workers with 2 threads.

    Each replica is a task. Without the illness, a task computes 80 of them.
    """
    batch = 1 if run.ill else 80
    with run.recorded(workers=2, threads=2) as client:
        for region in range(2):
            begin = region * N_REPLICAS // 2
            firsts = range(begin, begin + N_REPLICAS // 2, batch)
            replicas = client.map(resample, firsts, count=batch, pure=False)
            client.gather(client.submit(average, replicas, pure=False))


# Killed workers: some fits take all memory, and what their workers held is lost.


def read_events(number: int) -> np.ndarray:
    time.sleep(0.4 * spread(number))
    return np.full(2_500_000, float(number))


def unfold(number: int, events: np.ndarray, matrix: str) -> float:
    """Compute; if there is no file `matrix` yet, build one in memory first."""
    if matrix and not Path(matrix).exists():
        Path(matrix).touch()
        response = np.ones((1600, 100_000))
        time.sleep(2)
        return float(response[0, 0])
    time.sleep(0.25 * spread(number))
    return float(events.mean())


@illness(cause("killed-workers"))
def matrices_beyond_memory(run: Run) -> None:
    """36 blocks of 20 MB are read, then unfolded, on 4 workers with 1.2 GB.

    Three of the unfoldings build a matrix of 1.3 GB; their workers are killed, and the blocks
    that they held are read again. Without the illness, no matrix is built.
    """
    matrices = {14: "a", 20: "b", 27: "c"} if run.ill else {}
    with run.recorded(memory="1.2GB") as client:
        events = client.map(read_events, range(36), pure=False)
        names = [
            str(Path.cwd() / f"matrix_{matrices[number]}") if number in matrices else ""
            for number in range(36)
        ]
        # All blocks are needed again by the second unfolding.
        sums = client.map(unfold, range(36), events, names, pure=False)
        more = client.map(unfold, range(36), events, [""] * 36, pure=False, priority=-1)
        client.gather([*sums, *more])


# Paused workers: a cache that is emptied too rarely on two workers.


def translate(number: int, caching: tuple[int, ...]) -> float:
    if get_worker().name in caching:
        if not CACHE:
            threading.Timer(10, CACHE.clear).start()
        CACHE.append(np.ones(3_000_000))
    return work(0.2, number)


def count_words(number: int, value: float) -> float:
    return value + work(0.1, number)


@illness(cause("paused-workers unmanaged-memory", "1", "2"))
def cache_of_two_workers(run: Run) -> None:
    """84 pairs of tasks of 0.2 and 0.1 s on 4 workers with 300 MB.

    A cache of workers 1 and 2 grows by 24 MB in each task of the first kind, so that they are
    paused until it is emptied, 10 s after its first entry. Without the illness, nothing is
    kept.
    """
    caching = (1, 2) if run.ill else ()
    with run.recorded(memory="300MB") as client:
        texts = client.map(translate, range(84), caching=caching, pure=False)
        counts = client.map(count_words, range(84), texts, pure=False)
        client.gather(client.submit(average, counts, pure=False))


# Blocked event loop: coroutines that block instead of waiting.


async def query_conditions(number: int, blocks: bool) -> int:
    """Wait for a database, as a coroutine; `blocks` is whether with a blocking call."""
    if blocks:
        time.sleep(0.25 * spread(number))  # noqa: ASYNC251
    else:
        await asyncio.sleep(0.25 * spread(number))
    return number


def calibrate(number: int, conditions: int) -> float:
    return work(0.12, number + conditions)


@illness(cause("blocked-event-loop"))
def blocking_coroutines(run: Run) -> None:
    """80 coroutines ask a database for 0.25 s, 80 tasks of 0.12 s use the answers.

    The coroutines make a blocking call in the event loop of their worker, of 2 with 2 threads.
    Without the illness, they await the answer.
    """
    with run.recorded(workers=2, threads=2) as client:
        conditions = client.map(query_conditions, range(80), blocks=run.ill, pure=False)
        blocks = client.map(calibrate, range(80), conditions, pure=False)
        client.gather(client.submit(average, blocks, pure=False))


# Restricted tasks: one of three stages is pinned to a worker.


def skim(number: int) -> int:
    work(0.4, number)
    return number


def infer(number: int) -> float:
    return work(0.35, number)


def histogram(number: int, value: float) -> float:
    return value + work(0.1, number)


@illness(cause("restricted-tasks", "infer"))
def inference_on_one_worker(run: Run) -> None:
    """32 chains of three tasks, of 0.4, 0.35 and 0.1 s, on 4 workers.

    The second task of all chains is restricted to worker 2. Without the illness, it is not.
    """
    with run.recorded() as client:
        where = {"workers": [run.address(2)]} if run.ill else {}
        skims = client.map(skim, range(32), pure=False)
        scores = client.map(infer, skims, pure=False, **where)
        sums = client.map(histogram, range(32), scores, pure=False)
        client.gather(client.submit(average, sums, pure=False))


# Large graphs: tables that are made in the client.


def make_table(number: int) -> np.ndarray:
    return np.random.default_rng(number).random(900_000)


def correct(number: int, table: np.ndarray | None) -> float:
    if table is None:
        table = make_table(number)
    time.sleep(0.13 * spread(number))
    return float(table[:1000].sum())


@illness(cause("large-graph"))
def tables_in_the_graph(run: Run) -> None:
    """Three graphs, one after the other, of 64 tasks of 0.13 s on 4 workers.

    The client makes a table of 7 MB for each task and passes it as an argument. Without the
    illness, each task makes its table itself.
    """
    with run.recorded() as client:
        for step in range(3):
            numbers = range(64 * step, 64 * (step + 1))
            corrected = [
                dask.delayed(correct)(number, make_table(number) if run.ill else None)
                for number in numbers
            ]
            client.compute(dask.delayed(average)(corrected)).result()


# Two illnesses: gaps of the client, and sums that are made one after the other.


def fill(number: int) -> np.ndarray:
    work(0.2, number)
    return np.full(1000, float(number))


def merge(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    time.sleep(0.12)
    return one + other


def submit_region(client: Client, region: int, in_a_row: bool):
    """Submit the histograms of a region and their sum; return its future."""
    parts = client.map(fill, range(24 * region, 24 * (region + 1)), pure=False)
    while len(parts) > 1:
        if in_a_row:
            parts = [client.submit(merge, parts[0], parts[1], pure=False), *parts[2:]]
        else:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            merged = [client.submit(merge, *pair, pure=False) for pair in pairs]
            parts = merged + ([parts[-1]] if len(parts) % 2 else [])
    return parts[0]


def plot(total: np.ndarray) -> None:
    """Draw, which the client does itself."""
    assert total.sum() > 0
    time.sleep(0.7)


@illness(cause("client-gaps"), cause("low-parallelism"))
def regions_in_turn(run: Run) -> None:
    """Three regions of 24 histograms of 0.2 s on 4 workers, summed, and drawn by the client.

    The histograms are added one after the other, and the next region is submitted when the
    client has drawn the last. Without the illness, they are added in pairs, and all regions
    are submitted at once.
    """
    with run.recorded() as client:
        if run.ill:
            for region in range(3):
                plot(submit_region(client, region, in_a_row=True).result())
        else:
            totals = [submit_region(client, region, in_a_row=False) for region in range(3)]
            for total in totals:
                plot(total.result())


# Healthy controls.


def simulate(number: int) -> float:
    return work(0.35, number)


def reconstruct(number: int, value: float) -> float:
    return value + work(0.2, number)


@illness()
def steady_stream(run: Run) -> None:
    """60 pairs of tasks of 0.35 and 0.2 s on 4 workers, 12 of them submitted at a time."""
    with run.recorded() as client:

        def submit(number: int):
            simulated = client.submit(simulate, number, pure=False)
            return client.submit(reconstruct, number, simulated, pure=False)

        stream = as_completed([submit(number) for number in range(12)])
        waiting = iter(range(12, 60))
        for future in stream:
            future.result()
            number = next(waiting, None)
            if number is not None:
                stream.add(submit(number))


@illness()
def arrays_in_blocks(run: Run) -> None:
    """Two reductions of 48 blocks, one after the other, on 2 workers with 2 threads."""
    with run.recorded(workers=2, threads=2) as client:
        for step in range(2):
            numbers = range(48 * step, 48 * (step + 1))
            blocks = client.map(simulate, numbers, pure=False)
            sums = [
                client.submit(average, blocks[first : first + 8], pure=False)
                for first in range(0, 48, 8)
            ]
            client.submit(average, sums, pure=False).result()
