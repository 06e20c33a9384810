"""Run the analysis of the demo on this machine, under the recorder."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from coffea import processor
from coffea.nanoevents import NanoAODSchema
from distributed import Client, LocalCluster

from roast_recorder.api import record
from roast_recorder.demo.dijet import DijetProcessor


def run_analysis(
    client: Client,
    fileset: dict[str, Any],
    *,
    treename: str = "Events",
    chunksize: int = 30_000,
    **executor_options: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the dijet analysis; return coffea's accumulator and its report of the run."""
    runner = processor.Runner(
        executor=processor.DaskExecutor(client=client, **executor_options),
        schema=NanoAODSchema,
        chunksize=chunksize,
        savemetrics=True,
    )
    result, report = runner(fileset, treename=treename, processor_instance=DijetProcessor())
    return result, report


def record_demo(
    trace: Path, fileset: dict[str, Any], *, treename: str, chunksize: int, workers: int
) -> dict[str, Any]:
    """Record the analysis on a local cluster; return coffea's report."""
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
        record(client, trace),
    ):
        return run_analysis(client, fileset, treename=treename, chunksize=chunksize)[1]
