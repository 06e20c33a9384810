"""Last programs of plain Dask, by an author who had read neither the rules nor their tests.

The author knew the ids and the titles of the findings, and the other programs. Durations vary
by 25 % around their mean. Where tasks hold the GIL, they sleep while they hold it, so that
most programs need hardly any CPU time.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sqlite3
import sys
import threading
import time
import zlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import dask.bag as db
import numpy as np
from distributed import Client, as_completed, versions, wait
from illness import Run, cause, illness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dask.delayed import Delayed
    from distributed import Worker
    from distributed.comm import Comm

MEGABYTE = 1_000_000

#: Functions of the C library; those of the first release the GIL.
FREE, HOLDING = ctypes.CDLL(None), ctypes.PyDLL(None)

#: Facts about this worker.
STATE: dict[str, Any] = {}

#: Arrays that a cache keeps for some seconds.
CACHE: dict[int, np.ndarray] = {}


def about(seconds: float, *key: Any) -> float:
    """Return a duration within 25 % of a mean, the same for the same key."""
    return seconds * (0.75 + 0.5 * zlib.crc32(repr(key).encode()) / 2**32)


def set_state(**facts: Any) -> None:
    STATE.update(facts)


def on_workers(run: Run, *names: int, **facts: Any) -> Callable[[Client], None]:
    """Return a function that sets facts about workers, if the run is ill."""

    def prepare(client: Client) -> None:
        if run.ill:
            client.run(set_state, workers=[run.address(name) for name in names], **facts)

    return prepare


def groups(parts: list[Any], size: int) -> Iterable[list[Any]]:
    return (parts[first : first + size] for first in range(0, len(parts), size))


def summarize(parts: list[Any]) -> float:
    time.sleep(0.04)
    return float(len(parts))


def tree(parts: list[Delayed], fan_in: int = 8) -> Delayed:
    """Summarize in a tree."""
    while len(parts) > 1:
        parts = [dask.delayed(summarize)(group) for group in groups(parts, fan_in)]
    return parts[0]


# -- workers and hosts -----------------------------------------------------------------------


def load_plate(number: int) -> np.ndarray:
    time.sleep(about(0.2, "plate", number))
    return np.full((100, 100), number, dtype="f4")


def deconvolve(plate: np.ndarray) -> float:
    """Deconvolve with the FFT that the environment of this worker has."""
    time.sleep(about(0.45, "fft", float(plate[0, 0])) * STATE.get("fft_factor", 1.0))
    return float(plate.mean())


@illness(cause("slow-worker", "1"))
def library_without_vector_instructions(run: Run) -> None:
    """90 plates are loaded and deconvolved on 3 workers with 2 threads; on worker 1, loading
    is as fast as elsewhere, but deconvolution takes 3.2 times as long."""
    with run.recorded(3, 2, prepare=on_workers(run, 1, fft_factor=3.2)):
        plates = [dask.delayed(load_plate)(number) for number in range(90)]
        tree([dask.delayed(deconvolve)(plate) for plate in plates]).compute()


def detect_stars(field: np.ndarray, block_info: Any = None) -> np.ndarray:
    number = block_info[0]["chunk-location"][0] if block_info else 0
    time.sleep(about(0.45, "stars", number))
    return field + number


@illness(cause("late-workers"))
def nodes_that_boot_one_by_one(run: Run) -> None:
    """An array of 130 fields of 0.45 s; the cluster starts with 2 workers and gets one more
    every 2 s until there are 6, or it has all 6 from the beginning."""
    with run.recorded(workers=2 if run.ill else 6):
        plan = [(2.0 * number, 2 + number) for number in range(1, 5)] if run.ill else []
        timers = [threading.Timer(at, run.cluster.scale, [size]) for at, size in plan]
        for timer in timers:
            timer.start()
        fields = da.zeros((130 * 50, 40), chunks=(50, 40))
        fields.map_blocks(detect_stars, dtype=float, meta=np.zeros((0, 0))).max().compute()
        for timer in timers:
            timer.join()


def simulate(number: int) -> np.ndarray:
    time.sleep(about(0.4, "simulate", number))
    return np.full(25_000, number, dtype="f8")


def correlate(first: np.ndarray, second: np.ndarray) -> float:
    time.sleep(about(0.3, "correlate", float(first[0])))
    return float(first @ second)


@illness(cause("silent-worker", "2"))
def worker_behind_a_dead_switch(run: Run) -> None:
    """110 samples are simulated on 5 workers with 2 threads, and each is correlated with
    another; worker 2 does not answer from 3.5 to 11 s, and others wait for its samples."""
    with run.recorded(5, 2) as client:
        plan = [(3.5, signal.SIGSTOP), (11.0, signal.SIGCONT)] if run.ill else []
        timers = [threading.Timer(at, os.kill, [run.pid(2), what]) for at, what in plan]
        for timer in timers:
            timer.start()
        samples = client.map(simulate, range(110))
        pairs = client.map(correlate, samples, samples[37:] + samples[:37])
        client.submit(summarize, pairs).result()
        for timer in timers:
            timer.join()


def propagate(members: list[float], number: int, window: int) -> float:
    time.sleep(about(0.5, number, window))
    return sum(members) / 4 + number


@illness(cause("excess-workers"), saves="core")
def filter_of_four_members(run: Run) -> None:
    """A filter of 4 members and 18 windows, each of which needs all members of the one before,
    runs on 7 workers with 2 threads, or on 2 workers with 2 threads."""
    with run.recorded(7 if run.ill else 2, 2):
        members: list[Any] = [0.0] * 4
        for window in range(18):
            step = partial(dask.delayed(propagate), members, window=window)
            members = [step(number) for number in range(4)]
        dask.compute(members)


def cluster_jets(number: int, holds_gil: bool) -> int:
    """Read, then call a C library ten times; its binding may hold the GIL meanwhile."""
    time.sleep(about(0.2, "jets", number))
    library = HOLDING if holds_gil else FREE
    for part in range(10):
        library.usleep(int(about(20_000, "call", number, part)))
    return number


@illness(cause("gil"))
def binding_that_keeps_the_gil(run: Run) -> None:
    """180 tasks on 3 workers with 4 threads call a C library for half of their 0.4 s; its
    binding keeps the GIL during the calls, or releases it."""
    with run.recorded(3, 4) as client:
        client.submit(summarize, client.map(cluster_jets, range(180), [run.ill] * 180)).result()


class DecayChain:
    """Particles that refer to each other; a traversal determines their size in memory."""

    def __init__(self, number: int, walk_seconds: float) -> None:
        self.number, self.walk_seconds = number, walk_seconds

    def __sizeof__(self) -> int:
        time.sleep(self.walk_seconds)
        return 400_000


def decay(number: int, walk_seconds: float) -> DecayChain:
    time.sleep(about(0.35, "decay", number))
    return DecayChain(number, walk_seconds)


def count_leptons(chain: DecayChain) -> int:
    time.sleep(about(0.25, "leptons", chain.number))
    return chain.number


@illness(cause("blocked-event-loop"))
def objects_that_are_slow_to_measure(run: Run) -> None:
    """150 objects of 0.35 s, and a task of 0.25 s for each, on 3 workers with 4 threads; the
    worker asks each object for its size in its event loop, which takes 0.15 s, or no time."""
    with run.recorded(3, 4) as client:
        chains = client.map(decay, range(150), [0.15 * run.ill] * 150)
        client.submit(summarize, client.map(count_leptons, chains)).result()


# -- memory ----------------------------------------------------------------------------------


def interpolate(number: int, nbytes: int) -> float:
    """Interpolate a field, which a cache keeps for 3 s in case it is needed again."""
    CACHE[number] = np.ones(nbytes, dtype="u1")
    threading.Timer(3.0, CACHE.pop, [number, None]).start()
    time.sleep(about(0.3, "field", number))
    return float(number)


@illness(cause("paused-workers unmanaged-memory"))
def cache_with_a_time_to_live(run: Run) -> None:
    """120 fields of 0.3 s on 3 workers with 2 threads and 700 MB; a cache keeps 40 MB, or
    nothing, of each field for 3 s, so that workers pause again and again."""
    nbytes = 40 * MEGABYTE if run.ill else 1_000
    with run.recorded(3, 2, "700MB", {"distributed.worker.memory.terminate": False}) as client:
        fields = client.map(interpolate, range(120), [nbytes] * 120)
        client.submit(summarize, fields).result()


# -- tasks, graphs, the network and the scheduler --------------------------------------------


def align_reads(number: int) -> int:
    time.sleep(about(0.3, "align", number))
    return number


def call_variants(reads: list[int], seconds: float) -> int:
    time.sleep(seconds)
    return len(reads)


@illness(cause("long-tail low-parallelism", "call_variants"))
def one_task_for_each_chromosome(run: Run) -> None:
    """160 files of reads are aligned on 4 workers with 2 threads; then variants are called, in
    a task for each of 12 chromosomes of 0.3 to 6.5 s, or in tasks of at most 0.4 s."""
    sizes = [0.3, 0.4, 0.5, 0.6, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 2.5, 6.5]
    with run.recorded(4, 2) as client:
        reads = client.map(align_reads, range(160))
        calls = []
        for number, seconds in enumerate(sizes):
            pieces = 1 if run.ill else int(np.ceil(seconds / 0.4))
            inputs = reads[number::12]
            calls += [
                client.submit(call_variants, inputs, seconds / pieces, pure=False)
                for _ in range(pieces)
            ]
        client.submit(summarize, calls).result()


def fit_model(number: int) -> float:
    time.sleep(about(0.3, "model", number))
    return float(number)


def throw_toys(best: float, toys: range) -> float:
    time.sleep(sum(about(0.005, best, toy) for toy in toys))
    return best


@illness(cause("short-tasks scheduler-saturated"))
def task_for_each_toy(run: Run) -> None:
    """12 models are fitted on 3 workers with 2 threads, and 300 toys of 5 ms are thrown for
    each of them, in a task for each toy, or for 50."""
    size = 1 if run.ill else 50
    with run.recorded(3, 2):
        models = [dask.delayed(fit_model)(number) for number in range(12)]
        spans = [range(first, first + size) for first in range(0, 300, size)]
        throw = dask.delayed(throw_toys)
        tree([throw(model, toys) for model in models for toys in spans], 25).compute()


def digitize(number: int) -> int:
    time.sleep(about(0.2, "digitize", number))
    return number


@illness(cause("scheduler-saturated"))
def fit_in_the_process_of_the_scheduler(run: Run) -> None:
    """240 tasks of 0.2 s on 5 workers with 2 threads; meanwhile the script that started the
    cluster, and so has the scheduler, calls a C library with the GIL for 0.5 s at a time."""
    with run.recorded(5, 2) as client:
        library = HOLDING if run.ill else FREE
        total = client.submit(summarize, client.map(digitize, range(240)))
        while not total.done():
            library.usleep(500_000)
            time.sleep(0.15)


def match(row: int, catalogue: Any) -> float:
    """Match with a catalogue, which is given or read from a file."""
    if isinstance(catalogue, str):
        catalogue = np.load(catalogue, mmap_mode="r")
    time.sleep(about(0.35, "match", row))
    return float(catalogue[row])


@illness(cause("large-graph"))
def catalogue_in_a_closure(run: Run) -> None:
    """Three bags of 32 partitions on 4 workers with 2 threads are matched with a catalogue of
    32 MB by a function that contains it, or that reads it from a file."""
    catalogue: Any = np.random.default_rng(3).random(4 * MEGABYTE)
    np.save("catalogue.npy", catalogue)
    if not run.ill:
        catalogue = str(Path("catalogue.npy").absolute())
    with run.recorded(4, 2):
        for night in range(3):
            rows = db.from_sequence(range(32 * night, 32 * night + 32), npartitions=32)
            rows.map(lambda row: match(row, catalogue)).max().compute()


def limit_uplink(bytes_per_second: float, dask_worker: Worker) -> None:
    """Let a worker send at most some bytes per second."""
    send, lock = dask_worker.handlers["get_data"], asyncio.Lock()

    async def get_data(comm: Comm, keys: list[str], **message: Any) -> Any:
        tasks = dask_worker.state.tasks
        nbytes = sum(tasks[key].get_nbytes() for key in keys if key in tasks)
        async with lock:
            await asyncio.sleep(nbytes / bytes_per_second)
        return await send(comm, keys=keys, **message)

    dask_worker.handlers["get_data"] = get_data


def read_records(number: int) -> np.ndarray:
    time.sleep(0.015)
    return np.full(9 * MEGABYTE, number, dtype="u1")


def fit_station(records: np.ndarray, number: int) -> float:
    time.sleep(about(0.6, "station", number))
    return float(records[number])


@illness(cause("transfers", "fit_station"))
def archive_mounted_on_one_worker(run: Run) -> None:
    """75 records of 9 MB are fitted on 6 workers that send 65 MB/s each; all records are read
    by worker 0 and sent to the others, for which the program asks, or each is read where
    it is needed."""
    prepare = partial(Client.run, function=limit_uplink, bytes_per_second=65e6)
    with run.recorded(6, memory="4GB", prepare=prepare) as client:
        workers = [run.address(0)] if run.ill else None
        records = client.map(read_records, range(75), workers=workers, priority=9 * run.ill)
        fits = client.map(fit_station, records, range(75))
        client.submit(summarize, fits).result()


PRELOAD = """
import numpy
from final_plain_programs import use_old_version

