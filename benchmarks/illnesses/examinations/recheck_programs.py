"""Programs to examine the findings with after the rules were extended for earlier sets.

They were recorded and examined once. They use interfaces that the other programs do not (slow
submission, scheduler callbacks, adaptive clusters, blocked arrays), so that the same causes
appear in different runs.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import dask
import dask.array as da
import dask.bag as db
import numpy as np
import pandas as pd
from coffea_programs import Analysis, analyze, at_url, warm_up, write_fileset
from distributed import SchedulerPlugin
from illness import Run, cause, illness
from plain_programs import MEGABYTE, SLOWNESS, is_first, limit_network, set_slowness
from storage import served
from tornado.ioloop import PeriodicCallback

if TYPE_CHECKING:
    from distributed import Client, Scheduler


# -- workers ---------------------------------------------------------------------------------


def denoise(block: np.ndarray) -> np.ndarray:
    time.sleep(0.4 * float(os.environ.get(SLOWNESS, "1")))
    return block - block.mean()


@illness(cause("slow-worker", "2"))
def slow_worker_of_an_array(run: Run) -> None:
    """The variance of an array of 144 blocks of 0.4 s; worker 2 of 4 is 2.6 times as slow."""

    def prepare(client: Client) -> None:
        set_slowness(client, 2.6 if run.ill else 1.0, [run.address(2)])

    with run.recorded(workers=4, threads=2, prepare=prepare):
        da.random.random((1_200, 1_200), chunks=(100, 100)).map_blocks(denoise).var().compute()


def render(frame: int) -> int:
    time.sleep(0.5)
    return frame


@illness(cause("late-workers"))
def adaptive_cluster(run: Run) -> None:
    """180 frames of 0.5 s on an adaptive cluster of 1 to 6 workers that adapts every 4 s."""
    with run.recorded(workers=1 if run.ill else 6) as client:
        if run.ill:
            run.cluster.adapt(minimum=1, maximum=6, interval="4s", target_duration="2s")
        client.gather(client.map(render, range(180), pure=False))


def convert(number: int, exits: bool, folder: str) -> np.ndarray:
    time.sleep(0.5)
    if exits and is_first(folder, number):
        os._exit(3)
    return np.zeros(100_000) + number


@illness(cause("killed-workers"))
def library_that_exits(run: Run) -> None:
    """A tree of sums over 150 conversions on 5 workers; three of them exit the process once."""
    attempts = Path.cwd() / "attempts"
    attempts.mkdir()
    with run.recorded(workers=5):
        parts = [
            dask.delayed(convert)(number, run.ill and number in {40, 80, 120}, str(attempts))
            for number in range(150)
        ]
        dask.delayed(len)([dask.delayed(np.sum)(part) for part in parts]).compute()


def parse_lines(number: int) -> int:
    line = ",".join(map(str, range(number, number + 400)))
    return sum(sum(int(word) % 7 for word in line.split(",")) for _ in range(1_500))


@illness(cause("gil"))
def text_in_threads(run: Run) -> None:
    """A bag of 160 partitions of text, in five threads of one worker, or in two workers."""
    workers, threads = (1, 5) if run.ill else (2, 1)
    with run.recorded(workers=workers, threads=threads):
        bag = db.from_sequence(range(160), npartitions=160).map(parse_lines)
        bag.max().compute(scheduler="distributed")


# -- graphs, client and scheduler ------------------------------------------------------------


def integrate(cell: int, seconds: float) -> float:
    time.sleep(seconds)
    return float(cell)


@illness(cause("long-tail low-parallelism", "integrate"))
def one_long_cell(run: Run) -> None:
    """60 cells of 0.5 s on 6 threads, then their sum; one more takes 10 s, or is split."""
    seconds = [0.5] * 60 + [0.5] * 20
    if run.ill:
        seconds = [10.0] + [0.5] * 60
    with run.recorded(workers=3, threads=2):
        cells = [dask.delayed(integrate)(cell, each) for cell, each in enumerate(seconds)]
        dask.delayed(sum)(cells).compute()


def score(row: dict) -> float:
    time.sleep(0.6)
    return float(row["number"])


@illness(cause("client-gaps"))
def rows_from_a_database(run: Run) -> None:
    """90 tasks of 0.6 s on 6 workers; the client fetches the row of each for 0.25 s first."""
    with run.recorded(workers=6) as client:
        futures = []
        for number in range(90):
            time.sleep(0.25 if run.ill else 0.0)
            futures.append(client.submit(score, {"number": number}))
        client.gather(futures)


class Accounting(SchedulerPlugin):
    """A plugin that evaluates accounts on the event loop of the scheduler."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def start(self, scheduler: Scheduler) -> None:
        self.callback = PeriodicCallback(lambda: time.sleep(self.seconds), 300)
        self.callback.start()


