"""A second set of programs of an author who had not read the rules.

The author had read the ids and titles of the findings, and `blind_programs`. The causes are
those that the first set lacks. Durations vary by 30 % around their mean.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import awkward as ak
import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import fsspec.implementations.http  # noqa: F401 - or each worker imports it
import numpy as np
import pandas as pd
import storage
import uproot
from blind_programs import DiskTable, merge, merged, update_environment, vary
from coffea import processor
from coffea.nanoevents import BaseSchema
from distributed import WorkerPlugin, as_completed, wait
from illness import Run, cause, illness
from tornado.ioloop import PeriodicCallback

if TYPE_CHECKING:
    from distributed import Client, Worker

MEGABYTE = 1_000_000

#: Environment variable of a worker: bytes that each drawn figure leaks.
FIGURE = "BLIND_MORE_FIGURE_BYTES"

#: Figures that were not closed.
FIGURES: list[np.ndarray] = []

Fileset = dict[str, list[str]]


# -- workers ---------------------------------------------------------------------------------


class Metrics(WorkerPlugin):
    """Push metrics to a server from the event loop, blocking until it answers."""

    name = "metrics"

    def __init__(self, answer_seconds: float, slow_after: float) -> None:
        self.answer_seconds = answer_seconds
        self.slow_after = slow_after

    def setup(self, worker: Worker) -> None:
        self.callback = PeriodicCallback(self.push, 1_500)
        worker.loop.add_callback(self.callback.start)

    def push(self) -> None:
        is_slow = time.time() >= self.slow_after
        time.sleep(self.answer_seconds if is_slow else 0.005)

    def teardown(self, worker: Worker) -> None:
        self.callback.stop()


def generate(number: int) -> int:
    time.sleep(vary(number, 0.4))
    return number


def reconstruct(number: int) -> float:
    time.sleep(vary(number + 400, 0.25))
    return float(number)


@illness(cause("blocked-event-loop"))
def metrics_that_are_pushed(run: Run) -> None:
    """80 pairs of tasks on 4 workers, which push metrics every 1.5 s, from 5 s on for 0.7 s."""

    def prepare(client: Client) -> None:
        seconds = 0.7 if run.ill else 0.005
        client.register_plugin(Metrics(seconds, time.time() + 5))

    with run.recorded(workers=4, prepare=prepare):
        generated = [dask.delayed(generate)(number) for number in range(80)]
        merged([dask.delayed(reconstruct)(each) for each in generated]).compute()


@contextmanager
def later(*calls: tuple[float, Callable[[], None]]) -> Iterator[None]:
    """Call functions some seconds after the start of a block; wait for them at its end."""
    timers = [Timer(seconds, call) for seconds, call in calls]
    for timer in timers:
        timer.start()
    try:
        yield
    finally:
        for timer in timers:
            timer.join()


def send(run: Run, name: int, number: signal.Signals) -> None:
    """Send a signal to the process of a worker."""
    os.kill(run.pid(name), number)


def read_tile(block: np.ndarray, block_info: Any = None) -> np.ndarray:
    number = block_info[0]["chunk-location"][0] if block_info else 0
    time.sleep(vary(number, 0.5))
    return block + number


def smooth_tile(block: np.ndarray, seed: int, block_info: Any = None) -> np.ndarray:
    number = block_info[0]["chunk-location"][0] if block_info else 0
    time.sleep(vary(seed + number, 0.3))
    return block * 0.5


@illness(cause("killed-workers", "3"))
def node_without_memory(run: Run) -> None:
    """Three passes over 64 tiles on 4 workers; the kernel kills worker 3 at 7.5 and 13.5 s."""
    kill = partial(send, run, 3, signal.SIGKILL)
    with (
        run.recorded(workers=4),
        later(*[(7.5, kill), (13.5, kill)] if run.ill else []),
    ):
        zeros = da.zeros((64 * 100, 100), chunks=(100, 100))
        tiles = zeros.map_blocks(read_tile, dtype=float, meta=np.zeros((0, 0))).persist()
        wait(tiles)
        for turn in range(3):
            meta = np.zeros((0, 0))
            smooth = tiles.map_blocks(smooth_tile, 1_000 * turn, dtype=float, meta=meta)
            smooth.sum().compute()


def step(number: int, parameter: float) -> float:
    time.sleep(vary(number, 0.4))
    return parameter + number


@illness(cause("silent-worker", "2"))
def virtual_machine_that_is_moved(run: Run) -> None:
    """Ten epochs of 16 tasks on 4 workers; worker 2 is stopped from 8 to 14.5 s."""
    stop = partial(send, run, 2, signal.SIGSTOP)
    go_on = partial(send, run, 2, signal.SIGCONT)
    with (
        run.recorded(workers=4) as client,
        later(*[(8.0, stop), (14.5, go_on)] if run.ill else []),
    ):
        parameter: Any = 0.0
        for turn in range(10):
            numbers = range(100 * turn, 100 * turn + 16)
            steps = [client.submit(step, number, parameter) for number in numbers]
            parameter = client.submit(merge, steps).result()


def read_lines(number: int) -> list[str]:
    time.sleep(vary(number, 0.25))
    return [f"{number},{line},{line * 7 % 13}" for line in range(2_000)]


def parse_lines(lines: list[str]) -> int:
    """Parse in Python, for 130 ms of CPU time."""
    until = time.thread_time() + 0.13
    total = 0
    while time.thread_time() < until:
        for line in lines[:100]:
            total += sum(int(part) for part in line.split(","))
    return total


@illness(cause("gil"))
def parser_in_threads(run: Run) -> None:
    """A bag of 110 parts is read and parsed in Python by 4 threads of one worker, or of 4."""
    workers, threads = (1, 4) if run.ill else (4, 1)
    with run.recorded(workers=workers, threads=threads):
        bag = db.from_sequence(range(110), npartitions=110)
        bag.map(read_lines).map(parse_lines).sum().compute()


def draw_table(number: int) -> DiskTable:
    """Return a table of 8 MB; its figure is not closed."""
    time.sleep(vary(number, 0.35))
    nbytes = int(os.environ.get(FIGURE, "0"))
    if nbytes:
        FIGURES.append(np.ones(nbytes, dtype="u1"))
    return DiskTable(np.ones(8 * MEGABYTE, dtype="u1"))


def compare(table: DiskTable, number: int) -> float:
    time.sleep(vary(number, 0.35))
    return float(table.values[number])


@illness(cause("unmanaged-memory"))
def figures_that_stay_open(run: Run) -> None:
    """60 tables of 8 MB, compared on 3 workers of 750 MB; each leaks 12 MB, or 0."""

    def prepare(client: Client) -> None:
        nbytes = 12 * MEGABYTE if run.ill else 0
        client.run(update_environment, {FIGURE: str(nbytes)})

    with run.recorded(workers=3, memory="750MB", prepare=prepare) as client:
        tables = client.map(draw_table, range(60))
        wait(tables)
        results = client.map(compare, tables, range(100, 160))
        client.submit(merge, results).result()


def propose(number: int) -> float:
    time.sleep(vary(number, 0.6))
    return float(number)


@illness(cause("excess-workers"), saves="core")
def search_with_five_in_flight(run: Run) -> None:
    """A search of 120 trials of 0.6 s, of which 5 are in flight, on 8 workers, or on 5."""
    with run.recorded(workers=8 if run.ill else 5) as client:
        numbers = iter(range(120))
        running = as_completed([client.submit(propose, next(numbers)) for _ in range(5)])
        for _future in running:
            number = next(numbers, None)
            if number is not None:
                running.add(client.submit(propose, number))


def preprocess(number: int) -> int:
    time.sleep(vary(number, 0.5))
    return number


def infer(number: int) -> float:
    time.sleep(vary(number + 600, 0.5))
    return float(number)


async def offer_gpu(dask_worker: Worker) -> None:
    await dask_worker.set_resources(GPU=1)


@illness(cause("idle-threads"))
def inference_that_needs_a_gpu(run: Run) -> None:
    """80 inputs are prepared on 6 workers; 2 of them have the GPU for the inference, or all."""

    def prepare(client: Client) -> None:
        names = range(2 if run.ill else 6)
        client.run(offer_gpu, workers=[run.address(name) for name in names])

    with run.recorded(workers=6, prepare=prepare) as client:
        inputs = client.map(preprocess, range(80))
        scores = client.map(infer, inputs, resources={"GPU": 1})
        client.submit(merge, scores).result()


# -- the client ------------------------------------------------------------------------------


def read_day(number: int, variable: int) -> pd.DataFrame:
    time.sleep(vary(100 * variable + number, 0.35))
    values = np.random.default_rng(number).random(300)
    return pd.DataFrame({"station": np.arange(300) % 12, "value": values})


@illness(cause("client-gaps"))
def plots_between_computations(run: Run) -> None:
    """Nine means of a dataframe of 20 days; the client draws each for 0.3 to 1.5 s, or 0.02."""
    meta = pd.DataFrame({"station": [0], "value": [0.0]})
    with run.recorded(workers=4):
        for variable in range(9):
            read = partial(read_day, variable=variable)
            frame = dd.from_map(read, range(20), meta=meta)
            frame.groupby("station").value.mean().compute()
            time.sleep(0.3 + 0.15 * variable if run.ill else 0.02)


def score(table: np.ndarray, number: int) -> float:
    time.sleep(vary(number, 0.4))
    return float(table[number])


@illness(cause("large-graph"))
def table_in_each_call(run: Run) -> None:
    """Eight rounds of 16 calls on 4 workers, each with a table of 32 MB, or a future of it."""
    with run.recorded(workers=4) as client:
        table: Any = np.random.default_rng(1).random(4 * MEGABYTE)
        if not run.ill:
            table = client.scatter(table, broadcast=True)
        for turn in range(8):
            numbers = range(100 * turn, 100 * turn + 16)
            scores = [client.submit(score, table, number) for number in numbers]
            client.submit(merge, scores).result()


# -- chunks of coffea ------------------------------------------------------------------------


class Counts(processor.ProcessorABC):
    """Count events with two good leptons; an event takes `seconds`, times its dataset's factor.

    Parameters
    ----------
    seconds : float
    factors : dict, optional
        Factors of datasets whose events take more or less time.
    chunk_seconds : float
        Time to load the corrections, which each chunk loads again.
    """

    def __init__(
        self,
        seconds: float,
        factors: dict[str, float] | None = None,
        chunk_seconds: float = 0.0,
    ) -> None:
        self.seconds = seconds
        self.factors = factors or {}
        self.chunk_seconds = chunk_seconds

    def process(self, events: ak.Array) -> dict[str, dict[str, int]]:
        dataset = events.metadata["dataset"]
        time.sleep(self.chunk_seconds)
        good = (events.lepton_pt > 20) & (abs(events.lepton_eta) < 2.4)
        count = int(ak.sum(good & (events.met > 15)))
        seconds = self.seconds * self.factors.get(dataset, 1.0) * len(events)
        time.sleep(vary(events.metadata["entrystart"] + len(events), seconds))
        return {dataset: {"events": len(events), "good": count}}

    def postprocess(self, accumulator: Any) -> Any:
        return accumulator


def write_files(folder: Path, events: dict[str, list[int]], seed: int) -> Fileset:
    """Write files with the given numbers of events, unless they exist; return their names."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    fileset: Fileset = {}
    for dataset, sizes in events.items():
        for number, size in enumerate(sizes):
            name = f"{dataset}_{number}.root"
            fileset.setdefault(dataset, []).append(name)
            if (folder / name).exists():
                continue
            branches = ("lepton_pt", "lepton_eta", "lepton_phi", "met", "weight", "mass")
            with uproot.recreate(folder / f".{name}") as file:
                file["Events"] = {
                    branch: random.exponential(25, size).astype("f4") for branch in branches
                }
            (folder / f".{name}").rename(folder / name)
    return fileset


