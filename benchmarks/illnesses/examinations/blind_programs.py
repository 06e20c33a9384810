"""Programs to examine the findings with, by an author who had not read the rules.

In the reference of the findings, the author had seen the thresholds of the ids from
`blocked-event-loop` to `killed-workers` in alphabetical order; none of them is an expected
cause.

The causes are realistic in strength and timing: some occur only in the second half of a run,
for one prefix among several, or on one host. Durations vary by 30 % around their mean, most
runs have a start-up phase, and many end with a merge.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from coffea_programs import Analysis, analyze, at_url, warm_up, write_fileset
from distributed import SchedulerPlugin, as_completed, wait
from illness import Run, cause, illness
from plain_programs import MEGABYTE, is_first, limit_network
from storage import served

if TYPE_CHECKING:
    from dask.delayed import Delayed
    from distributed import Client

#: Environment variables of a worker: the factor by which it is slower than others, and the
#: time from which it is (seconds since 1970).
SLOWNESS, SLOW_AFTER = "BLIND_SLOWNESS", "BLIND_SLOW_AFTER"

#: Environment variable of a worker: bytes that each task leaks.
LEAK = "BLIND_LEAK_BYTES"

#: Memory that leaking tasks leave behind, and the time until it is freed.
LEFT: list[np.ndarray] = []
LEFT_SECONDS = 18.0

#: Bytes per second of the disk for spilled tables.
DISK_SPEED = 40 * MEGABYTE

#: Events of a file.
EVENTS = 20_000


def vary(number: int, seconds: float) -> float:
    """Return a duration within 30 % of a mean, deterministic for each number."""
    return seconds * np.random.default_rng(number).uniform(0.7, 1.3)


def slowness() -> float:
    is_slow = time.time() >= float(os.environ.get(SLOW_AFTER, "inf"))
    return float(os.environ.get(SLOWNESS, "1")) if is_slow else 1.0


def set_variables(client: Client, workers: list[str], **variables: Any) -> None:
    values = {name: str(value) for name, value in variables.items()}
    client.run(update_environment, values, workers=workers)


def update_environment(values: dict[str, str]) -> None:
    os.environ.update(values)


def merge(parts: list[float]) -> float:
    time.sleep(0.05)
    return float(sum(parts))


def merged(parts: list[Delayed], fan_in: int = 8) -> Delayed:
    """Merge parts in a tree."""
    while len(parts) > 1:
        parts = [
            dask.delayed(merge)(parts[first : first + fan_in])
            for first in range(0, len(parts), fan_in)
        ]
    return parts[0]


# -- workers and hosts -----------------------------------------------------------------------


def load_points(number: int) -> np.ndarray:
    time.sleep(vary(number, 0.3))
    return np.random.default_rng(number).random(100_000)


def assign(points: np.ndarray, center: float, number: int) -> float:
    time.sleep(vary(number, 0.4) * slowness())
    return float(np.abs(points - center).mean())


def update(parts: list[float]) -> float:
    time.sleep(0.05)
    return sum(parts) / len(parts)


@illness(cause("slow-worker", "3"))
def throttled_in_the_second_half(run: Run) -> None:
    """Ten rounds of k-means on 12 blocks; worker 3 of 4 takes 3 times as long from 9 s on."""

    def prepare(client: Client) -> None:
        variables = {SLOWNESS: 3.0 if run.ill else 1.0, SLOW_AFTER: time.time() + 9}
        set_variables(client, [run.address(3)], **variables)

    with run.recorded(workers=4, prepare=prepare) as client:
        blocks = client.map(load_points, range(12))
        wait(blocks)
        center = 0.5
        for turn in range(10):
            numbers = range(100 * turn, 100 * turn + 12)
            parts = client.map(assign, blocks, [center] * 12, numbers)
            center = client.submit(update, parts).result()


def fetch(number: int) -> np.ndarray:
    time.sleep(vary(number, 0.4) * slowness())
    return np.full(20_000, number, dtype="f4")


def skim(values: np.ndarray, number: int) -> float:
    time.sleep(vary(number + 1_000, 0.35))
    return float(values.mean())


@illness(cause("slow-host", "127.0.0.2"))
def host_that_fetches_slowly(run: Run) -> None:
    """96 pairs of tasks on three hosts with two workers; one host fetches 4 times as slowly."""

    def prepare(client: Client) -> None:
        workers = [run.address(2), run.address(3)]
        variables = {SLOWNESS: 4.0 if run.ill else 1.0, SLOW_AFTER: 0}
        set_variables(client, workers, **variables)

    hosts = tuple(f"127.0.0.{number}" for number in (1, 1, 2, 2, 3, 3))
    with run.recorded(hosts=hosts, prepare=prepare):
        fetched = [dask.delayed(fetch)(number) for number in range(96)]
        skimmed = [dask.delayed(skim)(each, number) for number, each in enumerate(fetched)]
        merged(skimmed).compute()


def read_month(number: int) -> pd.DataFrame:
    time.sleep(vary(number, 0.5))
    values = np.random.default_rng(number).random(500)
    return pd.DataFrame({"station": np.arange(500) % 20, "rain": values})


@illness(cause("late-workers"))
def batch_jobs_that_wait(run: Run) -> None:
    """A dataframe of 150 months; 2 of 7 workers join at once, 3 at 7 s and 2 at 11 s."""
    with run.recorded(workers=2 if run.ill else 7):
        timers = [Timer(7.0, run.cluster.scale, [5]), Timer(11.0, run.cluster.scale, [7])]
        for timer in timers if run.ill else []:
            timer.start()
        frame = dd.from_map(read_month, range(150), meta=read_month(0))
        frame.groupby("station").rain.mean().compute()
        for timer in timers if run.ill else []:
            timer.join()


def decode(number: int) -> int:
    nbytes = int(os.environ.get(LEAK, "0"))
    if nbytes:
        LEFT.append(np.ones(nbytes, dtype="u1"))
        timer = Timer(LEFT_SECONDS, LEFT.pop, [0])
        timer.daemon = True
        timer.start()
    time.sleep(vary(number, 0.4))
    return number


@illness(cause("paused-workers unmanaged-memory", "1"))
def library_that_caches(run: Run) -> None:
    """130 tasks on 3 workers of 800 MB; worker 1 caches 30 MB of each for 18 s."""

    def prepare(client: Client) -> None:
        leak = 30 * MEGABYTE if run.ill else 0
        set_variables(client, [run.address(1)], **{LEAK: leak})

    with run.recorded(workers=3, memory="800MB", prepare=prepare):
        merged([dask.delayed(decode)(number) for number in range(130)]).compute()


class DiskTable:
    """A table that is written to and read from a slow disk when it is spilled."""

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


def load_table(number: int) -> DiskTable:
    time.sleep(vary(number, 0.25))
    return DiskTable(np.ones(20 * MEGABYTE, dtype="u1"))


def summarize(table: DiskTable, number: int) -> float:
    time.sleep(vary(number + 500, 0.4))
    return float(table.values[number])


@illness(cause("spilling"))
def persisted_tables(run: Run) -> None:
    """64 tables of 20 MB are persisted, then summarized, on 4 workers of 650 MB, or of 2 GB."""
    with run.recorded(workers=4, memory="650MB" if run.ill else "2GB") as client:
        tables = client.map(load_table, range(64))
        wait(tables)
        sums = client.map(summarize, tables, range(64))
        client.submit(merge, sums).result()


# -- tasks, graphs and the scheduler ---------------------------------------------------------


def simulate(number: int) -> float:
    time.sleep(vary(number, 0.4))
    return float(number)


def upload(value: float, number: int, folder: str) -> float:
    """Upload a result; the server does not answer to the first attempt of some."""
    if folder and number % 10 < 7 and is_first(folder, number):
        time.sleep(1.2)
        raise TimeoutError(f"no answer for part {number}")
    time.sleep(vary(number + 300, 0.5))
    return value


@illness(cause("retries", "TimeoutError"))
def server_that_times_out(run: Run) -> None:
    """120 simulations and uploads on 6 workers; of the last 60, 42 uploads time out once."""
    attempts = Path.cwd() / "attempts"
    attempts.mkdir()
    with run.recorded(workers=6) as client:
        uploads = []
        for number in range(120):
            folder = str(attempts) if run.ill and number >= 60 else ""
            value = client.submit(simulate, number)
            uploads.append(client.submit(upload, value, number, folder, retries=3))
        client.submit(merge, uploads).result()


def prepare_inputs(number: int) -> int:
    time.sleep(vary(number, 0.4))
    return number


def fit_region(number: int, seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@illness(cause("long-tail", "fit_region"))
def largest_fits_last(run: Run) -> None:
    """73 fits of 0.4 to 6.5 s on 6 threads, in ascending order of duration, or reversed."""
    short = np.random.default_rng(5).uniform(0.4, 0.8, 70)
    seconds = [*sorted(map(float, short)), 2.5, 4.0, 6.5]
    with run.recorded(workers=3, threads=2) as client:
        client.gather(client.map(prepare_inputs, range(24)))
        fits = client.map(fit_region, range(73), seconds if run.ill else seconds[::-1])
        client.submit(merge, fits).result()


def measure(number: int) -> float:
    time.sleep(vary(number, 0.5))
    return float(number)


def align(values: list[float], seconds: float) -> float:
    time.sleep(seconds)
    return sum(values)


def correct(number: int, shift: float) -> float:
    time.sleep(vary(number + 200, 0.5))
    return number + shift


@illness(cause("low-parallelism", "align"))
def alignment_between_two_passes(run: Run) -> None:
    """Two passes of 60 tasks on 6 workers; between them one task of 7 s, or six of 7/6 s."""
    with run.recorded(workers=6):
        values = [dask.delayed(measure)(number) for number in range(60)]
        parts = [values] if run.ill else [values[first::6] for first in range(6)]
        aligned = [dask.delayed(align)(part, 7.0 / len(parts)) for part in parts]
        shift = dask.delayed(merge)(aligned)
        merged([dask.delayed(correct)(number, shift) for number in range(60)]).compute()


def train(results: list[float], megabytes: int) -> np.ndarray:
    time.sleep(0.6)
    return np.ones(megabytes * MEGABYTE, dtype="u1")


def evaluate(model: np.ndarray, turn: int, number: int) -> float:
    time.sleep(vary(100 * turn + number, 0.5))
    return float(model[number])


@illness(cause("transfers", "evaluate"))
def model_of_each_round(run: Run) -> None:
    """Five rounds of training and 36 evaluations; 6 workers fetch a model of 48 MB, or 1."""

    def prepare(client: Client) -> None:
        client.run(limit_network, 30 * MEGABYTE)

    with run.recorded(workers=6, prepare=prepare) as client:
        results: list[Any] = []
        for turn in range(5):
            model = client.submit(train, results, 48 if run.ill else 1)
            results = [client.submit(evaluate, model, turn, number) for number in range(36)]
            wait(results)


class Journal(SchedulerPlugin):
    """Rewrite a journal of all finished tasks at the end of each, in the event loop."""

    def __init__(self, entry_seconds: float) -> None:
        self.entry_seconds = entry_seconds
        self.entries = 0

    def transition(self, key: str, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        if finish == "memory":
            self.entries += 1
            time.sleep(self.entries * self.entry_seconds)


def sample(number: int) -> int:
    time.sleep(vary(number, 0.35))
    return number


@illness(cause("scheduler-saturated"))
def journal_that_grows(run: Run) -> None:
    """500 tasks of 0.35 s on 12 threads; a plugin blocks the scheduler up to 80 ms for each."""

    def prepare(client: Client) -> None:
        client.register_plugin(Journal(1.6e-4 if run.ill else 0.0), name="journal")

    with run.recorded(workers=4, threads=3, prepare=prepare) as client:
        client.gather(client.map(sample, range(500)))


def load_grid(number: int) -> np.ndarray:
    time.sleep(vary(number, 0.6))
    return np.random.default_rng(number).random(1_000)


def fill_cell(grid: np.ndarray, cell: int) -> float:
    time.sleep(0.001)
    return float(grid[cell])


def fill_row(grid: np.ndarray) -> float:
    return sum(fill_cell(grid, cell) for cell in range(100))


@illness(cause("short-tasks", "fill_cell"))
def a_task_for_each_cell(run: Run) -> None:
    """48 grids are loaded; each of their 100 cells is then filled by a task, or all by one."""
    with run.recorded(workers=4) as client:
        grids = client.persist([dask.delayed(load_grid)(number) for number in range(48)])
        wait(grids)
        if run.ill:
            cells = [
                dask.delayed(fill_cell)(grid, cell) for grid in grids for cell in range(100)
            ]
            sums = [dask.delayed(merge)(cells[first::48]) for first in range(48)]
        else:
            sums = [dask.delayed(fill_row)(grid) for grid in grids]
        merged(sums).compute()


# -- chunks of coffea ------------------------------------------------------------------------


@illness(cause("slow-file", "ZZ_1.root"))
def file_on_a_busy_disk(run: Run) -> None:
    """Six files on a server, which delivers one of them at 200 kB/s."""
    folder = run.data / "blind"
    fileset = write_fileset(folder, {"WJets": 3, "ZZ": 3})
    slow = (
        {"latency_seconds": 0.02, "bytes_per_second": 200_000, "slow_file": "ZZ_1.root"}
        if run.ill
        else {}
    )
    with served(folder, **slow) as url, run.recorded(prepare=warm_up) as client:
        analyze(client, at_url(fileset, url), Analysis(3e-4, factors={"ZZ": 1.3}))


@illness(cause("slow-storage", "127.0.0.3"))
def one_site_of_three(run: Run) -> None:
    """Three datasets at three sites; one site delivers 450 kB/s for each file."""
    folder = run.data / "blind"
    names = {"WJets": 3, "ZZ": 3, "QCD": 3}
    fileset = write_fileset(folder, names)
    slow = {"latency_seconds": 0.03, "bytes_per_second": 450_000} if run.ill else {}
    with (
        served(folder) as first,
        served(folder, host="127.0.0.2") as second,
        served(folder, host="127.0.0.3", **slow) as third,
        run.recorded(workers=3, threads=2, prepare=warm_up) as client,
    ):
        urls = dict(zip(names, (first, third, second), strict=True))
        files = {name: at_url(fileset, url)[name] for name, url in urls.items()}
        analyze(client, files, Analysis(3e-4, factors={"WJets": 0.8}))


@illness(cause("repeated-baskets"))
def files_merged_into_one_basket(run: Run) -> None:
    """Chunks of 2,500 events of six files at 3 MB/s; baskets have 20,000 events, or 2,500."""
    basket_events = EVENTS if run.ill else 2_500
    folder = run.data / f"blind_{basket_events}"
    fileset = write_fileset(folder, {"WJets": 3, "ZZ": 3}, basket_events=basket_events)
    with (
        served(folder, bytes_per_second=3 * MEGABYTE) as url,
        run.recorded(prepare=warm_up) as client,
    ):
        analyze(client, at_url(fileset, url), Analysis(2.5e-4))


# -- controls --------------------------------------------------------------------------------


@illness()
def control_pairs(run: Run) -> None:
    """96 pairs of tasks of 0.75 s in total on 5 workers, and a tree of merges."""
    with run.recorded(workers=5):
        fetched = [dask.delayed(fetch)(number) for number in range(96)]
        skimmed = [dask.delayed(skim)(each, number) for number, each in enumerate(fetched)]
        merged(skimmed).compute()


@illness()
def control_proposals(run: Run) -> None:
    """A search of 150 trials of 0.5 s on 3 workers with 2 threads; 12 are in flight."""
    with run.recorded(workers=3, threads=2) as client:
        numbers = iter(range(150))
        running = as_completed([client.submit(measure, next(numbers)) for _ in range(12)])
        for _future in running:
            number = next(numbers, None)
            if number is not None:
                running.add(client.submit(measure, number))


@illness()
def control_three_datasets(run: Run) -> None:
    """Seven files of three datasets on a fast server, whose events cost 0.2 to 0.3 ms."""
    folder = run.data / "blind"
    fileset = write_fileset(folder, {"WJets": 3, "ZZ": 2, "QCD": 2})
    with served(folder) as url, run.recorded(prepare=warm_up) as client:
        factors = {"WJets": 0.8, "ZZ": 1.2}
        analyze(client, at_url(fileset, url), Analysis(2.5e-4, factors=factors))
