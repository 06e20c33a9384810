"""Kinds of task, and what they do for coffea."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.figures import prefixes as prefix_figures
from roast_analyze.report import quantities as q
from roast_analyze.report import sentences
from roast_analyze.report.plots import Plot, plot_of
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
    from roast_analyze.report.data import ReportData


def build(data: ReportData, colours: dict[str | None, str]) -> Section:
    """Show the kinds of task by the time that they took."""
    section = Section("tasks", "Kinds of task", "Tasks")
    if data.prefixes.total == 0:
        none = "No task was seen while this was recorded."
        if data.chunks.total:
            return empty(section, f"{none} Without a cluster, chunks are no tasks.")
        return empty(
            section, f"{none} Those that are there, or come, are recorded:", RECORD_HINT
        )
    plots = [_seconds(data, colours)]
    if data.prefixes.rows["median_compute_seconds"].is_not_null().any():
        plots.append(_durations(data, colours))
    told = (
        sentences.tasks(data),
        sentences.merging_of_tasks(data),
        sentences.task_groups(data),
        sentences.stragglers(data),
    )
    shown = []
    if data.roles.total:
        shown.append(table(data, "roles", "What they do for coffea", data.roles, _ROLES))
    shown.append(table(data, "prefixes", "Prefixes", data.prefixes, _PREFIXES))
    # Where each prefix has one group, these would say the same again.
    if data.task_groups.total > data.prefixes.total:
        shown.append(table(data, "task-groups", "Task groups", data.task_groups, _GROUPS))
    if data.stragglers.listing.total:
        shown.append(
            table(data, "stragglers", "Stragglers", data.stragglers.listing, _STRAGGLERS)
        )
    return filled(section, *filter(None, told), plots=tuple(plots), tables=tuple(shown))


def _seconds(data: ReportData, colours: dict[str | None, str]) -> Plot:
    figure = prefix_figures.prefix_seconds(data.prefixes.rows, colours)
    return plot_of(
        figure,
        name="prefix-seconds",
        title="Time by prefix",
        spoken=f"Bar chart of the total time of {data.prefixes.total} task prefixes.",
        query=data.prefixes.query,
        command=view(data, "prefixes"),
    )


def _durations(data: ReportData, colours: dict[str | None, str]) -> Plot:
    figure = prefix_figures.durations(data.prefixes.rows, colours)
    shown = len(figure.layout.yaxis.ticktext)
    return plot_of(
        figure,
        name="durations",
        title="How long attempts took",
        spoken=f"Box plots of the computing times of {q.counted(shown, 'prefix', 'prefixes')} "
        "on a logarithmic scale: 5th, 25th, 50th, 75th and 95th percentile, and the longest.",
        note=sentences.durations_left_out(data, shown),
        query=data.prefixes.query,
        command=view(data, "prefixes"),
    )


_PREFIXES: Final = (
    Field("prefix", "prefix"),
    Field("tasks", "tasks", "count"),
    Field("task_runs", "attempts", "count"),
    Field("memory", "well", "count"),
    Field("erred", "failed", "trouble"),
    Field("retried", "retried", "trouble", optional=True),
    Field("lost", "lost", "trouble", optional=True),
    Field("cancelled", "cancelled", "count", optional=True),
    Field("unfinished", "unfinished", "count", optional=True),
    Field("compute_seconds", "compute", "seconds"),
    Field("mean_compute_seconds", "mean", "seconds"),
    Field("median_compute_seconds", "median", "seconds"),
    Field(
        "p95_compute_seconds",
        "p95",
        "seconds",
        help="Computing time that 95 of 100 attempts do not exceed.",
    ),
    Field("max_compute_seconds", "longest", "seconds"),
    Field("transfer_seconds", "transfer", "seconds"),
    Field("deserialize_seconds", "deserialise", "seconds", optional=True),
    Field("disk_seconds", "disk", "seconds", optional=True),
    Field("output_bytes", "results", "bytes"),
)
_GROUPS: Final = (
    Field("task_group", "group"),
    Field("prefix", "prefix"),
    Field("tasks", "tasks", "count"),
    Field("task_runs", "attempts", "count"),
    Field("erred", "failed", "trouble", optional=True),
    Field("compute_seconds", "compute", "seconds"),
    Field("median_compute_seconds", "median", "seconds"),
    Field("max_compute_seconds", "longest", "seconds"),
    Field("transfer_seconds", "transfer", "seconds"),
    Field("output_bytes", "results", "bytes"),
    Field("workers", "workers", "count"),
    Field("first_t", "from", "since"),
    Field("wall_seconds", "for", "seconds"),
)
_STRAGGLERS: Final = (
    Field("key", "key"),
    Field("prefix", "prefix"),
    Field("compute_seconds", "compute", "seconds"),
    Field("median_seconds", "usual", "seconds"),
    Field("relative_duration", "times that", "ratio"),
    Field("excess_seconds", "longer by", "seconds"),
    Field("compute_start_t", "from", "since"),
    Field("worker", "worker"),
    Field("outcome", "outcome", "outcome"),
    Field("attempt", "attempt", "count"),
    Field("dataset", "dataset"),
    Field("filename", "file"),
)
_ROLES: Final = (
    Field("role", "role"),
    Field("prefixes", "prefixes"),
    Field("tasks", "tasks", "count"),
    Field("task_runs", "attempts", "count"),
    Field("failed_attempts", "failed attempts", "trouble"),
    Field("compute_seconds", "compute", "seconds"),
    Field("compute_share", "of all", "share"),
    Field("mean_compute_seconds", "mean", "seconds"),
    Field("max_compute_seconds", "longest", "seconds"),
    Field("transfer_seconds", "transfer", "seconds"),
    Field("deserialize_seconds", "deserialise", "seconds", optional=True),
    Field("disk_seconds", "disk", "seconds", optional=True),
    Field("output_bytes", "results", "bytes"),
)
