"""Run the analysis of the demo."""

from __future__ import annotations

from typing import Any

from coffea import processor
from coffea.nanoevents import NanoAODSchema

from roast_recorder.demo.dijet import DijetProcessor


def run_analysis(
    client: Any,
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
