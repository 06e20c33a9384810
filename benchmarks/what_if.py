"""Compare what-if predictions with real runs: ``make benchmark-what-if``.

Real runs on a LocalCluster are recorded: the same work with different worker counts or chunk
sizes. The wall time of each run of a kind is predicted from each other run of that kind: its
error, and whether it is within the range. Tasks sleep if the machine may have fewer cores than
workers. Errors include the differences between runs that other load on the machine causes, so
the load is printed. The kind ``starved`` computes beside busy loops.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import awkward as ak
import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import BaseSchema
from distributed import Client, LocalCluster, as_completed, wait

import roast_recorder
from busy_loops import busy_loops
from roast_analyze import Trace
from roast_analyze.algorithms.plan import (
    Overhead,
    Plan,
    Presence,
    Submission,
)
from roast_analyze.algorithms.simulation import simulate

#: Events of the ROOT files, of different sizes, so that the cost of a chunk can be fitted.
FILE_EVENTS = (
    30_000, 2_000, 54_000, 2_300, 66_000, 2_600, 42_000, 2_900, 78_000, 3_200, 90_000,
)  # fmt: skip


def doze(seconds: float, *_: object) -> float:
    time.sleep(seconds)
    return seconds


def compute(loops: int) -> float:
    total = 0.0
    for number in range(loops):
        total += math.sqrt(number)
    return total


def sleeping(client: Client) -> None:
    """Sleep 240 times for 50 to 150 ms, and add the results."""
    generator = np.random.default_rng(1)
    done = client.map(doze, generator.uniform(0.05, 0.15, 240).tolist(), pure=False)
    client.submit(sum, done).result()


def short(client: Client) -> None:
    """Sleep 600 times for 20 ms."""
    wait(client.map(doze, [0.02] * 600, pure=False))


def rounds(client: Client) -> None:
    """Sleep in six graphs, each submitted 0.5 s after the results of the previous one."""
    generator = np.random.default_rng(2)
    for _ in range(6):
        client.gather(client.map(doze, generator.uniform(0.05, 0.15, 40).tolist(), pure=False))
        time.sleep(0.5)


def stragglers(client: Client) -> None:
    """Sleep 200 times for 0.1 s, of which 6 times for 1.2 s."""
    seconds = [0.1] * 200
    for number in (20, 60, 100, 130, 160, 180):
        seconds[number] = 1.2
    client.submit(sum, client.map(doze, seconds, pure=False)).result()


def deep(client: Client) -> None:
    """Sleep in 12 chains of 30 tasks; each fifth task also depends on the chain before."""
    import dask

    generator = np.random.default_rng(3)
    sleep = dask.delayed(doze, pure=False)
    chains = [sleep(0.04) for _ in range(12)]
    for depth in range(1, 30):
        seconds = generator.uniform(0.02, 0.06, 12)
        neighbours = depth % 5 == 0
        chains = [
            sleep(float(s), chain, *([chains[number - 1]] if neighbours else []))
            for number, (s, chain) in enumerate(zip(seconds, chains, strict=True))
        ]
    client.compute(dask.delayed(sum)(chains)).result()


def streaming(client: Client) -> None:
    """Sleep 150 times for 50 to 300 ms, and submit the next task after each result."""
    generator = np.random.default_rng(7)
    seconds = generator.uniform(0.05, 0.3, 150).tolist()
    done = as_completed(client.map(doze, seconds[:40], pure=False))
    left = seconds[40:]
    for _ in done:
        if left:
            done.add(client.submit(doze, left.pop(), pure=False))


def doze_by_chance(seconds: float) -> float:
    return doze(seconds * (10 if random.random() < 0.03 else 1))


def chance(client: Client) -> None:
    """Sleep 200 times for 0.1 s, and ten times as long by chance, other tasks in each run."""
    client.submit(sum, client.map(doze_by_chance, [0.1] * 200, pure=False)).result()


def computing(client: Client) -> None:
    """Compute in a loop for about 0.1 s, 150 times."""
    client.submit(sum, client.map(compute, [1_500_000] * 150, pure=False)).result()


class Waiting(processor.ProcessorABC):
    """Read a branch and sleep in proportion to the events, as with slow storage."""

    def process(self, events: ak.Array) -> dict[str, float]:
        total = float(ak.sum(events.Jet_pt))
        time.sleep(0.3 + len(events) * 90e-6)
        return {"pt": total, "events": len(events)}

    def postprocess(self, accumulator: dict[str, float]) -> dict[str, float]:
        return accumulator


def loop_seconds(seconds: float) -> None:
    """Use a core for a time, however long that takes on a loaded machine."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class Preparing(Waiting):
    """Compute for a fixed time before each chunk, as with corrections that are read again."""

    def process(self, events: ak.Array) -> dict[str, float]:
        loop_seconds(0.15)
        time.sleep(len(events) * 20e-6)
        return {"pt": float(ak.sum(events.Jet_pt)), "events": len(events)}