@illness(cause("scheduler-saturated"))
def accounting_on_the_scheduler(run: Run) -> None:
    """300 tasks of 0.2 s on 8 workers; every 0.3 s, the scheduler is blocked for 0.8 s."""
    with run.recorded(workers=8) as client:
        if run.ill:
            client.register_plugin(Accounting(0.8))
        client.gather(client.map(integrate, range(300), seconds=0.2))


def fit_table(table: pd.DataFrame, turn: int) -> float:
    time.sleep(0.25)
    return float(table.x[turn])


@illness(cause("large-graph"))
def tables_in_the_graph(run: Run) -> None:
    """Three graphs of 36 fits, each of 9 parts of a table of 80 MB, on 4 workers."""
    table = pd.DataFrame(
        np.random.default_rng(8).random((MEGABYTE, 10)), columns=[*"xabcdefghi"]
    )
    parts = np.array_split(np.arange(len(table)), 9)
    with run.recorded() as client:
        tables = [table.iloc[rows].reset_index(drop=True) for rows in parts]
        inputs = tables if run.ill else client.scatter(tables, broadcast=True)
        for _ in range(3):
            fits = [dask.delayed(fit_table)(each, turn) for each in inputs for turn in range(4)]
            dask.compute(*fits)


def simulate_field(number: int) -> np.ndarray:
    time.sleep(0.3)
    return np.full(12 * MEGABYTE, number, dtype="u1")


def stack(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    time.sleep(0.15)
    return np.maximum(left, right)


@illness(cause("transfers", "stack"))
def differences_of_neighbours(run: Run) -> None:
    """48 fields of 12 MB are combined with their neighbours twice, at 12 MB/s."""

    def prepare(client: Client) -> None:
        client.run(limit_network, (12 if run.ill else 2_000) * MEGABYTE)

    with run.recorded(workers=4, prepare=prepare):
        fields = [dask.delayed(simulate_field)(number) for number in range(48)]
        for distance in (7, 19):
            fields = [
                dask.delayed(stack)(field, fields[(number + distance) % 48])
                for number, field in enumerate(fields)
            ]
        dask.compute(*[dask.delayed(len)(field) for field in fields])


# -- coffea ----------------------------------------------------------------------------------


@illness(cause("chunks-too-large"))
def seven_whole_files(run: Run) -> None:
    """Seven files of 12,000 events are a chunk each on 5 workers, instead of six."""
    shape = {"events": 12_000, "basket_events": 1_000}
    fileset = write_fileset(run.data / "seven", {"ZZ": 3, "ZW": 4}, **shape)
    with run.recorded(workers=5, prepare=warm_up) as client:
        chunksize = 12_000 if run.ill else 2_000
        analyze(client, fileset, Analysis(1e-3), chunksize=chunksize)


@illness(cause("skipped-files", "Higgs"), saves=None)
def lost_files(run: Run) -> None:
    """Two of twelve files are empty, which skipbadfiles hides."""
    shape = {"events": 6_000, "basket_events": 1_500}
    fileset = write_fileset(run.data / "twelve_more", {"Higgs": 5, "Diboson": 7}, **shape)
    if run.ill:
        for part in (0, 3):
            path = Path.cwd() / f"Higgs_{part}.root"
            path.touch()
            fileset["Higgs"][part] = str(path)
    with run.recorded(workers=3, threads=2, prepare=warm_up) as client:
        analyze(client, fileset, Analysis(4e-4), chunksize=1_500, skipbadfiles=True)


@illness(cause("slow-storage", "127.0.0.1"))
def overloaded_server(run: Run) -> None:
    """Ten files on a server that delivers 250 kB/s for each file instead of 500 MB/s."""
    folder = run.data / "ten"
    shape = {"events": 9_000, "basket_events": 3_000}
    fileset = write_fileset(folder, {"TTW": 4, "TTZ": 6}, **shape)
    speed = {"bytes_per_second": 250_000} if run.ill else {}
    with (
        served(folder, **speed) as url,
        run.recorded(workers=4, prepare=warm_up) as client,
    ):
        analyze(client, at_url(fileset, url), Analysis(1.5e-4), chunksize=3_000)


# -- healthy controls ------------------------------------------------------------------------


@illness()
def control_blocks(run: Run) -> None:
    """An array of 150 blocks of 0.4 s, its rows and its sum, on 3 workers with 2 threads."""
    with run.recorded(workers=3, threads=2):
        blocks = da.ones((1_500, 1_000), chunks=(100, 100)).map_blocks(denoise)
        (blocks.sum(axis=1) + blocks.mean()).sum().compute()


@illness()
def control_two_hosts(run: Run) -> None:
    """Three datasets in chunks of 1,500 events on two hosts with two workers each."""
    shape = {"events": 9_000, "basket_events": 1_500}
    fileset = write_fileset(run.data / "three_kinds", {"WW": 4, "WZ": 5, "ZZ": 3}, **shape)
    hosts = ("127.0.0.1", "127.0.0.2") * 2
    with run.recorded(hosts=hosts, prepare=warm_up) as client:
        analyze(client, fileset, Analysis(5e-4), chunksize=1_500)
