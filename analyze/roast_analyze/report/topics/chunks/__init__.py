"""Chunks of coffea: their duration by dataset, file and branch, and the recommended size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.report.plots import Plot
from roast_analyze.report.section import RECORD_HINT, Section
from roast_analyze.report.tables import Field
from roast_analyze.report.topics.chunks import sentences
from roast_analyze.report.topics.chunks.data import Chunks, query
from roast_analyze.report.topics.chunks.figure import ChunkFigure, figure

if TYPE_CHECKING:
    from roast_analyze.report.context import Context

__all__ = ["Chunks", "query", "section"]


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


_DATASETS: Final = (
    Field("dataset", "dataset"),
    Field("files", "files", "count"),
    Field("chunks", "chunks", "count"),
    Field("failed_attempts", "failed attempts", "trouble"),
    Field("events", "events", "count"),
    Field("compute_seconds", "compute time", "seconds"),
    Field("compute_share", "share of compute", "share"),
    Field("events_per_second", "events per thread", "rate"),
    Field("bytes_per_second", "read rate per thread", "byte_rate", detail=True),
    Field("median_compute_seconds", "median chunk", "seconds", detail=True),
    Field("max_compute_seconds", "longest chunk", "seconds", detail=True),
    Field("relative_iqr", "relative IQR", "ratio", detail=True),
    Field("open_seconds", "open", "seconds", detail=True),
    Field("process_seconds", "processor", "seconds", detail=True),
    Field("read_seconds", "reading", "seconds", detail=True),
    Field("cpu_seconds", "CPU", "seconds", detail=True),
    Field("wait_seconds", "waiting", "seconds", detail=True),
    Field("bytes_read", "bytes read", "bytes"),
    Field("file_read_ratio", "share of file bytes", "share", detail=True),
    Field("branch_share", "share of branches", "share", detail=True),
    Field("compression_ratio", "compression ratio", "ratio", detail=True),
    Field("checkpointed_chunks", "from checkpoints", "count", optional=True, detail=True),
    Field("output_bytes", "results", "bytes", detail=True),
)
_COSTS: Final = (
    Field("dataset", "dataset"),
    Field("chunks", "chunks", "count"),
    Field("sizes", "distinct sizes", "count", detail=True),
    Field("fixed_seconds", "fixed cost", "seconds"),
    Field("fixed_error_seconds", "fixed cost ±", "seconds"),
    Field("seconds_per_event", "cost per event", "seconds"),
    Field("r2", "r²", "ratio", detail=True),
    Field("relative_error", "model error", "share", detail=True),
    Field("outliers", "outliers", "count", detail=True),
    Field("fixed_share", "fixed share", "share"),
    Field("smallest_chunk_events", "smallest chunk (events)", "count", detail=True),
    Field("median_events", "median chunk size (events)", "count"),
    Field("largest_chunk_events", "largest chunk (events)", "count", detail=True),
    Field("min_events", "shortest run from (events)", "count", detail=True),
    Field("max_events", "to (events)", "count", detail=True),
    Field("recommended_events", "recommended chunk size (events)", "count"),
    Field("note", "reason"),
)
_FILES: Final = (
    Field("filename", "file"),
    Field("dataset", "dataset"),
    Field("treename", "tree", detail=True),
    Field("chunks", "chunks", "count"),
    Field("failed_attempts", "failed attempts", "trouble"),
    Field("events", "events", "count"),
    Field("compute_seconds", "compute time", "seconds"),
    Field("compute_share", "share of compute", "share", detail=True),
    Field("events_per_second", "events per thread", "rate"),
    Field("bytes_per_second", "read rate per thread", "byte_rate", detail=True),
    Field("relative_duration", "relative duration", "ratio"),
    Field("relative_iqr", "relative IQR", "ratio", detail=True),
    Field("max_compute_seconds", "longest chunk", "seconds", detail=True),
    Field("open_seconds", "open", "seconds", detail=True),
    Field("read_seconds", "reading", "seconds", detail=True),
    Field("wait_seconds", "waiting", "seconds", detail=True),
    Field("bytes_read", "bytes read", "bytes"),
    Field("file_read_ratio", "share of file bytes", "share", detail=True),
    Field("branch_share", "share of branches", "share", detail=True),
    Field("compression_ratio", "compression ratio", "ratio", detail=True),
    Field("source", "source", detail=True),
    Field("workers", "workers", "count", detail=True),
)
_BRANCHES: Final = (
    Field("branch", "branch"),
    Field("dataset", "dataset"),
    Field("chunk_attempts", "attempts", "count"),
    Field("read_seconds", "reading", "seconds"),
    Field("read_share", "share of reading", "share"),
    Field("compressed_bytes", "compressed", "bytes"),
    Field("byte_share", "share of bytes", "share"),
    Field("uncompressed_bytes", "decompressed", "bytes"),
    Field("compression_ratio", "compression ratio", "ratio"),
)
_CHUNKS: Final = (
    Field("filename", "file"),
    Field("dataset", "dataset"),
    Field("entry_start", "first entry", "count"),
    Field("entry_stop", "end entry", "count", detail=True),
    Field("outcome", "outcome", "outcome"),
    Field("attempt", "attempt", "count", detail=True),
    Field("events", "events", "count"),
    Field("compute_seconds", "compute time", "seconds"),
    Field("events_per_second", "event rate", "rate", detail=True),
    Field("process_seconds", "processor", "seconds", detail=True),
    Field("open_seconds", "open", "seconds", detail=True),
    Field("read_seconds", "reading", "seconds", detail=True),
    Field("cpu_seconds", "CPU", "seconds", detail=True),
    Field("wait_seconds", "waiting", "seconds", detail=True),
    Field("bytes_read", "bytes read", "bytes"),
    Field("requests", "requests", "count", detail=True),
    Field("columns_read", "columns", "count", detail=True),
    Field("branches_read", "branches", "count", detail=True),
    Field("memory_peak_bytes", "peak memory", "bytes", detail=True),
    Field("output_bytes", "result", "bytes", detail=True),
    Field("worker", "worker"),
    Field("exception", "exception"),
    Field("key", "key", detail=True),
)
