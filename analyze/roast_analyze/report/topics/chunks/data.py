"""The rows and frames of the topic chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roast_analyze.report.listing import Listing, list_frame, list_query, list_view

if TYPE_CHECKING:
    import polars as pl

    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

#: Most rows of the tables: chunk attempts, datasets and files, branches.
CHUNK_ROWS: Final = 200
GROUP_ROWS: Final = 250
BRANCH_ROWS: Final = 100
#: Most branches, slow files and slow workers that sentences name.
TOP_BRANCHES: Final = 3
SLOW_ROWS: Final = 5

#: Files with a relative duration: others cannot be compared.
_COMPARABLE_FILES: Final = (
    "SELECT dataset, filename, treename, relative_duration, relative_duration_error, is_slow "
    "FROM files WHERE relative_duration IS NOT NULL"
)
_POINTS: Final = (
    "SELECT dataset, filename, entry_start, entry_stop, events, attempt, worker, outcome, "
    "processing_t, compute_seconds, events_per_second FROM chunks"
)


@dataclass(frozen=True)
class Chunks:
    """Chunks and their datasets, files and branches.

    Parameters
    ----------
    points : polars.DataFrame
        Some columns of all rows of view ``chunks``, for the figure.
    chunks, datasets, costs, files, branches : Listing
        Rows of the tables.
    top_branches : Listing
        The most expensive branches over all datasets.
    slow_files, slow_workers : Listing
        Files slow on every worker, and workers slow on every file; the slowest first.
    comparable_files, comparable_workers : int
        Number of files and workers that have a relative duration.
    """

    points: pl.DataFrame
    chunks: Listing
    datasets: Listing
    costs: Listing
    files: Listing
    branches: Listing
    top_branches: Listing
    slow_files: Listing
    slow_workers: Listing
    comparable_files: int
    comparable_workers: int


def query(trace: Session, context: Context) -> Chunks:
    """Query the chunks of a run."""
    comparable = trace.sql(_COMPARABLE_FILES).pl()
    file_order = "relative_duration DESC, dataset, filename, treename"
    slow_files = comparable.filter("is_slow").sort(
        "relative_duration", "dataset", "filename", "treename",
        descending=[True, False, False, False],
    )  # fmt: skip
    slow_workers = (
        context.workers.drop("lost")
        .filter("is_slow")
        .sort("relative_duration", "worker", "added_t", descending=[True, False, False])
    )
    by_time = "compute_seconds DESC NULLS LAST"
    return Chunks(
        points=trace.sql(_POINTS).pl(),
        chunks=list_query(
            trace,
            "chunks",
            "SELECT * REPLACE (_error_cause(exception) AS exception) FROM chunks",
            f"outcome = 'memory', {by_time}, key, attempt, entry_start",
            CHUNK_ROWS,
        ),
        datasets=list_view(trace, "datasets", f"{by_time}, dataset", GROUP_ROWS),
        costs=list_view(
            trace, "chunk_costs", "chunks + first_chunks DESC, dataset", GROUP_ROWS
        ),
        files=list_view(trace, "files", f"{by_time}, dataset, filename, treename", GROUP_ROWS),
        branches=list_view(
            trace,
            "branches",
            "read_seconds DESC NULLS LAST, compressed_bytes DESC NULLS LAST, dataset, branch",
            BRANCH_ROWS,
        ),
        top_branches=list_query(
            trace,
            "branches",
            "SELECT branch, sum(read_share) AS read_share, sum(byte_share) AS byte_share "
            "FROM branches GROUP BY branch",
            "read_share DESC NULLS LAST, byte_share DESC NULLS LAST, branch",
            TOP_BRANCHES,
        ),
        slow_files=list_frame(
            "files", f"{_COMPARABLE_FILES} AND is_slow", file_order, SLOW_ROWS, slow_files
        ),
        slow_workers=list_frame(
            "workers",
            "SELECT * FROM workers WHERE is_slow",
            "relative_duration DESC, worker, added_t",
            SLOW_ROWS,
            slow_workers,
        ),
        comparable_files=comparable["relative_duration"].count(),
        comparable_workers=context.workers["relative_duration"].count(),
    )
