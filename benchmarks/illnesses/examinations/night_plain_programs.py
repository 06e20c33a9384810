"""Night programs of plain Dask.

They were written by an author who had read neither the rules nor their tests, who knew the
other programs and the ids that they name. Nearly all work is sleeping, and durations vary by
25 % around their mean.
"""

from __future__ import annotations

import threading
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
from final_plain_programs import FREE, HOLDING, STATE, about, limit_uplink, on_workers
from illness import Run, cause, illness
from independent_plain_programs import Ledger, conclude, tree
from outside_plain_programs import warm_up

if TYPE_CHECKING:
    from distributed import Client

MEGABYTE = 1_000_000

LOCK = threading.Lock()


def count_up(name: str) -> int:
    """Return how often this worker has come here."""
    with LOCK:
        STATE[name] = STATE.get(name, 0) + 1
        return STATE[name]


# -- workers and hosts -----------------------------------------------------------------------


def read_visits(number: int) -> pd.DataFrame:
    time.sleep(about(0.25, "visits", number))
    patients = np.arange(400) % 40
    return pd.DataFrame({"patient": patients, "cost": np.full(400, float(number))})


def deduplicate(part: pd.DataFrame) -> pd.DataFrame:
    """Look rows up in a local database, which is slower the more was inserted into it."""
    if len(part) > 10:
        inserted = count_up("inserted")
        time.sleep(about(0.3, "deduplicate", float(part["cost"].iloc[0])))
        time.sleep(STATE.get("scan_seconds", 0.0) * inserted)
    return part


@illness(cause("slow-worker", "2"))
def local_database_without_an_index(run: Run) -> None:
    """A dataframe of 120 partitions, which are read in 0.25 s and deduplicated in 0.3 s, on 3
    workers with 2 threads; each worker inserts rows into a local database, which has an index,
    except for that of worker 2, where each partition takes 0.08 s longer than the one before;
    then sums of 40 patients are made."""
    meta = pd.DataFrame({"patient": np.zeros(0, dtype=int), "cost": np.zeros(0)})
    slow_down = on_workers(run, 2, scan_seconds=0.08)

    def prepare(client: Client) -> None:
        warm_up(client)
        slow_down(client)

    with run.recorded(3, 2, prepare=prepare):
        visits = dd.from_map(read_visits, list(range(120)), meta=meta)
        visits = visits.map_partitions(deduplicate, meta=meta)
        visits.groupby("patient")["cost"].sum(split_every=10).compute()


def reconstruct(number: int) -> int:
    """Reconstruct a run; a library asks for its conditions and keeps the GIL meanwhile."""
    time.sleep(about(0.4, "reconstruct", number))
    if count_up("runs") == STATE.get("hangs_at"):
        HOLDING.usleep(8_000_000)
    return number


def align_with(one: int, other: int) -> int:
    time.sleep(about(0.3, "align", one, other))
    return one


@illness(cause("silent-worker blocked-event-loop gil", "1"))
def conditions_that_hang_on_one_worker(run: Run) -> None:
    """110 runs are reconstructed in 0.4 s, and each is aligned with two others in 0.3 s, on 3
    workers with 3 threads; the 12th request of worker 1 for conditions hangs for 8 s in a
    library that keeps the GIL, so that the worker does nothing meanwhile, or it does not."""
    with run.recorded(3, 3, prepare=on_workers(run, 1, hangs_at=12)) as client:
        runs = client.map(reconstruct, range(110))
        pairs = [*zip(runs, runs[1:] + runs[:1], strict=True)]
        pairs += zip(runs, runs[29:] + runs[:29], strict=True)
        aligned = [client.submit(align_with, *pair) for pair in pairs]
        client.submit(conclude, aligned).result()


# -- memory ----------------------------------------------------------------------------------


def stage(number: int) -> Ledger:
    time.sleep(about(0.3, "stage", number))
    return Ledger(np.full(12 * MEGABYTE, number, dtype="u1"))


def skim(file: Ledger) -> float:
    time.sleep(about(0.35, "skim", float(file.values[0])))
    return float(file.values[0])


