"""Programs to validate the rules with: recorded after the rules were written.

They differ from the other programs in their graphs, durations, and numbers of tasks, workers
and threads; illnesses are milder or stronger.
"""

from __future__ import annotations

import asyncio
import functools
import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import dask.bag as db
import numpy as np
from coffea_programs import Analysis, analyze, at_url, warm_up, write_fileset
from distributed import wait
from illness import Run, cause, illness
from plain_programs import (
    MEGABYTE,
    Table,
    is_first,
    limit_network,
    nap,
    produce,
    set_slowness,
)
from storage import served

if TYPE_CHECKING:
    from dask.delayed import Delayed
    from distributed import Client


def tree(parts: list[Delayed], fan_in: int, seconds: float = 0.01) -> Delayed:
    """Return the sum of parts by a tree of tasks."""
    while len(parts) > 1:
        groups = [parts[first : first + fan_in] for first in range(0, len(parts), fan_in)]
        parts = [dask.delayed(total)(group, seconds) for group in groups]
    return parts[0]


def total(parts: list[float], seconds: float) -> float:
    time.sleep(seconds * len(parts))
    return sum(parts)


def load(number: int, seconds: float = 0.3) -> float:
    return nap(number, seconds)


# -- workers ---------------------------------------------------------------------------------


@illness(cause("slow-worker", "4"))
def mildly_slow_worker(run: Run) -> None:
    """A tree of 360 tasks on 6 workers with 2 threads; worker 4 takes 2.2 times as long."""

    def prepare(client: Client) -> None:
        set_slowness(client, 2.2 if run.ill else 1.0, [run.address(4)])

    with run.recorded(workers=6, threads=2, prepare=prepare):
        tree([dask.delayed(load)(number) for number in range(360)], 12).compute()


@illness(cause("late-workers"))
def half_of_workers_late(run: Run) -> None:
    """240 tasks of 0.3 s; five of eight workers join after 4 s."""
    with run.recorded(workers=3 if run.ill else 8) as client:
        timer = threading.Timer(4.0, run.cluster.scale, [8])
        timer.start()
        client.gather(client.map(load, range(240)))
        timer.join()


@illness(cause("excess-workers low-parallelism"), saves="core")
def chains_on_many_threads(run: Run) -> None:
    """Three chains of 25 steps of 0.35 s, on 12 threads of 6 workers instead of on 3."""
    workers, threads = (6, 2) if run.ill else (3, 1)
    with run.recorded(workers=workers, threads=threads):
        chains = [dask.delayed(load)(number, 0.35) for number in range(3)]
        for _ in range(24):
            chains = [dask.delayed(load)(chain, 0.35) for chain in chains]
        dask.compute(*chains)


