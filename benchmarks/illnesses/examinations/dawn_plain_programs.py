"""Dawn programs of plain Dask.

They were written by an author who had read neither the rules nor their tests, who knew the
other programs and the ids that they name. Nearly all work is sleeping. Durations scatter by
about a quarter around their median, with a longer tail above it.
"""

from __future__ import annotations

import os
import signal
import time
import zlib
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, as_completed, wait
from distributed.diagnostics.plugin import SchedulerPlugin
from final_plain_programs import FREE, HOLDING, STATE, groups, limit_uplink, on_workers
from illness import Run, cause, illness
from outside_plain_programs import warm_up
from plain_exam_programs import limit_disk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dask.delayed import Delayed
    from distributed import Future, Scheduler, Worker

MEGABYTE = 1_000_000


def scatter(seconds: float, *key: Any) -> float:
    """Return a duration around a median, the same for the same key."""
    normal = np.random.default_rng(zlib.crc32(repr(key).encode())).normal()
    return seconds * float(np.exp(0.25 * np.clip(normal, -2.0, 2.0)))


def chance(*key: Any) -> float:
    """Return a number from 0 to 1, the same for the same key."""
    return zlib.crc32(repr(key).encode()) / 2**32


def finish(parts: list[Any]) -> int:
    time.sleep(0.03)
    return len(parts)


def tree(parts: list[Delayed], fan_in: int = 10) -> Delayed:
    """Finish in a tree."""
    while len(parts) > 1:
        parts = [dask.delayed(finish)(group) for group in groups(parts, fan_in)]
    return parts[0]


# -- workers and hosts -----------------------------------------------------------------------


def unpack_file(number: int) -> int:
    time.sleep(scatter(0.15, "unpack", number))
    return number


def reconstruct_file(number: int) -> int:
    """Reconstruct a file; the cache of conditions is filled again if they were evicted."""
    if chance("evicted", number) < STATE.get("evicted_fraction", 0.0):
        time.sleep(scatter(1.7, "conditions", number))
    time.sleep(scatter(0.45, "reconstruct", number))
    return number


@illness(cause("slow-host", "127.0.0.4"))
def host_with_a_small_cache_of_conditions(run: Run) -> None:
    """130 files are unpacked in 0.15 s and reconstructed in 0.45 s on three hosts with two
    workers; the cache of 127.0.0.4 is too small for the conditions, so that every second
    reconstruction there loads them again in 1.7 s, or it is as large as that of the others."""
    hosts = tuple(f"127.0.0.{number}" for number in (1, 4, 6, 6, 4, 1))
    prepare = on_workers(run, 1, 4, evicted_fraction=0.5)
    with run.recorded(hosts=hosts, prepare=prepare):
        files = [dask.delayed(unpack_file)(number) for number in range(130)]
        tree([dask.delayed(reconstruct_file)(file) for file in files]).compute()


def segment_image(number: int, kills: bool) -> np.ndarray:
    """Segment an image; one image makes the process so large that the kernel kills it."""
    time.sleep(scatter(0.4, "segment", number))
    if kills:
        time.sleep(0.6)
        os.kill(os.getpid(), signal.SIGKILL)
    return np.full(MEGABYTE, number % 200, dtype="u1")


def measure_cells(image: np.ndarray, number: int) -> int:
    time.sleep(scatter(0.4, "cells", number))
    return int(image[0])


@illness(cause("killed-workers"))
def image_that_kills_each_worker(run: Run) -> None:
    """150 images are segmented in 0.4 s on 5 workers with 2 threads, and the cells of all
    images that succeeded are measured in 0.4 s; the kernel kills each worker that gets image
    110, four times until Dask gives up, or that image is like the others."""
    with run.recorded(5, 2) as client:
        kills = [run.ill and number == 110 for number in range(150)]
        images = client.map(segment_image, range(150), kills)
        wait(images)
        good = [number for number, image in enumerate(images) if image.status == "finished"]
        client.gather(client.map(measure_cells, [images[number] for number in good], good))


def ask_gpu(seconds: float, dask_worker: Worker) -> None:
    """Add a metric to the heartbeat of a worker, for which a program must be run."""

    def utilization(_worker: Worker) -> int:
        time.sleep(seconds)
        return 0

    dask_worker.metrics["gpu"] = utilization


def denoise(number: int) -> np.ndarray:
    time.sleep(scatter(0.22, "denoise", number))
    return np.full(20_000, number, dtype="f4")


def register_pair(one: np.ndarray, other: np.ndarray) -> float:
    time.sleep(scatter(0.2, "register", float(one[0]), float(other[0])))
    return float(one[0] - other[0])


