"""Outside programs of plain Dask.

They were written by an author who had read neither the rules nor their tests, who knew the ids
and titles of findings and the other programs. Nearly all work is sleeping, and durations vary
by 25 % around their mean.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, as_completed, wait
from distributed.deploy import Adaptive
from final_plain_programs import FREE, HOLDING, STATE, about, limit_uplink, on_workers
from illness import Run, cause, illness
from independent_plain_programs import Ledger, conclude, stop_between, tree

if TYPE_CHECKING:
    from distributed import Worker

MEGABYTE = 1_000_000

# -- workers and hosts -----------------------------------------------------------------------


def annotate(number: int) -> int:
    """Annotate a sample with tables, which a worker loads once if it can keep them."""
    if not STATE.get("has_tables"):
        time.sleep(about(1.2, "tables", number))
        STATE["has_tables"] = not STATE.get("cache_is_read_only")
    time.sleep(about(0.4, "annotate", number))
    return number


def rank(number: int) -> int:
    time.sleep(about(0.15, "rank", number))
    return number


@illness(cause("slow-worker", "0"))
def worker_without_a_cache_of_tables(run: Run) -> None:
    """110 samples are annotated in 0.4 s and ranked in 0.15 s on 3 workers with 2 threads; a
    worker loads tables in 1.2 s at its first sample, but worker 0 cannot write to its cache
    and loads them for each sample."""
    with run.recorded(3, 2, prepare=on_workers(run, 0, cache_is_read_only=True)):
        samples = [dask.delayed(annotate)(number) for number in range(110)]
        tree([dask.delayed(rank)(sample) for sample in samples], 10).compute()


def query_services(number: int) -> int:
    """Look up the addresses of three services, and then query them."""
    for service in range(3):
        time.sleep(about(STATE.get("lookup_seconds", 0.002), number, service))
    time.sleep(about(0.3, "query", number))
    return number


@illness(cause("slow-host", "127.0.0.6"))
def host_with_a_dead_name_server(run: Run) -> None:
    """A bag of 260 records in 130 partitions on three hosts, of which 127.0.0.2 and 127.0.0.6
    have 2 workers and 127.0.0.4 has one, with 2 threads each; for each record three names
    are looked up and a query takes 0.3 s. A look-up takes 2 ms, or 0.22 s on 127.0.0.6,
    where the first name server is dead."""
    hosts = ("127.0.0.6", "127.0.0.2", "127.0.0.4", "127.0.0.2", "127.0.0.6")
    prepare = on_workers(run, 0, 4, lookup_seconds=0.22)
    with run.recorded(threads=2, hosts=hosts, prepare=prepare):
        bag = db.from_sequence(range(260), npartitions=130)
        bag.map(query_services).fold(max, split_every=10).compute()


def leave_after(seconds: float, dask_worker: Worker) -> None:
    """Let a worker finish its tasks and leave at the end of its allocation."""
    dask_worker.loop.call_later(seconds, dask_worker.close_gracefully)


def interpolate(number: int) -> int:
    time.sleep(about(0.4, "interpolate", number))
    return number


@illness(cause("late-workers"))
def allocations_that_end_before_the_work(run: Run) -> None:
    """180 grids of 0.4 s, in a tree, on 8 workers; the allocations of 5 of them end after 3.5
    to 5.5 s, when each finishes its task and leaves, or do not end before the work."""

    def prepare(client: Client) -> None:
        for number, name in enumerate((7, 1, 4, 6, 2)):
            if run.ill:
                seconds = 3.5 + 0.5 * number
                client.run(leave_after, seconds, workers=[run.address(name)])

    with run.recorded(8, 1, prepare=prepare):
        tree([dask.delayed(interpolate)(number) for number in range(180)], 12).compute()


def relax(number: int) -> int:
    time.sleep(about(0.5, "relax", number))
    return number


def assess(number: int) -> int:
    time.sleep(about(0.25, "assess", number))
    return number


@illness(cause("silent-worker", "0", "1", "2"))
def machines_that_are_snapshotted_in_turn(run: Run) -> None:
    """110 structures of 0.5 s, each of which is assessed in 0.25 s, on 3 workers with 3
    threads; a snapshot of its machine stops worker 0 from 2 to 6.5 s, worker 1 from 6.5 to
    11 s and worker 2 from 11 to 15.5 s."""
    with run.recorded(3, 3) as client:
        timers = []
        for name in range(3) if run.ill else ():
            timers += stop_between([run.pid(name)], 2.0 + 4.5 * name, 6.5 + 4.5 * name)
        structures = client.map(relax, range(110))
        client.submit(conclude, client.map(assess, structures)).result()
        for timer in timers:
            timer.join()


def read_cube(block: np.ndarray, block_info: Any = None) -> np.ndarray:
    number = block_info[0]["chunk-location"][0] if block_info else 0
    time.sleep(about(0.3, "cube", number))
    return block + number


def integrate_cube(block: np.ndarray, calls_back: bool) -> np.ndarray:
    """Integrate 30 functions in a library, which may call back into Python all the time."""
    library = HOLDING if calls_back else FREE
    if block.size:
        for part in range(30):
            library.usleep(int(about(5_000, float(block.flat[0]), part)))
    return block


@illness(cause("gil"))
def integrand_that_is_a_python_function(run: Run) -> None:
    """An array of 160 cubes on 2 workers with 6 threads, which are read in 0.3 s and integrated
    in 30 calls of 5 ms; the integrand is a Python function, so that the calls hold the GIL,
    or it is compiled."""
    with run.recorded(2, 6):
        blank = np.zeros((0, 0))
        cubes = da.zeros((160 * 10, 100), chunks=(10, 100))
        cubes = cubes.map_blocks(read_cube, dtype=float, meta=blank)
        integrals = cubes.map_blocks(integrate_cube, run.ill, dtype=float, meta=blank)
        integrals.sum(split_every=12).compute()


class Forest:
    """Trees of many small objects, which take some time to pickle and to unpickle."""

    def __init__(self, number: int, seconds: float) -> None:
        self.number, self.seconds = number, seconds

    def __getstate__(self) -> dict[str, Any]:
        time.sleep(self.seconds)
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        time.sleep(state["seconds"])
        self.__dict__.update(state)


def grow(number: int, seconds: float) -> Forest:
    time.sleep(about(0.35, "grow", number))
    return Forest(number, seconds)


def graft(one: Forest, other: Forest) -> int:
    time.sleep(about(0.35, "graft", one.number, other.number))
    return one.number


@illness(cause("blocked-event-loop transfers"))
def forests_that_are_slow_to_pickle(run: Run) -> None:
    """130 forests are grown in 0.35 s, and each is grafted with another in 0.35 s, on 3 workers
    with 4 threads; a forest that is sent is pickled and unpickled in the event loops of the
    workers in 0.2 s each, or in 1 ms."""
    with run.recorded(3, 4) as client:
        forests = client.map(grow, range(130), seconds=0.2 if run.ill else 0.001)
        others = [forests[(number + 47) % 130] for number in range(130)]
        client.submit(conclude, client.map(graft, forests, others)).result()


# -- memory ----------------------------------------------------------------------------------


def read_station(number: int, nbytes: int) -> Ledger:
    time.sleep(about(0.3, "station", number))
    return Ledger(np.full(nbytes, number % 200, dtype="u1"))


def peak(station: Ledger) -> float:
    time.sleep(0.03)
    return float(station.values[0])


def normalize(station: Ledger, top: float) -> float:
    time.sleep(about(0.35, "normalize", float(station.values[0])))
    return float(station.values[1]) / top


@illness(cause("spilling"))
def stations_promoted_to_doubles(run: Run) -> None:
    """60 stations are read in 0.3 s and normalized in 0.35 s to the peak of all of them, on 3
    workers with 2 threads and 1 GB, of which 17 % may be used before results are spilled; a
    station has 12 MB in doubles, or 6 MB in single precision."""
    config = {
        "distributed.worker.memory.target": 0.17,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
    }
    with run.recorded(3, 2, "1GB", config) as client:
        nbytes = (12 if run.ill else 6) * MEGABYTE
        stations = client.map(read_station, range(60), nbytes=nbytes)
        top = client.submit(max, client.map(peak, stations))
        client.submit(conclude, client.map(normalize, stations, top=top)).result()


# -- tasks, graphs, the network and the scheduler --------------------------------------------


def divide(part: Any, seconds: float, number: int) -> tuple[int, int]:
    """Divide the rows of a part by their median."""
    time.sleep(about(seconds, "divide", number))
    return 2 * number, 2 * number + 1


def distribute(number: int, seconds: float) -> list[int]:
    """Distribute the rows of a part by splitters that were drawn from a sample."""
    time.sleep(about(seconds, "distribute", number))
    return [number] * 8


def sort_rows(part: Any, number: int) -> int:
    time.sleep(about(0.4, "sort", number))
    return number


@illness(cause("low-parallelism long-tail", "divide"))
def quicksort_from_the_whole_table(run: Run) -> None:
    """A table is sorted in 64 parts of 0.4 s on 4 workers with 2 threads; before that it is
    divided in halves six times, from one task of 5 s to 32 of 0.16 s, or its rows are
    distributed by 64 tasks of 0.47 s, each group of 8 to as many parts."""
    with run.recorded(4, 2):
        if run.ill:
            parts: list[Any] = [0]
            for level in range(6):
                halves = [
                    dask.delayed(divide, nout=2)(part, 5.0 / 2**level, 2**level + number)
                    for number, part in enumerate(parts)
                ]
                parts = [half for pair in halves for half in pair]
        else:
            given = [dask.delayed(distribute)(number, 30.0 / 64) for number in range(64)]
            parts = [given[number // 8 * 8 : number // 8 * 8 + 8] for number in range(64)]
        tree([dask.delayed(sort_rows)(part, at) for at, part in enumerate(parts)]).compute()


def read_block(block: np.ndarray, block_info: Any = None) -> np.ndarray:
    number = max(block_info[0]["chunk-location"]) if block_info else 0
    time.sleep(about(0.75, "block", number))
    return np.random.default_rng(number).random(block.shape)


def fit_pixels(block: np.ndarray, block_info: Any = None) -> np.ndarray:
    number = block_info[0]["chunk-location"][1] if block_info else 0
    time.sleep(about(0.85, "pixels", number))
    return block[:1, :1]


@illness(cause("transfers"))
def images_turned_into_time_series(run: Run) -> None:
    """200 MB are read in 32 blocks of 0.75 s and fitted in 32 blocks of pixels in 0.85 s, on 4
    workers with 2 threads that send 36 MB/s each; the blocks that are read contain all pixels
    for some time and are rechunked, or all times for some pixels."""
    prepare = partial(Client.run, function=limit_uplink, bytes_per_second=36e6)
    config = {"array.rechunk.method": "tasks"}
    with run.recorded(4, 2, "3GB", config, prepare=prepare):
        times, pixels = 32 * 60, 32 * 400
        by_time, by_pixel = (60, pixels), (times, 400)
        images = da.zeros((times, pixels), chunks=by_time if run.ill else by_pixel)
        images = images.map_blocks(read_block, dtype=float, meta=np.zeros((0, 0)))
        fits = images.rechunk(by_pixel).map_blocks(
            fit_pixels, dtype=float, chunks=((1,), (1,) * 32), meta=np.zeros((0, 0))
        )
        fits.sum(split_every=8).compute()


class Budget(Adaptive):
    """Ask the accounting system for the number of workers that the budget allows."""

    seconds = 0.0

    async def target(self) -> int:
        time.sleep(self.seconds)  # noqa: ASYNC251 - the illness
        return 5


class SlowBudget(Budget):
    seconds = 0.9


def fold_protein(number: int) -> int:
    time.sleep(about(0.25, "fold", number))
    return number


@illness(cause("scheduler-saturated"))
def budget_asked_for_in_the_scheduler(run: Run) -> None:
    """330 proteins of 0.25 s on 5 workers with 2 threads; the cluster is adaptive, and asks an
    accounting system every 0.5 s how many workers it may have, which blocks the event loop of
    the scheduler for 0.9 s each time, or does not. The answer is always 5."""
    with run.recorded(5, 2) as client:
        kind = SlowBudget if run.ill else Budget
        adaptive = run.cluster.adapt(kind, minimum=5, maximum=5, interval="500ms")
        client.submit(conclude, client.map(fold_protein, range(330))).result()
        adaptive.stop()


def describe(number: int) -> list[int]:
    time.sleep(about(0.2, "describe", number))
    return [number] * 20


def compare(one: list[int], other: list[int]) -> float:
    time.sleep(about(0.006, "compare", one[0], other[0]))
    return float(one[0] - other[0])


def compare_groups(ones: list[list[int]], others: list[list[int]]) -> list[float]:
    return [compare(one, other) for one in ones for other in others]


@illness(cause("short-tasks scheduler-saturated", "compare"))
def task_for_each_pair_of_molecules(run: Run) -> None:
    """96 molecules are described in 0.2 s on 3 workers with 2 threads, and 4,608 pairs of them
    are compared in 6 ms each, in a task for each pair, or in 72 tasks for 64 pairs."""
    with run.recorded(3, 2) as client:
        molecules = client.map(describe, range(96))
        groups = [molecules[first : first + 8] for first in range(0, 96, 8)]
        pairs = [(i, j) for i in range(12) for j in range(12) if (i + j) % 2]
        if run.ill:
            both = [(a, b) for i, j in pairs for a in groups[i] for b in groups[j]]
            done = client.map(compare, *zip(*both, strict=True))
        else:
            done = [client.submit(compare_groups, groups[i], groups[j]) for i, j in pairs]
        wait(done)


def warm_up(client: Client) -> None:
    """Group a small dataframe on all workers, so that no task of the recording imports."""

    def make(number: int) -> pd.DataFrame:
        time.sleep(0.1)
        return pd.DataFrame({"key": [number % 3], "value": [1.0]})

    meta = pd.DataFrame({"key": np.zeros(0, dtype=int), "value": np.zeros(0)})
    small = dd.from_map(make, list(range(60)), meta=meta).map_partitions(len, meta=(None, int))
    small.compute()
    dd.from_map(make, list(range(60)), meta=meta).groupby("key")["value"].sum().compute()


def read_rows(number: int, rows: int) -> pd.DataFrame:
    random = np.random.default_rng(number)
    return pd.DataFrame({f"x{column}": random.random(rows) for column in range(10)})


def regress(part: pd.DataFrame, column: str) -> pd.DataFrame:
    if len(part) > 10:
        time.sleep(about(0.25, column, float(part.iloc[0, 0])))
    return part[[column]].head(1)


@illness(cause("large-graph client-gaps"))
def frame_of_pandas_in_each_computation(run: Run) -> None:
    """Four regressions of a frame of 320 MB in 64 partitions of 0.25 s, one after the other, on
    4 workers with 2 threads; the frame is one of Pandas, which each graph contains, or its
    partitions are made on the workers."""
    rows = 320 * MEGABYTE // 80 // 64
    numbers = list(range(64))
    if run.ill:
        whole = pd.concat([read_rows(number, rows) for number in numbers], ignore_index=True)
        table = dd.from_pandas(whole, npartitions=64)
    else:
        meta = read_rows(0, 0)
        table = dd.from_map(read_rows, numbers, rows=rows, meta=meta)
    with run.recorded(4, 2, "3GB", prepare=warm_up):
        for number in range(4):
            column = f"x{number}"
            meta = pd.DataFrame({column: np.zeros(0)})
            table.map_partitions(regress, column, meta=meta).compute()


def simulate_shower(number: int, seed: int) -> int:
    """Simulate a shower, for which the step becomes too small with some seeds."""
    time.sleep(about(0.5, "shower", number))
    if seed == 0 and number % 5 in (0, 3):
        raise FloatingPointError(f"the step of shower {number} is too small")
    return number


@illness(cause("retries", "FloatingPointError", "simulate_shower"))
def showers_submitted_again_with_another_seed(run: Run) -> None:
    """130 showers of 0.5 s on 4 workers with 2 threads; with the first seed 52 fail at their
    end, and the client submits them again with another seed when it notices that, or all have a
    seed that does not fail."""
    with run.recorded(4, 2) as client:
        seed = 0 if run.ill else 1
        numbers = {}
        for number in range(130):
            numbers[client.submit(simulate_shower, number, seed)] = number
        showers = as_completed(list(numbers))
        for shower in showers:
            if shower.status == "error":
                showers.add(client.submit(simulate_shower, numbers[shower], 1))


# -- two illnesses ---------------------------------------------------------------------------


def detect_sources(
    block: np.ndarray, seconds: float, crowded: float, night: int, block_info: Any = None
) -> np.ndarray:
    """Detect sources, of which the last block has many if the corner is crowded."""
    place = block_info[0]["chunk-location"] if block_info else (0, 0)
    if block.size:
        time.sleep(about(crowded if place == (7, 7) else seconds, night, place))
    return block[:1, :1]


def write_catalogue(seconds: float) -> None:
    time.sleep(seconds)


@illness(cause("client-gaps"), cause("long-tail", "detect_sources"))
def nights_with_a_crowded_corner(run: Run) -> None:
    """Three nights of 8 by 8 blocks of 0.3 s on 4 workers with 2 threads; sources are detected
    in 3.6 s in the last block, which has a globular cluster, or all blocks take 0.35 s; the
    client writes a catalogue in 2 s after each night, or in a thread."""
    with run.recorded(4, 2) as client:
        writers = []
        for night in range(3):
            seconds, crowded = (0.3, 3.6) if run.ill else (0.35, 0.35)
            image = da.zeros((400, 400), chunks=50, name=f"night-{night}")
            sources = image.map_blocks(
                detect_sources, seconds, crowded, night, dtype=float, chunks=(1, 1)
            )
            blocks = list(sources.to_delayed().ravel())
            wait(client.compute(blocks))
            if run.ill:
                write_catalogue(2.0)
            else:
                writers.append(threading.Thread(target=write_catalogue, args=[2.0]))
                writers[-1].start()
        for writer in writers:
            writer.join()


# -- controls --------------------------------------------------------------------------------


def advect(before: list[int], step: int, cell: int) -> int:
    time.sleep(about(0.3, "advect", step, cell))
    return cell


@illness()
def control_stencil(run: Run) -> None:
    """12 steps of 0.3 s of 32 cells, each of which needs itself and its two neighbours of the
    step before, on 4 workers with 2 threads."""
    with run.recorded(4, 2):
        cells: list[Any] = list(range(32))
        for step in range(12):
            cells = [
                dask.delayed(advect)(
                    [cells[cell - 1], cells[cell], cells[(cell + 1) % 32]], step, cell
                )
                for cell in range(32)
            ]
        tree(cells).compute()


def read_sales(number: int) -> pd.DataFrame:
    time.sleep(about(0.4, "sales", number))
    shops = np.arange(1_000) % 50
    return pd.DataFrame({"shop": shops, "amount": np.full(1_000, float(number))})


def clean_sales(part: pd.DataFrame) -> pd.DataFrame:
    if len(part) > 10:
        time.sleep(about(0.35, "clean", float(part["amount"].iloc[0])))
    return part


@illness()
def control_sales(run: Run) -> None:
    """A dataframe of 120 partitions, which are read in 0.4 s and cleaned in 0.35 s, and sums of
    50 shops, on 5 workers with 2 threads."""
    meta = pd.DataFrame({"shop": np.zeros(0, dtype=int), "amount": np.zeros(0)})
    with run.recorded(5, 2, prepare=warm_up):
        sales = dd.from_map(read_sales, list(range(120)), meta=meta)
        sales = sales.map_partitions(clean_sales, meta=meta)
        sales.groupby("shop")["amount"].sum(split_every=10).compute()


def tag_page(number: int) -> int:
    time.sleep(about(0.14, "page", number))
    return number


def count_page(total: int, number: int) -> int:
    return total + number


def add(one: int, other: int) -> int:
    return one + other


@illness()
def control_pages(run: Run) -> None:
    """A bag of 540 pages of 0.14 s in 180 partitions, which are counted by their topic with
    `foldby`, on 2 workers with 4 threads."""
    with run.recorded(2, 4):
        pages = db.from_sequence(range(540), npartitions=180).map(tag_page)
        counts = pages.foldby(lambda page: page % 7, count_page, 0, add, 0, split_every=12)
        counts.compute()
