"""Test ``roast-analyze why`` on real runs with known changes: ``make benchmark-why``.

Runs of sleeping tasks on a LocalCluster, and of coffea with a processor that sleeps, are
recorded with one change each. The table shows whether this change is the largest term, and its
true and computed amounts. Runs of the same program must have no significant term.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from coffea.nanoevents import NanoAODSchema
from coffea.processor import DaskExecutor, Runner
from distributed import Client, LocalCluster

import roast_recorder
from roast_analyze import Trace
from roast_analyze.algorithms.decomposition import RunAmounts, summarize
from roast_analyze.run_amounts import query_amounts
from roast_recorder.demo import files

#: Tasks and seconds of a task, by prefix.
LOAD: Final = (80, 0.1)
FIT: Final = (160, 0.25)

#: Fixed seconds of a chunk, and seconds of an event.
CHUNK: Final = (1.0, 20e-6)
EVENTS: Final = 640_000
CHUNKSIZES: Final = (40_000, 20_000)
DATASETS: Final = (
    files.Dataset("data", files=4, events=EVENTS // 4, jets=1.0, resonance_mass=91.0),
)


class Quiet(NanoAODSchema):
    """NanoAOD schema without warnings about branches that a file lacks."""

    warn_missing_crossrefs = False
    error_missing_event_ids = False


def load(_: int, seconds: float) -> None:
    time.sleep(seconds)


def fit(_: None, seconds: float) -> None:
    time.sleep(seconds)


def burn(_: int, steps: int) -> int:
    return sum(step * step for step in range(steps))


def sleepy(events: Any) -> dict[str, int]:
    """Process a chunk in a time that depends on its number of events."""
    time.sleep(CHUNK[0] + CHUNK[1] * len(events))
    return {"events": len(events)}


def record_tasks(
    trace: Path, *, workers: int = 4, more: int = 1, fit_seconds: float = FIT[1]
) -> None:
    """Record a run of sleeping tasks."""
    with started(workers) as cluster, Client(cluster) as client:
        client.gather(client.map(abs, range(100)))
        with roast_recorder.record(client, trace):
            loaded = client.map(load, range(more * LOAD[0]), seconds=LOAD[1])
            chosen = itertools.islice(itertools.cycle(loaded), more * FIT[0])
            client.gather(client.map(fit, list(chosen), seconds=fit_seconds, pure=False))


def record_computing(trace: Path) -> None:
    """Record a run of tasks that compute, which other work on the machine slows down."""
    with started(2) as cluster, Client(cluster) as client:
        client.gather(client.map(abs, range(100)))
        with roast_recorder.record(client, trace):
            client.gather(client.map(burn, range(200), steps=1_000_000))


def record_chunks(trace: Path, folder: Path, chunksize: int) -> None:
    """Record a run of coffea."""
    with started(4) as cluster, Client(cluster) as client:

        def run(size: int) -> None:
            Runner(
                executor=DaskExecutor(client=client, status=False),
                schema=Quiet,
                chunksize=size,
                metadata_cache={},
            )(files.fileset(folder, DATASETS), treename="Events", processor_instance=sleepy)

        run(CHUNKSIZES[0])  # workers import coffea
        with roast_recorder.record(client, trace):
            run(chunksize)


def opening_seconds(path: Path) -> float:
    """Return the mean time to open the file of a chunk."""
    with Trace(path) as trace:
        [(seconds,)] = trace.sql("SELECT avg(open_seconds) FROM chunks").fetchall()
    return float(seconds)


def started(workers: int) -> LocalCluster:
    """Start a cluster of worker processes with one thread each."""
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )


def main() -> None:
    """Record the runs that are missing in a folder, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="folder of the traces, which are kept")
    folder = parser.parse_args().folder or Path(tempfile.mkdtemp(prefix="roast-why-"))
    folder.mkdir(exist_ok=True)

    def recorded(
        name: str, record: Callable[..., None], *given: Any, **options: Any
    ) -> RunAmounts:
        path = folder / f"{name}.jsonl.zst"
        if not path.exists():
            record(path, *given, **options)
        with Trace(path) as trace:
            return query_amounts(trace)

    bases = [recorded(f"base{n}", record_tasks) for n in range(3)]
    again = recorded("again", record_tasks)
    slower = recorded("slower", record_tasks, fit_seconds=1.3 * FIT[1])
    half = recorded("half", record_tasks, workers=2)
    twice = recorded("twice", record_tasks, more=2)
    computing = [recorded(f"computing{n}", record_computing) for n in range(3)]
    if not list(folder.glob("*.root")):
        list(files.write_files(folder, DATASETS))
    chunks, chunks_again, small = (
        recorded(name, record_chunks, folder, size)
        for name, size in zip(
            ("chunks", "chunks_again", "small"), (CHUNKSIZES[0], *CHUNKSIZES), strict=True
        )
    )
    work = LOAD[0] * LOAD[1] + FIT[0] * FIT[1]
    more_chunks = EVENTS // CHUNKSIZES[1] - EVENTS // CHUNKSIZES[0]
    planted = [
        ("one prefix 30 % slower", slower, ("cost", "fit"), 0.3 * FIT[0] * FIT[1] / 4),
        ("half the workers", half, ("threads", None), work / 2 - work / 4),
        # Of two prefixes; the larger one is the largest term.
        ("twice the data", twice, ("amount", "fit"), FIT[0] * FIT[1] / 4),
    ]
    print("change | bases | largest term | true (s) | found (s) | error | significant")
    good = True
    for what, new, term, seconds in planted:
        for some in (bases[:1], bases):
            good &= show(what, some, new, term, seconds)
    fixed_seconds = CHUNK[0] + opening_seconds(folder / "small.jsonl.zst")
    seconds = more_chunks * fixed_seconds / 4
    good &= show("smaller chunks", [chunks], small, ("chunk size", "function"), seconds)
    for what, some, new in (
        *(("same program", [one], other) for one, other in itertools.permutations(bases, 2)),
        ("same program", bases, again),
        ("same program", [chunks], chunks_again),
        *(
            ("same program", [one], other)
            for one, other in itertools.permutations(computing, 2)
        ),
    ):
        found = summarize(some, new).filter(significant=True)
        print(f"{what} | {len(some)} | {found.height} significant terms")
        good &= found.is_empty()
    print(f"traces: {folder}")
    sys.exit(not good)


def show(
    what: str,
    bases: list[RunAmounts],
    new: RunAmounts,
    term: tuple[str, str | None],
    seconds: float,
) -> bool:
    """Print a row of the table; return whether the change was found."""
    first = summarize(bases, new).row(0, named=True)
    error = first["wall_seconds"] / seconds - 1
    name = " ".join(filter(None, (first["term"], first["prefix"], first["part"])))
    print(
        f"{what} | {len(bases)} | {name} | {seconds:.2f} | {first['wall_seconds']:.2f} | "
        f"{error:+.1%} | {first['significant']}"
    )
    return (
        (first["term"], first["prefix"]) == term and abs(error) < 0.1 and first["significant"]
    )


if __name__ == "__main__":
    main()