def count(client: Client, fileset: Fileset, url: str, counts: Counts, chunksize: int) -> None:
    """Run the processor with coffea."""
    run = processor.Runner(
        processor.DaskExecutor(client=client, status=False),
        chunksize=chunksize,
        schema=BaseSchema,
    )
    files = {dataset: [f"{url}/{name}" for name in names] for dataset, names in fileset.items()}
    run(files, counts, treename="Events")


def sizes(files: int, events: int, seed: int) -> list[int]:
    """Return event counts of files, varied by 30 %."""
    return [int(vary(seed + number, events)) for number in range(files)]


class Redirector(storage.Handler):
    """A fast file server that needs time to locate a file when it is opened."""

    # Send each answer as one packet.
    wbufsize = -1
    disable_nagle_algorithm = True

    locate_seconds = 0.0

    def do_GET(self) -> None:  # noqa: N802
        if self.headers.get("Range", "").startswith("bytes=0-"):
            time.sleep(self.locate_seconds)
        super().do_GET()


def serve_located(folder: Path, seconds: float, connection: Any) -> None:
    handler = type("Located", (Redirector,), {"locate_seconds": seconds})
    bound = partial(handler, folder=folder, latency=0.001, speed=5e8, slow=None)
    with ThreadingHTTPServer(("127.0.0.1", 0), bound) as server:
        connection.send(f"http://127.0.0.1:{server.server_port}")
        server.serve_forever()


