"""Independent programs of plain Dask.

They were written by an author who had read neither the rules nor their tests, who knew the ids
and titles of findings and the other programs. Nearly all work is sleeping, and durations vary
by 25 % around their mean.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import dask.bag as db
import numpy as np
from distributed import Client, WorkerPlugin, get_worker, wait
from distributed.diagnostics.plugin import SchedulerPlugin
from final_plain_programs import FREE, HOLDING, STATE, about, limit_uplink, set_state
from illness import Run, cause, illness

if TYPE_CHECKING:
    from collections.abc import Callable

    from dask.delayed import Delayed
    from distributed import Worker

MEGABYTE = 1_000_000

LOG = logging.getLogger("survey")
LOG.propagate = False


def conclude(parts: list[Any]) -> int:
    time.sleep(0.03)
    return len(parts)


def tree(parts: list[Delayed], fan_in: int = 8) -> Delayed:
    """Conclude in a tree."""
    while len(parts) > 1:
        groups = [parts[first : first + fan_in] for first in range(0, len(parts), fan_in)]
        parts = [dask.delayed(conclude)(group) for group in groups]
    return parts[0]


# -- workers and hosts -----------------------------------------------------------------------


class LogFile(logging.Handler):
    """Write each record to a network disk, one after the other."""

    def emit(self, record: logging.LogRecord) -> None:
        time.sleep(0.03)


def log_everything() -> None:
    LOG.addHandler(LogFile())
    LOG.setLevel(logging.DEBUG)


def assimilate(before: int, station: int, hour: int) -> int:
    """Assimilate 20 records, each of which is logged for debugging."""
    for record in range(20):
        time.sleep(about(0.02, "assimilate", station, hour, record))
        LOG.debug("station %d, hour %d, record %d", station, hour, record)
    return before + station


@illness(cause("slow-worker", "2"))
def worker_that_logs_each_record(run: Run) -> None:
    """12 stations with 13 hours of 0.4 s, one hour after the other, on 3 workers with 2
    threads; worker 2 logs each of the 20 records of a task to a network disk in 30 ms, as a
    debug level was left in its environment."""

    def prepare(client: Client) -> None:
        if run.ill:
            client.run(log_everything, workers=[run.address(2)])

    with run.recorded(3, 2, prepare=prepare):
        stations: list[Any] = [0] * 12
        for hour in range(13):
            stations = [
                dask.delayed(assimilate)(before, station, hour)
                for station, before in enumerate(stations)
            ]
        tree(stations).compute()


UNPACK = """
import asyncio

async def dask_setup(worker):
    if worker.name in (2, 3, 4):
        await asyncio.sleep(3.5 + worker.name)
