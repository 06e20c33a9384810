"""Programs of the kinds of the rules in other circumstances, without coffea.

Written by an author who had read neither the rules nor other programs. Computing is
represented by sleeping where two cores do not suffice.
"""

from __future__ import annotations

import asyncio
import math
import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
from dask import delayed
from distributed import Client, Future, get_worker, wait
from illness import Run, cause, illness

Array = np.ndarray


def spread(index: int, share: float = 0.4) -> float:
    """Return a factor near 1 that differs between tasks."""
    return 1 + share * math.sin(12.9898 * index + 1)


def host() -> str:
    """Return the host of the worker of this task."""
    return get_worker().address.rpartition(":")[0].rpartition("/")[2]


def is_first_attempt(folder: str, name: str) -> bool:
    """Return whether this is called for the first time with this name."""
    path = Path(folder).resolve() / name
    if path.exists():
        return False
    path.touch()
    return True


# Slow host: two stages, three hosts


def unpack(index: int, slow: str) -> Array:
    time.sleep(0.2 * spread(index) * (2.8 if host() == slow else 1))
    return np.arange(2000.0) + index


def calibrate(block: Array, index: int, slow: str) -> float:
    time.sleep(0.3 * spread(index + 7) * (2.8 if host() == slow else 1))
    return float(np.sqrt(block).sum())


@illness(cause("slow-host", "127.0.0.3"))
def throttled_host(run: Run) -> None:
    """90 pairs of tasks of 0.2 and 0.3 s on 6 workers of 3 hosts; the processors of host
    127.0.0.3 are throttled, and its two workers take 2.8 times as long in both stages.
    """
    slow = "127.0.0.3" if run.ill else ""
    hosts = ("127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3")
    with run.recorded(hosts=hosts) as client:
        blocks = client.map(unpack, range(90), slow=slow)
        client.gather(client.map(calibrate, blocks, range(90), slow=slow))


# Long tail: a priority that delays the longest fits


def read_point(index: int) -> Array:
    time.sleep(0.25 * spread(index))
    return np.full(500, float(index))


def fit_point(point: Array, seconds: float) -> float:
    time.sleep(seconds)
    return float(point.mean())


@illness(cause("long-tail"))
def heavy_points_last(run: Run) -> None:
    """48 points are read (0.25 s) and fitted (0.3 s) on 4 workers, but two of the fits take
    4.5 and 6 s; these have the lowest priority and so start last, instead of first.
    """
    with run.recorded() as client:
        seconds = [0.3 * spread(index) for index in range(48)]
        seconds[13], seconds[31] = 4.5, 6.0
        fits = []
        for index, duration in enumerate(seconds):
            is_long = duration > 1
            priority = (-10 if run.ill else 10) if is_long else 0
            point = client.submit(read_point, index, priority=priority)
            fits.append(client.submit(fit_point, point, duration, priority=priority))
        client.gather(fits)


# Large objects in the graph


def scan_table(table: Array | str, index: int) -> float:
    rows = np.load(table) if isinstance(table, str) else table
    time.sleep(0.5 * spread(index))
    return float(rows[:, ::50].sum())


@illness(cause("large-graph"))
def tables_from_client(run: Run) -> None:
    """64 tables of 20 MB are scanned (0.5 s each) on 4 workers; the client loads the tables
    and puts them into the graph, instead of passing their paths.
    """
    folder = run.data / "tables_from_client"
    folder.mkdir(exist_ok=True)
    paths = [folder / f"table_{number}.npy" for number in range(8)]
    for number, path in enumerate(paths):
        if not path.exists():
            np.save(path, np.random.default_rng(number).normal(size=(5000, 500)))
    with run.recorded() as client:
        names = [str(paths[index % 8]) for index in range(64)]
        tables = [np.load(name) if run.ill else name for name in names]
        scans = [
            delayed(scan_table, pure=False)(delayed(table, traverse=False), index)
            for index, table in enumerate(tables)
        ]
        total = delayed(sum)(scans)
        client.compute(total).result()


# Transfers: pairs of large results


def simulate(index: int, rows: int) -> Array:
    time.sleep(0.4 * spread(index))
    return np.full((rows, 1000), float(index))


def overlap(first: Array, second: Array, index: int) -> float:
    time.sleep(0.25 * spread(index))
    return float(first[:50, 0].sum() + second[:50, 0].sum())


