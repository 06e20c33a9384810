"""Short examination: 16 programs with an illness and two controls.

They were written by an author who had read neither the rules nor their tests, who knew the ids
and titles of findings and the other programs. Each program has a different id. Nearly all
work is sleeping, and durations vary by 25 % around their mean.
"""

from __future__ import annotations

import asyncio
import math
import os
import queue
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import uproot
from distributed import Client, as_completed, wait
from final_coffea_programs import (
    FLAT,
    JAGGED,
    OTHERS,
    Photons,
    analyze,
    at_url,
    shared,
    warm_up,
    write_file,
    write_fileset,
)
from final_plain_programs import STATE, about, limit_uplink, set_state
from illness import Run, cause, illness
from independent_coffea_programs import Server, serving
from independent_plain_programs import conclude
from outside_plain_programs import warm_up as warm_up_frames

MEGABYTE = 1_000_000

if TYPE_CHECKING:
    from dask.delayed import Delayed

# -- workers and hosts -----------------------------------------------------------------------


async def ask_catalogue(number: int, blocks: bool) -> int:
    """Ask a web service from a coroutine, which the worker runs in its event loop."""
    seconds = about(0.2, "catalogue", number)
    if blocks:
        time.sleep(seconds)  # noqa: ASYNC251 - the illness
    else:
        await asyncio.sleep(seconds)
    return number


def cross_match(number: int) -> int:
    time.sleep(about(0.3, "cross", number))
    return number


@illness(cause("blocked-event-loop"))
def coroutines_with_a_blocking_library(run: Run) -> None:
    """160 tasks ask a catalogue in 0.2 s, and 160 tasks of 0.3 s match the answers, on 3
    workers with 4 threads; the first are coroutines, which run in the event loop of the
    worker, and call a library that blocks, or one that awaits the answer."""
    with run.recorded(3, 4) as client:
        answers = client.map(ask_catalogue, range(160), blocks=run.ill)
        client.submit(conclude, client.map(cross_match, answers)).result()


def read_trips(number: int) -> pd.DataFrame:
    time.sleep(about(0.3, "trips", number))
    values = np.random.default_rng(number).random((7_000, 2))
    return pd.DataFrame(values, columns=["x", "y"])


def measure_rows(part: pd.DataFrame, by_row: bool) -> pd.DataFrame:
    """Measure the length of each trip with a function for a row, or with arrays."""
    if by_row:
        lengths = part.apply(lambda row: math.hypot(row["x"], row["y"]), axis=1)
    else:
        lengths = np.hypot(part["x"], part["y"])
    return pd.DataFrame({"length": [float(np.sum(lengths))]})


@illness(cause("gil"))
def apply_for_each_row(run: Run) -> None:
    """A dataframe of 220 partitions of 7,000 rows, which are read in 0.3 s, on 2 workers with 6
    threads; the length of each row is found by `apply` with a Python function, or from whole
    columns."""
    with run.recorded(2, 6, prepare=warm_up_frames):
        meta = pd.DataFrame({"x": np.zeros(0), "y": np.zeros(0)})
        trips = dd.from_map(read_trips, list(range(220)), meta=meta)
        meta = pd.DataFrame({"length": np.zeros(0)})
        trips.map_partitions(measure_rows, run.ill, meta=meta).compute()


def integrate_orbit(number: int) -> int:
    factor = 3.5 if time.monotonic() > STATE.get("hot_at", math.inf) else 1.0
    time.sleep(about(0.4, "orbit", number) * factor)
    return number


@illness(cause("slow-host", "127.0.0.8"))
def host_that_overheats(run: Run) -> None:
    """210 orbits of 0.4 s on three hosts, of which 127.0.0.4 and 127.0.0.8 have 2 workers and
    127.0.0.2 has one, with 2 threads each; after 2 s, 127.0.0.8 is so hot that its clock is
    lowered and work takes 3.5 times as long, or it is not."""

    def prepare(client: Client) -> None:
        if run.ill:
            names = [run.address(name) for name in (1, 3)]
            client.run(set_state, workers=names, hot_at=time.monotonic() + 2.0)

    hosts = tuple(f"127.0.0.{number}" for number in (4, 8, 2, 8, 4))
    with run.recorded(threads=2, hosts=hosts, prepare=prepare) as client:
        client.submit(conclude, client.map(integrate_orbit, range(210))).result()


def sample_chain(before: float, number: int, step: int) -> float:
    time.sleep(about(0.5, "chain", number, step))
    return before + number


