"""Chunks of coffea: their duration by dataset, file and branch, and the recommended size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from roast_analyze.report import quantities as q
from roast_analyze.report.plots import Plot
from roast_analyze.report.section import RECORD_HINT, Section
from roast_analyze.report.tables import Field
from roast_analyze.report.topics.chunks.data import Chunks, query
from roast_analyze.report.topics.chunks.figure import ChunkFigure, figure
from roast_analyze.safe_text import shortened, visible

if TYPE_CHECKING:
    from roast_analyze.report.context import Context
    from roast_analyze.report.listing import Listing
    from roast_analyze.report.run import Run

__all__ = ["Chunks", "query", "section"]

#: Most datasets whose cost per chunk a sentence describes.
COST_SENTENCES: Final = 4


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
    sentences = (
        _durations(found, context.run),
        _time_spent(context.run),
        _merging(context.run),
        _slow(found),
        _branches(found.top_branches),
        *_costs(found.costs),
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
        sentences=tuple(filter(None, sentences)),
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


def _durations(found: Chunks, run: Run) -> str:
    done = found.points.filter(pl.col("outcome") == "memory")
    median = q.as_float(done["compute_seconds"].median())
    text = (
        "Each point is a chunk attempt; in the left panel, points above the dotted line are "
        "slower than the median rate."
    )
    # A single chunk is both the median and the slowest.
    if median and done.height > 1:
        slowest = done.sort("compute_seconds", descending=True, nulls_last=True)
        name, seconds = slowest.select("filename", "compute_seconds").row(0)
        text += (
            f" The median compute time was {q.seconds(median)}; the slowest chunk took "
            f"{q.seconds(seconds)}, {seconds / median:.1f} times as long"
            f"{f' (in {_short(name)})' if _short(name) else ''}."
        )
    if run.failed_chunks:
        text += f" {q.counted(run.failed_chunks, 'chunk attempt')} failed."
        if run.skipped:
            chunks = q.counted(run.skipped, "of them was", "of them were")
            text += f" {chunks} skipped without an exception."
    if run.checkpointed_chunks:
        text += (
            f" The results of {q.counted(run.checkpointed_chunks, 'chunk')} came from a "
            "checkpoint, so that their number of events is unknown."
        )
    return text


def _time_spent(run: Run) -> str:
    if run.process_seconds is None and run.read_seconds is None:
        return "What chunks read, and on what they spent their time, was not measured."
    total = run.chunk_seconds or 0.0
    parts = [
        (run.open_seconds, "opening files"),
        (run.process_seconds, "in the processor"),
        (run.read_seconds, "reading columns, inside or before the processor"),
    ]
    shares = [
        f"{q.seconds(seconds)} ({q.share(seconds / total)}) {activity}"
        for seconds, activity in parts
        if seconds is not None and total
    ]
    text = f"Chunk attempts computed for {q.seconds(total)}"
    text += f": {q.series(shares)}." if shares else "."
    measured = (run.cpu_seconds or 0.0) + (run.wait_seconds or 0.0)
    if run.cpu_seconds is not None and measured:
        text += (
            f" Their threads were on the CPU {q.share(run.cpu_seconds / measured)} of the time."
        )
    return text


def _merging(run: Run) -> str:
    """Compare the merging of results with the processing of chunks; empty without merging."""
    if not run.merge_seconds or not run.chunk_seconds:
        return ""
    share = run.merge_seconds / run.chunk_seconds
    compared = (
        f"{share:.1f} times the compute time of the chunks"
        if share > 1
        else f"{q.share(share)} of the compute time of the chunks"
    )
    return f"Merging results took {q.seconds(run.merge_seconds)}, {compared}."


def _slow(found: Chunks) -> str:
    """Name the files that are slow on every worker, and the workers slow on every file."""
    if not found.comparable_files and not found.comparable_workers:
        return (
            "Slow files and slow workers cannot be told apart: that requires several files of "
            "a dataset, each processed on several workers."
        )
    sentences = []
    for listing, column, comparable, noun, others in (
        (found.slow_files, "filename", found.comparable_files, "file", "worker"),
        (found.slow_workers, "worker", found.comparable_workers, "worker", "file"),
    ):
        names = [
            f"{_short(row[column])} ({row['relative_duration']:.1f} ± "
            f"{row['relative_duration_error']:.1f} times the usual duration)"
            for row in listing.rows.iter_rows(named=True)
        ]
        if names:
            plural = noun if len(names) == 1 else f"{noun}s"
            more = q.and_more(listing.total, len(names))
            sentences.append(f"Slow on every {others}: {plural} {q.series(names)}{more}.")
        elif comparable:
            sentences.append(
                f"None of the {q.counted(comparable, f'comparable {noun}')} is slow on every "
                f"{others}."
            )
    return " ".join(sentences)


def _branches(top: Listing) -> str:
    """Name the most expensive branches over all datasets; empty if none was measured."""
    if top.rows.is_empty():
        return ""
    by_time = top.rows["read_share"].null_count() == 0
    share = "read_share" if by_time else "byte_share"
    names = [
        f"{_short(name)} ({q.share(value)})"
        for name, value in top.rows.select("branch", share).iter_rows()
    ]
    measure = "reading time" if by_time else "bytes read"
    return f"The most expensive branches by {measure}: {q.series(names)}."


def _costs(costs: Listing) -> list[str]:
    """Describe for each dataset the cost of a chunk and the recommended size, or why not.

    Datasets without a model share a sentence with its reason.
    """
    known = costs.rows.filter("is_known")
    sentences = [_cost(row) for row in known.head(COST_SENTENCES).iter_rows(named=True)]
    if known.height > len(sentences):
        more = q.counted(known.height - len(sentences), "more dataset")
        sentences.append(f"The table contains {more}.")
    unknown = costs.rows.filter(~pl.col("is_known"))
    for (note,), some in unknown.group_by("note", maintain_order=True):
        names = [
            _short(name) or "(no dataset)" for name in some["dataset"].head(COST_SENTENCES)
        ]
        more = q.and_more(some.height, len(names))
        sentences.append(f"Cost of a chunk of {q.series(names)}{more}: {note}.")
    return sentences


def _cost(row: dict[str, Any]) -> str:
    fixed = f"{q.seconds(row['fixed_seconds'])} (± {q.seconds(row['fixed_error_seconds'])})"
    # Per thousand events, because the time per event is too short to be familiar.
    variable = q.seconds(1e3 * row["seconds_per_event"])
    size = f"the median chunk has {q.count(row['median_events'])} events"
    if row["recommended_events"] not in (None, row["median_events"]):
        size += (
            f", the recommended size is {q.count(row['recommended_events'])} (the run time "
            f"changes by less than 2 % between {q.count(row['min_events'])} and "
            f"{q.count(row['max_events'])})"
        )
    return (
        f"{_short(row['dataset']) or '(no dataset)'}: a chunk costs {fixed} plus {variable} "
        f"per 1,000 events (median model error {q.share(row['relative_error'])}); {size}; "
        f"{row['note']}."
    )


def _short(name: object) -> str:
    """Return the last part of the path of a file, or a name, fit for a sentence."""
    return shortened(visible(str(name or "")).rsplit("/", 1)[-1], 60)


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
