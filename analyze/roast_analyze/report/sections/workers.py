"""Workers: how many there were, how busy each one was, and what it took of the machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from roast_analyze.figures import samples as sample_figures
from roast_analyze.figures import worker_count as headcount_figures
from roast_analyze.report import pictures, sentences
from roast_analyze.report import quantities as q
from roast_analyze.report.gathered.workers import EVERYONE
from roast_analyze.report.plots import Plot, plot_of
from roast_analyze.report.sections.section import (
    RECORD_HINT,
    Section,
    empty,
    filled,
    table,
    view,
    worker_names,
)
from roast_analyze.report.tables import Field

if TYPE_CHECKING:
    import polars as pl

    from roast_analyze.figures.layout import TimeAxis
    from roast_analyze.report.data import ReportData
    from roast_analyze.report.tables import Table


def build(data: ReportData, axis: TimeAxis) -> Section:
    """Show how many workers there were and how busy they were, and list them."""
    section = Section("workers", "Workers", "Workers")
    if data.workers.total == 0:
        return empty(
            section,
            "No worker was seen while this was recorded. Those that are there, or come, are "
            "recorded:",
            RECORD_HINT,
        )
    # Workers that were there when recording began come in its first moment.
    began_t = axis.start_t + _width(data.stretches)
    plots = [_headcount(data, axis, began_t)]
    told = [sentences.workers(data), sentences.comings_and_goings(data, began_t)]
    if not data.cluster_samples.is_empty():
        plots.append(_cpu(data, axis))
    return filled(
        section, *filter(None, told), plots=tuple(plots), tables=(_listed(data, axis),)
    )


def _listed(data: ReportData, axis: TimeAxis) -> Table:
    drawn = pictures.draw(data.workers.rows, data.worker_samples, axis)
    listing = replace(data.workers, rows=drawn.rows)
    shown = (*_IDENTITY, *drawn.fields, *_WORKERS)
    return table(data, "workers", "Worker processes", listing, shown, pictures=drawn.pictures)


def _headcount(data: ReportData, axis: TimeAxis, began_t: float) -> Plot:
    figure = headcount_figures.headcount(data.everyone, axis, began_t)
    return plot_of(
        figure,
        name="headcount",
        title="How many workers there were",
        spoken=f"Over time: how many workers there were, at most "
        f"{q.count(data.run.peak_workers)}, with marks where workers came, left or went away "
        "unexpectedly.",
        query=f"{EVERYONE} ORDER BY added_t",
        command=view(data, "workers"),
    )


def _width(stretches: pl.DataFrame) -> float:
    return float(stretches["seconds"][0]) if stretches.height else 0.0


def _cpu(data: ReportData, axis: TimeAxis) -> Plot:
    names = worker_names(data)
    figure = sample_figures.cpu(data.cluster_samples, data.worker_samples, names, axis)
    return plot_of(
        figure,
        name="cpu",
        title="CPU over time",
        spoken="CPU over time: of the cluster above, of each worker below.",
        note=sentences.cpu(data),
        query="SELECT * FROM cluster_samples; SELECT * FROM worker_samples",
        command=view(data, "worker_samples"),
    )


#: Pictures stand between the two.
_IDENTITY: Final = (
    Field("name", "name"),
    Field("worker", "address"),
    Field("host", "host"),
    Field("nthreads", "threads", "count"),
)
_WORKERS: Final = (
    Field("task_runs", "attempts", "count"),
    Field("compute_seconds", "compute", "seconds"),
    Field("chunks", "chunks", "count", optional=True),
    Field("failed_chunks", "failed chunks", "trouble", optional=True),
    Field("events", "events", "count", optional=True),
    Field("events_per_second", "rate per thread", "rate"),
    Field("bytes_per_second", "bytes per thread", "byte_rate"),
    Field("relative_duration", "relative_duration", "ratio"),
    Field("relative_iqr", "spread", "ratio"),
    Field("max_chunk_seconds", "longest chunk", "seconds"),
    Field("bytes_read", "read", "bytes"),
    Field("output_bytes", "results", "bytes"),
    Field("peak_memory_bytes", "peak memory", "bytes"),
    Field("memory_limit_bytes", "limit", "bytes"),
    Field("added_t", "arrived", "since"),
    Field("removed_t", "left", "since"),
    Field("removal_reason", "why it left"),
    Field("server_id", "process identity"),
)
