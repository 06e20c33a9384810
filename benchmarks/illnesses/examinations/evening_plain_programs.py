"""Evening examination of plain Dask: delayed, futures, bags, arrays, dataframes and an actor.

They were written by an author who had read neither the rules nor their tests, who knew the ids
of findings and the other programs. Nearly all work sleeps, and durations vary by 25 % around
their mean.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, as_completed, get_worker, wait
from final_plain_programs import FREE, HOLDING, STATE, about, limit_uplink, on_workers
from illness import Run, cause, illness
from independent_plain_programs import conclude, stop_between, tree
from outside_plain_programs import warm_up
from plain_exam_programs import limit_disk

if TYPE_CHECKING:
    from dask.delayed import Delayed
    from distributed import Actor, Scheduler, Worker

MEGABYTE = 1_000_000

# -- workers and hosts -----------------------------------------------------------------------


def download_night(night: int) -> int:
    """Download two images, which are refused at first if the token has expired."""
    for image in range(2):
        time.sleep(STATE.get("backoff_seconds", 0.0))
        time.sleep(about(0.2, "download", night, image))
    return night


def subtract(night: int, before: int) -> int:
    time.sleep(about(0.3, "subtract", night, before))
    return night - before


@illness(cause("slow-worker", "1"))
def token_that_expired_on_one_worker(run: Run) -> None:
    """165 nights of two images of 0.2 s, from each of which the night before is subtracted in
    0.3 s, on 3 workers with 3 threads; the token of worker 1 has expired, so that it repeats
    each download without it after 0.8 s, or all tokens are valid."""
    with run.recorded(3, 3, prepare=on_workers(run, 1, backoff_seconds=0.8)):
        nights = [dask.delayed(download_night)(night) for night in range(166)]
        pairs = zip(nights[1:], nights[:-1], strict=True)
        tree([dask.delayed(subtract)(*pair) for pair in pairs], 11).compute()


def mesh_region(region: int) -> list[float]:
    time.sleep(about(0.4, "mesh", region))
    return [float(region)] * 1_000


def couple(regions: list[list[float]], region: int) -> float:
    time.sleep(about(0.4, "couple", region))
    return sum(values[0] for values in regions)


@illness(cause("silent-worker", "2"))
def debugger_that_is_attached_twice(run: Run) -> None:
    """100 regions of 0.4 s, which are coupled with both neighbours in 0.4 s, on 4 workers with
    2 threads; somebody attaches a debugger to worker 2 from 3 to 8 s and from 9.5 to 14.5 s,
    which stops the process, or nobody does."""
    with run.recorded(4, 2) as client:
        timers = []
        for first in (3.0, 9.5) if run.ill else ():
            timers += stop_between([run.pid(2)], first, first + 5.0)
        regions = client.map(mesh_region, range(100))
        coupled = [
            client.submit(couple, [regions[at - 1], regions[at], regions[(at + 1) % 100]], at)
            for at in range(100)
        ]
        client.submit(conclude, coupled).result()
        for timer in timers:
            timer.join()


def expose(frame: int) -> int:
    time.sleep(about(0.3, "expose", frame))
    return frame


def store(frame: int) -> int:
    """Store a frame in a file, after a scan of the file if the host is so configured."""
    time.sleep(about(0.25, "store", frame))
    time.sleep(about(STATE.get("scan_seconds", 0.0), "scan", frame))
    return frame


def mosaic(frames: list[int]) -> int:
    time.sleep(about(0.5, "mosaic", frames))
    return len(frames)


@illness(cause("slow-host", "127.0.0.9"))
def host_with_a_virus_scanner(run: Run) -> None:
    """180 frames are exposed in 0.3 s and stored in 0.25 s, and each 4 of them become a mosaic
    in 0.5 s, on 5 workers with 2 threads, of which 2 are on 127.0.0.9; there a virus scanner
    holds each file for 1.3 s when it is stored, or there is none."""
    hosts = ("127.0.0.7", "127.0.0.9", "127.0.0.7", "127.0.0.9", "127.0.0.7")
    prepare = on_workers(run, 1, 3, scan_seconds=1.3)
    with run.recorded(threads=2, hosts=hosts, prepare=prepare) as client:
        stored = client.map(store, client.map(expose, range(180)))
        mosaics = [client.submit(mosaic, stored[at : at + 4]) for at in range(0, 180, 4)]
        client.submit(conclude, mosaics).result()


async def offer_memory(units: float, dask_worker: Worker) -> None:
    await dask_worker.set_resources(MEMORY=units)


def detect(scene: int) -> int:
    time.sleep(about(0.35, "detect", scene))
    return scene


def deblend(scene: int) -> int:
    time.sleep(about(0.3, "deblend", scene))
    return scene


@illness(cause("idle-threads"))
def memory_asked_for_in_excess(run: Run) -> None:
    """170 scenes are searched in 0.35 s and deblended in 0.3 s on 3 workers with 4 threads,
    which offer 4 units of memory each; the deblending asks for 4 of them, as a precaution, so
    that a worker runs one at a time, or for 1."""

    def prepare(client: Client) -> None:
        client.run(offer_memory, 4.0)

    with run.recorded(3, 4, prepare=prepare) as client:
        units = 4.0 if run.ill else 1.0
        scenes = client.map(detect, range(170))
        wait(client.map(deblend, scenes, resources={"MEMORY": units}))


class Stack:
    """The sum of all shots, which an actor keeps; its method runs in the event loop."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.fold = seconds, 0

    async def add(self, shot: int) -> int:
        time.sleep(about(self.seconds, "add", shot))  # noqa: ASYNC251 - the illness
        self.fold += 1
        return self.fold