@illness(cause("excess-workers low-parallelism"), saves="core")
def sampler_with_six_chains(run: Run) -> None:
    """Six Markov chains of 17 steps of 0.5 s, each of which needs the step before, on 8 workers
    with 3 threads, or on 3 workers with 2 threads."""
    with run.recorded(8 if run.ill else 3, 3 if run.ill else 2) as client:
        chains: list[Any] = [float(number) for number in range(6)]
        for step in range(17):
            chains = client.map(sample_chain, chains, range(6), [step] * 6)
        wait(chains)


# -- memory ----------------------------------------------------------------------------------

#: Images that a thread of this worker still has to write.
IMAGES: queue.Queue[np.ndarray] = queue.Queue()


def write_images() -> None:
    """Write images to a disk of 115 MB/s, one after the other."""
    while True:
        image = IMAGES.get()
        time.sleep(image.nbytes / 115e6)
        del image


def start_writer() -> None:
    threading.Thread(target=write_images, daemon=True).start()


def render_image(number: int, nbytes: int) -> int:
    """Render an image and leave it to the writer, whose queue has no limit."""
    IMAGES.put(np.ones(nbytes, dtype="u1"))
    time.sleep(about(0.3, "image", number))
    return number


@illness(cause("paused-workers unmanaged-memory"))
def queue_of_a_writer_without_limit(run: Run) -> None:
    """150 images of 0.3 s on 3 workers with 2 threads and 700 MB; a thread of each worker
    writes images of 40 MB at 115 MB/s, for which it keeps a queue without limit, or
    thumbnails of 10 kB."""
    nbytes = 40 * MEGABYTE if run.ill else 10_000
    config = {"distributed.worker.memory.terminate": False}
    with run.recorded(
        3, 2, "700MB", config, prepare=partial(Client.run, function=start_writer)
    ) as client:
        images = client.map(render_image, range(150), nbytes=nbytes)
        client.submit(conclude, images).result()


# -- tasks, graphs, the network and the client -----------------------------------------------


def load_fold(number: int) -> np.ndarray:
    time.sleep(about(0.3, "fold", number))
    return np.full(8 * MEGABYTE, number, dtype="u1")


def validate(fold: np.ndarray, model: int) -> float:
    time.sleep(about(0.3, "validate", model, float(fold[0])))
    return float(fold[0]) + model


@illness(cause("transfers", "validate"))
def tasks_pinned_in_turn(run: Run) -> None:
    """60 folds of 8 MB are loaded and validated with 3 models, in 0.3 s each, on 5 workers with
    2 threads that send 22 MB/s each; the program pins the tasks to workers in turn, so that
    each model needs a fold on another worker, or leaves the choice to the scheduler."""
    prepare = partial(Client.run, function=limit_uplink, bytes_per_second=22e6)
    with run.recorded(5, 2, prepare=prepare) as client:
        addresses = [run.address(name) for name in range(5)]

        def pinned(turn: int) -> list[str] | None:
            return [addresses[turn % 5]] if run.ill else None

        folds = [client.submit(load_fold, at, workers=pinned(at)) for at in range(60)]
        scores = [
            client.submit(validate, fold, model, workers=pinned(at + 1 + model))
            for model in range(3)
            for at, fold in enumerate(folds)
        ]
        client.submit(conclude, scores).result()


def segment(image: bytes | str, turn: int) -> float:
    """Segment an image, which is given or read from a file."""
    if isinstance(image, str):
        image = Path(image).read_bytes()
    time.sleep(about(0.3, "segment", turn, image[:8]))
    return float(image[0])


@illness(cause("large-graph client-gaps"))
def bag_of_images_read_by_the_client(run: Run) -> None:
    """A bag of 64 images of 1.2 MB in 64 partitions is segmented in 0.3 s each, three times
    with different parameters, on 4 workers with 2 threads; the bag is made from the contents of
    the files, which each graph contains, or from their paths."""
    paths = [Path.cwd() / f"image_{number}.raw" for number in range(64)]
    for path in paths:
        path.write_bytes(os.urandom(1_200_000))
    items = [path.read_bytes() if run.ill else str(path) for path in paths]
    with run.recorded(4, 2, "3GB"):
        for turn in range(3):
            bag = db.from_sequence(items, npartitions=64)
            bag.map(segment, turn=turn).max(split_every=8).compute()


def stem(word: int) -> int:
    time.sleep(about(0.017, "stem", word))
    return word % 100


@illness(cause("short-tasks scheduler-saturated"))
def partition_for_each_word(run: Run) -> None:
    """A bag of 2,800 words of 17 ms on 2 workers with 4 threads, in a partition for each word,
    or in 112 partitions."""
    with run.recorded(2, 4):
        words = db.from_sequence(range(2_800), npartitions=2_800 if run.ill else 112)
        words.map(stem).max(split_every=40).compute()


def read_claims(number: int) -> pd.DataFrame:
    time.sleep(about(0.5, "claims", number))
    return pd.DataFrame({"claim": np.arange(20) + 20.0 * number})


