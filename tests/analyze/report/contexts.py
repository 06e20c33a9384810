"""Contexts of the report without a trace, for sentences that depend on few facts."""

import polars as pl

from roast_analyze.report.context import Context
from roast_analyze.report.listing import Listing
from roast_analyze.report.run import Recording, Run

NO_ROWS = pl.DataFrame()
NOTHING = Listing("", "", NO_ROWS, 0)


def context_of(
    run: Run | None = None,
    *,
    workers=NO_ROWS,
    load=NO_ROWS,
    cluster_samples=NO_ROWS,
    worker_samples=NO_ROWS,
    **recording,
) -> Context:
    """Return the context of a run; `recording` are the fields of its Recording."""
    frames = (workers, load, cluster_samples, worker_samples)
    return Context("trace.jsonl", run or Run(), Recording(**recording), *frames)