@illness(cause("spilling"))
def files_staged_as_early_as_possible(run: Run) -> None:
    """66 files of 12 MB are staged in 0.3 s and skimmed in 0.35 s on 3 workers with 2 threads
    and 1 GB, of which 12 % may be used before results are spilled, with a `worker-saturation`
    of infinity; staging has a high priority, so that it is finished early and all files are
    in memory before the first is skimmed, or the same priority as skimming."""
    config = {
        "distributed.scheduler.worker-saturation": "inf",
        "distributed.worker.memory.target": 0.12,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
    }
    with run.recorded(3, 2, "1GB", config) as client:
        files = client.map(stage, range(66), priority=10 if run.ill else 0)
        skims = client.map(skim, files)
        del files
        client.submit(conclude, skims).result()


# -- tasks, graphs and the network -----------------------------------------------------------


def read_shots(number: int) -> list[tuple[int, np.ndarray]]:
    """Read ten shots of different receivers."""
    time.sleep(about(0.9, "shots", number))
    return [((7 * number + 3 * shot) % 40, np.full(62_500, shot, "f8")) for shot in range(10)]


def receiver_of(shot: tuple[int, np.ndarray]) -> int:
    return shot[0]


def energy_of(shot: tuple[int, np.ndarray]) -> float:
    time.sleep(about(0.02, "energy", shot[0], float(shot[1][0])))
    return float(shot[1].sum())


def energy_of_group(group: tuple[int, list[tuple[int, np.ndarray]]]) -> tuple[int, float]:
    return group[0], sum(energy_of(shot) for shot in group[1])


def add_shot(total: float, shot: tuple[int, np.ndarray]) -> float:
    return total + energy_of(shot)


def add(one: float, other: float) -> float:
    return one + other


@illness(cause("transfers"))
def bag_that_is_grouped_and_not_folded(run: Run) -> None:
    """A bag of 48 files with 10 shots of 0.5 MB each, which are read in 0.9 s, on 4 workers
    with 2 threads that send 14 MB/s each; the energy of 40 receivers is found by `groupby`,
    which moves all shots, or by `foldby`, which moves sums."""
    prepare = partial(_limit_uplinks, bytes_per_second=14e6)
    with run.recorded(4, 2, prepare=prepare):
        shots = db.from_sequence(range(48), npartitions=48).map(read_shots).flatten()
        if run.ill:
            shots.groupby(receiver_of, shuffle="tasks").map(energy_of_group).compute()
        else:
            shots.foldby(receiver_of, add_shot, 0.0, add, 0.0, split_every=8).compute()


def _limit_uplinks(client: Client, bytes_per_second: float) -> None:
    client.run(limit_uplink, bytes_per_second=bytes_per_second)


def select_good(number: int, good: dict[str, list[list[int]]]) -> int:
    time.sleep(about(0.45, "good", number))
    return len(good)


@illness(cause("large-graph client-gaps"))
def list_of_good_sections_in_each_call(run: Run) -> None:
    """150 files of 0.45 s on 5 workers with 2 threads are selected by a list of the good
    sections of 250 runs, as read from JSON; each delayed call is given the list of lists, in
    which Dask looks for delayed objects each time, or a delayed object that contains it."""
    good: Any = {
        str(315_000 + number): [[50 * part + 1, 50 * part + 40] for part in range(12)]
        for number in range(250)
    }
    with run.recorded(5, 2):
        if not run.ill:
            good = dask.delayed(good, traverse=False)
        calls = [dask.delayed(select_good)(number, good) for number in range(150)]
        tree(calls, 10).compute()


def update_sector(sector: int, sweep: int, seconds: float) -> int:
    time.sleep(about(seconds, "sector", sweep, sector))
    return sector


@illness(cause("low-parallelism long-tail"))
def nine_sectors_on_eight_threads(run: Run) -> None:
    """8 sweeps over a detector on 4 workers with 2 threads, each of which begins when the one
    before is done; it is divided in its 9 sectors of 0.8 s, of which 8 run at a time and one
    is left, or in 48 parts of 0.15 s."""
    sectors = 9 if run.ill else 48
    with run.recorded(4, 2) as client:
        for sweep in range(8):
            parts = client.map(
                update_sector, range(sectors), sweep=sweep, seconds=7.2 / sectors
            )
            client.submit(conclude, parts).result()


# -- two illnesses ---------------------------------------------------------------------------