"""


def transcribe(number: int) -> int:
    time.sleep(about(0.4, "transcribe", number))
    return number


@illness(cause("late-workers"))
def environment_unpacked_in_a_preload(run: Run) -> None:
    """A bag of 170 recordings of 0.4 s; the cluster has 2 workers with 2 threads, and 3 more
    are requested at the beginning, whose preload unpacks an environment in 5.5 to 7.5 s
    before they join; or it has all 5 from the beginning."""
    config = {"distributed.worker.preload": [UNPACK] if run.ill else []}
    with run.recorded(2 if run.ill else 5, 2, config=config):
        run.cluster.scale(5)
        bag = db.from_sequence(range(170), npartitions=170)
        bag.map(transcribe).fold(max, split_every=12).compute()


def stop_between(pids: list[int], first: float, last: float) -> list[threading.Timer]:
    """Suspend processes from one time to another."""
    plan = [(first, signal.SIGSTOP), (last, signal.SIGCONT)]
    timers = [threading.Timer(at, os.kill, [pid, what]) for pid in pids for at, what in plan]
    for timer in timers:
        timer.start()
    return timers


def embed(number: int) -> list[float]:
    time.sleep(about(0.3, "embed", number))
    return [float(number)] * 500


def compare(first: list[float], second: list[float], number: int) -> float:
    time.sleep(about(0.35, "compare", number))
    return first[0] - second[0]


@illness(cause("silent-worker", "2", "3"))
def node_of_two_workers_that_freezes(run: Run) -> None:
    """90 texts of 0.3 s and comparisons of 0.35 s of each with the one before and with another,
    on 6 workers with 2 threads; workers 2 and 3 are on the same node, which freezes from 4 to
    13 s."""
    with run.recorded(6, 2):
        timers = stop_between([run.pid(2), run.pid(3)], 4.0, 13.0) if run.ill else []
        texts = [dask.delayed(embed)(number) for number in range(90)]
        pairs = [
            dask.delayed(compare)(texts[number], texts[(number - step) % 90], number)
            for number in range(90)
            for step in (1, 31)
        ]
        tree(pairs, 12).compute()
        for timer in timers:
            timer.join()


def score_cell(cell: list[int], row: int, column: int) -> int:
    time.sleep(about(0.4, "cell", row, column))
    return sum(cell) % 97 + 1


@illness(cause("excess-workers low-parallelism"), saves="core")
def alignment_in_a_narrow_band(run: Run) -> None:
    """An alignment of 34 rows of 4 cells of 0.4 s, each of which needs the cells to its left
    and above, on 6 workers with 2 threads, or on 2 workers with 2 threads."""
    with run.recorded(6 if run.ill else 2, 2) as client:
        above: list[Any] = []
        for row in range(34):
            cells: list[Any] = []
            for column in range(4):
                needed = cells[-1:] + above[column : column + 1]
                cells.append(client.submit(score_cell, needed, row, column))
            above = cells
        above[-1].result()


class Sampler(WorkerPlugin):
    """Walk through the stacks of all threads in a C library, again and again."""

    def __init__(self, holds_gil: bool) -> None:
        self.holds_gil = holds_gil

    def setup(self, worker: Worker) -> None:
        threading.Thread(target=self.sample, daemon=True).start()

    def sample(self) -> None:
        library = HOLDING if self.holds_gil else FREE
        while True:
            library.usleep(16_000)
            time.sleep(0.006)


def track(number: int) -> int:
    """Track 30 hits, each in a short call that releases the GIL."""
    for hit in range(30):
        FREE.usleep(int(about(10_000, "hit", number, hit)))
    return number


@illness(cause("gil blocked-event-loop"))
def sampler_in_each_worker(run: Run) -> None:
    """280 tasks of 30 calls of 10 ms on 3 workers with 4 threads; a profiler in a thread of
    each worker holds the GIL for 16 ms of each 22 ms, or releases it."""

    def prepare(client: Client) -> None:
        client.register_plugin(Sampler(run.ill), name="sampler")

    with run.recorded(3, 4, prepare=prepare) as client:
        client.submit(conclude, client.map(track, range(280))).result()


def disk_usage(seconds: float) -> None:
    """Walk through the scratch folder."""
    time.sleep(seconds)


def extract_peaks(number: int) -> int:
    time.sleep(about(0.2, "peaks", number))
    return number


@illness(cause("blocked-event-loop"))
def quota_checked_by_the_client(run: Run) -> None:
    """500 tasks of 0.2 s on 4 workers with 4 threads; a thread of the client asks all workers
    for their disk usage by `client.run`, in their event loops, which takes 0.7 s of each
    second, or 5 ms."""
    with run.recorded(4, 4) as client:
        seconds, done = 0.7 if run.ill else 0.005, threading.Event()

        def check() -> None:
            while not done.wait(0.3):
                client.run(disk_usage, seconds)

        thread = threading.Thread(target=check)
        thread.start()
        client.submit(conclude, client.map(extract_peaks, range(500))).result()
        done.set()
        thread.join()


PRELOAD = """
import cloudpickle
from final_plain_programs import use_old_version

def dask_setup(worker):
    if worker.name in (1, 2):
        use_old_version(worker, cloudpickle, "2.2.1")
"""


@illness(cause("version-mismatch"), saves=None)
def two_workers_of_an_old_image(run: Run) -> None:
    """A bag of 120 recordings of 0.4 s on 3 workers with 2 threads; workers 1 and 2 run in an
    image with cloudpickle 2.2.1."""
    config = {"distributed.worker.preload": [PRELOAD] if run.ill else []}
    with run.recorded(3, 2, config=config):
        bag = db.from_sequence(range(120), npartitions=120)
        bag.map(transcribe).fold(max, split_every=12).compute()


# -- memory ----------------------------------------------------------------------------------


class Prefetcher(WorkerPlugin):
    """Read files ahead into buffers outside of Dask, which are soon thrown away."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes

    def setup(self, worker: Worker) -> None:
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        time.sleep(1.0)
        while True:
            buffer = np.ones(self.nbytes, dtype="u1")
            time.sleep(2.2)
            del buffer
            time.sleep(1.2)


def segment(number: int) -> int:
    time.sleep(about(0.35, "segment", number))
    return number


