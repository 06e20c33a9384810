"""Chunks of coffea: their duration by dataset, file and branch, and the recommended size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.listing import Listing, list_frame, list_query, list_view
from roast_analyze.report.section import RECORD_HINT, Plot, Section
from roast_analyze.report.topics.chunks import sentences
from roast_analyze.report.topics.chunks.figure import (
    POINT_LIMIT,
    chosen,
    figure,
    median_rate,
    sized,
)

if TYPE_CHECKING:
    import polars as pl

    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

#: Maximum number of rows of the tables: chunk attempts, datasets and files, branches.
CHUNK_ROWS: Final = 200
GROUP_ROWS: Final = 250
BRANCH_ROWS: Final = 100
#: Maximum number of branches, slow files and slow workers that sentences name.
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
_DATASETS: Final = columns(
    "dataset files chunks failed_attempts events compute_seconds compute_share "
    "events_per_second (bytes_per_second) (median_compute_seconds) (max_compute_seconds) "
    "(relative_iqr) (open_seconds) (process_seconds) (read_seconds) (cpu_seconds) "
    "(wait_seconds) bytes_read (file_read_ratio) (branch_share) (compression_ratio) "
    "(checkpointed_chunks?) (output_bytes)",
    {"median_compute_seconds": "median chunk", "max_compute_seconds": "longest chunk"},
)
_COSTS: Final = columns(
    "dataset chunks (sizes) fixed_seconds fixed_error_seconds seconds_per_event (r2) "
    "(relative_error) (outliers) fixed_share (smallest_chunk_events) median_events "
    "(largest_chunk_events) (min_events) (max_events) recommended_events note"
)
_FILES: Final = columns(
    "filename dataset (treename) chunks failed_attempts events compute_seconds "
    "(compute_share) events_per_second (bytes_per_second) relative_duration (relative_iqr) "
    "(max_compute_seconds) (open_seconds) (read_seconds) (wait_seconds) bytes_read "
    "(file_read_ratio) (branch_share) (compression_ratio) (source) (workers)",
    {"max_compute_seconds": "longest chunk"},
)
_BRANCHES: Final = columns(
    "branch dataset chunk_attempts read_seconds read_share compressed_bytes byte_share "
    "uncompressed_bytes compression_ratio"
)
_CHUNKS: Final = columns(
    "filename dataset entry_start (entry_stop) outcome (attempt) events compute_seconds "
    "(events_per_second) (process_seconds) (open_seconds) (read_seconds) (cpu_seconds) "
    "(wait_seconds) bytes_read (requests) (columns_read) (branches_read) (memory_peak_bytes) "
    "(output_bytes) worker exception (key)",
    {"events_per_second": "event rate", "output_bytes": "result"},
)


@dataclass(frozen=True)
class Chunks:
    """Chunks and their datasets, files and branches."""

    #: Some columns of all rows of view ``chunks``, for the figure.
    points: pl.DataFrame
    #: Rows of the tables.
    chunks: Listing
    datasets: Listing
    costs: Listing
    files: Listing
    branches: Listing
    #: The most expensive branches over all datasets.
    top_branches: Listing
    #: Files and workers that are slow, corrected for each other; the slowest first.
    slow_files: Listing
    slow_workers: Listing
    #: Number of files and workers that have a relative duration.
    comparable_files: int
    comparable_workers: int


def query(trace: Session, context: Context) -> Chunks:
    """Query the chunks of a run."""
    comparable = trace.sql(_COMPARABLE_FILES).pl()
    slow_files = comparable.filter("is_slow").sort(
        "relative_duration", "dataset", "filename", "treename",
        descending=[True, False, False, False],
    )  # fmt: skip
    slow_workers = (
        context.workers.drop("lost")
        .filter("is_slow")
        .sort("relative_duration", "worker", "added_t", descending=[True, False, False])
    )
    by_time, by_file = "compute_seconds DESC NULLS LAST", "dataset, filename, treename"
    slowest = list_view(
        trace, "chunks", f"outcome = 'memory', {by_time}, key, attempt, entry_start", CHUNK_ROWS
    )
    causes = trace.sql(
        "SELECT _error_cause(unnest($exceptions::VARCHAR[])) AS cause",
        {"exceptions": slowest.rows["exception"].to_list()},
    ).pl()["cause"]
    return Chunks(
        points=trace.sql(_POINTS).pl(),
        chunks=replace(slowest, rows=slowest.rows.with_columns(exception=causes)),
        datasets=list_view(trace, "datasets", f"{by_time}, dataset", GROUP_ROWS),
        costs=list_view(
            trace, "chunk_costs", "chunks + first_chunks DESC, dataset", GROUP_ROWS
        ),
        files=list_view(trace, "files", f"{by_time}, {by_file}", GROUP_ROWS),
        branches=list_view(
            trace,
            "branches",
            "read_seconds DESC NULLS LAST, compressed_bytes DESC NULLS LAST, dataset, branch",
            BRANCH_ROWS,
        ),
        top_branches=list_query(
            trace,
            "branches",
            # Branches whose reading time is unknown are comparable only by bytes.
            "SELECT branch, CASE WHEN bool_and(count(read_share) > 0) OVER () "
            "THEN sum(read_share) END AS read_share, sum(byte_share) AS byte_share "
            "FROM branches GROUP BY branch",
            "read_share DESC NULLS LAST, byte_share DESC NULLS LAST, branch",
            TOP_BRANCHES,
        ),
        slow_files=list_frame(
            "files",
            f"{_COMPARABLE_FILES} AND is_slow",
            f"relative_duration DESC, {by_file}",
            SLOW_ROWS,
            slow_files,
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


def section(found: Chunks, context: Context) -> Section:
    """Build the section."""
    section = Section("chunks", "Coffea chunks", "Chunks")
    if found.chunks.total == 0:
        return context.absent(
            section,
            "No chunks: no coffea work items were recorded. To record chunks, start the "
            "recorder before a coffea Runner processes them; the processor needs no change:",
            RECORD_HINT,
        )
    command = context.view_command("chunks")
    placed = sized(found.points)
    drawn = chosen(placed)
    notes = []
    if left_out := placed.height - drawn.height:
        notes.append(
            f"{drawn.height:,} points are drawn: {POINT_LIMIT // 2} failed or else slowest "
            f"attempts, and an even sample of the rest; {left_out:,} are left out. All "
            f"attempts: {command}"
        )
    if without_time := found.points.height - placed.height:
        attempts = q.counted(without_time, "attempt")
        notes.append(f"{attempts} without a compute time (lost or unfinished) cannot be drawn.")
    datasets = found.datasets.rows["dataset"].to_list()
    plot = Plot(
        figure(drawn, median_rate(placed), datasets, context.axis),
        name="chunk-seconds",
        title="Compute time by chunk size and over time",
        description=f"Scatter plots of {q.counted(drawn.height, 'chunk attempt')}: compute "
        "time against events, and against the time of dispatch to a worker.",
        note=" ".join(notes),
        query="SELECT * FROM chunks",
        command=command,
    )
    text = (
        sentences.durations(found, context.run),
        sentences.time_spent(context.run),
        sentences.merging(context.run),
        sentences.slow(found, context.worker_names),
        sentences.branches(found.top_branches),
        *sentences.costs(found.costs),
    )
    tables = context.tables(
        ("datasets", "Datasets", found.datasets, _DATASETS, ""),
        ("costs", "Cost by chunk size", found.costs, _COSTS, "those with the most chunks"),
        ("files", "Files", found.files, _FILES, ""),
        ("branches", "Branches", found.branches, _BRANCHES, "those with the most reading time"),
        (
            "chunks",
            "Chunk attempts",
            found.chunks,
            _CHUNKS,
            "failed attempts first, then the slowest",
        ),
    )
    return replace(section, sentences=text, plots=(plot,), tables=tables)
