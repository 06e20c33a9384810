"""Programs to examine the findings with, written without reading the rules.

They use interfaces that the other programs do not (`as_completed`, coroutines, dataframes,
functions that run on the scheduler), and causes that the other programs lack: crashes instead
of too much memory, a slow client, slow reading by the workers of one host, damaged files.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import uproot
from coffea_programs import (
    AllColumns,
    Analysis,
    analyze,
    at_url,
    warm_up,
    write_file,
    write_fileset,
)
from distributed import as_completed, wait
from fsspec.implementations.http import HTTPFileSystem
from illness import Run, cause, illness
from plain_programs import MEGABYTE, SLOWNESS, is_first, limit_network, set_slowness
from storage import served

if TYPE_CHECKING:
    from distributed import Client


def work(seconds: float) -> None:
    time.sleep(seconds * float(os.environ.get(SLOWNESS, "1")))


def trial(number: int, seconds: float) -> float:
    work(seconds)
    return seconds / (number + 1)


def search(
    client: Client, seconds: Iterable[float], in_flight: int, client_seconds: float = 0.0
) -> None:
    """Submit a trial for each one that ends, as optimizers do."""
    trials = enumerate(seconds)
    first = [client.submit(trial, *next(trials)) for _ in range(in_flight)]
    running = as_completed(first, with_results=True)
    for _future, _loss in running:
        time.sleep(client_seconds)
        following = next(trials, None)
        if following is not None:
            running.add(client.submit(trial, *following))


# -- workers ---------------------------------------------------------------------------------


@illness(cause("slow-worker", "1"))
def slow_worker_of_a_search(run: Run) -> None:
    """A search of 100 trials of 0.3 to 0.7 s on 5 workers; worker 1 is 2.5 times as slow."""

    def prepare(client: Client) -> None:
        set_slowness(client, 2.5 if run.ill else 1.0, [run.address(1)])

    seconds = np.random.default_rng(3).uniform(0.3, 0.7, 100)
    with run.recorded(workers=5, prepare=prepare) as client:
        search(client, map(float, seconds), in_flight=10)


def clean(number: int) -> int:
    work(0.35)
    return number


def model(number: int) -> int:
    work(0.45)
    return number


@illness(cause("slow-host", "127.0.0.3"))
def slow_host_of_three(run: Run) -> None:
    """130 chains of two steps on three hosts with 4 threads; 127.0.0.3 is 1.9 times as slow."""

    def prepare(client: Client) -> None:
        slow = [run.address(4), run.address(5)]
        set_slowness(client, 1.9 if run.ill else 1.0, slow)

    hosts = tuple(f"127.0.0.{host}" for host in (1, 1, 2, 2, 3, 3))
    with run.recorded(threads=2, hosts=hosts, prepare=prepare):
        parts = [dask.delayed(clean)(number) for number in range(130)]
        dask.compute(*[dask.delayed(model)(part) for part in parts])


@illness(cause("late-workers"))
def workers_that_trickle_in(run: Run) -> None:
    """250 tasks of 0.4 s; every 1.5 s, a batch system starts one of six workers."""

    def grow() -> None:
        for workers in range(2, 7):
            time.sleep(1.5)
            run.cluster.scale(workers)

    with run.recorded(workers=1 if run.ill else 6, threads=2):
        batch_system = threading.Thread(target=grow)
        if run.ill:
            batch_system.start()
        dask.compute(*[dask.delayed(trial)(number, 0.4) for number in range(250)])
        if run.ill:
            batch_system.join()


def inspect(number: int) -> int:
    work(0.35)
    return number


@illness(cause("silent-worker", "1"))
def silent_worker_of_a_bag(run: Run) -> None:
    """A bag of 120 partitions of 0.35 s; worker 1 of 3 stands still from 2 s to 10 s."""
    with run.recorded(workers=3, threads=2):
        pid = run.pid(1)
        if run.ill:
            threading.Timer(2.0, os.kill, [pid, signal.SIGSTOP]).start()
            threading.Timer(10.0, os.kill, [pid, signal.SIGCONT]).start()
        bag = db.from_sequence(range(120), npartitions=120).map(inspect)
        bag.sum().compute(scheduler="distributed")


async def fetch(number: int, blocks: bool) -> int:
    """Wait for an answer, with or without blocking the event loop."""
    if blocks:
        time.sleep(0.12)  # noqa: ASYNC251 - the illness
    else:
        await asyncio.sleep(0.12)
    return number


@illness(cause("blocked-event-loop"))
def coroutines_that_block(run: Run) -> None:
    """160 coroutines on 2 workers with 4 threads wait 0.12 s with `time.sleep`."""
    with run.recorded(workers=2, threads=4) as client:
        client.gather(client.map(fetch, range(160), blocks=run.ill))


@illness(cause("excess-workers low-parallelism"), saves="core")
def rounds_of_three_tasks(run: Run) -> None:
    """14 rounds of three tasks of 0.6 s, one after the other, on 9 workers instead of 3."""
    with run.recorded(workers=9 if run.ill else 3) as client:
        for turn in range(14):
            numbers = range(3 * turn, 3 * turn + 3)
            client.gather(client.map(trial, numbers, seconds=0.6))


@illness(cause("version-mismatch"), saves=None)
def workers_with_another_numpy(run: Run) -> None:
    """60 tasks of 0.3 s on 3 workers with another version of NumPy, by its metadata."""
    metadata = Path.cwd() / "packages" / "numpy-1.26.4.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.26.4\n")
    preload = f"import sys; sys.path.insert(0, {str(Path.cwd() / 'packages')!r})"
    config = {"distributed.worker.preload": [preload] if run.ill else []}
    with run.recorded(workers=3, config=config) as client:
        client.gather(client.map(trial, range(60), seconds=0.3))


# -- memory and crashes ----------------------------------------------------------------------


class Image:
    """Data on a file system of 200 MB/s when it is spilled."""

    def __init__(self, pixels: np.ndarray) -> None:
        self.pixels = pixels

    def __sizeof__(self) -> int:
        return self.pixels.nbytes

    def __getstate__(self) -> np.ndarray:
        time.sleep(self.pixels.nbytes / (200 * MEGABYTE))
        return self.pixels

    def __setstate__(self, pixels: np.ndarray) -> None:
        time.sleep(pixels.nbytes / (200 * MEGABYTE))
        self.pixels = pixels


def expose(number: int) -> Image:
    time.sleep(0.3)
    return Image(np.full(40 * MEGABYTE, number, dtype="u1"))


def calibrate(image: Image, turn: int) -> int:
    time.sleep(0.4)
    return image.pixels.nbytes + turn


@illness(cause("spilling"))
def spilling_of_images(run: Run) -> None:
    """Two passes over 36 images of 40 MB on 3 workers with 700 MB and Dask's thresholds."""
    config = {"distributed.worker.memory.pause": 0.9}
    with run.recorded(
        workers=3, threads=2, memory="700MB" if run.ill else "3GB", config=config
    ) as client:
        images = client.persist([dask.delayed(expose)(number) for number in range(36)])
        wait(images)
        for turn in range(2):
            dask.compute(*[dask.delayed(calibrate)(image, turn) for image in images])