@illness(cause("transfers", "simulate", "overlap"))
def pairs_of_full_samples(run: Run) -> None:
    """24 samples are simulated (0.4 s), and 96 pairs of them are compared (0.25 s) on 4
    workers; the results are full samples of 96 MB, of which 0.4 MB are used.
    """
    with run.recorded(memory="5GB") as client:
        rows = 12_000 if run.ill else 50
        samples = client.map(simulate, range(24), rows=rows)
        pairs = [(i, (i + step) % 24) for step in (5, 7, 9, 11) for i in range(24)]
        compared = [
            client.submit(overlap, samples[i], samples[j], 24 * i + j) for i, j in pairs
        ]
        client.gather(compared)


# Spilling: results that are kept for several passes


def skim(index: int) -> Array:
    time.sleep(0.12)
    block = np.random.default_rng(index).integers(0, 255, 1_000_000, dtype=np.uint8)
    return np.tile(block, 60)


def pass_over(skimmed: Array, index: int, number: int) -> int:
    time.sleep(0.12 * spread(index))
    return int(skimmed[:: 100_000 + number].sum())


@illness(cause("spilling"))
def skims_kept(run: Run) -> None:
    """56 skims of 60 MB are kept on 4 workers, and read in three passes (0.12 s each); the
    workers have 1 GB of memory instead of 4 GB, so that skims are spilled and read again.
    """
    with run.recorded(memory="1GB" if run.ill else "4GB") as client:
        skims = client.map(skim, range(56))
        wait(skims)
        for number in range(3):
            client.gather(client.map(pass_over, skims, range(56), number=number))


# Killed workers: events that explode in memory, after a stage whose results are lost


def make_ntuple(index: int) -> Array:
    time.sleep(0.5 * spread(index))
    return np.arange(100_000.0) + index


def combine(ntuple: Array, index: int, heavy: bool, folder: str) -> float:
    if heavy and is_first_attempt(folder, f"combine-{index}"):
        parts = []
        for _ in range(40):
            parts.append(np.ones(12_500_000))
            time.sleep(0.02)
        time.sleep(2)
    time.sleep(0.3 * spread(index))
    return float(ntuple.sum())


@illness(cause("killed-workers"))
def exploding_combinatorics(run: Run) -> None:
    """48 ntuples are made (0.5 s) and combined (0.3 s) on 4 workers with 1 GB; three of the
    combinations need 4 GB at their first attempt, their workers are killed, and the ntuples
    that they held are made again.
    """
    with run.recorded(memory="1GB") as client:
        ntuples = client.map(make_ntuple, range(48))
        wait(ntuples)
        folder = str(Path.cwd())
        heavy = [run.ill and index in {10, 22, 37} for index in range(48)]
        client.gather(client.map(combine, ntuples, range(48), heavy, folder=folder))


# Retries: a service that refuses requests late


class ConditionsError(RuntimeError):
    """The conditions service gave no answer."""


def load_run(index: int) -> int:
    time.sleep(0.2 * spread(index))
    return index


def reconstruct(number: int, ill: bool, folder: str) -> float:
    time.sleep(0.45 * spread(number))
    if ill and number % 5 in {0, 3, 4} and is_first_attempt(folder, f"run-{number}"):
        raise ConditionsError(f"no conditions for run {number}")
    time.sleep(0.05)
    return math.sqrt(number)


@illness(cause("retries", "ConditionsError"))
def conditions_service(run: Run) -> None:
    """48 runs are loaded (0.2 s) and reconstructed (0.5 s) by 2 workers with 2 threads; three
    of five reconstructions fail at their end with ConditionsError, and are retried.
    """
    with run.recorded(workers=2, threads=2) as client:
        loaded = client.map(load_run, range(48))
        done = client.map(reconstruct, loaded, ill=run.ill, folder=str(Path.cwd()), retries=3)
        client.gather(done)


# Client gaps: plots between graphs of different size


def fill(index: int, region: int) -> Array:
    time.sleep(0.22 * spread(index + region))
    return np.bincount(np.arange(1000) % (7 + region), minlength=20)


def add(parts: list[Array]) -> Array:
    return np.sum(parts, axis=0)


def region_graph(client: Client, region: int) -> Future:
    """Submit the graph of a region."""
    parts = [delayed(fill)(index, region) for index in range(12 + 8 * region)]
    return client.compute(delayed(add)(parts))


def plot(histogram: Array) -> float:
    """Fit and draw in the client."""
    time.sleep(1.1)
    return float(histogram.sum())


