"""Plain Dask programs of the kinds of illness that the project lists.

They were written by an author who had read neither the rules nor other programs. Where two
cores are too few, tasks sleep instead of computing.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
from dask import array as da
from distributed import Client, WorkerPlugin
from illness import Run, cause, illness
from tornado.ioloop import PeriodicCallback


def take(seconds: float) -> None:
    """Stand for computing that would take a core."""
    time.sleep(seconds)


# Order of submission


def fit_category(category: int, seconds: float) -> float:
    take(seconds)
    return category * seconds


@illness(cause("long-tail"))
def combination_submitted_last(run: Run) -> None:
    """90 fits of 0.3 s and one of 8 s on 4 workers; the long one comes last, or first."""
    seconds = [*[0.3] * 90, 8.0] if run.ill else [8.0, *[0.3] * 90]
    with run.recorded() as client:
        client.gather(client.map(fit_category, range(len(seconds)), seconds))


# Size of tasks


def smear_event(event: int) -> float:
    take(0.003)
    return event % 7 + 0.5


def smear_events(first: int, number: int) -> float:
    return sum(smear_event(event) for event in range(first, first + number))


@illness(cause("short-tasks scheduler-saturated"))
def one_task_for_each_event(run: Run) -> None:
    """10 000 events of 3 ms on 4 workers; each is a task, or 50 of them are."""
    size = 1 if run.ill else 50
    with run.recorded() as client:
        first = range(0, 10_000, size)
        parts = client.map(smear_events, first, number=size)
        sums = client.map(sum, [parts[i : i + 500] for i in range(0, len(parts), 500)])
        client.submit(sum, sums).result()


# Transfers


def simulate_toys(seed: int, is_reduced: bool) -> np.ndarray:
    """Return all events, or the few that are compared."""
    toys = np.random.default_rng(seed).random(15_000_000, dtype=np.float32)
    take(0.45)
    return toys[:10_000].copy() if is_reduced else toys


def compare_toys(one: np.ndarray, other: np.ndarray) -> float:
    take(0.1)
    return float(np.abs(one[:10_000] - other[:10_000]).max())


@illness(cause("transfers", "simulate_toys"))
def whole_samples_are_moved(run: Run) -> None:
    """Three times, 16 samples are compared in 80 pairs; a sample is 60 MB, or 40 kB."""
    pairs = [(i, (i + shift) % 16) for shift in (1, 3, 5, 6, 7) for i in range(16)]
    with run.recorded(memory="3GB") as client:
        for first in (0, 16, 32):
            seeds = range(first, first + 16)
            toys = client.map(simulate_toys, seeds, is_reduced=not run.ill)
            one, other = [toys[i] for i, _ in pairs], [toys[j] for _, j in pairs]
            client.gather(client.map(compare_toys, one, other))


# Memory


def load_block(number: int) -> np.ndarray:
    """Return 32 MB."""
    take(0.1)
    return np.random.default_rng(number).random(8_000_000, dtype=np.float32)


def fit_block(block: np.ndarray, iteration: int) -> float:
    take(0.1)
    return float(block[::100].mean()) + iteration


@illness(cause("spilling"))
def iterations_over_more_than_memory(run: Run) -> None:
    """Four iterations over 80 blocks of 32 MB on 4 workers with 700 MB, or 2 GB, of memory."""
    with run.recorded(memory="700MB" if run.ill else "2GB") as client:
        blocks = client.map(load_block, range(80))
        for iteration in range(4):
            client.gather(client.map(fit_block, blocks, iteration=iteration))


CACHE: list[np.ndarray] = []


def unfold(number: int, is_cached: bool) -> float:
    """Use a response matrix; a library may keep eight of them for three seconds."""
    response = np.ones(100_000_000, dtype=np.uint8)
    take(0.3)
    if is_cached:
        CACHE.append(response)
        if len(CACHE) == 8:
            threading.Timer(3.0, CACHE.clear).start()
    return float(response[number])


@illness(cause("paused-workers unmanaged-memory"))
def library_keeps_responses(run: Run) -> None:
    """120 tasks of 0.3 s on 4 workers with 1 GB; a library caches up to 0.8 GB, or nothing."""
    with run.recorded(memory="1GB") as client:
        client.gather(client.map(unfold, range(120), is_cached=run.ill))


def reconstruct(number: int, greedy: tuple[int, ...], folder: str) -> float:
    """Reconstruct events; greedy numbers take too much memory at their first attempt."""
    take(0.35)
    marker = Path(folder, f"attempt-{number}")
    if number in greedy and not marker.exists():
        marker.touch()
        combinations = []
        for _ in range(30):
            combinations.append(np.ones(100_000_000, dtype=np.uint8))
            take(0.05)
        take(5)
    return number * 0.1


@illness(cause("killed-workers"))
def combinatorics_outgrow_the_workers(run: Run) -> None:
    """120 tasks of 0.35 s on 4 workers with 1 GB; three tasks grow to 3 GB once, or none."""
    greedy = (55, 85, 112) if run.ill else ()
    with run.recorded(memory="1GB") as client:
        folder = str(Path.cwd())
        parts = client.map(reconstruct, range(120), greedy=greedy, folder=folder)
        client.submit(sum, parts).result()


# Client


def scan_point(point: int, iteration: int) -> float:
    take(0.25)
    return (point - 8) ** 2 / iteration


@illness(cause("client-gaps"))
def minimizer_thinks_in_the_notebook(run: Run) -> None:
    """Nine graphs of 16 tasks of 0.25 s on 4 workers; the client takes 1.3 s between, or 0."""
    with run.recorded() as client:
        for iteration in range(1, 10):
            values = client.gather(client.map(scan_point, range(16), iteration=iteration))
            if run.ill:
                take(1.3)
            min(values)


# Threads


def count_primes(first: int, number: int) -> int:
    """Count primes in pure Python."""
    found = 0
    for candidate in range(first, first + number):
        divisor = 3
        while divisor * divisor <= candidate and candidate % divisor:
            divisor += 2
        found += candidate % 2 and divisor * divisor > candidate
    return found


@illness(cause("gil"))
def python_loops_in_threads(run: Run) -> None:
    """200 tasks of pure Python in 2 threads of one worker, or in 2 workers with a thread."""
    with run.recorded(workers=1 if run.ill else 2, threads=2 if run.ill else 1) as client:
        first = range(10_000_001, 10_000_001 + 200 * 8000, 8000)
        client.gather(client.map(count_primes, first, number=8000))


# Event loop


class Bookkeeping(WorkerPlugin):
    """Write a log to slow storage every two seconds, on the event loop or in a thread."""

    def __init__(self, is_blocking: bool) -> None:
        self.is_blocking = is_blocking

    def setup(self, worker: Any) -> None:
        self.callback = PeriodicCallback(self.write, 2000)
        self.callback.start()

    def write(self) -> None:
        if self.is_blocking:
            time.sleep(1.3)
        else:
            threading.Thread(target=time.sleep, args=(1.3,), daemon=True).start()

    def teardown(self, worker: Any) -> None:
        self.callback.stop()


def digitize(number: int) -> float:
    take(0.25)
    return number / 3


@illness(cause("blocked-event-loop"))
def plugin_writes_on_the_event_loop(run: Run) -> None:
    """160 tasks of 0.25 s on 4 workers; a plugin writes for 1.3 of 2 s on the loop, or not."""
    with run.recorded() as client:
        client.register_plugin(Bookkeeping(run.ill))
        client.gather(client.map(digitize, range(160)))


# Parallelism


def fill(number: int) -> np.ndarray:
    take(0.3)
    return np.bincount(np.random.default_rng(number).integers(0, 1000, 10_000), minlength=1000)


def merge_histograms(parts: list[np.ndarray]) -> np.ndarray:
    """Merge at 80 ms for each part."""
    take(0.08 * len(parts))
    return np.sum(parts, axis=0)


@illness(cause("low-parallelism", "merge_histograms"))
def all_histograms_merged_at_once(run: Run) -> None:
    """100 tasks of 0.3 s, merged by one task at 80 ms for each, or by a tree of five each."""
    with run.recorded() as client:
        parts = client.map(fill, range(100))
        size = 100 if run.ill else 5
        while len(parts) > 1:
            groups = [parts[i : i + size] for i in range(0, len(parts), size)]
            parts = client.map(merge_histograms, groups)
        parts[0].result()


def skim(number: int) -> float:
    take(0.4)
    return number / 2


@illness(cause("late-workers"))
def batch_system_starts_workers_late(run: Run) -> None:
    """90 tasks of 0.4 s; one worker, and three more after 7 s, or four from the beginning."""
    with run.recorded(workers=1 if run.ill else 4) as client:
        parts = client.map(skim, range(90))
        if run.ill:
            take(7)
            run.cluster.scale(4)
        client.gather(parts)


def sample(state: float, chain: int, step: int) -> float:
    take(0.25)
    return state + chain / (step + 1)


@illness(cause("excess-workers"), saves="core")
def two_chains_on_six_workers(run: Run) -> None:
    """Two Markov chains of 45 steps of 0.25 s on six workers, or two."""
    with run.recorded(workers=6 if run.ill else 2) as client:
        states: list[Any] = [0.0, 0.0]
        for step in range(45):
            states = [client.submit(sample, states[i], chain=i, step=step) for i in (0, 1)]
        client.gather(states)


# Two at once


def fetch(number: int, is_flaky: bool, folder: str) -> float:
    """Fetch a block; every third is lost at the first attempt."""
    take(0.35)
    marker = Path(folder, f"fetched-{number}")
    if is_flaky and number % 3 == 0 and not marker.exists():
        marker.touch()
        raise ConnectionResetError(f"connection of block {number} reset by peer")
    return number / 4


@illness(cause("retries", "ConnectionResetError"), cause("restricted-tasks"))
def flaky_database_and_two_licenses(run: Run) -> None:
    """100 tasks of 0.35 s; a third is retried and only workers 0 and 1 are allowed, or not."""
    with run.recorded() as client:
        workers = [run.address(0), run.address(1)] if run.ill else None
        folder = str(Path.cwd())
        parts = client.map(
            fetch, range(100), is_flaky=run.ill, folder=folder, retries=3, workers=workers
        )
        client.gather(parts)


# Healthy


@illness()
def map_and_tree_of_sums(run: Run) -> None:
    """128 tasks of 0.3 s on 4 workers, merged in a tree of delayed sums."""
    with run.recorded() as client:
        parts = [dask.delayed(fill)(number) for number in range(128)]
        while len(parts) > 1:
            parts = [dask.delayed(sum)(parts[i : i + 8]) for i in range(0, len(parts), 8)]
        client.compute(parts[0]).result()


def calibrate(block: np.ndarray) -> np.ndarray:
    """Calibrate a block with work that uses a core."""
    for _ in range(14):
        block = np.sqrt(np.abs(np.sin(block) + 1.5))
    return block


@illness()
def array_statistics(run: Run) -> None:
    """Mean and deviation of 160 blocks of 8 MB in dask.array, on 2 workers with a thread."""
    with run.recorded(workers=2) as client:
        table = da.random.default_rng(3).random((160_000, 1000), chunks=(1000, 1000))
        table = table.map_blocks(calibrate, dtype=float)
        client.gather(client.compute([table.mean(), table.std()]))


def plot(histogram: np.ndarray) -> float:
    take(0.6)
    return float(histogram.sum())


def produce(client: Client) -> Any:
    groups = client.map(fill, range(160))
    return client.map(sum, [groups[i : i + 16] for i in range(0, 160, 16)])


@illness()
def small_merge_and_plot(run: Run) -> None:
    """160 tasks of 0.3 s on 2 workers with 2 threads; a merge and a plot take 0.6 s."""
    with run.recorded(workers=2, threads=2) as client:
        merged = client.submit(sum, produce(client))
        client.submit(plot, merged).result()