def track(number: int, crashes: bool, folder: str) -> np.ndarray:
    time.sleep(0.6)
    if crashes and is_first(folder, number):
        os.kill(os.getpid(), signal.SIGSEGV)
    return np.full(MEGABYTE, number, dtype="u1")


def collect(parts: list[np.ndarray]) -> int:
    return sum(len(part) for part in parts)


@illness(cause("killed-workers"))
def crashes_of_a_library(run: Run) -> None:
    """120 tasks of 0.6 s on 4 workers with 2 threads; two crash the worker (SIGSEGV) once."""
    attempts = Path.cwd() / "attempts"
    attempts.mkdir()
    crashes = [run.ill and number in {50, 90} for number in range(120)]
    with run.recorded(threads=2) as client:
        parts = client.map(track, range(120), crashes, folder=str(attempts))
        client.submit(collect, parts).result()


# -- dataframes ------------------------------------------------------------------------------


def read_part(rows: int) -> pd.DataFrame:
    """Return rows that took 1 ms each."""
    time.sleep(0.001 * rows)
    return pd.DataFrame({"x": np.arange(rows) % 10, "y": 1.0})


def frame(rows: list[int]) -> dd.DataFrame:
    return dd.from_map(read_part, rows, meta=read_part(0))


@illness(cause("long-tail", "read_part"))
def skewed_partitions(run: Run) -> None:
    """29,000 rows of 1 ms; the last of 61 partitions has 5,000 of them instead of 475."""
    rows = [400] * 60 + [5_000] if run.ill else [475] * 60 + [500]
    with run.recorded(workers=2, threads=2):
        frame(rows).groupby("x").y.sum().compute()