@illness(cause("blocked-event-loop"))
def gpu_asked_at_each_heartbeat(run: Run) -> None:
    """220 images are denoised in 0.22 s, and each is registered to the one before and to
    another in 0.2 s, on 3 workers with 4 threads; a metric of the workers runs a program at
    each heartbeat, which needs 0.45 s in the event loop, or 2 ms."""

    def prepare(client: Client) -> None:
        client.run(ask_gpu, 0.45 if run.ill else 0.002)

    with run.recorded(3, 4, prepare=prepare) as client:
        images = client.map(denoise, range(220))
        pairs = client.map(register_pair, images, images[-1:] + images[:-1])
        pairs += client.map(register_pair, images, images[53:] + images[:53])
        client.submit(finish, pairs).result()


# -- memory and the network ------------------------------------------------------------------


def expose_field(number: int) -> np.ndarray:
    time.sleep(scatter(0.3, "expose", number))
    return np.full(6 * MEGABYTE, number, dtype="u1")


def match_stars(field: np.ndarray, regions: list[Any]) -> float:
    """Match with regions of a catalogue, which are given or read from files."""
    if isinstance(regions[0], str):
        regions = [np.load(region, mmap_mode="r") for region in regions]
    time.sleep(scatter(0.35, "match", int(field[0])))
    return float(sum(region[0] for region in regions))


@illness(cause("spilling"))
def catalogue_sent_to_every_worker(run: Run) -> None:
    """90 fields of 6 MB are exposed in 0.3 s and matched in 0.35 s with 3 of 30 regions of a
    catalogue of 360 MB, on 4 workers with 2 threads and 1.5 GB, of which 20 % may be used
    before data are spilled to a disk of 80 MB/s; the catalogue is sent to every worker
    first, or is read from files."""
    config = {
        "distributed.worker.memory.target": 0.2,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
    }
    regions: list[Any] = [np.full(12 * MEGABYTE, number, dtype="u1") for number in range(30)]
    paths = [str(Path(f"region_{number}.npy").absolute()) for number in range(30)]
    for path, region in zip(paths, regions, strict=True):
        np.save(path, region)
    prepare = partial(Client.run, function=limit_disk)
    with run.recorded(4, 2, "1.5GB", config, prepare=prepare) as client:
        catalogue = client.scatter(regions, broadcast=True) if run.ill else paths
        fields = client.map(expose_field, range(90))
        needed = [[catalogue[(7 * at + step) % 30] for step in (0, 1, 11)] for at in range(90)]
        matches = [
            client.submit(match_stars, field, some)
            for field, some in zip(fields, needed, strict=True)
        ]
        del fields
        client.submit(finish, matches).result()


def read_block(number: int, nbytes: int, seconds: float) -> np.ndarray:
    time.sleep(scatter(seconds, "block", number))
    return np.full(nbytes, number, dtype="u1")


def products(one: np.ndarray, other: np.ndarray, number: int, seconds: float) -> np.ndarray:
    time.sleep(scatter(seconds, "products", number))
    return np.full(1_000, int(one[0]) * int(other[-1]), dtype="f8")


