"""Workers: their number over time, their CPU usage, and their totals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.figures import samples
from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.context import WORKERS_ORDER, WORKERS_QUERY
from roast_analyze.report.listing import list_frame
from roast_analyze.report.section import RECORD_HINT, Plot, Section
from roast_analyze.report.topics.workers import sparklines, worker_count

if TYPE_CHECKING:
    from roast_analyze.report.context import Context

#: Maximum number of rows of the table.
ROWS: Final = 300

_OVER: Final = "over the run (view worker_samples)"
_COLUMNS: Final = columns(
    "name (worker) host (nthreads) max_cpu_cores? max_memory_share? max_memory_bytes? "
    "max_spilled_bytes? max_executing? task_runs compute_seconds (chunks?) failed_chunks? "
    "(events?) (events_per_second) (bytes_per_second) (relative_duration) (relative_iqr) "
    "(max_chunk_seconds) (bytes_read) (output_bytes) (peak_memory_bytes) "
    "(memory_limit_bytes) (added_t) (removed_t) removal_reason (server_id)",
    {"worker": "address"},
    {
        "max_cpu_cores": f"CPU usage {_OVER}, and its maximum; 100 % is one core.",
        "max_memory_share": f"Memory {_OVER} as a share of the worker's limit, which is the "
        "upper edge, and its maximum.",
        "max_memory_bytes": f"Memory {_OVER}, and its maximum; no limit is set.",
        "max_spilled_bytes": f"Results spilled to disk {_OVER}, and their maximum.",
        "max_executing": f"Tasks executing at once {_OVER}, and the maximum of the means that "
        "are drawn.",
    },
)


def section(context: Context) -> Section:
    """Build the section from the workers and samples of the context."""
    section = Section("workers", "Workers", "Workers")
    workers = context.workers
    if workers.is_empty():
        return context.absent(
            section,
            "No worker joined while this was recorded. To record workers, start the "
            "recorder while they are running, or before they start:",
            RECORD_HINT,
        )
    # Workers that ran before the recording are recorded within its first bucket.
    recorded_t = context.start_t
    if not context.load.is_empty():
        recorded_t += context.buckets["width"]
    listing = list_frame("workers", WORKERS_QUERY, WORKERS_ORDER, ROWS, workers)
    rows, curves = sparklines.draw(listing.rows, context.worker_samples, context.axis)
    table = context.table(
        "workers",
        "Worker processes",
        replace(listing, rows=rows),
        tuple(column for column in _COLUMNS if column.name in rows.columns),
        chosen="the first in this order",
        sparklines=curves,
    )
    plots = [
        Plot(
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
    cluster = context.cluster_samples
    if not cluster.is_empty():
        note = "CPU usage was not recorded."
        percent = q.as_float(cluster["cpu_percent"].mean())
        threads = q.as_float(cluster["nthreads"].mean())
        if percent is not None and threads:
            cores, of = q.number(percent / 100), q.number(threads)
            note = (
                f"The workers used {cores} {'core' if cores == '1' else 'cores'} on average "
                f"and had {of} {'thread' if of == '1' else 'threads'} for tasks. 100 % is one "
                "core; a worker uses more cores than it has threads if libraries start threads "
                "or other work runs in parallel with the tasks."
            )
        plots.append(
            Plot(
                samples.cpu(
                    cluster, context.worker_samples, context.worker_names, context.axis
                ),
                name="cpu",
                title="CPU usage over time",
                description="CPU usage over time: of the cluster above, of each worker below.",
                note=note,
                query="SELECT * FROM cluster_samples; SELECT * FROM worker_samples",
                command=context.view_command("worker_samples"),
            )
        )
    sentences = _sentences(context, recorded_t)
    return replace(section, sentences=sentences, plots=plots, tables=(table,))


def _sentences(context: Context, recorded_t: float) -> list[str]:
    """Describe how evenly the work was distributed, and how many workers joined and left."""
    workers, lost = context.workers, pl.col("lost").fill_null(value=False)
    processes = q.counted(context.run.workers, "worker process", "worker processes")
    text = f"The cluster had {processes}."
    if workers["compute_seconds"].count() > 1:
        ranked = workers.drop_nulls("compute_seconds").sort("compute_seconds", descending=True)
        # A slow worker computes longer without more attempts.
        most, least = (
            f"{q.seconds(row['compute_seconds'])} "
            f"({q.counted(row['task_runs'] or row['chunks'], 'attempt')})"
            for row in (ranked.row(0, named=True), ranked.row(-1, named=True))
        )
        text += f" The busiest worker computed for {most}, the least busy for {least}."
    if count := workers.filter(lost).height:
        text += f" {q.counted(count, 'worker was', 'workers were')} lost."
    joined = workers.filter(pl.col("added_t") > recorded_t).height
    left = workers.filter(pl.col("removed_t").is_not_null() & ~lost).height
    changes = [f"{q.counted(joined, 'worker')} joined after the start"] if joined else []
    changes += [f"{q.counted(left, 'worker')} left"] if left else []
    return [text, f"{q.series(changes)}."] if changes else [text]