def migrate_shot(shot: int, stack: Actor) -> int:
    """Migrate a shot, add it to the stack, and wait until it is added."""
    time.sleep(about(0.45, "shot", shot))
    answer = stack.add(shot)
    if asyncio.iscoroutine(answer):  # the actor is on this worker
        loop = get_worker().loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(answer, loop).result()
    return answer.result()


@illness(cause("blocked-event-loop", "0"))
def actor_that_stacks_in_the_event_loop(run: Run) -> None:
    """200 shots of 0.45 s on 3 workers with 3 threads, which are added to an actor on worker 0;
    the method of the actor is a coroutine that computes for 0.09 s in the event loop, or for
    1 ms."""
    with run.recorded(3, 3) as client:
        seconds = 0.09 if run.ill else 0.001
        stack = client.submit(Stack, seconds, actor=True, workers=[run.address(0)]).result()
        client.submit(conclude, client.map(migrate_shot, range(200), stack=stack)).result()


def read_addresses(part: int) -> pd.DataFrame:
    time.sleep(about(0.3, "addresses", part))
    return pd.DataFrame({"key": np.arange(300) % 20, "value": np.full(300, float(part))})


def normalize_addresses(part: pd.DataFrame, holds_gil: bool) -> pd.DataFrame:
    """Normalize addresses in 25 calls of a library."""
    library = HOLDING if holds_gil else FREE
    if len(part) > 10:
        for call in range(25):
            key = (float(part["value"].iloc[0]), call)
            library.usleep(int(about(10_000, "normalize", key)))
    return part


@illness(cause("gil"))
def addresses_normalized_with_the_gil(run: Run) -> None:
    """A dataframe of 150 partitions on 2 workers with 4 threads, which are read in 0.3 s and
    normalized in 25 calls of 10 ms by a library, whose wrapper holds the GIL, or releases it;
    then they are summed by 20 keys."""
    meta = pd.DataFrame({"key": np.zeros(0, dtype=int), "value": np.zeros(0)})
    with run.recorded(2, 4, prepare=warm_up):
        table = dd.from_map(read_addresses, list(range(150)), meta=meta)
        table = table.map_partitions(normalize_addresses, run.ill, meta=meta)
        table.groupby("key")["value"].sum(split_every=10).compute()


