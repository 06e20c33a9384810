"""Run the analysis of the demo on this machine, under the recorder."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coffea import processor
from coffea.nanoevents import NanoAODSchema
from distributed import Client, LocalCluster

from roast_recorder.api import record
from roast_recorder.demo.dijet import DijetProcessor


@dataclass(frozen=True)
class Outcome:
    """Results of an analysis: coffea's accumulator and its report of the run."""

    result: dict[str, Any]
    report: dict[str, Any]


def run_analysis(
    client: Client,
    fileset: dict[str, Any],
    *,
    treename: str = "Events",
    chunksize: int = 30_000,
    **executor_options: Any,
) -> Outcome:
    """Run the dijet analysis.

    Parameters
    ----------
    client : distributed.Client
    fileset : dict
        Files of each dataset, as for coffea.
    treename : str
        Tree of every file.
    chunksize : int
        Events of a chunk.
    **executor_options
        Passed to coffea's ``DaskExecutor``, for example ``retries``.
    """
    runner = processor.Runner(
        executor=processor.DaskExecutor(client=client, **executor_options),
        schema=NanoAODSchema,
        chunksize=chunksize,
        savemetrics=True,
    )
    result, report = runner(fileset, treename=treename, processor_instance=DijetProcessor())
    return Outcome(result, report)


def record_demo(
    trace: Path, fileset: dict[str, Any], *, treename: str, chunksize: int, workers: int
) -> Outcome:
    """Start a local cluster, and record the analysis on it.

    Parameters
    ----------
    trace : Path
        File to write.
    fileset, treename, chunksize
        See :func:`run_analysis`.
    workers : int
        Number of worker processes of one thread each.
    """
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
        return run_analysis(client, fileset, treename=treename, chunksize=chunksize)
