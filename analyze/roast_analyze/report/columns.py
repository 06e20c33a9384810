"""The columns of tables: a heading and a kind for each name, declared once.

Names are those of the views. A table declares its columns in :func:`columns`, with the
headings that only it has.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from roast_analyze.report.tables import Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roast_analyze.report.tables import Kind

#: Names by kind, if they do not end in it.
_KINDS: Final[Mapping[Kind, str]] = {
    "bytes": "bytes_read",
    "byte_rate": "bytes_per_second",
    "change": "change",
    "count": (
        "attempt branches_read cancelled checkpointed_chunks chunk_attempts chunks "
        "columns_read cores count entry_start entry_stop events executions files hosts jobs "
        "largest_chunk_events max_events median_events memory min_events nodes nthreads "
        "outliers peak_nthreads processes programs recommended_events records requests "
        "run_number runs samples sizes slow_runs smallest_chunk_events step steps task_runs "
        "tasks transfers unfinished usable_cores workers"
    ),
    "outcome": "completeness outcome what",
    "rate": "events_per_core_second events_per_second",
    "ratio": (
        "cgroup_cores compression_ratio core_hours excess_hours max_executing "
        "median_relative_duration r2 relative_duration relative_iqr wasted_hours"
    ),
    "seconds": "seconds_per_event",
    "share": "core_efficiency file_read_ratio max_cpu_cores relative_error utilization",
    "trouble": ("erred failed_attempts failed_chunks failures lost lost_records retried"),
}
_KIND_OF: Final = {name: kind for kind, names in _KINDS.items() for name in names.split()}
#: Kinds by the end of the name.
_UNITS: Final[Mapping[str, Kind]] = {
    "bytes": "bytes", "seconds": "seconds", "share": "share", "t": "since",
}  # fmt: skip

#: Headings that do not follow from the name.
_HEADINGS: Final = {
    "added_t": "joined",
    "between": "range",
    "branch_share": "share of branches",
    "branches_read": "branches",
    "busy_seconds": "first task to last",
    "byte_share": "share of bytes",
    "bytes": "size",
    "bytes_per_second": "read rate per thread",
    "cgroup_cores": "core limit",
    "cgroup_memory_bytes": "memory limit",
    "checkpointed_chunks": "from checkpoints",
    "chunk_attempts": "attempts",
    "columns_read": "columns",
    "command": "command for its report",
    "compress_seconds": "compression",
    "compute_seconds": "compute time",
    "compute_share": "share of compute",
    "compute_start_t": "start",
    "core_efficiency": "computing share",
    "core_hours": "core-hours",
    "core_seconds": "core time",
    "cpu_model": "CPU",
    "cpu_seconds": "CPU",
    "dask_version": "dask",
    "decompress_seconds": "decompression",
    "default_value": "default",
    "deserialize_seconds": "deserialization",
    "disk_read_bytes": "read from disk",
    "disk_write_bytes": "written to disk",
    "entry_start": "first entry",
    "entry_stop": "end entry",
    "erred": "failed",
    "events_per_core_second": "events per core-second",
    "events_per_second": "events per thread",
    "excess_hours": "excess core-hours",
    "facts": "changed at that moment",
    "file_read_ratio": "share of file bytes",
    "filename": "file",
    "first_host": "example",
    "first_job": "example",
    "fixed_error_seconds": "fixed cost ±",
    "fixed_seconds": "fixed cost",
    "id": "finding",
    "idle_share": "idle or other spans",
    "kept_seconds": "computing, kept",
    "largest_chunk_events": "largest chunk (events)",
    "last": "last run",
    "max_chunk_seconds": "longest chunk",
    "max_compute_seconds": "longest",
    "max_cpu_cores": "peak CPU",
    "max_events": "to (events)",
    "max_executing": "executing tasks",
    "max_memory_bytes": "memory",
    "max_memory_delta_bytes": "largest memory change",
    "max_memory_share": "memory of limit",
    "max_seconds": "longest",
    "max_spilled_bytes": "spilled",
    "mean_compute_seconds": "mean",
    "mean_memory_delta_bytes": "mean memory change",
    "median_compute_seconds": "median",
    "median_events": "median chunk size (events)",
    "median_relative_duration": "relative duration",
    "median_seconds": "usual time",
    "median_wall_seconds": "median wall time",
    "memory": "succeeded",
    "memory_peak_bytes": "peak memory",
    "memory_read_bytes": "read from memory",
    "min_events": "shortest run from (events)",
    "noncpu_seconds": "non-CPU",
    "note": "reason",
    "nthreads": "threads",
    "other_busy_seconds": "other busy time",
    "output_bytes": "results",
    "p95_compute_seconds": "p95",
    "p_value": "p-value",
    "path": "span",
    "path_seconds": "time",
    "path_share": "share",
    "peak_nthreads": "threads",
    "process_seconds": "processor",
    "python": "Python",
    "python_version": "Python",
    "qos": "QOS",
    "r2": "r²",
    "read_seconds": "reading",
    "read_share": "share of reading",
    "recommended_events": "recommended chunk size (events)",
    "recorded": "recorded from",
    "recorder_version": "roast",
    "relative_error": "model error",
    "relative_iqr": "relative IQR",
    "removal_reason": "reason for leaving",
    "removed_t": "left",
    "run_number": "run",
    "seconds": "time",
    "seconds_per_event": "cost per event",
    "self_seconds": "self time",
    "serialize_seconds": "serialization",
    "server_id": "server ID",
    "sizes": "distinct sizes",
    "slow_share": "share of slow runs",
    "smallest_chunk_events": "smallest chunk (events)",
    "system": "batch system",
    "t": "time",
    "task_group": "group",
    "task_runs": "attempts",
    "thread_seconds": "thread time",
    "thread_share": "share of thread time",
    "total_seconds": "total time",
    "total_share": "total share",
    "treename": "tree",
    "uncompressed_bytes": "decompressed",
    "wait_seconds": "waiting",
    "wall_seconds": "wall time",
    "wasted_hours": "without kept result",
    "wasted_seconds": "computing, not kept",
    "wasted_share": "without kept result",
    "what": "failure",
}

#: Columns that share a unit in each table.
_GROUPS: Final = {
    "cgroup_memory_bytes": "memory",
    "core_hours": "hours",
    "memory_bytes": "memory",
    "wasted_hours": "hours",
}

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


def columns(
    shown: str,
    headings: Mapping[str, str] = _NONE,
    descriptions: Mapping[str, str] = _NONE,
) -> tuple[Field, ...]:
    """Return the columns of a table.

    Parameters
    ----------
    shown : str
        Their names in order. A table with many columns shows those in parentheses on demand.
        A column with a question mark is omitted if all its values are zero or missing.
    headings, descriptions : mapping, optional
        Headings that columns have only in this table, and descriptions of those that no view
        has.

    Examples
    --------
    >>> [field.title for field in columns("prefix task_runs (disk_seconds?)")]
    ['prefix', 'attempts', 'disk']
    """
    fields = []
    for word in shown.split():
        name = word.strip("()?")
        # Columns of the view span_totals have the headings of the same quantities elsewhere.
        known = name if name in _HEADINGS else name.removeprefix("total_")
        words = re.sub("_(bytes|seconds|t)$", "", known).replace("_", " ")
        fields.append(
            Field(
                name,
                headings.get(name) or _HEADINGS.get(known, words),
                _KIND_OF.get(known) or _UNITS.get(known.rpartition("_")[2], "text"),
                optional="?" in word,
                detail=word.startswith("("),
                help=descriptions.get(name, ""),
                group=_GROUPS.get(name, ""),
            )
        )
    return tuple(fields)