@illness(cause("paused-workers unmanaged-memory"))
def prefetcher_that_reads_too_much(run: Run) -> None:
    """130 scans of 0.35 s on 3 workers with 2 threads and 900 MB; a thread of each worker reads
    ahead and keeps 700 MB, or 7 MB, for 2.2 s of each 3.4 s."""

    def prepare(client: Client) -> None:
        plugin = Prefetcher((700 if run.ill else 7) * MEGABYTE)
        client.register_plugin(plugin, name="prefetcher")

    config = {"distributed.worker.memory.terminate": False}
    with run.recorded(3, 2, "900MB", config, prepare=prepare) as client:
        client.submit(conclude, client.map(segment, range(130))).result()


class Ledger:
    """Values on a disk of 45 MB/s when they are spilled."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __sizeof__(self) -> int:
        return self.values.nbytes

    def __getstate__(self) -> np.ndarray:
        time.sleep(self.values.nbytes / 45e6)
        return self.values

    def __setstate__(self, values: np.ndarray) -> None:
        time.sleep(values.nbytes / 45e6)
        self.values = values


def book(number: int, turn: int) -> Ledger:
    time.sleep(about(0.3, "book", number, turn))
    return Ledger(np.full(9 * MEGABYTE, turn, dtype="u1"))


def balance(ledger: Ledger) -> float:
    time.sleep(0.05)
    return float(ledger.values[0])


@illness(cause("spilling"))
def history_of_all_turns(run: Run) -> None:
    """Six turns of 36 ledgers of 9 MB, which are booked in 0.3 s and balanced in 0.05 s, on 3
    workers with 2 threads and 2 GB, of which 15 % may be used before results are spilled;
    the client keeps the futures of the ledgers of all turns, or of the last one only."""
    config = {
        "distributed.worker.memory.target": 0.15,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
    }
    with run.recorded(3, 2, "2GB", config) as client:
        history: list[Any] = []
        for turn in range(6):
            ledgers = client.map(book, range(36), turn=turn)
            client.submit(conclude, client.map(balance, ledgers)).result()
            history = [*history, ledgers] if run.ill else [ledgers]
            del ledgers


def read_field(number: int) -> np.ndarray:
    time.sleep(about(0.4, "field", number))
    return np.full(20_000, number, dtype="f4")


def project(field: np.ndarray, step: int) -> float:
    time.sleep(about(0.25, "project", float(field[0]), step))
    return float(field.sum())


@illness(cause("killed-workers"))
def workers_restarted_against_a_leak(run: Run) -> None:
    """60 fields of 0.4 s stay in memory on 4 workers with 2 threads, for three passes of
    0.25 s; a thread of the client restarts a worker at 3, 5.5, 8 and 10.5 s against a leak,
    and its fields are read again, or it restarts none."""
    config = {"distributed.scheduler.allowed-failures": 30}
    with run.recorded(4, 2, config=config) as client:
        addresses = [run.address(name) for name in (1, 3, 0, 2)]
        plan = zip((3.0, 5.5, 8.0, 10.5), addresses, strict=True) if run.ill else ()
        timers = [
            threading.Timer(at, client.restart_workers, [[address]]) for at, address in plan
        ]
        for timer in timers:
            timer.start()
        fields = client.map(read_field, range(60))
        for step in range(3):
            client.submit(conclude, client.map(project, fields, step=step)).result()
        for timer in timers:
            timer.join()


# -- tasks, graphs, the network and the scheduler --------------------------------------------


def running_sum(block: np.ndarray, axis: int = 0, dtype: Any = None) -> np.ndarray:
    if block.size:
        time.sleep(about(0.35, "running", float(block.flat[0])))
    return np.cumsum(block, axis=axis, dtype=dtype)


def attach(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Attach a segment to the previous one."""
    time.sleep(about(0.18, "attach", float(np.sum(after))))
    return before + after


@illness(cause("low-parallelism"))
def running_sums_in_sequence(run: Run) -> None:
    """Running sums of an array of 48 blocks of 0.35 s on 4 workers with 2 threads; the segments
    are attached in 0.18 s each, with the method `sequential`, or with `blelloch`."""
    with run.recorded(4, 2):
        blocks = da.arange(48 * 1_000, chunks=1_000, dtype="f8")
        sums = da.reductions.cumreduction(
            running_sum,
            attach,
            0.0,
            blocks,
            axis=0,
            dtype="f8",
            method="sequential" if run.ill else "blelloch",
            preop=np.sum,
        )
        sums.sum().compute()


def read_trace(block: np.ndarray, block_info: Any = None) -> np.ndarray:
    number = block_info[0]["chunk-location"][0] if block_info else 0
    time.sleep(about(0.35, "trace", number))
    return block + number


