"""Chunks of coffea: their duration by dataset, file and branch, and the recommended size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.plots import Plot
from roast_analyze.report.section import RECORD_HINT, Section
from roast_analyze.report.topics.chunks import sentences
from roast_analyze.report.topics.chunks.data import Chunks, query
from roast_analyze.report.topics.chunks.figure import ChunkFigure, figure

if TYPE_CHECKING:
    from roast_analyze.report.context import Context

__all__ = ["Chunks", "query", "section"]

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


def section(found: Chunks, context: Context) -> Section:
    """Build the section."""
    section = Section("chunks", "Coffea chunks", "Chunks")
    if found.chunks.total == 0:
        return replace(
            section,
            empty="No chunks: no coffea work items were recorded. To record chunks, start the "
            "recorder before a coffea Runner processes them; the processor needs no change:",
            hint=RECORD_HINT,
        )
    command = context.view_command("chunks")
    drawn = figure(found.points, found.datasets.rows["dataset"].to_list(), context.axis)
    plot = Plot(
        drawn.figure,
        name="chunk-seconds",
        title="Compute time by chunk size and over time",
        description=f"Scatter plots of {drawn.drawn} chunk attempts: compute time against "
        "events, and against the time of dispatch to a worker.",
        note=_omissions(drawn, command),
        query="SELECT * FROM chunks",
        command=command,
    )
    text = (
        sentences.durations(found, context.run),
        sentences.time_spent(context.run),
        sentences.merging(context.run),
        sentences.slow(found),
        sentences.branches(found.top_branches),
        *sentences.costs(found.costs),
    )
    tables = (
        context.table("datasets", "Datasets", found.datasets, _DATASETS),
        context.table(
            "costs", "Cost by chunk size", found.costs, _COSTS,
            chosen="those with the most chunks",
        ),
        context.table("files", "Files", found.files, _FILES),
        context.table(
            "branches", "Branches", found.branches, _BRANCHES,
            chosen="those with the most reading time",
        ),
        context.table(
            "chunks", "Chunk attempts", found.chunks, _CHUNKS,
            chosen="failed attempts first, then the slowest",
        ),
    )  # fmt: skip
    return replace(
        section,
        sentences=tuple(filter(None, text)),
        plots=(plot,),
        # Some tables are empty: branches, for example, are recorded only when measured.
        tables=tuple(table for table in tables if table.rows),
    )


def _omissions(drawn: ChunkFigure, command: str) -> str:
    parts = []
    if drawn.undrawn:
        parts.append(
            f"{drawn.drawn:,} points are drawn: failed attempts, the slowest, and an even "
            f"sample of the rest; {drawn.undrawn:,} are left out. All attempts: {command}"
        )
    if drawn.without_time:
        attempts = q.counted(drawn.without_time, "attempt")
        parts.append(f"{attempts} without a compute time (lost or unfinished) cannot be drawn.")
    return " ".join(parts)