def write_table(part: pd.DataFrame) -> pd.DataFrame:
    time.sleep(0.0003 * len(part))
    return part.head(1)


@illness(cause("low-parallelism", "write_table"))
def one_output_partition(run: Run) -> None:
    """48 partitions become one before they are written in 5.8 s, on 6 threads."""
    with run.recorded(workers=3, threads=2):
        table = frame([400] * 48)
        if run.ill:
            table = table.repartition(npartitions=1)
        table.map_partitions(write_table, meta=read_part(0)).compute()


@illness(cause("short-tasks scheduler-saturated"))
def tiny_partitions(run: Run) -> None:
    """12,000 rows of 1 ms in 1,200 partitions instead of 40, on 5 workers."""
    partitions = 1_200 if run.ill else 40
    with run.recorded(workers=5):
        frame([12_000 // partitions] * partitions).y.sum().compute()


def distance(row: pd.Series) -> float:
    return sum(abs(row.x - other) for other in range(25)) ** 0.5 + row.y


def apply_to_rows(part: pd.DataFrame) -> float:
    return float(part.apply(distance, axis=1).sum())


@illness(cause("gil"))
def apply_in_threads(run: Run) -> None:
    """`DataFrame.apply` with a function in Python, in six threads of one worker, or in two."""
    workers, threads = (1, 6) if run.ill else (2, 1)
    table = pd.DataFrame({"x": np.arange(60_000) % 10, "y": 1.0})
    with run.recorded(workers=workers, threads=threads):
        parts = dd.from_pandas(table, npartitions=50)
        dask.compute(*[dask.delayed(apply_to_rows)(part) for part in parts.to_delayed()])


# -- scheduler, graphs and client ------------------------------------------------------------


@illness(cause("scheduler-saturated"))
def functions_on_the_scheduler(run: Run) -> None:
    """200 tasks of 0.15 s on 6 workers; a monitor runs 1.2 s of code on the scheduler."""
    finished = threading.Event()

    def monitor(client: Client) -> None:
        while not finished.wait(0.4):
            client.run_on_scheduler(time.sleep, 1.2)

    with run.recorded(workers=6) as client:
        thread = threading.Thread(target=monitor, args=[client])
        if run.ill:
            thread.start()
        client.gather(client.map(trial, range(200), seconds=0.15))
        finished.set()
        if run.ill:
            thread.join()


def predict(number: int, weights: np.ndarray) -> int:
    time.sleep(0.3)
    return int(weights[number])


@illness(cause("large-graph"))
def weights_in_each_call(run: Run) -> None:
    """80 calls of 0.3 s on 4 workers, each submitted with 15 MB of weights as an argument."""
    weights = np.random.default_rng(4).integers(0, 200, 15 * MEGABYTE, dtype="u1")
    with run.recorded() as client:
        shared = client.scatter(weights, broadcast=True)
        client.gather(
            [
                client.submit(predict, number, weights if run.ill else shared)
                for number in range(80)
            ]
        )


def pair(block: np.ndarray, other: np.ndarray) -> np.ndarray:
    time.sleep(0.3)
    return block + other


@illness(cause("transfers", "pair"))
def array_and_its_transpose(run: Run) -> None:
    """Three times the sum of an array of 36 blocks of 6 MB and its transpose, at 4 MB/s."""

    def prepare(client: Client) -> None:
        client.run(limit_network, (4 if run.ill else 2_000) * MEGABYTE)

    with run.recorded(prepare=prepare) as client:
        array = client.persist(da.ones((5_196, 5_196), chunks=(866, 866)))
        for _ in range(3):
            array = client.persist(array.map_blocks(pair, array.T, dtype=float))
            wait(array)


@illness(cause("client-gaps"))
def client_that_limits_a_search(run: Run) -> None:
    """A search of 60 trials of 0.5 s on 6 workers; the client needs 0.2 s for each result."""
    with run.recorded(workers=6) as client:
        search(client, [0.5] * 60, in_flight=6, client_seconds=0.2 if run.ill else 0.0)


def download(number: int, folder: str) -> int:
    """Fail at the first attempt, at the end of the work."""
    time.sleep(0.7)
    if folder and number % 3 == 0 and is_first(folder, number):
        raise PermissionError(f"token for part {number} has expired")
    return number


@illness(cause("retries", "PermissionError"), cause("client-gaps"))
def retries_and_client_gaps(run: Run) -> None:
    """A third of 24 downloads fails once in each of three graphs; 2.5 s between these."""
    attempts = Path.cwd() / "attempts"
    attempts.mkdir()
    folder = str(attempts) if run.ill else ""
    with run.recorded(workers=2, threads=3) as client:
        for turn in range(3):
            numbers = range(24 * turn, 24 * turn + 24)
            client.gather(client.map(download, numbers, folder=folder, retries=2))
            if run.ill and turn < 2:
                time.sleep(2.5)


# -- coffea ----------------------------------------------------------------------------------


def read_slowly(bytes_per_second: float) -> None:
    """Let this process read from servers slowly, as over a bad link of its host."""
    read = HTTPFileSystem._cat_file

    async def slow_cat_file(self, url: str, *args: Any, **keywords: Any) -> bytes:
        content = await read(self, url, *args, **keywords)
        await asyncio.sleep(0.02 + len(content) / bytes_per_second)
        return content

    HTTPFileSystem._cat_file = slow_cat_file


@illness(cause("slow-storage slow-host", "127.0.0.2"))
def host_with_a_slow_link(run: Run) -> None:
    """Workers on 127.0.0.2 read at 100 kB/s, those on 127.0.0.1 at the speed of the server."""
    folder = run.data / "wjets"
    shape = {"events": 10_000, "basket_events": 2_500}
    fileset = write_fileset(folder, {"Data": 6, "WJets": 4}, **shape)

    def prepare(client: Client) -> None:
        warm_up(client)
        if run.ill:
            slow = [run.address(2), run.address(3)]
            client.run(read_slowly, 100_000, workers=slow)

    hosts = ("127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2")
    with served(folder) as url, run.recorded(hosts=hosts, prepare=prepare) as client:
        analyze(client, at_url(fileset, url), Analysis(2.4e-4))


@illness(cause("chunks-too-large long-tail"))
def one_large_file(run: Run) -> None:
    """One file of 36,000 and five of 6,000 events are a chunk each, on 3 workers, 2 threads."""
    folder = run.data / "uneven"
    files = [write_file(folder / f"Zjets_{part}.root", events=6_000) for part in range(5)]
    large = write_file(folder / "TTbar_0.root", events=36_000, basket_events=3_000)
    fileset = {"Zjets": list(map(str, files)), "TTbar": [str(large)]}
    with run.recorded(workers=3, threads=2, prepare=warm_up) as client:
        chunksize = 100_000 if run.ill else 3_000
        analyze(client, fileset, Analysis(2.5e-4), chunksize=chunksize)


@illness(cause("slow-file", "Data_3.root"))
def file_of_tiny_baskets(run: Run) -> None:
    """One of twelve files has a basket for each event instead of 3,000, on 3 workers."""
    folder = run.data / "twelve"
    shape = {"events": 9_000, "basket_events": 3_000}
    fileset = write_fileset(folder, {"Data": 12}, **shape)
    if run.ill:
        path = run.data / "fragmented" / "Data_3.root"
        write_file(path, events=9_000, basket_events=1)
        fileset["Data"][3] = str(path)
    with run.recorded(workers=3, prepare=warm_up) as client:
        analyze(client, fileset, Analysis(1.2e-4), chunksize=3_000)


@illness(cause("skipped-files", "Signal_1.root", "Signal"), saves=None)
def damaged_file(run: Run) -> None:
    """One of nine files is cut off after 100 kB, which skipbadfiles hides."""
    shape = {"events": 8_000, "basket_events": 2_000}
    fileset = write_fileset(run.data / "nine", {"Signal": 2, "Data": 7}, **shape)
    if run.ill:
        path = Path.cwd() / "Signal_1.root"
        shutil.copy(fileset["Signal"][1], path)
        os.truncate(path, 100_000)
        fileset["Signal"][1] = str(path)
    with run.recorded(workers=2, threads=3, prepare=warm_up) as client:
        analyze(client, fileset, Analysis(5e-4), chunksize=2_000, skipbadfiles=True)


@illness(cause("compression"))
def strong_compression(run: Run) -> None:
    """24 columns in LZMA instead of ZSTD, read in two threads of one worker."""
    name, algorithm = ("lzma_24", uproot.LZMA(4)) if run.ill else ("zstd_24", uproot.ZSTD(1))
    shape = {"events": 30_000, "basket_events": 7_500, "columns": 24}
    fileset = write_fileset(run.data / name, {"MC": 6}, compression=algorithm, **shape)
    with run.recorded(workers=1, threads=2, prepare=warm_up) as client:
        analyze(client, fileset, AllColumns(event_seconds=2e-5), chunksize=7_500)


@illness(cause("client-gaps"))
def a_run_for_each_dataset(run: Run) -> None:
    """Five datasets are analyzed one by one; the client writes plots for 1.3 s each."""
    datasets = dict.fromkeys(("DY", "QCD", "Top", "VV", "Wjets"), 2)
    fileset = write_fileset(run.data / "five", datasets, events=9_000, basket_events=1_500)
    with run.recorded(prepare=warm_up) as client:
        for dataset, files in fileset.items():
            analyze(client, {dataset: files}, Analysis(3e-4), chunksize=1_500)
            if run.ill and dataset != "Wjets":
                time.sleep(1.3)


# -- healthy controls ------------------------------------------------------------------------


@illness()
def control_search(run: Run) -> None:
    """A search of 120 trials of 0.2 to 0.5 s on 4 workers."""
    seconds = np.random.default_rng(5).uniform(0.2, 0.5, 120)
    with run.recorded() as client:
        search(client, map(float, seconds), in_flight=12)


@illness()
def control_frame(run: Run) -> None:
    """A dataframe of 110 partitions of 0.3 to 0.5 s, and its sums, on 5 workers."""
    rows = np.random.default_rng(6).integers(300, 500, 110)
    with run.recorded(workers=5):
        frame([int(number) for number in rows]).groupby("x").y.sum().compute()


@illness()
def control_uneven_files(run: Run) -> None:
    """Files of 6,000 and 36,000 events in small chunks from a server, on 6 threads."""
    folder = run.data / "uneven"
    files = [write_file(folder / f"Zjets_{part}.root", events=6_000) for part in range(5)]
    large = write_file(folder / "TTbar_0.root", events=36_000, basket_events=3_000)
    fileset = {"Zjets": list(map(str, files)), "TTbar": [str(large)]}
    with (
        served(folder) as url,
        run.recorded(workers=2, threads=3, prepare=warm_up) as client,
    ):
        analyze(client, at_url(fileset, url), Analysis(7e-4), chunksize=3_000)