@contextmanager
def located(folder: Path, seconds: float = 0.0) -> Iterator[str]:
    """Serve a folder from another process, behind a redirector; yield the URL."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    server = context.Process(target=serve_located, args=(folder, seconds, sender), daemon=True)
    server.start()
    try:
        yield receiver.recv()
    finally:
        server.kill()
        server.join()


@illness(cause("chunks-too-small"))
def corrections_for_each_chunk(run: Run) -> None:
    """Six files in chunks of 1,000 events, or of 5,000; each chunk loads corrections, 0.1 s."""
    folder = run.data / "blind_more"
    events = {"DY": sizes(3, 36_000, 1), "WW": sizes(3, 32_000, 11)}
    fileset = write_files(folder, events, 1)
    chunksize = 1_000 if run.ill else 5_000
    with located(folder) as url, run.recorded() as client:
        count(client, fileset, url, Counts(1.6e-4, chunk_seconds=0.1), chunksize)


@illness(cause("expensive-dataset", "TTbar"), saves=None)
def dataset_with_many_jets(run: Run) -> None:
    """Eight files of four datasets; an event of one dataset takes 3.5 times as long."""
    folder = run.data / "blind_more_jets"
    events = {
        "DY": sizes(2, 20_000, 21),
        "TTbar": sizes(2, 18_000, 31),
        "WW": sizes(2, 20_000, 41),
        "Wjets": sizes(2, 22_000, 51),
    }
    fileset = write_files(folder, events, 2)
    factors = {"TTbar": 3.5 if run.ill else 1.0, "WW": 1.2}
    with located(folder) as url, run.recorded() as client:
        count(client, fileset, url, Counts(3e-4, factors), 2_500)


@illness(cause("file-opening"))
def many_files_behind_a_redirector(run: Run) -> None:
    """80 files of 3,000 events; the redirector needs 0.25 s to locate each of them, or 5 ms."""
    folder = run.data / "blind_more_small"
    fileset = write_files(folder, {"Data": sizes(80, 3_000, 61)}, 3)
    with (
        located(folder, 0.25 if run.ill else 0.005) as url,
        run.recorded() as client,
    ):
        count(client, fileset, url, Counts(1.8e-4), 5_000)


# -- controls --------------------------------------------------------------------------------


@illness()
def control_tiles(run: Run) -> None:
    """A mean over 120 tiles, read and smoothed in 0.8 s each, on 3 workers with 2 threads."""
    with run.recorded(workers=3, threads=2):
        tiles = da.zeros((120 * 100, 100), chunks=(100, 100))
        for function in (read_tile, partial(smooth_tile, seed=7)):
            tiles = tiles.map_blocks(function, dtype=float, meta=np.zeros((0, 0)))
        tiles.mean().compute()


@illness()
def control_two_datasets(run: Run) -> None:
    """Seven files of two datasets of 0.28 and 0.34 ms per event, in chunks of 3,000 events."""
    folder = run.data / "blind_more_control"
    events = {"DY": sizes(4, 24_000, 71), "WW": sizes(3, 24_000, 81)}
    fileset = write_files(folder, events, 4)
    with located(folder) as url, run.recorded() as client:
        count(client, fileset, url, Counts(2.8e-4, {"WW": 1.2}), 3_000)