def score_claims(part: pd.DataFrame) -> pd.DataFrame:
    """Score each claim in 18 ms."""
    if len(part) > 3:
        time.sleep(about(0.018 * len(part), "score", float(part["claim"].iloc[0])))
    return part


@illness(cause("low-parallelism long-tail"))
def repartitioned_before_the_model(run: Run) -> None:
    """A dataframe of 56 partitions of 20 claims, which are read in 0.5 s, on 4 workers with 2
    threads; each claim is scored in 18 ms, in 3 partitions, as the output should be 3 files,
    or in all 56 partitions."""
    meta = pd.DataFrame({"claim": np.zeros(0)})
    with run.recorded(4, 2, prepare=warm_up_frames):
        claims = dd.from_map(read_claims, list(range(56)), meta=meta)
        if run.ill:
            claims = claims.repartition(npartitions=3)
        claims.map_partitions(score_claims, meta=meta).compute()


def infer(number: int, folder: str) -> int:
    """Infer in a batch; some batches do not fit into a shared GPU at their first attempt."""
    time.sleep(about(0.5, "infer", number))
    if folder and number % 9 in (1, 3, 4, 6, 8):
        mark = Path(folder) / str(number)
        if not mark.exists():
            mark.touch()
            raise MemoryError("out of memory on the GPU")
    return number


@illness(cause("retries", "MemoryError", "infer"))
def batches_that_exceed_a_shared_gpu(run: Run) -> None:
    """117 batches of 0.5 s on 3 workers with 3 threads, with 4 retries; 65 of them fail once at
    their end as a shared GPU is out of memory, or none."""
    folder = Path.cwd() / "attempts"
    folder.mkdir()
    with run.recorded(3, 3) as client:
        marks = str(folder) if run.ill else ""
        batches: list[Delayed] = [dask.delayed(infer)(number, marks) for number in range(117)]
        wait(client.compute(batches, retries=4))


def regrid(month: int, cell: int) -> int:
    time.sleep(about(0.3, "regrid", month, cell))
    return cell


def upload(month: int) -> None:
    """Upload the results of a month."""
    time.sleep(about(1.3, "upload", month))


@illness(cause("client-gaps"))
def upload_before_the_next_month(run: Run) -> None:
    """Five months of 40 cells of 0.3 s on 4 workers with 2 threads; the client uploads a month
    in 1.3 s before it submits the next one, or submits all months at first and uploads each
    when it is complete."""
    with run.recorded(4, 2) as client:

        def submit(month: int) -> Any:
            cells = client.map(regrid, [month] * 40, range(40), priority=-month)
            return client.submit(conclude, cells, pure=False, priority=-month)

        if run.ill:
            for month in range(5):
                submit(month).result()
                upload(month)
        else:
            months = {submit(month): month for month in range(5)}
            for future in as_completed(list(months)):
                upload(months[future])


# -- coffea ----------------------------------------------------------------------------------


