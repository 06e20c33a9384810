"""Measure the overhead of chunk measurement: ``make benchmark-chunks``.

It prints two tables of paired differences.

**In one process**: coffea's function for a chunk is called alternately with and without
measurement. The CPU time of all threads of the process is compared.

**On a cluster**: runs alternate with ``measure_chunks`` on and off. The compute time that Dask
reports for the tasks is compared, so that sending the records is included.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import awkward as ak
import duckdb
import numpy as np
import uproot
from coffea.nanoevents import NanoAODSchema
from coffea.processor import DaskExecutor, Runner
from coffea.processor.executor import WorkItem
from distributed import Client, LocalCluster

import roast_recorder
from roast_recorder.coffea.instrumentation import add_listener, remove_listener
from roast_recorder.demo import files

SLIM = files.Dataset("slim", files=1, events=200_000, jets=4.0, resonance_mass=91.0)


#: Median compute time of the tasks that process chunks.
MEDIAN_SECONDS = """
WITH lines AS (
    SELECT json ->> 'kind' AS kind, json ->> 'key' AS key, json
    FROM read_ndjson_objects($trace)
),
parts AS (
    SELECT unnest(from_json(json -> 'startstops', '["JSON"]')) AS part
    FROM lines
    WHERE kind = 'transition' AND json ->> 'finish' = 'memory'
    AND key IN (
        SELECT key FROM lines WHERE kind = 'chunk' AND json ->> 'entry_start' IS NOT NULL
    )
)
SELECT median((part ->> 'stop')::DOUBLE - (part ->> 'start')::DOUBLE)
FROM parts WHERE part ->> 'action' = 'compute'
"""


class Quiet(NanoAODSchema):
    """NanoAOD schema without warnings about branches that a file lacks."""

    warn_missing_crossrefs = False
    error_missing_event_ids = False


def few_columns(events: Any) -> dict[str, Any]:
    """Read three branches."""
    if "x0" in events.fields:
        return {"sum": float(ak.sum(events.x0 + events.x1 + events.x2))}
    return {"pt": float(ak.sum(events.Jet.pt)), "met": float(ak.sum(events.MET.pt))}


def write_wide_file(path: Path, branches: int = 1_500, entries: int = 1_000) -> None:
    """Write a file with as many branches as NanoAOD."""
    names = [f"x{number}" for number in range(branches)]
    with uproot.recreate(path) as file:
        tree = file.mktree("Events", dict.fromkeys(names, np.float32))
        tree.extend({name: np.ones(entries, np.float32) for name in names})


def cost_by_itself(path: Path, entries: int, rounds: int) -> tuple[float, float, float]:
    """Return the time of a chunk, and the median and mean of the overhead (ms)."""
    item = WorkItem("data", str(path), "Events", 0, entries, b"", {})

    def work(*, measures: bool) -> float:
        if measures:
            add_listener("benchmark", lambda _: None)
        gc.collect(0)
        begun = time.process_time()
        Runner._work_function(
            "root", 60, Quiet, False, True, item, few_columns, {}, {}, None, lambda: None
        )
        seconds = time.process_time() - begun
        if measures:
            remove_listener("benchmark")
        return seconds

    alone, extra = [], []
    for turn in range(rounds + 3):
        order = [True, False] if turn % 2 else [False, True]
        seconds = {measures: work(measures=measures) for measures in order}
        if turn >= 3:  # the first rounds fill caches
            alone.append(seconds[False] * 1e3)
            extra.append((seconds[True] - seconds[False]) * 1e3)
    return statistics.median(alone), statistics.median(extra), statistics.mean(extra)


def cost_on_a_cluster(paths: list[Path], chunksize: int, pairs: int) -> tuple[float, float]:
    """Return the median time of a chunk's task, and the median overhead (ms)."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):

        def run(*, measures: bool) -> float:
            trace = Path(folder) / "trace.jsonl"
            with roast_recorder.record(client, trace, measure_chunks=measures):
                runner = Runner(
                    executor=DaskExecutor(client=client, status=False),
                    schema=Quiet,
                    chunksize=chunksize,
                )
                files = {"data": [str(path) for path in paths]}
                runner(files, treename="Events", processor_instance=few_columns)
            [(seconds,)] = duckdb.execute(MEDIAN_SECONDS, {"trace": str(trace)}).fetchall()
            return float(seconds) * 1e3

        # The first run fills caches, and workers import coffea.
        run(measures=True)
        alone, extra = [], []
        for turn in range(pairs):
            order = [True, False] if turn % 2 else [False, True]
            found = {measures: run(measures=measures) for measures in order}
            alone.append(found[False])
            extra.append(found[True] - found[False])
    return statistics.median(alone), statistics.median(extra)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="rounds of the first table")
    parser.add_argument(
        "--pairs", type=int, default=12, help="pairs of runs of the second table"
    )
    parser.add_argument("--files", nargs="*", type=Path, default=[], help="additional files")
    options = parser.parse_args()
    given = [path.resolve() for path in options.files]
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        (slim,) = files.write_files(Path(), (SLIM,))
        wide = Path("wide.root")
        write_wide_file(wide)
        chunks = [(slim, 1_000), (slim, 50_000), (wide, 1_000), *((path, 50) for path in given)]
        print(
            "| file | entries | time per chunk (ms) | overhead, median (ms) | "
            "mean (ms) | share (%) |"
        )
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        for path, entries in chunks:
            alone, median, mean = cost_by_itself(path, entries, options.rounds)
            print(
                f"| {path.name} | {entries:,} | {alone:.1f} | {median:+.2f} | {mean:+.2f} | "
                f"{median / alone:+.1%} |"
            )
        print(
            "\n| file | chunk size (entries) | time per task (ms) | overhead (ms) | share (%) |"
        )
        print("| --- | ---: | ---: | ---: | ---: |")
        for path, chunksize in [(slim, 5_000), (wide, 50)]:
            alone, median = cost_on_a_cluster([path.resolve()], chunksize, options.pairs)
            print(
                f"| {path.name} | {chunksize:,} | {alone:.1f} | {median:+.2f} | "
                f"{median / alone:+.1%} |"
            )


if __name__ == "__main__":
    main()
