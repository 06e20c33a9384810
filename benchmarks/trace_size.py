"""Measure the size of a transition in a trace: ``make benchmark-recorder``.

Real runs on a local cluster are recorded. The compressed size is that of the whole file,
including all other kinds of records, divided by the number of transitions: an upper bound.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import orjson
import zstandard
from distributed import Client, LocalCluster

import roast_recorder


def quick(client: Client, tasks: int) -> None:
    """Run no-op tasks as fast as the cluster can."""
    client.gather(client.map(lambda number: number, range(tasks), pure=False))


def slow(client: Client, tasks: int) -> None:
    """Submit no-op tasks in small groups, so that every flush is small."""
    futures = []
    for first in range(0, tasks, 50):
        futures += client.map(lambda number: number, range(first, first + 50), pure=False)
        time.sleep(0.5)
    client.gather(futures)


def array(client: Client, tasks: int) -> None:
    """Compute an array, whose tasks have long keys and many dependencies."""
    side = int((tasks / 4) ** 0.5)
    x = da.random.random((side * 10, side * 10), chunks=10)
    client.compute((x + x.T).sum()).result()


RUNS: dict[str, Callable[[Client, int], None]] = {
    "no-op tasks, quick": quick,
    "no-op tasks, 100 a second": slow,
    "dask.array": array,
}


def measured(run: Callable[[Client, int], None], tasks: int) -> dict[str, float]:
    """Record a run; return its transition count, and the raw and stored bytes of each."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jsonl.zst"
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
            roast_recorder.record(client, trace),
        ):
            run(client, tasks)
        data = trace.read_bytes()
    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        lines = reader.read().splitlines(keepends=True)
    kinds = [orjson.loads(line)["kind"] for line in lines]
    raw = [len(line) for line, kind in zip(lines, kinds, strict=True) if kind == "transition"]
    return {
        "tasks": kinds.count("task"),
        "transitions": len(raw),
        "raw": sum(raw) / len(raw),
        "compressed": len(data) / len(raw),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    print(
        "| run | tasks | transitions | raw bytes of one | bytes of the file for one |\n"
        "| --- | ---: | ---: | ---: | ---: |"
    )
    for name, run in RUNS.items():
        found: dict[str, Any] = measured(run, options.tasks)
        print(
            f"| {name} | {found['tasks']:,} | {found['transitions']:,} | {found['raw']:.0f} | "
            f"{found['compressed']:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