def write_files(folder: Path, file_events: tuple[int, ...]) -> dict[str, list[str]]:
    paths = []
    for number, events in enumerate(file_events):
        path = folder / f"{number}-{events}.root"
        paths.append(str(path))
        if path.exists():
            continue
        generator = np.random.default_rng(number)
        with uproot.recreate(path) as file:
            tree = file.mktree("Events", {"Jet": "var * {pt: float32, eta: float32}"})
            for begin in range(0, events, 10_000):
                counts = generator.poisson(2.0, min(10_000, events - begin))
                columns = {
                    name: ak.unflatten(generator.exponential(30.0, counts.sum()), counts)
                    for name in ("pt", "eta")
                }
                tree.extend({"Jet": ak.zip(columns)})
    return {"slow": paths}


def chunked(
    client: Client, fileset: dict[str, list[str]], chunksize: int, process: type[Waiting]
) -> None:
    """Run a coffea analysis."""
    processor.Runner(
        executor=processor.DaskExecutor(client=client, status=False),
        schema=BaseSchema,
        chunksize=chunksize,
        metadata_cache={},
    )(fileset, treename="Events", processor_instance=process())


@dataclass(frozen=True)
class Kind:
    """Runs that are predicted from each other: by worker count, or by chunk size."""

    work: Callable[..., None]
    workers: tuple[int, ...]
    chunk_sizes: tuple[int, ...] = ()
    file_events: tuple[int, ...] = ()
    process: type[Waiting] = Waiting
    #: Busy loops beside the run.
    loops: int = 0


KINDS = {
    "sleeping": Kind(sleeping, (1, 2, 4, 8)),
    "short": Kind(short, (1, 2, 4, 8)),
    "rounds": Kind(rounds, (1, 2, 4, 8)),
    "stragglers": Kind(stragglers, (1, 2, 4, 8)),
    "deep": Kind(deep, (1, 2, 4, 8)),
    "streaming": Kind(streaming, (1, 2, 4, 8)),
    "chance": Kind(chance, (1, 2, 4, 8)),
    "computing": Kind(computing, (1, 2)),
    "starved": Kind(computing, (1, 2, 4), loops=os.cpu_count() or 1),
    "chunks": Kind(chunked, (3,), (4_000, 8_000, 16_000, 32_000), FILE_EVENTS),
    # Chunks of one size in each run, so that their fixed cost is not known.
    "equal": Kind(chunked, (2,), (2_000, 4_000, 8_000, 32_000), (32_000,) * 4, Preparing),
    "fixed": Kind(chunked, (2,), (4_000, 8_000, 16_000, 32_000), FILE_EVENTS[:8], Preparing),
}


@contextlib.contextmanager
def recorded(path: Path, workers: int) -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(workers)
        time.sleep(3)  # Wait, because starting processes use the cores.
        with roast_recorder.record(client, path):
            yield client


