"""Closing programs of plain Dask, by an author who had read neither the rules nor their tests.

The author knew the ids and the titles of the findings, and the other programs. Nearly all
work is sleeping, even while it holds the GIL. Durations vary by 25 % around their mean.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import dask.bag as db
import numpy as np
from distributed import Client, WorkerPlugin
from final_plain_programs import FREE, HOLDING, STATE, about, limit_uplink, set_state
from illness import Run, cause, illness

if TYPE_CHECKING:
    from dask.delayed import Delayed

MEGABYTE = 1_000_000


def collect(parts: list[Any]) -> int:
    time.sleep(0.04)
    return len(parts)


def tree(parts: list[Delayed], fan_in: int = 8) -> Delayed:
    """Collect in a tree."""
    while len(parts) > 1:
        groups = [parts[first : first + fan_in] for first in range(0, len(parts), fan_in)]
        parts = [dask.delayed(collect)(group) for group in groups]
    return parts[0]


# -- the client ------------------------------------------------------------------------------


def render(frame: int, scene: int) -> int:
    time.sleep(about(0.32, "render", frame, scene))
    return frame


@illness(cause("client-gaps"))
def script_that_looks_now_and_then(run: Run) -> None:
    """Six scenes of 24 frames of 0.32 s, one scene after the other, on 4 workers with 2
    threads; the script checks every 2 s whether the scene is done, or every 0.05 s."""
    with run.recorded(4, 2) as client:
        for scene in range(6):
            frames = client.map(render, range(24), [scene] * 24)
            while not all(frame.done() for frame in frames):
                time.sleep(2.0 if run.ill else 0.05)


class Ensemble:
    """Boosted trees, whose predictions are a method."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def predict(self, row: int) -> float:
        """Predict from values that are given or read from a file."""
        values = self.values
        if isinstance(values, str):
            values = np.load(values, mmap_mode="r")
        time.sleep(about(0.35, "predict", row))
        return float(values[row])