def recompress(source: Path, target: Path, compression: Any) -> None:
    """Copy the events of a file with another compression, unless the copy exists."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partly = target.with_suffix(f".{os.getpid()}")
    types = dict.fromkeys(FLAT, "f4") | dict.fromkeys(JAGGED, "var * float32")
    with uproot.open(source) as file, uproot.recreate(partly, compression=compression) as copy:
        tree = copy.mktree("Events", types)
        for first in range(0, file["Events"].num_entries, 1_500):
            arrays = file["Events"].arrays(
                list(types), entry_start=first, entry_stop=first + 1_500
            )
            tree.extend({name: arrays[name] for name in types})
    partly.rename(target)


@illness(cause("compression"))
def skims_packed_for_the_tape(run: Run) -> None:
    """12 files of 9,000 events with 170 photons each, in chunks of 1,500 events, on 2 workers
    with 2 threads; the files were compressed by LZMA for an archive on tape, or by LZ4."""
    source = run.data / "short_source" / "Skim_0.root"
    write_file(source, 9_000, photons=170.0)
    folder = run.data / f"short_packed_{run.ill}"
    first = folder / "Skim_0.root"
    recompress(source, first, uproot.LZMA(4) if run.ill else uproot.LZ4(1))
    paths = [folder / f"Skim_{number}.root" for number in range(12)]
    for path in paths:
        with suppress(FileExistsError):
            path.hardlink_to(first)
    fileset = {"Skim": {"files": {str(path): "Events" for path in paths}}}
    with run.recorded(2, 2, prepare=partial(warm_up, run)) as client:
        analyze(client, fileset, Photons(1.2e-4), 1_500)


@illness(cause("unused-branches"))
def preload_of_an_older_selection(run: Run) -> None:
    """12 files on 3 workers with 2 threads, on a server that readers share at 1.5 MB/s, in
    chunks of 2,000 events; `preload` still has 20 discriminators of an older selection, or
    not."""
    folder = run.data / "short_taus"
    fileset = write_fileset(
        folder, {"WJets": 7, "Tau": 5}, has_others=True, basket_events=2_000
    )
    used = [*JAGGED, *(f"n{name}" for name in JAGGED), *FLAT]
    for spec in fileset.values():
        spec["preload"] = used + list(OTHERS[:20]) if run.ill else used
    with (
        shared(folder, speed=1.5e6) as url,
        run.recorded(3, 2, prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Photons(2.5e-4), 2_000)


@illness(cause("chunks-too-large long-tail low-parallelism"))
def chunksize_above_the_size_of_files(run: Run) -> None:
    """6 files of 20,000 events of 0.46 ms on 5 workers with 2 threads, in chunks of at most
    50,000 events, each of which is a file, or of 2,000."""
    folder = run.data / "short_large"
    fileset = write_fileset(folder, {"WJets": 4, "Tau": 2}, events=20_000, basket_events=2_000)
    with run.recorded(5, 2, prepare=partial(warm_up, run)) as client:
        analyze(client, fileset, Photons(4.6e-4), 50_000 if run.ill else 2_000)


def while_no_backup_runs(self: Server, *answer: Any) -> None:
    """Answer when the backup, which runs for 2.2 of each 4 seconds, leaves the disks."""
    now = time.monotonic() % 4.0
    if self.has_backup and now < 2.2:
        time.sleep(2.2 - now)
    Server._answer(self, *answer)


@illness(cause("slow-storage", "127.0.0.9"))
def server_with_a_backup_in_bursts(run: Run) -> None:
    """12 files on 3 workers with 3 threads, on a server that answers nothing in 2.2 of each 4
    seconds, as a backup uses its disks, or always answers in 1 ms."""
    folder = run.data / "short"
    fileset = write_fileset(folder, {"WJets": 8, "Tau": 4})
    facts = {"_answer": while_no_backup_runs, "has_backup": run.ill}
    with (
        serving(folder, "127.0.0.9", **facts) as url,
        run.recorded(3, 3, prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Photons(3.5e-4), 1_500)


NAMES = threading.Lock()


def one_opening_at_a_time(self: Server) -> None:
    """Let readers that request the header of a file wait for each other."""
    if self.is_queue and self.headers.get("Range", "").startswith("bytes=0-"):
        with NAMES:
            time.sleep(about(0.11, self.path, time.monotonic_ns()))
    Server.do_GET(self)


@illness(cause("file-opening chunks-too-small"))
def name_server_that_opens_one_by_one(run: Run) -> None:
    """14 files on 5 workers with 2 threads, in chunks of 1,500 events, on a server that opens
    one file at a time, in 0.11 s, for each chunk, or opens all at once in 1 ms."""
    folder = run.data / "short"
    fileset = write_fileset(folder, {"WJets": 8, "Tau": 6})
    facts = {"do_GET": one_opening_at_a_time, "is_queue": run.ill}
    with (
        serving(folder, **facts) as url,
        run.recorded(5, 2, prepare=partial(warm_up, run)) as client,
    ):
        analyze(client, at_url(fileset, url), Photons(3e-4), 1_500)


# -- controls --------------------------------------------------------------------------------


def read_spectrum(number: int) -> int:
    time.sleep(about(0.35, "spectrum", number))
    return number


def coadd(spectra: list[int], number: int) -> int:
    time.sleep(about(0.3, "coadd", number))
    return len(spectra)


@illness()
def control_coadds(run: Run) -> None:
    """240 spectra of 0.35 s, a coadd of 0.3 s for each 4 of them and a tree of these, on 3
    workers with 4 threads."""
    with run.recorded(3, 4):
        spectra = [dask.delayed(read_spectrum)(number) for number in range(240)]
        coadds = [
            dask.delayed(coadd)(spectra[first : first + 4], first) for first in range(0, 240, 4)
        ]
        parts = [dask.delayed(conclude)(coadds[first::8]) for first in range(8)]
        dask.delayed(conclude)(parts).compute()


@illness()
def control_files_near_and_far(run: Run) -> None:
    """8 local files and 6 files on a server with a latency of 4 ms, in chunks of 1,500 events,
    on 2 workers with 4 threads."""
    folder = run.data / "short"
    fileset = write_fileset(folder, {"WJets": 8, "Tau": 6})
    with (
        serving(folder, "127.0.0.5", seconds=0.004) as url,
        run.recorded(2, 4, prepare=partial(warm_up, run)) as client,
    ):
        files = {**fileset, "Tau": at_url(fileset, url)["Tau"]}
        analyze(client, files, Photons(4e-4), 1_500)
