"""Tasks by prefix: their time, their durations, task groups, stragglers, and coffea roles."""

# ruff: noqa: S608 - every query here is put together from the report's own text

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from roast_analyze.report import quantities as q
from roast_analyze.report.columns import columns
from roast_analyze.report.listing import Listing, list_query, list_view
from roast_analyze.report.section import RECORD_HINT, Plot, Section
from roast_analyze.report.task_places import with_places
from roast_analyze.report.topics.tasks import figures, sentences

if TYPE_CHECKING:
    from roast_analyze.open.session import Session
    from roast_analyze.report.context import Context

#: Maximum number of rows of the tables.
PREFIX_ROWS: Final = 300
TASK_GROUP_ROWS: Final = 20
STRAGGLER_ROWS: Final = 15

#: The view `prefixes`, and quantiles of the compute times of each prefix.
_PREFIXES_QUERY: Final = (
    "SELECT prefixes.*, p05_compute_seconds, p25_compute_seconds, p75_compute_seconds, "
    "p95_compute_seconds FROM prefixes LEFT JOIN (SELECT trace_id, prefix, "
    "unnest(struct_pack(p05_compute_seconds := spread[1], p25_compute_seconds := spread[2], "
    "p75_compute_seconds := spread[3], p95_compute_seconds := spread[4])) FROM ("
    "SELECT trace_id, prefix, quantile_cont(whole_seconds, [0.05, 0.25, 0.75, 0.95]) "
    "AS spread FROM _task_runs GROUP BY trace_id, prefix)) AS durations "
    "ON prefixes.trace_id = durations.trace_id "
    "AND prefixes.prefix IS NOT DISTINCT FROM durations.prefix"
)
_ROLES_QUERY: Final = (
    "SELECT * REPLACE (coalesce(role, '(other tasks)') AS role) FROM task_roles "
    "WHERE EXISTS (FROM task_roles WHERE role IS NOT NULL)"
)

_PREFIXES: Final = columns(
    "prefix tasks task_runs (memory) erred retried? lost? (cancelled?) (unfinished?) "
    "compute_seconds (mean_compute_seconds) median_compute_seconds (p95_compute_seconds) "
    "max_compute_seconds transfer_seconds (deserialize_seconds?) (disk_seconds?) "
    "(output_bytes)",
    descriptions={"p95_compute_seconds": "95th percentile of the compute times of attempts."},
)
_GROUPS: Final = columns(
    "task_group (prefix) tasks task_runs erred? compute_seconds median_compute_seconds "
    "max_compute_seconds (transfer_seconds) (output_bytes) (workers) first_t wall_seconds",
    {"first_t": "start"},
)
_STRAGGLERS: Final = columns(
    "task (prefix) compute_seconds median_seconds relative_duration (excess_seconds) "
    "compute_start_t worker outcome (attempt) dataset (filename) (key)"
)
_ROLES: Final = columns(
    "role prefixes tasks task_runs failed_attempts compute_seconds compute_share "
    "mean_compute_seconds max_compute_seconds (transfer_seconds) (deserialize_seconds?) "
    "(disk_seconds?) (output_bytes)"
)


@dataclass(frozen=True)
class Tasks:
    """Tasks by prefix, group and role, the most compute time first."""

    prefixes: Listing
    task_groups: Listing
    roles: Listing
    #: Attempts that took at least twice the usual time of their prefix, the largest excess
    #: first.
    stragglers: Listing


def query(trace: Session) -> Tasks:
    """Query the tasks of a run."""
    by_time = "compute_seconds DESC NULLS LAST"
    return Tasks(
        prefixes=list_query(
            trace, "prefixes", _PREFIXES_QUERY, f"{by_time}, prefix", PREFIX_ROWS
        ),
        task_groups=list_view(trace, "task_groups", f"{by_time}, task_group", TASK_GROUP_ROWS),
        roles=list_query(trace, "task_roles", _ROLES_QUERY, f"{by_time}, role", PREFIX_ROWS),
        stragglers=list_query(
            trace,
            "stragglers",
            # Windows over all stragglers would take ten times as long.
            f"WITH found AS MATERIALIZED ({with_places('FROM stragglers')}), "
            "totals AS (SELECT sum(excess_seconds) AS all_excess_seconds, "
            "mode(worker) AS main_worker FROM found) "
            "SELECT found.*, totals.*, (SELECT count(*) FROM found WHERE worker = "
            "(SELECT main_worker FROM totals)) AS on_main_worker FROM found, totals",
            "excess_seconds DESC, key, attempt",
            STRAGGLER_ROWS,
        ),
    )


def section(found: Tasks, context: Context, colors: dict[str | None, str]) -> Section:
    """Build the section; ``colors`` are those of the prefixes."""
    section = Section("tasks", "Tasks by prefix", "Tasks")
    prefixes = found.prefixes
    if prefixes.total == 0:
        none = "No task was recorded."
        if context.run.chunk_attempts:
            return replace(section, empty=f"{none} Without a cluster, chunks are not tasks.")
        return context.absent(
            section,
            f"{none} To record tasks, start the recorder before running them:",
            RECORD_HINT,
        )
    source = {"query": prefixes.query, "command": context.view_command("prefixes")}
    plots = [
        Plot(
            figures.seconds(prefixes.rows, colors),
            name="prefix-seconds",
            title="Time by prefix",
            description=f"Bar chart of the total time of "
            f"{q.counted(prefixes.total, 'prefix', 'prefixes')}.",
            **source,
        )
    ]
    if prefixes.rows["median_compute_seconds"].is_not_null().any():
        figure = figures.durations(prefixes.rows, colors)
        drawn = len(figure.layout.yaxis.ticktext)
        few = f"The {q.count(drawn)} prefixes with the most compute time, of "
        plots.append(
            Plot(
                figure,
                name="durations",
                title="Distribution of compute times",
                description="Box plots of the compute times of "
                f"{q.counted(drawn, 'prefix', 'prefixes')} on a logarithmic scale: 5th, 25th, "
                "50th, 75th and 95th percentile, and the longest.",
                note=f"{few}{q.count(prefixes.total)}." if drawn < prefixes.total else "",
                **source,
            )
        )
    groups = found.task_groups
    if groups.total <= prefixes.total:
        # Each prefix has one group: the table of groups would repeat that of prefixes.
        groups = replace(groups, total=0)
    tables = context.tables(
        ("roles", "Roles in coffea", found.roles, _ROLES, ""),
        ("prefixes", "Prefixes", prefixes, _PREFIXES, ""),
        ("task-groups", "Task groups", groups, _GROUPS, ""),
        ("stragglers", "Stragglers", found.stragglers, _STRAGGLERS,
         "those with the largest excess"),
    )  # fmt: skip
    text = (
        sentences.prefixes(prefixes, context.run.compute_seconds or 0.0),
        sentences.roles(found.roles),
        sentences.task_groups(groups),
        sentences.stragglers(found.stragglers, prefixes),
    )
    return replace(section, sentences=text, plots=plots, tables=tables)