@illness(cause("transfers"))
def covariance_of_blocks_of_columns(run: Run) -> None:
    """The covariance of 240 MB is computed on 4 workers with 2 threads that send 20 MB/s each;
    the data are in 20 blocks of columns, all 210 pairs of which are multiplied in 0.3 s, or
    in 80 blocks of rows, each of which is multiplied with itself in 0.79 s."""
    prepare = partial(Client.run, function=limit_uplink, bytes_per_second=20e6)
    with run.recorded(4, 2, prepare=prepare) as client:
        count, seconds = (20, 0.3) if run.ill else (80, 0.79)
        read = {"nbytes": 240 * MEGABYTE // count, "seconds": 12.0 / count}
        blocks = client.map(read_block, range(count), **read)
        pairs = (
            [(one, other) for one in range(count) for other in range(one + 1)]
            if run.ill
            else [(number, number) for number in range(count)]
        )
        parts = [
            client.submit(products, blocks[one], blocks[other], number, seconds)
            for number, (one, other) in enumerate(pairs)
        ]
        del blocks
        client.submit(finish, parts).result()


# -- tasks, graphs and the scheduler ---------------------------------------------------------


def simulate_event(number: int) -> int:
    time.sleep(scatter(0.08, "event", number))
    return number


def smear_event(event: int, number: int) -> int:
    time.sleep(scatter(0.05, "smear", event, number))
    return event


class Progress(SchedulerPlugin):
    """Keep the numbers of tasks of each kind and state, for a progress bar."""

    def __init__(self, recounts: bool) -> None:
        self.recounts, self.counts = recounts, Counter[tuple[str, str]]()

    async def start(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler

    def transition(self, key: Any, start: str, finish: str, **_facts: Any) -> None:
        """Count all tasks again, or correct the numbers."""
        tasks = self.scheduler.tasks
        if self.recounts:
            self.counts = Counter((task.prefix.name, task.state) for task in tasks.values())
        elif key in tasks:
            name = tasks[key].prefix.name
            self.counts.update({(name, start): -1, (name, finish): 1})


@illness(cause("scheduler-saturated"))
def progress_counted_over_all_tasks(run: Run) -> None:
    """1,100 events are simulated in 0.08 s and smeared in 0.05 s, and each 40 are merged, on 8
    workers with 2 threads; a plugin of the scheduler for a progress bar counts all tasks again
    whenever the state of one changes, or it corrects its numbers."""

    def prepare(client: Client) -> None:
        client.register_plugin(Progress(run.ill), name="progress")

    with run.recorded(8, 2, prepare=prepare):
        events = [dask.delayed(simulate_event)(number) for number in range(1_100)]
        smeared = [dask.delayed(smear_event)(event, at) for at, event in enumerate(events)]
        tree(smeared, 40).compute()


def classify(alerts: range) -> int:
    time.sleep(sum(scatter(0.012, "alert", alert) for alert in alerts))
    return alerts[0]


@illness(cause("short-tasks scheduler-saturated", "classify"))
def alerts_submitted_one_by_one(run: Run) -> None:
    """4,000 alerts are classified in 12 ms each on 3 workers with 2 threads; the client submits
    the next ones as results come in, and has 60 tasks of one alert in flight, or 12 tasks
    of 40 alerts."""
    size, in_flight = (1, 60) if run.ill else (40, 12)
    with run.recorded(3, 2) as client:
        batches = iter([range(first, first + size) for first in range(0, 4_000, size)])
        running = as_completed(
            [client.submit(classify, next(batches)) for _ in range(in_flight)]
        )
        for _done in running:
            batch = next(batches, None)
            if batch is not None:
                running.add(client.submit(classify, batch))


def unpack_archive(number: int, seconds: float) -> int:
    time.sleep(scatter(seconds, "archive", number))
    return number


def flatten_image(archive: int, number: int) -> int:
    time.sleep(scatter(0.6, "flatten", archive, number))
    return number


@illness(cause("low-parallelism long-tail", "unpack_archive"))
def archives_of_whole_nights(run: Run) -> None:
    """160 images are taken from archives and flattened in 0.6 s on 5 workers with 2 threads; an
    archive cannot be unpacked in parallel, and there are 4 of 40 images, which need 5.2 s
    each, or 40 of 4 images, which need 0.52 s."""
    count = 4 if run.ill else 40
    with run.recorded(5, 2) as client:
        archives = client.map(unpack_archive, range(count), seconds=20.8 / count)
        images = [
            client.submit(flatten_image, archives[number * count // 160], number)
            for number in range(160)
        ]
        client.submit(finish, images).result()


def decode_frame(frame: int) -> int:
    time.sleep(scatter(0.5, "decode", frame))
    return frame


def find_tracks(frame: int) -> int:
    time.sleep(scatter(0.55, "tracks", frame))
    return frame


def find_clusters(frame: int) -> int:
    time.sleep(scatter(0.4, "clusters", frame))
    return frame


def monitor(tracks: int, clusters: int) -> int:
    time.sleep(scatter(0.15, "monitor", tracks))
    return tracks + clusters


@illness(cause("excess-workers low-parallelism"), saves="core")
def monitor_of_the_data_taking(run: Run) -> None:
    """Four frames arrive in each second for 16 s, and each is decoded in 0.5 s, searched for
    tracks and clusters in 0.55 and 0.4 s, and monitored in 0.15 s, on 8 workers with 3
    threads, or on 4 workers with 2 threads."""
    workers, threads = (8, 3) if run.ill else (4, 2)
    with run.recorded(workers, threads) as client:
        begin = time.perf_counter()
        monitored = []
        for frame in range(64):
            time.sleep(max(0.0, begin + 0.25 * frame - time.perf_counter()))
            decoded = client.submit(decode_frame, frame)
            tracks = client.submit(find_tracks, decoded)
            clusters = client.submit(find_clusters, decoded)
            monitored.append(client.submit(monitor, tracks, clusters))
        wait(monitored)


# -- two illnesses ---------------------------------------------------------------------------


def likelihood(value: float, channel: int, holds_gil: bool) -> float:
    """Compute the likelihood of a channel, partly in 12 calls of a library."""
    time.sleep(scatter(0.22, "channel", channel, value))
    library = HOLDING if holds_gil else FREE
    for call in range(12):
        library.usleep(int(scatter(11_000, "call", channel, value, call)))
    return value + channel


@illness(cause("gil"), cause("client-gaps"))
def fit_with_a_library_that_holds_the_gil(run: Run) -> None:
    """Seven steps of a fit with 18 channels on 6 threads; a channel takes 0.22 s and 12 calls
    of 11 ms of a library that holds the GIL, and the client needs 0.8 s to find the next
    values, with one worker with 6 threads; or the library releases the GIL, and the client
    needs 20 ms, with 3 workers with 2 threads."""
    workers, threads = (1, 6) if run.ill else (3, 2)
    with run.recorded(workers, threads) as client:
        for step in range(7):
            channels = client.map(likelihood, [float(step)] * 18, range(18), holds_gil=run.ill)
            client.gather(channels)
            time.sleep(0.8 if run.ill else 0.02)


# -- controls --------------------------------------------------------------------------------


def read_trips(number: int) -> pd.DataFrame:
    time.sleep(scatter(0.3, "trips", number))
    zones = (np.arange(500) + number) % 25
    return pd.DataFrame({"zone": zones, "fare": np.full(500, float(number))})


def clean_trips(part: pd.DataFrame) -> pd.DataFrame:
    if len(part) > 10:
        time.sleep(scatter(0.2, "clean", float(part["fare"].iloc[0])))
    return part


@illness()
def control_trips(run: Run) -> None:
    """A dataframe of 130 partitions, which are read in 0.3 s and cleaned in 0.2 s, and the mean
    of 25 zones, on 6 workers with one thread."""
    meta = pd.DataFrame({"zone": np.zeros(0, dtype=int), "fare": np.zeros(0)})
    with run.recorded(6, 1, prepare=warm_up):
        trips = dd.from_map(read_trips, list(range(130)), meta=meta)
        trips = trips.map_partitions(clean_trips, meta=meta)
        trips.groupby("zone")["fare"].mean(split_every=12).compute()


def track_particle(particle: int, setting: int) -> float:
    time.sleep(scatter(0.35, "particle", particle, setting))
    return float(particle)


@illness()
def control_settings_back_to_back(run: Run) -> None:
    """Three settings with 120 particles of 0.35 s each on 3 workers with 2 threads; the client
    computes a mean for 50 ms after each setting, while the next one runs already."""

    def track(setting: int) -> list[Future]:
        return client.map(track_particle, range(120), setting=setting)

    with run.recorded(3, 2) as client:
        current = track(0)
        for setting in range(1, 4):
            following = track(setting) if setting < 3 else []
            values = client.gather(current)
            time.sleep(0.05)
            assert np.mean(values) > 0
            current = following


def filter_tile(tile: np.ndarray, block_info: Any = None) -> np.ndarray:
    place = block_info[0]["chunk-location"] if block_info else ()
    time.sleep(scatter(0.45, "tile", place))
    return tile + 1.0


@illness()
def control_stack_of_tiles(run: Run) -> None:
    """A stack of 6 by 6 by 6 tiles of 0.45 s and its standard deviation along the stack, on 8
    workers with one thread."""
    with run.recorded(8, 1):
        tiles = da.zeros((60, 300, 300), chunks=(10, 50, 50))
        tiles = tiles.map_blocks(filter_tile, dtype=float, meta=np.zeros((0, 0, 0)))
        tiles.std(axis=0, split_every=3).compute()


def sizes_of_samples() -> Iterator[tuple[int, float]]:
    """Return numbers and durations of samples, the longest first."""
    seconds = [2.0] * 8 + [1.0] * 24 + [0.4] * 110
    yield from enumerate(scatter(median, "sample", at) for at, median in enumerate(seconds))


def generate_sample(number: int, seconds: float) -> int:
    time.sleep(seconds)
    return number


def validate_sample(number: int) -> int:
    time.sleep(scatter(0.2, "validate", number))
    return number


@illness()
def control_samples_in_flight(run: Run) -> None:
    """142 samples of 2, 1 and 0.4 s, the longest first, on 2 workers with 4 threads; the client
    keeps 24 in flight, and submits a task of 0.2 s for each result as it comes in."""
    with run.recorded(2, 4) as client:
        samples = sizes_of_samples()
        running = as_completed(
            [client.submit(generate_sample, *next(samples)) for _ in range(24)]
        )
        validated = []
        for sample in running:
            validated.append(client.submit(validate_sample, sample))
            following = next(samples, None)
            if following is not None:
                running.add(client.submit(generate_sample, *following))
        client.gather(validated)