def image_block(block: np.ndarray, scan: int, block_info: Any = None) -> np.ndarray:
    """Make an image, more slowly while the job of another user runs on this host."""
    number = block_info[0]["chunk-location"][0] if block_info else 0
    is_shared = STATE.get("has_neighbour") and time.time() % 4.0 < 3.0
    time.sleep(about(0.4, "image", scan, number) * (2.6 if is_shared else 1.0))
    return block + number


@illness(cause("slow-host", "127.0.0.7"), cause("client-gaps transfers"))
def images_fetched_to_a_laptop_and_a_neighbour(run: Run) -> None:
    """Four scans of 60 images of 0.6 MB and 0.4 s, one after the other, on three hosts with 5
    workers with 2 threads; on 127.0.0.7, which has 2 of them, the job of another user makes
    tasks 2.6 times as long for 3 of each 4 seconds; and the client fetches all images, which
    a worker sends at 30 MB/s, for their mean; or there is no other user, and the workers
    compute the mean."""
    hosts = ("127.0.0.7", "127.0.0.3", "127.0.0.5", "127.0.0.7", "127.0.0.3")
    share = on_workers(run, 0, 3, has_neighbour=True)

    def prepare(client: Client) -> None:
        _limit_uplinks(client, 30e6)
        share(client)

    with run.recorded(threads=2, hosts=hosts, prepare=prepare):
        for scan in range(4):
            images = da.zeros((60 * 100, 750), chunks=(100, 750))
            images = images.map_blocks(image_block, scan, dtype=float, meta=np.zeros((0, 0)))
            if run.ill:
                images.compute().mean()
            else:
                images.mean(split_every=8).compute()


def open_dump(number: int, folder: str) -> int:
    """Read a dump, of which some are locked by the process that writes them."""
    time.sleep(about(0.4, "dump", number))
    if folder and number % 3 == 1:
        mark = Path(folder) / str(number)
        if not mark.exists():
            mark.touch()
            raise BlockingIOError("[Errno 11] unable to lock file")
    return number


def unpack(number: int, keeps_gil: bool) -> int:
    """Unpack in 40 calls of a library, which keeps the GIL, or releases it."""
    library = HOLDING if keeps_gil else FREE
    for part in range(40):
        library.usleep(int(about(6_000, "unpack", number, part)))
    return number


@illness(cause("gil"), cause("retries", "BlockingIOError", "open_dump"))
def locked_dumps_and_a_library_with_the_gil(run: Run) -> None:
    """180 dumps are read in 0.4 s and unpacked in 40 calls of 6 ms on 3 workers with 4 threads;
    a third of the dumps is locked when they are read for the first time, and the calls keep
    the GIL; or no dump is locked, and the calls release the GIL."""
    folder = Path.cwd() / "attempts"
    folder.mkdir()
    marks = str(folder) if run.ill else ""
    with run.recorded(3, 4) as client:
        dumps = client.map(open_dump, range(180), folder=marks, retries=3)
        unpacked = client.map(unpack, dumps, keeps_gil=run.ill)
        client.submit(conclude, unpacked).result()


# -- controls --------------------------------------------------------------------------------


def read_trips(number: int) -> pd.DataFrame:
    time.sleep(about(0.45, "trips", number))
    zones = np.arange(2_000) % 60
    return pd.DataFrame({"zone": zones, "fare": np.full(2_000, float(number))})


def correct_fares(part: pd.DataFrame) -> pd.DataFrame:
    if len(part) > 10:
        time.sleep(about(0.3, "fares", float(part["fare"].iloc[0])))
    return part.assign(fare=part["fare"] * 1.1)


@illness()
def control_trips(run: Run) -> None:
    """A dataframe of 130 partitions, which are read in 0.45 s and corrected in 0.3 s, is
    persisted on 4 workers with 2 threads, while the sums of 60 zones and the mean of all are
    computed from it at the same time."""
    meta = pd.DataFrame({"zone": np.zeros(0, dtype=int), "fare": np.zeros(0)})
    with run.recorded(4, 2, prepare=warm_up):
        trips = dd.from_map(read_trips, list(range(130)), meta=meta)
        trips = trips.map_partitions(correct_fares, meta=meta).persist()
        sums = trips.groupby("zone")["fare"].sum(split_every=10)
        dask.compute(sums, trips["fare"].mean(split_every=10))