def migrate(block: np.ndarray) -> np.ndarray:
    if block.size > 10:
        time.sleep(about(0.4, "migrate", float(block[0]), block.size))
    return block * 0.5


@illness(cause("transfers"))
def halo_of_a_whole_block(run: Run) -> None:
    """60 blocks of 5 MB on 4 workers with 2 threads that send 14 MB/s each are read in 0.35 s
    and migrated in 0.4 s by `map_overlap`, with a halo of a whole block on both sides, or
    of a hundredth."""
    size = 625_000
    prepare = partial(Client.run, function=limit_uplink, bytes_per_second=14e6)
    with run.recorded(4, 2, prepare=prepare):
        blank = np.zeros(0)
        traces = da.zeros(60 * size, chunks=size).map_blocks(
            read_trace, dtype=float, meta=blank
        )
        depth = size if run.ill else size // 100
        image = da.map_overlap(
            migrate, traces, depth=depth, boundary="none", dtype=float, meta=blank
        )
        image.max().compute()


class Progress(SchedulerPlugin):
    """Write each progress event to a file."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def log_event(self, topic: str, msg: Any) -> None:
        if topic == "progress":
            time.sleep(self.seconds)


def integrate_orbit(number: int) -> int:
    """Integrate an orbit, and report the progress six times."""
    for part in range(6):
        time.sleep(about(0.04, "orbit", number, part))
        get_worker().log_event("progress", {"orbit": number, "part": part})
    return number


@illness(cause("scheduler-saturated"))
def progress_events_of_each_task(run: Run) -> None:
    """300 orbits of 0.24 s on 5 workers with 2 threads; each task logs six events of its
    progress, which a plugin of the scheduler writes to a file in 8 ms, or in 0.1 ms."""

    def prepare(client: Client) -> None:
        client.register_plugin(Progress(0.008 if run.ill else 1e-4), name="progress")

    with run.recorded(5, 2, prepare=prepare) as client:
        client.submit(conclude, client.map(integrate_orbit, range(300))).result()


def small_step(value: float, step: int) -> float:
    time.sleep(about(0.006, value, step))
    return value


def all_steps(values: list[float]) -> list[float]:
    """Do seven steps for each value."""
    for step in range(7):
        values = [small_step(value, step) for value in values]
    return values


@illness(cause("short-tasks scheduler-saturated"))
def seven_small_steps_for_each_value(run: Run) -> None:
    """Seven steps of 6 ms for each of 750 values on 3 workers with 2 threads, as a chain of
    seven futures for each value, or as a task for 15 values."""
    with run.recorded(3, 2) as client:
        if run.ill:
            values = client.map(float, range(750))
            for step in range(7):
                values = client.map(small_step, values, step=step)
        else:
            groups = [list(map(float, range(at, at + 15))) for at in range(0, 750, 15)]
            values = client.map(all_steps, groups)
        client.submit(conclude, values).result()


def render_slice(number: int) -> np.ndarray:
    time.sleep(about(0.4, "slice", number))
    return np.random.default_rng(number).random(9 * MEGABYTE // 8)


def refine(values: np.ndarray, number: int, turn: int) -> np.ndarray:
    time.sleep(about(0.35, "refine", number, turn))
    return values + 1.0


@illness(cause("large-graph client-gaps"))
def slices_that_go_through_the_client(run: Run) -> None:
    """40 slices of 9 MB are rendered in 0.4 s and refined in four turns of 0.35 s on 4 workers
    with 2 threads; between the turns the client gathers all arrays and gives them to
    `dask.delayed` again, or it passes the futures."""
    with run.recorded(4, 2, "4GB") as client:
        slices = client.map(render_slice, range(40))
        for turn in range(4):
            if run.ill:
                arrays = client.gather(slices)
                refined = [
                    dask.delayed(refine, pure=False)(array, number, turn)
                    for number, array in enumerate(arrays)
                ]
                slices = client.compute(refined)
            else:
                slices = client.map(refine, slices, range(40), [turn] * 40)
        wait(slices)


class Fitted:
    """A model for whose token all of its parameters are read."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __dask_tokenize__(self) -> str:
        time.sleep(self.seconds)
        return "fitted"


def impute(model: Fitted, table: int, fold: int) -> int:
    time.sleep(about(0.45, "impute", table, fold))
    return table


@illness(cause("client-gaps"))
def token_of_a_model_for_each_call(run: Run) -> None:
    """Six folds of 28 tables of 0.45 s on 4 workers with 2 threads, one after the other; the
    calls are pure, so that the client computes the token of a model for each of them before
    it sends the graph, which takes 65 ms, or they are not."""
    model = Fitted(0.065)
    with run.recorded(4, 2):
        call = dask.delayed(impute, pure=run.ill)
        given = model if run.ill else dask.delayed(model, name="model")
        for fold in range(6):
            tables = [call(given, table, fold) for table in range(28)]
            dask.delayed(conclude)(tables).compute()