def record(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        kind = KINDS[name]
        fileset = write_files(folder, kind.file_events)
        if kind.chunk_sizes:
            with recorded(folder / "warm-up.jsonl", 1) as client:
                # Imports of the client.
                kind.work(client, {"slow": fileset["slow"][1:2]}, 10_000, kind.process)
        for number in kind.chunk_sizes or kind.workers:
            path = folder / f"{name}-{number}.jsonl"
            if path.exists():
                continue
            arguments = (fileset, number, kind.process) if kind.chunk_sizes else ()
            load = os.getloadavg()[0]
            workers = kind.workers[0] if kind.chunk_sizes else number
            with busy_loops(kind.loops), recorded(path, workers) as client:
                kind.work(client, *arguments)
            print(f"recorded {path.stem}, load {load:.1f} to {os.getloadavg()[0]:.1f}")


def evaluate(folder: Path, names: list[str]) -> None:
    """Predict each run of a kind from each other, and print the relative errors.

    A range that holds is marked with a dot, one that does not with an exclamation mark; where
    only a lower bound is predicted, its ratio to the wall time is printed.
    """
    errors: list[float] = []
    replay_errors: list[float] = []
    held: list[bool] = []
    refused = 0
    for name in names:
        numbers = KINDS[name].chunk_sizes or KINDS[name].workers
        option = "chunk_sizes" if KINDS[name].chunk_sizes else "workers"
        column = "chunk_size" if KINDS[name].chunk_sizes else "workers"
        walls, predicted = {}, {}
        for number in numbers:
            with Trace(folder / f"{name}-{number}.jsonl") as trace:
                [(walls[number],)] = trace.sql("SELECT wall_seconds FROM run").fetchall()
                others = [other for other in numbers if other != number]
                frame = trace.what_if(**{option: others})
            replay_errors.append(frame["replay_error"][0])
            predicted[number] = {row[column]: row for row in frame[1:].iter_rows(named=True)}
        print(f"\n{name} ({column}): recorded {[round(wall, 2) for wall in walls.values()]} s")
        print("from \\ to" + "".join(f"{number:>13}" for number in numbers))
        for number, replay in zip(numbers, replay_errors[-len(numbers) :], strict=True):
            cells = []
            for other in numbers:
                if other == number:
                    cells.append(f"[{replay:+.1%}]")
                    continue
                row, wall = predicted[number][other], walls[other]
                least, most = row["wall_seconds_min"], row["wall_seconds_max"]
                if least is None:
                    refused += 1
                    cells.append("refused")
                    continue
                held.append(least <= wall and (most is None or wall <= most))
                if most is None:
                    cells.append(f"{'.' if held[-1] else '!'} ≥ {least / wall:.0%}")
                else:
                    errors.append(row["wall_seconds"] / wall - 1)
                    cells.append(f"{'.' if held[-1] else '!'} {errors[-1]:+.1%}")
            print(f"{number:>9}" + "".join(f"{cell:>13}" for cell in cells), flush=True)
    absolute = [abs(error) for error in errors]
    print(
        f"\n{len(errors)} predictions: median absolute error {statistics.median(absolute):.1%} "
        f"(target 5 %), worst {max(absolute):.1%}\n"
        f"ranges and lower bounds that hold: {sum(held)} of {len(held)} (target 90 %), "
        f"{len(held) - len(errors)} of them lower bounds; {refused} refused\n"
        f"replays in brackets: worst {max(map(abs, replay_errors)):.1%} (target 3 %)"
    )


def measure_speed() -> None:
    """Print the time of a simulation of 100,000 tasks in layers on 16 workers."""
    generator = np.random.default_rng(4)
    tasks = 100_000
    numbers = np.arange(tasks)
    plan = Plan(
        seconds=generator.uniform(0.1, 1.0, tasks),
        nbytes=np.full(tasks, 1e4),
        priorities=numbers,
        prefixes=numbers // 10_000,
        groups=numbers // 10_000,
        graphs=np.zeros(tasks, dtype=np.int64),
        # Each depends on two tasks of the previous layer.
        dependencies=[
            () if n < 10_000 else (n - 10_000, n - 10_000 + (n % 10_000 < 9_999))
            for n in numbers
        ],
        submissions=[Submission(0.0)],
        workers=[Presence(f"w{number}", "host", 4) for number in range(16)],
        overhead=Overhead(0.003, 0.001, 0.001, 0.0005, 0.005, 1e8),
    )
    start = time.process_time()
    simulate(plan)
    print(f"100,000 tasks: {time.process_time() - start:.1f} s CPU a scenario (target 10 s)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folder", nargs="?", type=Path, help="folder of the runs; those in it are not repeated"
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="roast-") as temporary:
        folder = options.folder or Path(temporary)
        record(folder, options.kinds)
        evaluate(folder, options.kinds)
    measure_speed()


if __name__ == "__main__":
    main()