async def block_loop(blocked_seconds: float, free_seconds: float, seconds: float) -> None:
    """Block the event loop of the worker on which this runs."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(blocked_seconds)  # noqa: ASYNC251 - the illness
        await asyncio.sleep(free_seconds)


@illness(cause("blocked-event-loop"))
def briefly_blocked_event_loops(run: Run) -> None:
    """480 tasks of 0.1 s in chains of 3; loops of 3 workers are blocked for 0.5 of 0.8 s."""
    with run.recorded(workers=3, threads=2) as client:
        if run.ill:
            client.run(block_loop, 0.5, 0.3, 12.0, wait=False)
        parts = client.map(functools.partial(nap, seconds=0.1), range(160))
        for _ in range(2):
            parts = client.map(functools.partial(load, seconds=0.1), parts)
        client.gather(parts)


# -- memory ----------------------------------------------------------------------------------


def make_table(number: int) -> Table:
    return Table(produce(number, 20 * MEGABYTE, 0.3))


def scan(table: Table, turn: int) -> int:
    time.sleep(0.2)
    return len(table.values) + turn


@illness(cause("spilling"))
def spilling_in_three_passes(run: Run) -> None:
    """Three passes over 40 tables of 20 MB on two workers with two threads."""
    config = {
        "distributed.worker.memory.target": 0.35,
        "distributed.worker.memory.spill": 0.8,
        "distributed.worker.memory.pause": 0.95,
    }
    memory = "800MB" if run.ill else "4GB"
    with run.recorded(workers=2, threads=2, memory=memory, config=config) as client:
        tables = client.map(make_table, range(40))
        wait(tables)
        for turn in range(3):
            client.gather(client.map(scan, tables, turn=turn))


def simulate(number: int, greedy: bool, folder: str) -> np.ndarray:
    """Take too much memory at the first attempt."""
    if greedy and is_first(folder, number):
        buffer = np.ones(1_200 * MEGABYTE, dtype="u1")
        time.sleep(5)
        del buffer
    time.sleep(0.5)
    return np.full(2 * MEGABYTE, number, dtype="u1")


@illness(cause("killed-workers"))
def three_killed_workers(run: Run) -> None:
    """100 simulations of 0.5 s on 5 workers, and a sum of all; three exceed 900 MB once."""
    with run.recorded(workers=5, memory="900MB"):
        attempts = Path.cwd() / "attempts"
        attempts.mkdir()
        greedy = {20, 41, 62} if run.ill else set()
        parts = [
            dask.delayed(simulate)(number, number in greedy, str(attempts))
            for number in range(100)
        ]
        dask.delayed(add_sizes)(parts).compute()


def add_sizes(parts: list[np.ndarray]) -> int:
    return sum(len(part) for part in parts)


# -- failures --------------------------------------------------------------------------------


def download(number: int, folder: str) -> int:
    """Fail at the first attempt, after half of the work."""
    time.sleep(0.3)
    if folder and number % 4 == 0 and is_first(folder, number):
        raise OSError(f"part {number} is incomplete")
    time.sleep(0.3)
    return number


@illness(cause("retries", "OSError"))
def retries_of_delayed(run: Run) -> None:
    """A tree of 96 downloads of 0.6 s on 3 workers with 2 threads; a quarter fails once."""
    with run.recorded(workers=3, threads=2) as client:
        attempts = Path.cwd() / "attempts"
        attempts.mkdir()
        folder = str(attempts) if run.ill else ""
        parts = [dask.delayed(download)(number, folder) for number in range(96)]
        client.compute(tree(parts, 8), retries=3).result()


# -- graphs and scheduling -------------------------------------------------------------------


def refine(part: float, seconds: float) -> float:
    time.sleep(seconds)
    return part


@illness(cause("long-tail", "refine"))
def tail_of_chains(run: Run) -> None:
    """Chains of two steps on 3 workers with 2 threads; a step of 6 s is in the last chain."""
    seconds = [0.3] * 100 + [6.0]
    with run.recorded(workers=3, threads=2) as client:
        parts = client.map(load, range(101))
        order = seconds if run.ill else seconds[::-1]
        client.gather(client.map(refine, parts, order))


@illness(cause("client-gaps"))
def many_short_gaps(run: Run) -> None:
    """Ten delayed graphs on 5 workers; the client computes for 0.8 s between them."""
    with run.recorded(workers=5):
        for turn in range(10):
            tree([dask.delayed(load)(20 * turn + part) for part in range(15)], 15).compute()
            if run.ill and turn < 9:
                time.sleep(0.8)


def smooth(block: np.ndarray) -> np.ndarray:
    time.sleep(0.002 * len(block))
    return block


@illness(cause("short-tasks scheduler-saturated"))
def array_of_tiny_blocks(run: Run) -> None:
    """An array of 4,000 rows of 2 ms in blocks of 1 instead of 100 rows, on 6 threads."""
    rows = 1 if run.ill else 100
    with run.recorded(workers=2, threads=3):
        array = da.zeros((4_000, 10), chunks=(rows, 10))
        array.map_blocks(smooth, meta=np.zeros((0, 0))).sum().compute()


def accumulate(before: float, part: float) -> float:
    time.sleep(0.12)
    return before + part


@illness(cause("low-parallelism", "accumulate"))
def sum_in_a_row(run: Run) -> None:
    """70 parts of 0.4 s on 8 threads are added one after the other instead of as a tree."""
    with run.recorded(workers=4, threads=2):
        parts = [dask.delayed(load)(number, 0.4) for number in range(70)]
        if run.ill:
            functools.reduce(dask.delayed(accumulate), parts).compute()
        else:
            while len(parts) > 1:
                pairs = zip(parts[::2], parts[1::2], strict=False)
                odd = parts[len(parts) // 2 * 2 :]
                parts = [dask.delayed(accumulate)(*pair) for pair in pairs] + odd
            parts[0].compute()


def join(blocks: list[np.ndarray], number: int) -> np.ndarray:
    time.sleep(0.2)
    return blocks[number % len(blocks)]


@illness(cause("transfers", "join"))
def exchange(run: Run) -> None:
    """Three workers exchange blocks of 5 MB five times, over a network of 25 MB/s."""

    def prepare(client: Client) -> None:
        client.run(limit_network, 25 * MEGABYTE if run.ill else 2_000 * MEGABYTE)

    with run.recorded(workers=3, threads=2, prepare=prepare) as client:
        blocks = client.map(produce, range(12), nbytes=5 * MEGABYTE, seconds=0.4)
        for _ in range(5):
            blocks = [
                client.submit(
                    join, [blocks[(number + 5 * step) % 12] for step in range(5)], number
                )
                for number in range(12)
            ]
        wait(blocks)


def evaluate(number: int, model: np.ndarray) -> int:
    time.sleep(0.4)
    return int(model[number])


@illness(cause("large-graph"))
def models_in_the_graph(run: Run) -> None:
    """Two graphs of 40 tasks on 3 workers, each task with a model of 8 MB in the graph."""
    model = np.random.default_rng(0).integers(0, 200, 8 * MEGABYTE, dtype="u1")
    with run.recorded(workers=3, threads=1) as client:
        shared = client.scatter(model, broadcast=True)
        for turn in range(2):
            tasks = [
                dask.delayed(evaluate)(number, model + turn + number if run.ill else shared)
                for number in range(40)
            ]
            dask.compute(*tasks)


def parse(number: int) -> int:
    """Encode and decode text, with functions in Python."""
    found = 0
    for turn in range(60):
        text = json.dumps({str(item): [item, turn, number] for item in range(300)}, indent=1)
        found += sum(len(word.strip()) for word in text.split("\n"))
    return found


@illness(cause("gil"))
def bag_in_threads(run: Run) -> None:
    """A bag of 120 partitions of text, in four threads of one worker, or in two workers."""
    workers, threads = (1, 4) if run.ill else (2, 1)
    with run.recorded(workers=workers, threads=threads):
        bag = db.from_sequence(range(120), npartitions=120)
        bag.map(parse).sum().compute(scheduler="distributed")


# -- coffea ----------------------------------------------------------------------------------

#: Files of three datasets.
THREE = {"QCD": 3, "Signal": 2, "Top": 5}


@illness(cause("slow-file", "QCD_1.root"))
def very_slow_file(run: Run) -> None:
    """Ten files for 6 threads; a server delivers one of them at 120 kB/s."""
    folder = run.data / "three"
    fileset = write_fileset(folder, THREE, events=12_000, basket_events=3_000)
    slow: dict[str, Any] = (
        {"latency_seconds": 0.03, "bytes_per_second": 120_000, "slow_file": "QCD_1.root"}
        if run.ill
        else {}
    )
    with (
        served(folder, **slow) as url,
        run.recorded(workers=3, threads=2, prepare=warm_up) as client,
    ):
        analyze(client, at_url(fileset, url), Analysis(4e-4), chunksize=3_000)


@illness(cause("chunks-too-small"))
def chunks_of_three_datasets_too_small(run: Run) -> None:
    """Chunks of 1,000 instead of 6,000 events on 4 threads; each costs 0.15 s of its own."""
    folder = run.data / "three_small"
    fileset = write_fileset(folder, THREE, events=12_000, basket_events=1_000)
    with run.recorded(workers=2, threads=2, prepare=warm_up) as client:
        analysis = Analysis(event_seconds=1e-4, chunk_seconds=0.15, factors={"Top": 1.5})
        analyze(client, fileset, analysis, chunksize=1_000 if run.ill else 6_000)


@illness(cause("chunks-too-large"))
def eight_chunks_for_six_threads(run: Run) -> None:
    """Eight files are one chunk each, on 3 workers with 2 threads, instead of six chunks."""
    folder = run.data / "eight"
    fileset = write_fileset(folder, {"Top": 8}, events=12_000, basket_events=2_000)
    with run.recorded(workers=3, threads=2, prepare=warm_up) as client:
        analyze(client, fileset, Analysis(4e-4), chunksize=50_000 if run.ill else 2_000)


@illness(cause("unused-branches"))
def some_unused_branches(run: Run) -> None:
    """16 of 19 preloaded branches are not used; a server has 2 MB/s for each file."""
    folder = run.data / "columns"
    fileset = write_fileset(folder, THREE, events=12_000, basket_events=3_000, columns=20)
    used = ["nJet", "Jet_pt", "Jet_eta"]
    others = [f"Jet_score{number}" for number in range(16)]
    with (
        served(folder, bytes_per_second=2 * MEGABYTE) as url,
        run.recorded(workers=5, prepare=warm_up) as client,
    ):
        files = {
            name: {"files": files, "preload": used + others if run.ill else used}
            for name, files in at_url(fileset, url).items()
        }
        analyze(client, files, Analysis(2e-4), chunksize=3_000)


@illness(cause("file-opening"))
def many_small_files(run: Run) -> None:
    """60,000 events in 100 files instead of 10, on a server with a latency of 100 ms."""
    events = 600 if run.ill else 6_000
    folder = run.data / f"of_{events}"
    fileset = write_fileset(
        folder,
        {"QCD": 24_000 // events, "Top": 36_000 // events},
        events=events,
        basket_events=600,
    )
    with (
        served(folder, latency_seconds=0.1) as url,
        run.recorded(workers=3, threads=2, prepare=warm_up) as client,
    ):
        analyze(client, at_url(fileset, url), Analysis(6e-4), chunksize=3_000)


# -- healthy controls ------------------------------------------------------------------------


@illness()
def control_delayed(run: Run) -> None:
    """A tree of 210 tasks of 0.1 to 0.6 s on 7 workers."""
    seconds = np.random.default_rng(2).uniform(0.1, 0.6, 210)
    with run.recorded(workers=7):
        tree(
            [dask.delayed(load)(number, float(long)) for number, long in enumerate(seconds)], 6
        ).compute()


@illness()
def control_chains(run: Run) -> None:
    """Chains of three steps on 2 workers with 4 threads."""
    with run.recorded(workers=2, threads=4) as client:
        parts = client.map(load, range(100))
        parts = client.map(functools.partial(refine, seconds=0.25), parts)
        client.gather(client.map(functools.partial(nap, seconds=0.15), parts))


@illness()
def control_datasets(run: Run) -> None:
    """Three datasets of slightly different cost on 3 workers with 2 threads."""
    folder = run.data / "three"
    fileset = write_fileset(folder, THREE, events=12_000, basket_events=3_000)
    with run.recorded(workers=3, threads=2, prepare=warm_up) as client:
        analysis = Analysis(6e-4, factors={"QCD": 0.8, "Top": 1.2})
        analyze(client, fileset, analysis, chunksize=1_500)