def download(number: int) -> bytes:
    time.sleep(about(0.35, "download", number))
    return bytes([number % 256]) * 10_000


def verify(content: bytes, number: int, folder: str) -> int:
    """Verify a download; some are incomplete at the first attempt."""
    time.sleep(about(0.35, "verify", number))
    mark = Path(folder) / str(number)
    if folder and number % 5 in (1, 2, 4) and not mark.exists():
        mark.touch()
        raise EOFError(f"download {number} is not complete")
    return len(content)


@illness(cause("retries", "EOFError", "verify"))
def downloads_retried_by_the_client(run: Run) -> None:
    """90 downloads of 0.35 s are verified in 0.35 s on 3 workers with 2 threads; 54 are not
    complete, for which the client calls `client.retry` when all others are done, or all are
    complete."""
    folder = Path.cwd() / "attempts"
    folder.mkdir()
    marks = str(folder) if run.ill else ""
    with run.recorded(3, 2) as client:
        calls = [
            dask.delayed(verify)(dask.delayed(download)(number), number, marks)
            for number in range(90)
        ]
        verified = client.compute(calls)
        wait(verified)
        failed = [future for future in verified if future.status == "error"]
        if failed:
            client.retry(failed)
            wait(failed)


# -- two illnesses ---------------------------------------------------------------------------


def calibrate(number: int) -> int:
    time.sleep(about(0.3, "calibrate", number) * STATE.get("factor", 1.0))
    return number


def full_fit(number: int) -> int:
    time.sleep(about(4.5, "full", number) * STATE.get("factor", 1.0))
    return number


@illness(cause("long-tail", "full_fit"), cause("slow-host", "127.0.0.5"))
def low_priority_of_long_fits(run: Run) -> None:
    """160 calibrations of 0.3 s and 5 fits of 4.5 s on two hosts with two workers with 2
    threads; the fits have a low priority, or a high one, and all tasks on 127.0.0.5 take
    1.9 times as long, or not."""

    def prepare(client: Client) -> None:
        workers = [run.address(name) for name in (2, 3)]
        client.run(set_state, factor=1.9 if run.ill else 1.0, workers=workers)

    hosts = ("127.0.0.2", "127.0.0.2", "127.0.0.5", "127.0.0.5")
    with run.recorded(threads=2, hosts=hosts, prepare=prepare) as client:
        fits = client.map(full_fit, range(5), priority=-10 if run.ill else 10)
        wait(client.map(calibrate, range(160)) + fits)


# -- controls --------------------------------------------------------------------------------


@illness()
def control_chains_of_stations(run: Run) -> None:
    """40 stations with 7 hours of 0.4 s, one hour after the other, on 5 workers with 2
    threads."""
    with run.recorded(5, 2):
        stations: list[Any] = [0] * 40
        for hour in range(7):
            stations = [
                dask.delayed(assimilate)(before, station, hour)
                for station, before in enumerate(stations)
            ]
        tree(stations).compute()


def in_flight(client: Client, submit: Callable[[int], list[Any]], batches: int) -> None:
    """Keep two batches in flight; look at the results of each for 0.3 s."""
    running = [submit(0), submit(1)]
    for number in range(2, batches + 2):
        client.gather(running.pop(0))
        if number < batches:
            running.append(submit(number))
        time.sleep(0.3)


@illness()
def control_two_batches_in_flight(run: Run) -> None:
    """Nine batches of 28 scans of 0.35 s on 4 workers with 2 threads, of which two are in
    flight while the client looks at the results of the one before for 0.3 s."""
    with run.recorded(4, 2) as client:
        in_flight(
            client,
            lambda batch: client.map(segment, range(28 * batch, 28 * batch + 28)),
            9,
        )


@illness()
def control_halos(run: Run) -> None:
    """120 blocks of 0.4 MB on 3 workers with 3 threads are read in 0.35 s and migrated in 0.4 s
    by `map_overlap` with a halo of a tenth of a block."""
    with run.recorded(3, 3):
        blank = np.zeros(0)
        traces = da.zeros(120 * 50_000, chunks=50_000).map_blocks(
            read_trace, dtype=float, meta=blank
        )
        image = da.map_overlap(
            migrate, traces, depth=5_000, boundary="none", dtype=float, meta=blank
        )
        image.max().compute()
