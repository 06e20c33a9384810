"""Workers: their number over time, their CPU usage, and their totals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.figures import samples
from roast_analyze.report import quantities as q
from roast_analyze.report.context import WORKERS_ORDER, WORKERS_QUERY
from roast_analyze.report.listing import list_frame
from roast_analyze.report.plots import plot_of
from roast_analyze.report.section import RECORD_HINT, Section
from roast_analyze.report.tables import Field
from roast_analyze.report.topics.workers import sparklines, worker_count

if TYPE_CHECKING:
    from roast_analyze.report.context import Context
    from roast_analyze.report.plots import Plot

#: Most rows of the table.
ROWS: Final = 300


def section(context: Context) -> Section:
    """Build the section from the workers and samples of the context."""
    section = Section("workers", "Workers", "Workers")
    workers = context.workers
    if workers.is_empty():
        return replace(
            section,
            empty="No worker joined while this was recorded. To record workers, start the "
            "recorder while they are running, or before they start:",
            hint=RECORD_HINT,
        )
    # Workers that ran before the recording are recorded within its first bucket.
    recorded_t = context.start_t + (0.0 if context.load.is_empty() else context.buckets.seconds)
    listing = list_frame("workers", WORKERS_QUERY, WORKERS_ORDER, ROWS, workers)
    curves = sparklines.draw(listing.rows, context.worker_samples, context.axis)
    table = context.table(
        "workers",
        "Worker processes",
        replace(listing, rows=curves.rows),
        (*_IDENTITY, *curves.fields, *_TOTALS),
        chosen="the first in this order",
        sparklines=curves.sparklines,
    )
    plots = [
        plot_of(
            worker_count.figure(workers, context.axis, recorded_t),
            name="headcount",
            title="Worker count",
            description="Number of workers over time, at most "
            f"{q.count(context.run.peak_workers)}, with marks where workers joined, left or "
            "were lost.",
            query=f"{WORKERS_QUERY} ORDER BY added_t",
            command=context.view_command("workers"),
        )
    ]
    if not context.cluster_samples.is_empty():
        plots.append(_cpu(context))
    return replace(
        section,
        sentences=tuple(filter(None, (_work(context), _joined_and_left(workers, recorded_t)))),
        plots=tuple(plots),
        tables=(table,),
    )


def _work(context: Context) -> str:
    """Describe how evenly the work was distributed over the workers."""
    workers = q.counted(context.run.workers, "worker process", "worker processes")
    text = f"The cluster had {workers}."
    seconds = context.workers["compute_seconds"].drop_nulls()
    if seconds.len() > 1:
        most, least = q.as_float(seconds.max()), q.as_float(seconds.min())
        text += (
            f" The busiest worker computed for {q.seconds(most)}, the least busy for "
            f"{q.seconds(least)}."
        )
    lost = int(context.workers["lost"].fill_null(value=False).sum())
    if lost:
        text += f" {q.counted(lost, 'worker was', 'workers were')} lost."
    return text


def _joined_and_left(workers: pl.DataFrame, recorded_t: float) -> str:
    """Count the workers that joined or left during the recording; empty if none did."""
    joined = workers.filter(pl.col("added_t") > recorded_t).height
    left = workers.filter(
        pl.col("removed_t").is_not_null() & ~pl.col("lost").fill_null(value=False)
    ).height
    counts = [f"{q.counted(joined, 'worker')} joined after the start"] if joined else []
    counts += [f"{q.counted(left, 'worker')} left in order"] if left else []
    return f"{q.series(counts)}." if counts else ""


def _cpu(context: Context) -> Plot:
    cluster = context.cluster_samples
    cores = q.as_float(cluster["cpu_percent"].mean())
    threads = q.as_float(cluster["nthreads"].mean())
    note = "CPU usage was not recorded."
    if cores is not None and threads:
        note = (
            f"The workers used {_amount(cores / 100, 'core')} on average and had "
            f"{_amount(threads, 'thread')} for tasks. 100 % is one core; a worker exceeds the "
            "number of its threads when libraries start threads or work runs beside the tasks."
        )
    return plot_of(
        samples.cpu(cluster, context.worker_samples, context.worker_names, context.axis),
        name="cpu",
        title="CPU usage over time",
        description="CPU usage over time: of the cluster above, of each worker below.",
        note=note,
        query="SELECT * FROM cluster_samples; SELECT * FROM worker_samples",
        command=context.view_command("worker_samples"),
    )


def _amount(value: float, noun: str) -> str:
    text = q.number(value)
    return f"{text} {noun if text == '1' else noun + 's'}"


#: The columns before the sparklines, and those after them.
_IDENTITY: Final = (
    Field("name", "name"),
    Field("worker", "address"),
    Field("host", "host"),
    Field("nthreads", "threads", "count"),
)
_TOTALS: Final = (
    Field("task_runs", "attempts", "count"),
    Field("compute_seconds", "compute time", "seconds"),
    Field("chunks", "chunks", "count", optional=True),
    Field("failed_chunks", "failed chunks", "trouble", optional=True),
    Field("events", "events", "count", optional=True),
    Field("events_per_second", "events per thread", "rate"),
    Field("bytes_per_second", "read rate per thread", "byte_rate"),
    Field("relative_duration", "relative duration", "ratio"),
    Field("relative_iqr", "relative IQR", "ratio"),
    Field("max_chunk_seconds", "longest chunk", "seconds"),
    Field("bytes_read", "bytes read", "bytes"),
    Field("output_bytes", "results", "bytes"),
    Field("peak_memory_bytes", "peak memory", "bytes"),
    Field("memory_limit_bytes", "memory limit", "bytes"),
    Field("added_t", "joined", "since"),
    Field("removed_t", "left", "since"),
    Field("removal_reason", "reason for leaving"),
    Field("server_id", "server ID"),
)