# -- memory ----------------------------------------------------------------------------------


def read_spectra(field: int) -> np.ndarray:
    time.sleep(about(0.3, "spectra", field))
    return np.random.default_rng(field).random(12 * MEGABYTE // 8)


def fit_spectra(spectra: np.ndarray, field: int, keeps_residuals: bool) -> dict[str, Any]:
    time.sleep(about(0.35, "fit", field))
    result: dict[str, Any] = {"redshift": float(spectra[0])}
    if keeps_residuals:
        result["residuals"] = spectra - 0.5
    return result


def calibrate_field(result: dict[str, Any], mean: float, field: int) -> float:
    time.sleep(about(0.25, "calibrate", field))
    return result["redshift"] - mean


def check_fit(result: dict[str, Any], field: int) -> float:
    time.sleep(about(0.12, "check", field))
    return result["redshift"]


def mean_redshift(redshifts: list[float]) -> float:
    time.sleep(0.03)
    return sum(redshifts) / len(redshifts)


@illness(cause("spilling"))
def fits_that_return_their_residuals(run: Run) -> None:
    """84 fields of 12 MB are read in 0.3 s, fitted in 0.35 s, checked in 0.12 s and calibrated
    in 0.25 s to the mean of all, on 3 workers with 2 threads and 1 GB, of which 20 % may be
    used before results are spilled to a disk of 80 MB/s; each fit returns its residuals of
    12 MB, too, or only a number."""
    config = {
        "distributed.worker.memory.target": 0.2,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
    }
    prepare = partial(Client.run, function=limit_disk)
    with run.recorded(3, 2, "1GB", config, prepare=prepare) as client:
        fits = [
            dask.delayed(fit_spectra)(dask.delayed(read_spectra)(field), field, run.ill)
            for field in range(84)
        ]
        results = client.persist(fits)
        checked = [dask.delayed(check_fit)(fit, at) for at, fit in enumerate(results)]
        mean = dask.delayed(mean_redshift)(checked)
        tree(
            [dask.delayed(calibrate_field)(fit, mean, at) for at, fit in enumerate(results)], 12
        ).compute()


# -- tasks, graphs, the network and the scheduler --------------------------------------------


def read_detector(part: int) -> int:
    time.sleep(about(0.25, "detector", part))
    return part


def add_conditions(part: int, outage: tuple[float, float]) -> int:
    """Ask a service for the conditions, which answers with an error in an outage."""
    time.sleep(about(0.45, "conditions", part))
    if outage[0] < time.time() < outage[1]:
        raise OSError("503: the service is not available")
    return part


@illness(cause("retries", "OSError", "add_conditions"))
def outage_of_a_service(run: Run) -> None:
    """120 parts are read in 0.25 s, and their conditions are added in 0.45 s, on 2 workers with
    3 threads; all requests that end between 3 and 9 s fail, and are repeated at once, as
    annotated, or none fails."""
    with run.recorded(2, 3) as client:
        now = time.time()
        outage = (now + 3.0, now + 9.0) if run.ill else (now, now)
        parts = [dask.delayed(read_detector)(part) for part in range(120)]
        with dask.annotate(retries=60):
            added = [dask.delayed(add_conditions)(part, outage) for part in parts]
        client.compute(tree(added), optimize_graph=False).result()


def sample_voltages(antenna: int, scan: int, nbytes: int) -> np.ndarray:
    time.sleep(about(0.4, "sample", antenna, scan))
    return np.full(nbytes, antenna, dtype="u1")


def correlate(one: np.ndarray, other: np.ndarray, scan: int) -> int:
    time.sleep(about(0.3, "correlate", int(one[0]), int(other[0]), scan))
    return int(one[0]) - int(other[0])


@illness(cause("transfers", "correlate"))
def correlator_of_raw_voltages(run: Run) -> None:
    """Three scans of 14 antennas of 0.4 s, of which all 91 pairs are correlated in 0.3 s, on 4
    workers with 2 threads that send 20 MB/s each; an antenna has 8 MB of raw voltages, or 80 kB
    after a reduction."""
    prepare = partial(Client.run, function=limit_uplink, bytes_per_second=20e6)
    nbytes = 8 * MEGABYTE if run.ill else 80_000
    with run.recorded(4, 2, prepare=prepare) as client:
        visibilities = []
        for scan in range(3):
            voltages = client.map(sample_voltages, range(14), scan=scan, nbytes=nbytes)
            pairs = [(one, other) for one in range(14) for other in range(one)]
            ones, others = zip(*pairs, strict=True)
            visibilities += client.map(
                correlate,
                [voltages[one] for one in ones],
                [voltages[other] for other in others],
                scan=scan,
            )
        client.submit(conclude, visibilities).result()


def update_state(state: float, sensor: int, steps: range) -> float:
    """Update the state of a filter by some measurements, in 12 ms each."""
    for step in steps:
        time.sleep(about(0.012, "update", sensor, step))
    return state + len(steps)


@illness(cause("short-tasks scheduler-saturated", "update_state"))
def filter_with_a_task_for_each_measurement(run: Run) -> None:
    """64 sensors with 96 measurements each, which update a filter one after the other in 12 ms,
    on 2 workers with 4 threads; a task updates by one measurement, or by 32."""
    size = 1 if run.ill else 32
    with run.recorded(2, 4):
        states: list[Any] = [0.0] * 64
        for first in range(0, 96, size):
            steps = range(first, first + size)
            states = [
                dask.delayed(update_state)(state, sensor, steps)
                for sensor, state in enumerate(states)
            ]
        tree(states).compute()


def train_candidate(best: float, bracket: int, rung: int, candidate: int) -> float:
    """Train a candidate with the budget of a rung."""
    seconds = (0.6, 0.8, 1.2)[rung]
    time.sleep(about(seconds, "train", bracket, rung, candidate))
    return float(candidate)


def promote(scores: list[float]) -> float:
    time.sleep(0.02)
    return max(scores)


def halve(start: Any, bracket: int) -> Delayed:
    """Train 12, then 4, then 1 candidates, with a larger budget each time."""
    best = start
    for rung, candidates in enumerate((12, 4, 1)):
        scores = [
            dask.delayed(train_candidate)(best, bracket, rung, candidate)
            for candidate in range(candidates)
        ]
        best = dask.delayed(promote)(scores)
    return best


@illness(cause("low-parallelism"))
def brackets_of_halving_in_sequence(run: Run) -> None:
    """Five brackets of successive halving with 12, 4 and 1 candidates of 0.6, 0.8 and 1.2 s on
    3 workers with 2 threads; each bracket starts from the best of the one before, or from the
    same point."""
    with run.recorded(3, 2):
        best: Any = 0.0
        brackets = []
        for bracket in range(5):
            best = halve(best if run.ill else 0.0, bracket)
            brackets.append(best)
        dask.delayed(promote)(brackets).compute()


def archive_heartbeats(seconds: float, dask_scheduler: Scheduler) -> None:
    """Write the metrics of each heartbeat to a database before it is handled."""
    handle = dask_scheduler.handlers["heartbeat_worker"]

    def archive_and_handle(*arguments: Any, **keywords: Any) -> Any:
        time.sleep(seconds)
        return handle(*arguments, **keywords)

    dask_scheduler.handlers["heartbeat_worker"] = archive_and_handle


def simulate_beam(block: np.ndarray, block_info: Any = None) -> np.ndarray:
    place = block_info[0]["chunk-location"] if block_info else ()
    time.sleep(about(0.2, "beam", place))
    return block + 1.0


@illness(cause("scheduler-saturated"))
def heartbeats_archived_in_a_database(run: Run) -> None:
    """An array of 25 by 20 beams of 0.2 s, and the maximum of each row, on 5 workers with 2
    threads; the scheduler writes the metrics of each heartbeat to a database in 85 ms, or in
    0.5 ms."""
    seconds = 0.085 if run.ill else 5e-4
    prepare = partial(Client.run_on_scheduler, function=archive_heartbeats, seconds=seconds)
    with run.recorded(5, 2, prepare=prepare):
        beams = da.zeros((250, 200), chunks=(10, 10))
        beams = beams.map_blocks(simulate_beam, dtype=float, meta=np.zeros((0, 0)))
        beams.max(axis=1, split_every=10).compute()


# -- two illnesses ---------------------------------------------------------------------------


def evaluate_design(design: int, generation: int, folder: str) -> float:
    """Evaluate a design by a library, which aborts the process at first for some."""
    time.sleep(about(0.4, "design", design, generation))
    mark = Path(folder) / f"{generation}-{design}"
    if folder and generation % 2 and design in (9, 26) and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGABRT)
    return float(design)


