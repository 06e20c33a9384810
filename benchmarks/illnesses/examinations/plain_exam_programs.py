"""Programs of plain Dask work, by an author who had read neither the rules nor their tests.

The author knew the ids and the titles of the findings, and the programs of the blind set as an
example of the form. Durations vary by 30 % around their mean, and most of them are slept.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import zict
from distributed import Client, as_completed, wait
from illness import Run, cause, illness
from tornado.ioloop import PeriodicCallback

if TYPE_CHECKING:
    from collections.abc import Callable

    from dask.delayed import Delayed
    from distributed import Scheduler, Worker
    from distributed.comm import Comm

MEGABYTE = 1_000_000

#: Settings of a worker's process. A process that replaces a killed one has none.
SETTINGS: dict[str, Any] = {}

#: Arrays that tasks have left behind.
LEFT: list[np.ndarray] = []


def vary(number: int, seconds: float) -> float:
    """Return a duration within 30 % of a mean, the same for the same number."""
    return seconds * np.random.default_rng(number).uniform(0.7, 1.3)


def allow(*limits: str) -> dict[str, Any]:
    """Return the configuration of workers that have some of the limits of memory only."""
    names = {"target", "spill", "pause", "terminate"}.difference(limits)
    return {f"distributed.worker.memory.{name}": False for name in names}


def update_settings(settings: dict[str, Any]) -> None:
    SETTINGS.update(settings)


def set_up(run: Run, *names: int, **settings: Any) -> Callable[[Client], None]:
    """Return what changes the settings of some workers in a run with the illness."""

    def prepare(client: Client) -> None:
        if run.ill:
            client.run(update_settings, settings, workers=list(map(run.address, names)))

    return prepare


def timed(name: str, seconds: float) -> Callable[..., int]:
    """Return a task with a name, whose first argument decides how long it takes."""

    def task(number: int, *_inputs: Any) -> int:
        time.sleep(vary(number + 1_000 * len(name), seconds))
        return number

    task.__name__ = task.__qualname__ = name
    return task


classify_tile = timed("classify_tile", 0.3)
integrate = timed("integrate", 0.4)
step_chain = timed("step_chain", 0.5)
extract = timed("extract", 0.45)
draw_samples = timed("draw_samples", 0.3)
read_histogram = timed("read_histogram", 0.5)
mesh = timed("mesh", 0.5)
solve = timed("solve", 0.6)
read_region = timed("read_region", 0.5)
fit_trend = timed("fit_trend", 0.4)
reduce_day = timed("reduce_day", 0.35)
apply_fit = timed("apply_fit", 0.25)
combine = timed("combine", 0.12)
plot = timed("plot", 0.9)
select = timed("select", 0.5)
tokenize_line = timed("tokenize_line", 0.009)


def total(parts: list[float]) -> float:
    time.sleep(0.05)
    return float(sum(parts))


def totals(parts: list[Delayed], fan_in: int = 10) -> Delayed:
    """Add up in a tree."""
    while len(parts) > 1:
        groups = [parts[first : first + fan_in] for first in range(0, len(parts), fan_in)]
        parts = [dask.delayed(total)(group) for group in groups]
    return parts[0]


# -- workers, hosts and threads --------------------------------------------------------------


def read_tile(number: int) -> np.ndarray:
    """Read from a disk that all processes of a host share, one at a time if it is busy."""
    path = SETTINGS.get("busy_disk")
    with Path(path or os.devnull).open("w") as disk:
        if path:
            fcntl.flock(disk, fcntl.LOCK_EX)
        time.sleep(vary(number, 0.55 if path else 0.35))
    return np.full(20_000, number, dtype="f4")


@illness(cause("slow-host", "127.0.0.3"))
def host_with_a_busy_scratch_disk(run: Run) -> None:
    """220 tiles on three hosts of 4 threads; on one, tiles are read one at a time in 0.55 s."""
    prepare = set_up(run, 4, 5, busy_disk=str(Path.cwd() / "disk"))
    hosts = tuple(f"127.0.0.{number}" for number in (1, 1, 2, 2, 3, 3))
    with run.recorded(hosts=hosts, threads=2, prepare=prepare):
        tiles = [dask.delayed(read_tile)(number) for number in range(220)]
        kinds = [dask.delayed(classify_tile)(at, tile) for at, tile in enumerate(tiles)]
        totals(kinds).compute()


def send_signals(pid: int, *plan: tuple[float, int]) -> None:
    """Send signals to a process from a thread, each some seconds after the one before."""

    def send() -> None:
        for seconds, number in plan:
            time.sleep(seconds)
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    threading.Thread(target=send, daemon=True).start()


def fit_fold(depth: int, fold: int) -> float:
    """Fit in steps; a stopped process begins no new step."""
    for _ in range(round(vary(10 * depth + fold, 0.7) / 0.02)):
        time.sleep(0.02)
    return depth / (fold + 1)


@illness(cause("slow-worker", "1"))
def cpu_quota_of_one_worker(run: Run) -> None:
    """A grid of 20 depths and 5 folds of 0.7 s; worker 1 of 3 runs for 60 of 200 ms."""
    with run.recorded(workers=3, threads=2) as client:
        if run.ill:
            send_signals(run.pid(1), *[(0.06, signal.SIGSTOP), (0.14, signal.SIGCONT)] * 100)
        grid = [(depth, fold) for depth in range(20) for fold in range(5)]
        client.submit(total, client.map(fit_fold, *zip(*grid, strict=True))).result()


@illness(cause("silent-worker", "3"))
def suspended_machine(run: Run) -> None:
    """100 integrals of 0.4 s on 4 workers; worker 3 is stopped from 5 to 14 s."""
    with run.recorded(workers=4) as client:
        if run.ill:
            send_signals(run.pid(3), (5.0, signal.SIGSTOP), (9.0, signal.SIGCONT))
        client.submit(total, client.map(integrate, range(100))).result()


@illness(cause("excess-workers"), saves="core")
def six_chains_on_many_workers(run: Run) -> None:
    """Six Markov chains of 24 steps of 0.5 s, on 8 workers with 2 threads each, or on 3."""
    with run.recorded(workers=8 if run.ill else 3, threads=2):
        chains: list[Any] = [0.0] * 6
        for step in range(24):
            numbers = range(step, 600, 100)
            chains = list(map(dask.delayed(step_chain), numbers, chains))
        totals(chains).compute()


def parse_log(number: int, holds_gil: bool) -> int:
    """Read, then parse: in Python, or in a library that releases the GIL."""
    time.sleep(vary(number, 0.2))
    seconds = vary(number + 500, 0.14)
    begin, count = time.thread_time(), 0
    while holds_gil and time.thread_time() - begin < seconds:
        count += len(str(count))
    time.sleep(0.0 if holds_gil else seconds)
    return number


@illness(cause("gil"))
def parser_in_python(run: Run) -> None:
    """220 logs on 2 workers with 4 threads; each is parsed by 0.14 s of Python, or outside."""
    with run.recorded(workers=2, threads=4) as client:
        parsed = client.map(parse_log, range(220), [run.ill] * 220)
        client.submit(total, parsed).result()


async def request(number: int, blocks: bool) -> int:
    """Wait for a service, in a coroutine, for which no thread is needed."""
    seconds = vary(number, 0.4)
    if blocks:
        time.sleep(seconds)  # noqa: ASYNC251
    await asyncio.sleep(0.0 if blocks else seconds)
    return number


@illness(cause("blocked-event-loop"))
def blocking_calls_in_coroutines(run: Run) -> None:
    """140 coroutines of 0.4 s with blocking calls or without, and a task of 0.45 s each."""
    with run.recorded(workers=4, threads=3) as client:
        pages = client.map(request, range(140), [run.ill] * 140)
        client.submit(total, client.map(extract, pages)).result()


# -- memory ----------------------------------------------------------------------------------


def limit_disk() -> None:
    """Let spilled values be written and read at 80 MB/s."""
    write, read = zict.File.__setitem__, zict.File.__getitem__

    def slow_write(self: zict.File, key: str, value: list) -> None:
        time.sleep(sum(memoryview(part).nbytes for part in value) / 80e6)
        write(self, key, value)

    def slow_read(self: zict.File, key: str) -> Any:
        value = read(self, key)
        time.sleep(len(value) / 80e6)
        return value

    zict.File.__setitem__, zict.File.__getitem__ = slow_write, slow_read


def load_block(size: int, seconds: float, block_id: tuple[int, ...]) -> np.ndarray:
    time.sleep(vary(block_id[0], seconds))
    return np.resize(np.random.default_rng(block_id[0]).random(100_000), size)


def blocks(count: int, size: int, seconds: float) -> da.Array:
    sizes = {"chunks": ((size,) * count,), "dtype": "f8", "meta": np.empty(0)}
    return da.map_blocks(load_block, size=size, seconds=seconds, **sizes)


def scale(block: np.ndarray, mean: float, power: int, block_id: tuple[int, ...]) -> np.ndarray:
    time.sleep(vary(100 * power + block_id[0] + 300, 0.3))
    return (block[::1_000] - mean) ** power


def scaled(array: da.Array, mean: Any, power: int) -> da.Array:
    chunks = tuple(size // 1_000 for size in array.chunks[0])
    return da.map_blocks(scale, array, mean, power, chunks=(chunks,), dtype="f8")


@illness(cause("spilling"))
def mean_that_keeps_all_blocks(run: Run) -> None:
    """90 blocks of 20 MB less their mean, on 3 workers with 2 threads, of 900 MB or of 4 GB."""
    memory = "900MB" if run.ill else "4GB"
    prepare = partial(Client.run, function=limit_disk)
    with run.recorded(3, 2, memory, allow("target", "spill"), prepare=prepare):
        field = blocks(90, 2_500_000, 0.45)
        scaled(field, field.mean(), 1).sum().compute()


def render_frame(number: int) -> float:
    """Render with arrays that are freed at the end."""
    time.sleep(vary(number, 0.1))
    layers = np.ones(120 * MEGABYTE, dtype="u1")
    time.sleep(vary(number + 400, 0.8))
    return float(layers[number])


@illness(cause("paused-workers unmanaged-memory"))
def frames_that_need_much_memory(run: Run) -> None:
    """80 frames of 0.9 s and 120 MB each; 2 workers with 4 threads have 430 MB, or 4 GB."""
    memory = "430MB" if run.ill else "4GB"
    with run.recorded(2, 4, memory, allow("pause")) as client:
        client.submit(total, client.map(render_frame, range(80))).result()


# -- tasks, graphs and the scheduler ---------------------------------------------------------


def read_orders(number: int, rows: int) -> pd.DataFrame:
    time.sleep(vary(number, 0.3))
    customers = np.random.default_rng(number).permutation(rows) % 2_000
    return pd.DataFrame({"customer": customers, "price": 1.0})


def enrich(orders: pd.DataFrame) -> pd.DataFrame:
    time.sleep(len(orders) * 0.0004)
    return orders


@illness(cause("long-tail", "enrich"))
def partition_with_many_orders(run: Run) -> None:
    """100 partitions on 6 threads; one has 40,000 orders and others have 860, or all 1,250."""
    rows = [860] * 99 if run.ill else [1_250] * 99
    rows.insert(60, 125_000 - sum(rows))
    with run.recorded(workers=3, threads=2):
        meta = read_orders(0, 1)
        orders = dd.from_map(read_orders, range(100), rows, meta=meta)
        orders.map_partitions(enrich, meta=meta).price.sum().compute()


@illness(cause("short-tasks scheduler-saturated"))
def bag_with_a_partition_for_each_line(run: Run) -> None:
    """7,000 lines of 9 ms in a bag of 7,000 partitions, or of 140, on 4 workers, 8 threads."""
    with run.recorded(workers=4, threads=2):
        lines = db.from_sequence(range(7_000), npartitions=7_000 if run.ill else 140)
        lines.map(tokenize_line).fold(max, split_every=20).compute()


async def start_monitor(seconds: float, dask_scheduler: Scheduler) -> None:
    """Let a page with the state of the job be rendered in the event loop, again and again."""
    monitor = PeriodicCallback(lambda: time.sleep(seconds), 1e3 * seconds + 200)
    dask_scheduler.monitor_of_the_job = monitor
    monitor.start()


@illness(cause("scheduler-saturated"))
def page_rendered_by_the_scheduler(run: Run) -> None:
    """420 tasks of 0.3 s on 12 threads; a page blocks the scheduler for 0.7 of each 0.9 s."""
    prepare = partial(Client.run_on_scheduler, function=start_monitor, seconds=0.7 * run.ill)
    with run.recorded(workers=6, threads=2, prepare=prepare) as client:
        client.submit(total, client.map(draw_samples, range(420))).result()


@illness(cause("large-graph"))
def images_in_the_graph(run: Run) -> None:
    """Three passes over 90 images of 7 MB on 5 workers; they come in the graph of each pass."""
    with run.recorded(workers=5):
        stack = blocks(90, 875_000, 0.0)
        if run.ill:
            stack = da.from_array(stack.compute(scheduler="sync"), chunks=stack.chunks)
        for power in range(3):
            scaled(stack, 0.0, power).sum().compute()


def limit_network(dask_worker: Worker) -> None:
    """Let a worker send results one after the other, at 60 MB/s."""
    get_data, lock = dask_worker.handlers["get_data"], asyncio.Lock()

    async def slow_get_data(comm: Comm, keys: list, **message: Any) -> Any:
        async with lock:
            await asyncio.sleep(sum(dask_worker.state.tasks[key].nbytes for key in keys) / 60e6)
        return await get_data(comm, keys=keys, **message)

    dask_worker.handlers["get_data"] = slow_get_data


def read_table(number: int, nbytes: int) -> np.ndarray:
    time.sleep(vary(number, 0.5))
    return np.ones(nbytes, dtype="u1")


@illness(cause("transfers", "select"))
def tables_sent_with_all_columns(run: Run) -> None:
    """30 tables of 16 MB, or of 0.2 MB in one column; 60 tasks on 5 workers select from all."""
    with run.recorded(5, prepare=partial(Client.run, function=limit_network)):
        nbytes = 16 * MEGABYTE if run.ill else MEGABYTE // 5
        tables = [dask.delayed(read_table)(number, nbytes) for number in range(30)]
        totals([dask.delayed(select)(group, tables) for group in range(60)]).compute()


@illness(cause("low-parallelism", "combine"))
def histograms_added_one_by_one(run: Run) -> None:
    """96 histograms of 0.5 s on 6 threads; each is added to the sum so far, or in a tree."""
    with run.recorded(workers=3, threads=2):
        parts = [dask.delayed(read_histogram)(number) for number in range(96)]
        while len(parts) > 1:
            count = 2 if run.ill else len(parts) // 2 * 2
            added = map(dask.delayed(combine), parts[1:count:2], parts[:count:2])
            parts = list(added) + parts[count:]
        parts[0].compute()


@illness(cause("idle-threads low-parallelism"))
def solvers_bound_to_one_worker(run: Run) -> None:
    """90 meshes of 0.5 s on 8 threads, and 60 solvers of 0.6 s, for which worker 0 is asked."""
    with run.recorded(workers=4, threads=2) as client:
        meshes = client.map(mesh, range(90))
        workers = [run.address(0)] if run.ill else None
        solved = client.map(solve, meshes[:60], workers=workers)
        client.submit(total, meshes[60:] + solved).result()


@illness(cause("client-gaps low-parallelism"))
def compute_for_each_region(run: Run) -> None:
    """22 regions with five tables and a fit each on 8 threads, in one compute() for each."""
    with run.recorded(workers=2, threads=4):
        fits = []
        for region in range(22):
            years = [dask.delayed(read_region)(5 * region + year) for year in range(5)]
            fits.append(dask.delayed(fit_trend)(region, years))
        for part in [[fit] for fit in fits] if run.ill else [fits]:
            dask.compute(*part)


# -- two illnesses ---------------------------------------------------------------------------


def export_table(number: int, seconds: float) -> int:
    if SETTINGS.get("disk_is_full"):
        time.sleep(min(seconds, 0.6))
        raise OSError(28, "No space left on device")
    time.sleep(seconds)
    return number


@illness(cause("retries", "OSError", "export_table", "2"), cause("long-tail", "export_table"))
def exports_to_a_full_disk(run: Run) -> None:
    """90 exports of 0.5 s, and one of 7 s at the end; those of worker 2 of 5 are repeated."""
    prepare = set_up(run, 2, disk_is_full=True)
    with run.recorded(workers=5, prepare=prepare) as client:
        tables = [(number, vary(number, 0.5)) for number in range(90)]
        tables.insert(90 if run.ill else 0, (90, 7.0))
        table_of = {client.submit(export_table, *table): table for table in tables}
        running = as_completed(table_of)
        for done in running:
            if done.status == "error":
                again = client.submit(export_table, *table_of[done], pure=False)
                table_of[again] = table_of[done]
                running.add(again)


@illness(cause("late-workers"), cause("client-gaps"))
def months_on_spot_machines(run: Run) -> None:
    """Six months of 30 tasks; 3 of 6 workers leave at 5 s, and the client plots each month."""
    with run.recorded(workers=6) as client:
        if run.ill:
            threading.Timer(5.0, run.cluster.scale, [3]).start()
        plots = []
        for month in range(6):
            days = client.map(reduce_day, range(30 * month, 30 * month + 30))
            if run.ill:
                plot(month, client.gather(days))
            else:
                plots.append(client.submit(plot, month, days))
        wait(plots)


def read_events(number: int) -> float:
    LEFT.append(np.ones(SETTINGS.get("leak", 0), dtype="u1"))
    time.sleep(vary(number, 0.4))
    return float(number)


def fit_all(parts: list[float], seconds: float) -> float:
    time.sleep(seconds)
    return sum(parts)


@illness(cause("killed-workers unmanaged-memory"), cause("low-parallelism", "fit_all"))
def leak_before_one_fit(run: Run) -> None:
    """100 reads, a fit of 5 s alone, 64 tasks; 2 of 4 workers lose 45 MB in each read."""
    prepare = set_up(run, 0, 2, leak=45 * MEGABYTE)
    with run.recorded(4, 1, "1GB", allow("terminate"), prepare=prepare):
        reads = [dask.delayed(read_events)(number) for number in range(100)]
        size = 100 if run.ill else 5
        parts = [reads[first : first + size] for first in range(0, 100, size)]
        fits = [dask.delayed(fit_all)(part, 0.05 * size) for part in parts]
        fit = dask.delayed(total)(fits)
        totals([dask.delayed(apply_fit)(number, fit) for number in range(64)]).compute()


# -- controls --------------------------------------------------------------------------------


@illness()
def control_join(run: Run) -> None:
    """70 partitions of 2,000 orders are merged with customers on 4 workers."""
    with run.recorded(workers=4):
        meta = read_orders(0, 1)
        orders = dd.from_map(read_orders, range(70), rows=2_000, meta=meta)
        orders = orders.map_partitions(enrich, meta=meta)
        ids = np.arange(2_001)
        customers = dd.from_pandas(pd.DataFrame({"customer": ids, "region": ids % 9}), 8)
        joined = orders.merge(customers, on="customer", shuffle_method="p2p", npartitions=12)
        joined.groupby("region").price.sum(split_out=1).compute()


@illness()
def control_stages(run: Run) -> None:
    """Futures of 150 meshes of 0.5 s and their solutions of 0.6 s, on 12 threads."""
    with run.recorded(workers=3, threads=4) as client:
        meshes = client.map(mesh, range(150))
        solved = client.map(solve, meshes)
        means = [client.submit(total, solved[at : at + 15]) for at in range(0, 150, 15)]
        sum(mean.result() for mean in as_completed(means))


@illness()
def control_mosaics(run: Run) -> None:
    """160 images of 2 MB, and 40 mosaics of four images each, on 7 workers."""
    with run.recorded(workers=7):
        images = [dask.delayed(read_table)(number, 2 * MEGABYTE) for number in range(160)]
        mosaics = [
            dask.delayed(select)(at // 4, images[at : at + 4]) for at in range(0, 160, 4)
        ]
        totals(mosaics).compute()