def dask_setup(worker):
    if worker.name == 3:
        use_old_version(worker, numpy, "1.24.2")
"""


def use_old_version(worker: Worker, package: Any, version: str) -> None:
    """Let packages be found in a folder of the user first, where one of them is old."""
    folder = Path(worker.local_directory) / "user-site"
    name = package.__name__
    facts = folder / f"{name}-{version}.dist-info" / "METADATA"
    facts.parent.mkdir(parents=True)
    facts.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    sys.path.insert(0, str(folder))
    package.__version__ = version
    versions._version_cached.cache_clear()


@illness(cause("version-mismatch"), saves=None)
def old_numpy_on_one_worker(run: Run) -> None:
    """100 simulations and correlations on 4 workers with 2 threads; worker 3 has NumPy 1.24.2,
    and all others have the version of the client."""
    config = {"distributed.worker.preload": [PRELOAD] if run.ill else []}
    with run.recorded(4, 2, config=config):
        samples = [dask.delayed(simulate)(number) for number in range(100)]
        pairs = zip(samples, samples[1:] + samples[:1], strict=True)
        tree([dask.delayed(correlate)(*pair) for pair in pairs]).compute()


# -- two illnesses ---------------------------------------------------------------------------


class Sentences:
    """Text in many Python objects, of which 100 MB are pickled, or unpickled, in a second."""

    def __init__(self, number: int) -> None:
        self.number, self.text = number, b"x" * 12 * MEGABYTE

    def __sizeof__(self) -> int:
        return len(self.text)

    def __getstate__(self) -> dict[str, Any]:
        time.sleep(len(self.text) / 100e6)
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        time.sleep(len(state["text"]) / 100e6)
        self.__dict__.update(state)


def read_corpus(number: int) -> Sentences:
    time.sleep(about(0.35, "corpus", number))
    return Sentences(number)


def count_words(sentences: Sentences, *_before: Any) -> int:
    time.sleep(about(0.25, "words", sentences.number))
    return len(sentences.text)


def build_vocabulary(counts: list[int], seconds: float) -> int:
    time.sleep(seconds)
    return sum(counts)


@illness(cause("spilling"), cause("low-parallelism", "build_vocabulary"))
def memory_limits_of_another_cluster(run: Run) -> None:
    """Words of 66 texts of 12 MB are counted twice on 3 workers with 2 threads and 4 GB, of
    which 5 % may be used before they spill, or 60 %; one task of 4.5 s between the passes
    builds a vocabulary, or 11 tasks do."""
    target = 0.05 if run.ill else 0.6
    config = {
        "distributed.worker.memory.target": target,
        "distributed.worker.memory.spill": 0.7,
    }
    with run.recorded(3, 2, "4GB", config) as client:
        texts = client.map(read_corpus, range(66))
        counts = client.map(count_words, texts)
        size = 66 if run.ill else 6
        built = [
            client.submit(build_vocabulary, group, 4.5 * size / 66)
            for group in groups(counts, size)
        ]
        vocabulary = client.submit(build_vocabulary, built, 0.02)
        again = [client.submit(count_words, text, vocabulary) for text in texts]
        client.submit(summarize, again).result()


def register_run(number: int, folder: str) -> int:
    """Process a run and write to a database, which is locked at the first attempt at some."""
    time.sleep(about(0.4, "run", number) * STATE.get("factor", 1.0))
    if folder and number % 5 == 2:
        mark = Path(folder) / str(number)
        if not mark.exists():
            mark.touch()
            raise sqlite3.OperationalError("database is locked")
    return number


@illness(cause("retries", "OperationalError", "register_run"), cause("slow-host", "127.0.0.3"))
def locked_database_and_an_old_host(run: Run) -> None:
    """150 runs of 0.4 s on three hosts with two workers; a fifth of them fails once because a
    database is locked, and those on 127.0.0.3 take 2.4 times as long."""
    folder = Path.cwd() / "attempts"
    folder.mkdir()
    hosts = tuple(f"127.0.0.{number}" for number in (1, 1, 2, 2, 3, 3))
    with run.recorded(hosts=hosts, prepare=on_workers(run, 4, 5, factor=2.4)) as client:
        marks = str(folder) if run.ill else ""
        runs = [client.submit(register_run, number, marks, retries=4) for number in range(150)]
        client.submit(summarize, runs).result()


# -- controls --------------------------------------------------------------------------------


def warp(raster: np.ndarray, block_info: Any = None) -> np.ndarray:
    number = block_info[0]["chunk-location"] if block_info else 0
    time.sleep(about(0.3, "warp", number))
    return raster * 2.0


@illness()
def control_rasters(run: Run) -> None:
    """An array of 12 by 12 rasters of 0.3 s, and its means in rows and columns, on 4 workers
    with 2 threads."""
    with run.recorded(4, 2):
        rasters = da.ones((1_200, 1_200), chunks=(100, 100))
        warped = rasters.map_blocks(warp, dtype=float, meta=np.zeros((0, 0)))
        dask.compute(warped.mean(axis=0), warped.mean(axis=1))


@illness()
def control_results_as_they_come(run: Run) -> None:
    """A client keeps 30 fits of 0.3 s in flight on 5 workers with 2 threads until 240 are done;
    every tenth result is processed further, in a task of 0.2 s."""
    with run.recorded(5, 2) as client:
        numbers = iter(range(240))
        running = as_completed([client.submit(fit_model, next(numbers)) for _ in range(30)])
        further = []
        for future in running:
            number = next(numbers, None)
            if number is not None:
                running.add(client.submit(fit_model, number))
                if number % 10 == 0:
                    further.append(client.submit(digitize, future))
        wait(further)