@illness(cause("client-gaps"), cause("killed-workers"))
def evolution_with_an_unstable_library(run: Run) -> None:
    """Seven generations of 32 designs of 0.4 s on 4 workers with 2 threads; a model is trained
    in the client for 0.9 s between the generations, and a library aborts the process of a
    worker twice in each second generation, or the model needs 0.02 s and nothing aborts."""
    folder = Path.cwd() / "aborted"
    folder.mkdir()
    marks = str(folder) if run.ill else ""
    config = {"distributed.scheduler.allowed-failures": 30}
    with run.recorded(4, 2, config=config) as client:
        for generation in range(7):
            designs = client.map(
                evaluate_design, range(32), generation=generation, folder=marks
            )
            client.gather(designs)
            time.sleep(0.9 if run.ill else 0.02)


# -- controls --------------------------------------------------------------------------------


def calibrate_exposure(exposure: int) -> int:
    time.sleep(about(0.2, "exposure", exposure))
    return exposure


def coadd(partitions: list[list[int]]) -> int:
    time.sleep(about(0.4, "coadd", partitions))
    return partitions[0][0]


def extract_catalogue(coadded: int, band: str) -> int:
    time.sleep(about(0.3, "catalogue", coadded, band))
    return coadded


@illness()
def control_surveys(run: Run) -> None:
    """A bag of 204 exposures of 0.3 s, which are calibrated in 0.2 s; each 6 of them are added
    in 0.4 s, and three catalogues of 0.3 s are extracted from each sum, on 3 workers with 3
    threads."""
    with run.recorded(3, 3):
        exposed = db.from_sequence(range(204), npartitions=204).map(expose)
        calibrated = exposed.map(calibrate_exposure).to_delayed()
        coadds = [dask.delayed(coadd)(list(calibrated[at : at + 6])) for at in range(0, 204, 6)]
        catalogues = [
            dask.delayed(extract_catalogue)(coadded, band)
            for coadded in coadds
            for band in ("g", "r", "z")
        ]
        tree(catalogues, 12).compute()


def bound(node: tuple[int, ...]) -> tuple[int, ...]:
    time.sleep(about(0.35, "bound", node))
    return node


@illness()
def control_branch_and_bound(run: Run) -> None:
    """A search of 36 branches on 4 workers with 2 threads; the client divides each node in two
    as soon as its bound is found, in 0.35 s, down to the third level."""
    with run.recorded(4, 2) as client:
        nodes = as_completed([client.submit(bound, (branch,)) for branch in range(36)])
        for found in nodes:
            node = found.result()
            if len(node) < 3:
                for side in range(2):
                    nodes.add(client.submit(bound, (*node, side)))