@illness(cause("client-gaps"))
def plots_between_regions(run: Run) -> None:
    """Five graphs of 12 to 44 tasks of 0.22 s on 4 workers, whose histograms the client plots
    (1.1 s); each graph is submitted after the plot of the former, instead of all at first.
    """
    with run.recorded() as client:
        if run.ill:
            for region in range(5):
                plot(region_graph(client, region).result())
        else:
            for future in [region_graph(client, region) for region in range(5)]:
                plot(future.result())


# Blocked event loop: coroutines that block


async def query(index: int, blocking: bool) -> int:
    seconds = 0.3 * spread(index)
    if blocking:
        time.sleep(seconds)  # noqa: ASYNC251
    else:
        await asyncio.sleep(seconds)
    return index


def digest(number: int) -> int:
    time.sleep(0.25 * spread(number + 3))
    return number % 7


@illness(cause("blocked-event-loop"))
def blocking_coroutines(run: Run) -> None:
    """72 queries (coroutines of 0.3 s) and digests of their answers (0.25 s) on 2 workers
    with 3 threads; the coroutines sleep in a blocking call instead of awaiting.
    """
    with run.recorded(workers=2, threads=3) as client:
        answers = client.map(query, range(72), blocking=run.ill)
        client.gather(client.map(digest, answers))


# Restricted tasks: one prefix of three


def select(index: int) -> Array:
    time.sleep(0.2 * spread(index))
    return np.arange(1000.0) * index


def train(sample: Array, index: int) -> float:
    time.sleep(0.4 * spread(index + 5))
    return float(sample.mean())


def evaluate(score: float, index: int) -> float:
    time.sleep(0.1 * spread(index))
    return score * 2


@illness(cause("restricted-tasks", "train"))
def trainings_pinned(run: Run) -> None:
    """60 chains of select (0.2 s), train (0.4 s) and evaluate (0.1 s) on 6 workers; the tasks
    of train are allowed on workers 0 and 1 only.
    """
    with run.recorded(workers=6) as client:
        pinned: dict[str, Any] = {}
        if run.ill:
            pinned = {"workers": [run.address(0), run.address(1)]}
        samples = client.map(select, range(60))
        scores = client.map(train, samples, range(60), **pinned)
        client.gather(client.map(evaluate, scores, range(60)))


# Two at once: a worker that is slow from some time on, and a merge in one task


def histogram(index: int, slow: bool, begin: float) -> Array:
    factor = 5 if slow and get_worker().name == 1 and time.time() > begin + 2.5 else 1
    time.sleep(0.3 * spread(index) * factor)
    return np.bincount(np.arange(5000) % (10 + index % 3), minlength=20)


def merge(parts: list[Array]) -> Array:
    time.sleep(0.06 * len(parts))
    return np.sum(parts, axis=0)


@illness(cause("slow-worker", "1"), cause("low-parallelism", "merge"))
def hot_worker_and_flat_merge(run: Run) -> None:
    """84 histograms (0.3 s) on 3 workers with 2 threads; worker 1 takes 5 times as long after
    2.5 s, and one task merges all histograms in 5 s, instead of a tree of tasks.
    """
    with run.recorded(workers=3, threads=2) as client:
        begin = time.time()
        parts = [delayed(histogram)(index, run.ill, begin) for index in range(84)]
        if not run.ill:
            while len(parts) > 4:
                parts = [delayed(merge)(parts[i : i + 4]) for i in range(0, len(parts), 4)]
        client.compute(delayed(merge)(parts)).result()


# Healthy controls


def load(index: int) -> Array:
    time.sleep(0.15 * spread(index))
    return np.random.default_rng(index).normal(size=20_000)


def clean(block: Array, index: int) -> Array:
    time.sleep(0.3 * spread(index + 2))
    return block[np.abs(block) < 3]


def summarize(block: Array) -> tuple[float, float]:
    time.sleep(0.1)
    return float(block.mean()), float(block.std())


@illness()
def blocks_in_two_graphs(run: Run) -> None:
    """Two graphs of 36 chains of load (0.15 s), clean (0.3 s) and summarize (0.1 s) on 2
    workers with 2 threads, both submitted at the start.
    """
    with run.recorded(workers=2, threads=2) as client, dask.config.set(scheduler=client):
        graphs = []
        for first in (0, 36):
            chains = [
                delayed(summarize)(delayed(clean)(delayed(load)(index), index))
                for index in range(first, first + 36)
            ]
            graphs.append(client.compute(delayed(list)(chains)))
        client.gather(graphs)
