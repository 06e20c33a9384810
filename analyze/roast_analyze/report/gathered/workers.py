"""The workers of a run: who they were, and what was sampled of them over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.figures.samples import POINT_LIMIT
from roast_analyze.report.gathered.listing import Listing, first

if TYPE_CHECKING:
    import polars as pl

    from roast_analyze.figures.layout import TimeAxis
    from roast_analyze.open.session import Session

#: Dask's names by number, before others and in order of time.
ORDER: Final = "try_cast(name AS BIGINT) NULLS LAST, added_t, worker"
#: The view `workers`, and whether a worker went away unexpectedly.
EVERYONE: Final = (
    # A worker that comes back under its old address was lost only the time that it was.
    "SELECT workers.*, EXISTS (FROM failures WHERE what = 'worker lost' "
    "AND failures.worker = workers.worker "
    "AND abs(failures.t - workers.removed_t) < 1) AS lost FROM workers"
)
#: Means of what goes up and down fast, the highest of what must not be missed.
SAMPLES: Final = (
    "SELECT worker, server_id, min(t) AS t, count(*) AS samples, "
    "avg(cpu_percent) AS cpu_percent, avg(executing) AS executing, "
    "max(memory_bytes) AS memory_bytes, max(memory_limit_bytes) AS memory_limit_bytes, "
    "max(spilled_bytes) AS spilled_bytes FROM worker_samples"
)


def everyone(trace: Session) -> pl.DataFrame:
    """Give all workers in the order in which they are listed, with ``lost``."""
    frame: pl.DataFrame = trace.sql(f"{EVERYONE} ORDER BY {ORDER}").pl()
    return frame


def slow(everyone: pl.DataFrame, limit: int) -> Listing:
    """List those that are slow for themselves, the slowest first."""
    ranked = (
        everyone.drop("lost")
        .filter("is_slow")
        .sort("relative_duration", "worker", "added_t", descending=[True, False, False])
    )
    query = "SELECT * FROM workers WHERE is_slow"
    return first("workers", query, "relative_duration DESC, worker, added_t", limit, ranked)


def samples(trace: Session, axis: TimeAxis) -> pl.DataFrame:
    """Give the samples of each worker process, put together by equal stretches of time.

    The stretches are those of the curves, so that no more of them are drawn than there are
    rows, however long the run.
    """
    frame: pl.DataFrame = trace.sql(
        f"{SAMPLES} GROUP BY worker, server_id, floor((t - $start_t) / $width) "
        "ORDER BY t, worker",
        {"start_t": axis.start_t, "width": axis.span_seconds / POINT_LIMIT},
    ).pl()
    return frame