@illness(cause("large-graph"))
def method_of_a_growing_ensemble(run: Run) -> None:
    """Four rounds of boosting on 3 workers with 2 threads; in each, a bag of 24 partitions is
    mapped with a method of an ensemble that contains 12 MB for each round so far, or that
    reads them from a file."""
    random = np.random.default_rng(11)
    ensembles: list[Any] = []
    for number in range(1, 5):
        values = random.random(number * 12 * MEGABYTE // 8)
        path = Path(f"ensemble_{number}.npy").absolute()
        np.save(path, values)
        ensembles.append(values if run.ill else str(path))
    with run.recorded(3, 2):
        for values in ensembles:
            rows = db.from_sequence(range(24), npartitions=24)
            rows.map(Ensemble(values).predict).sum().compute()


# -- graphs ----------------------------------------------------------------------------------


def load_block(block: np.ndarray, block_info: Any = None) -> np.ndarray:
    number = block_info[0]["chunk-location"] if block_info else 0
    time.sleep(about(0.45, "load", number))
    return block + 1.0


def spectrum(pencil: np.ndarray, seconds_per_column: float) -> np.ndarray:
    time.sleep(pencil.shape[1] * seconds_per_column)
    return pencil * 2.0


def detect_peaks(block: np.ndarray, block_info: Any = None) -> np.ndarray:
    number = block_info[0]["chunk-location"] if block_info else 0
    time.sleep(about(0.45, "peaks", number))
    return block - 1.0


@illness(cause("low-parallelism", "spectrum"))
def three_pencils_for_a_transform(run: Run) -> None:
    """An array of 32 blocks in time is loaded on 4 workers with 2 threads, then rechunked for a
    transform in time to 3 pencils of 160 columns, or to 16 of 30, and then to 32 blocks
    again, in which peaks are found. A column takes 30 ms in the transform."""
    blank = np.zeros((0, 0))
    with run.recorded(4, 2):
        blocks = da.zeros((480, 480), chunks=(15, 480)).map_blocks(
            load_block, dtype=float, meta=blank
        )
        pencils = blocks.rechunk((480, 160 if run.ill else 30))
        spectra = pencils.map_blocks(spectrum, seconds_per_column=0.03, dtype=float, meta=blank)
        peaks = spectra.rechunk((15, 480)).map_blocks(detect_peaks, dtype=float, meta=blank)
        peaks.max().compute()


#: Points of a scan at which the minimizer does not converge.
DEGENERATE = (117, 126, 131)


def minimize(point: int, seconds_of_limit: float) -> int:
    """Minimize at a point, which takes all allowed iterations if it does not converge."""
    seconds = about(0.3, "minimize", point)
    time.sleep(seconds_of_limit if point in DEGENERATE else seconds)
    return point


@illness(cause("long-tail", "minimize"))
def minimizer_without_a_limit(run: Run) -> None:
    """A scan of 136 points of 0.3 s on 3 workers with 2 threads, in a tree; three of the last
    20 points do not converge, and the minimizer gives up after 4.2 s, or after 0.5 s."""
    with run.recorded(3, 2):
        limit = 4.2 if run.ill else 0.5
        points = [dask.delayed(minimize)(point, limit) for point in range(136)]
        tree(points).compute()


def read_strip(number: int, nbytes: int) -> np.ndarray:
    time.sleep(about(0.3, "strip", number))
    return np.full(nbytes, number, dtype="u1")


def butterfly(mine: np.ndarray, other: np.ndarray, number: int, stage: int) -> np.ndarray:
    time.sleep(about(0.25, "butterfly", number, stage))
    return mine if stage % 2 else other


@illness(cause("transfers", "butterfly"))
def butterflies_of_whole_strips(run: Run) -> None:
    """32 strips on 4 workers with 2 threads that send 25 MB/s each; in each of 5 stages, each
    strip is combined with another that is 1, 2, 4, 8 or 16 strips away. A strip has 6 MB,
    or 60 kB."""
    prepare = partial(Client.run, function=limit_uplink, bytes_per_second=25e6)
    with run.recorded(4, 2, prepare=prepare) as client:
        nbytes = 6 * MEGABYTE if run.ill else 60_000
        strips = client.map(read_strip, range(32), [nbytes] * 32)
        for stage in range(5):
            others = [strips[number ^ 2**stage] for number in range(32)]
            strips = client.map(butterfly, strips, others, range(32), stage=stage)
        client.submit(collect, strips).result()


# -- workers ---------------------------------------------------------------------------------


def fetch(number: int) -> int:
    time.sleep(about(0.3, "fetch", number))
    return number


def decode(number: int, holds_gil: bool) -> int:
    """Decode 30 records with a library whose binding may hold the GIL."""
    library = HOLDING if holds_gil else FREE
    for record in range(30):
        library.usleep(int(about(10_000, "record", number, record)))
    return number


def select(number: int) -> int:
    time.sleep(about(0.2, "select", number))
    return number


@illness(cause("gil", "decode"))
def decoder_between_downloads(run: Run) -> None:
    """90 downloads of 0.3 s are decoded for 0.3 s and selected for 0.2 s on 3 workers with 4
    threads; the decoder holds the GIL, or releases it."""
    with run.recorded(3, 4):
        downloads = [dask.delayed(fetch)(number) for number in range(90)]
        decoded = [dask.delayed(decode)(download, run.ill) for download in downloads]
        tree([dask.delayed(select)(records) for records in decoded], 12).compute()


class Journal(WorkerPlugin):
    """Write a line for each result to a file, and wait until it is on disk."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def transition(self, key: str, start: str, finish: str, **_facts: Any) -> None:
        if finish == "memory":
            time.sleep(self.seconds)


def simulate(number: int) -> int:
    time.sleep(about(0.35, "simulate", number))
    return number


def reconstruct(number: int) -> int:
    time.sleep(about(0.3, "reconstruct", number))
    return number


@illness(cause("blocked-event-loop"))
def journal_on_a_network_disk(run: Run) -> None:
    """100 simulations and reconstructions on 3 workers with 4 threads; a plugin writes a line
    for each result in the event loop of the worker, which takes 0.07 s, or 1 ms."""

    def prepare(client: Client) -> None:
        client.register_plugin(Journal(0.07 if run.ill else 0.001), name="journal")

    with run.recorded(3, 4, prepare=prepare) as client:
        samples = client.map(simulate, range(100))
        client.submit(collect, client.map(reconstruct, samples)).result()


def gradient(weights: float, shard: int, step: int) -> float:
    time.sleep(about(0.4, "gradient", shard, step) * STATE.get("factor", 1.0))
    return weights + shard


def average(gradients: list[float]) -> float:
    time.sleep(0.02)
    return sum(gradients) / len(gradients)


@illness(cause("slow-worker", "2"))
def training_in_step_with_one_slow_worker(run: Run) -> None:
    """Eight steps of training on 4 workers with 2 threads; each worker has 4 shards of the
    data, whose gradients of 0.4 s are averaged after each step. Worker 2 takes 1.7 times as
    long."""

    def prepare(client: Client) -> None:
        client.run(set_state, factor=1.7 if run.ill else 1.0, workers=[run.address(2)])

    with run.recorded(4, 2, prepare=prepare) as client:
        weights: Any = 0.0
        for step in range(8):
            gradients = [
                client.submit(gradient, weights, shard, step, workers=[run.address(shard % 4)])
                for shard in range(16)
            ]
            weights = client.submit(average, gradients)
        weights.result()


def solve(mesh: int, folder: str) -> int:
    """Solve, and request a license for the export, which some get at the second attempt."""
    time.sleep(about(0.45, "solve", mesh))
    mark = Path(folder) / str(mesh)
    if folder and mesh % 2 and not mark.exists():
        mark.touch()
        raise RuntimeError("no license is free")
    return mesh


@illness(cause("retries", "RuntimeError", "solve"))
def license_at_the_end_of_a_task(run: Run) -> None:
    """96 meshes are solved in 0.45 s, in a tree on 4 workers with 2 threads; half of the tasks
    get no license at their end and are retried, as annotated, or all get one."""
    folder = Path.cwd() / "attempts"
    folder.mkdir()
    marks = str(folder) if run.ill else ""
    with run.recorded(4, 2) as client:
        with dask.annotate(retries=3):
            meshes = [dask.delayed(solve)(mesh, marks) for mesh in range(96)]
        client.compute(tree(meshes), optimize_graph=False).result()


# -- a control -------------------------------------------------------------------------------


def vary(number: int, variation: int) -> int:
    time.sleep(about(0.25, "vary", number, variation))
    return number + variation


@illness()
def control_variations(run: Run) -> None:
    """55 simulations of 0.35 s, three variations of each and a tree of their results, on 5
    workers with 2 threads."""
    with run.recorded(5, 2):
        samples = [dask.delayed(simulate)(number) for number in range(55)]
        varied = [dask.delayed(vary)(sample, kind) for sample in samples for kind in range(3)]
        tree(varied, 11).compute()
