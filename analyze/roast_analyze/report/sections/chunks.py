"""Chunks of coffea: how long they took, and what for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.figures import chunks as chunk_figures
from roast_analyze.report import sentences
from roast_analyze.report.plots import plot_of
from roast_analyze.report.sections.section import (
    RECORD_HINT,
    Section,
    empty,
    filled,
    table,
    view,
)
from roast_analyze.report.tables import Field

if TYPE_CHECKING:
    from roast_analyze.figures.layout import TimeAxis
    from roast_analyze.report.data import ReportData


def build(data: ReportData, axis: TimeAxis) -> Section:
    """Show the chunks, by dataset, file and branch."""
    section = Section("chunks", "Chunks of coffea", "Chunks")
    if data.chunks.total == 0:
        return empty(
            section,
            "No chunks: no coffea work items were seen in this run. They are recorded without "
            "a change to the processor when a coffea Runner works on the cluster meanwhile.",
            RECORD_HINT,
        )
    command = view(data, "chunks")
    names = data.datasets.rows["dataset"].to_list()
    drawn = chunk_figures.chunk_seconds(data.chunk_points, names, axis)
    plot = plot_of(
        drawn.figure,
        name="chunk-seconds",
        title="Time by size, and over the run",
        spoken=f"Scatter plots of {drawn.drawn} attempts at chunks: compute time against "
        "events, and against when they were sent to a worker.",
        note=sentences.chunks_left_out(drawn, command),
        query="SELECT * FROM chunks",
        command=command,
    )
    told = (
        sentences.chunks(data),
        sentences.chunk_time(data),
        sentences.merging(data),
        sentences.slow(data),
        sentences.branches(data),
        *sentences.costs(data),
    )
    shown = (
        table(data, "datasets", "By dataset", data.datasets, _DATASETS),
        table(data, "costs", "What a chunk costs by its size", data.costs, _COSTS),
        table(data, "files", "By file", data.files, _FILES),
        table(data, "branches", "By branch", data.branches, _BRANCHES),
        table(data, "chunks", "Attempts at chunks", data.chunks, _CHUNKS),
    )
    return filled(
        section,
        *filter(None, told),
        plots=(plot,),
        # Branches and named parts are there only if they were measured.
        tables=tuple(table for table in shown if table.rows),
    )


_DATASETS: Final = (
    Field("dataset", "dataset"),
    Field("files", "files", "count"),
    Field("chunks", "chunks", "count"),
    Field("failed_attempts", "failed attempts", "trouble"),
    Field("events", "events", "count"),
    Field("compute_seconds", "compute", "seconds"),
    Field("compute_share", "of all", "share"),
    Field("events_per_second", "rate per thread", "rate"),
    Field("bytes_per_second", "bytes per thread", "byte_rate"),
    Field("median_compute_seconds", "median chunk", "seconds"),
    Field("max_compute_seconds", "longest chunk", "seconds"),
    Field("relative_iqr", "spread", "ratio"),
    Field("open_seconds", "open", "seconds"),
    Field("process_seconds", "processor", "seconds"),
    Field("read_seconds", "reading", "seconds"),
    Field("cpu_seconds", "CPU", "seconds"),
    Field("wait_seconds", "waiting", "seconds"),
    Field("bytes_read", "read", "bytes"),
    Field("file_read_ratio", "of the files", "share"),
    Field("branch_share", "of the branches", "share"),
    Field("compression_ratio", "compression", "ratio"),
    Field("checkpointed_chunks", "from checkpoints", "count", optional=True),
    Field("output_bytes", "results", "bytes"),
)
_COSTS: Final = (
    Field("dataset", "dataset"),
    Field("chunks", "chunks", "count"),
    Field("sizes", "sizes", "count"),
    Field("method", "model"),
    Field("fixed_seconds", "fixed", "seconds"),
    Field("fixed_error_seconds", "±", "seconds"),
    Field("seconds_per_event", "an event", "seconds"),
    Field("r2", "r²", "ratio"),
    Field("relative_error", "off by", "share"),
    Field("outliers", "left out", "count"),
    Field("fixed_share", "fixed, of all", "share"),
    Field("median_events", "events now", "count"),
    Field("recommended_events", "better", "count"),
    Field("note", "because"),
)
_FILES: Final = (
    Field("filename", "file"),
    Field("dataset", "dataset"),
    Field("treename", "tree"),
    Field("chunks", "chunks", "count"),
    Field("failed_attempts", "failed attempts", "trouble"),
    Field("events", "events", "count"),
    Field("compute_seconds", "compute", "seconds"),
    Field("compute_share", "of all", "share"),
    Field("events_per_second", "rate per thread", "rate"),
    Field("bytes_per_second", "bytes per thread", "byte_rate"),
    Field("relative_duration", "relative_duration", "ratio"),
    Field("relative_iqr", "spread", "ratio"),
    Field("max_compute_seconds", "longest chunk", "seconds"),
    Field("open_seconds", "open", "seconds"),
    Field("read_seconds", "reading", "seconds"),
    Field("wait_seconds", "waiting", "seconds"),
    Field("bytes_read", "read", "bytes"),
    Field("file_read_ratio", "of the file", "share"),
    Field("branch_share", "of the branches", "share"),
    Field("compression_ratio", "compression", "ratio"),
    Field("source", "kind"),
    Field("workers", "workers", "count"),
)
_BRANCHES: Final = (
    Field("branch", "branch"),
    Field("dataset", "dataset"),
    Field("chunk_attempts", "attempts", "count"),
    Field("read_seconds", "reading", "seconds"),
    Field("read_share", "of all", "share"),
    Field("compressed_bytes", "in the files", "bytes"),
    Field("byte_share", "of all", "share"),
    Field("uncompressed_bytes", "decompressed", "bytes"),
    Field("compression_ratio", "compression", "ratio"),
)
_CHUNKS: Final = (
    Field("filename", "file"),
    Field("dataset", "dataset"),
    Field("entry_start", "first entry", "count"),
    Field("entry_stop", "end entry", "count"),
    Field("outcome", "outcome", "outcome"),
    Field("attempt", "attempt", "count"),
    Field("events", "events", "count"),
    Field("compute_seconds", "compute", "seconds"),
    Field("events_per_second", "rate", "rate"),
    Field("process_seconds", "processor", "seconds"),
    Field("open_seconds", "open", "seconds"),
    Field("read_seconds", "reading", "seconds"),
    Field("cpu_seconds", "CPU", "seconds"),
    Field("wait_seconds", "waiting", "seconds"),
    Field("bytes_read", "read", "bytes"),
    Field("requests", "requests", "count"),
    Field("columns_read", "columns", "count"),
    Field("branches_read", "branches", "count"),
    Field("memory_peak_bytes", "peak memory", "bytes"),
    Field("output_bytes", "result", "bytes"),
    Field("worker", "worker"),
    Field("exception", "exception"),
    Field("key", "key"),
)
