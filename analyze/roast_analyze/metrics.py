"""Metrics of a run: a few numbers that programs can rely on.

Their names, units and meanings stay the same as long as :data:`VERSION` does; a later version
may add some. A metric that was not measured is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from roast_analyze.errors import NotATrace

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

VERSION: Final = 1

#: Meaning of each metric. Those without a second text are columns of the view ``run``.
METRICS: Final[dict[str, tuple[str, str | None]]] = {
    "wall_seconds": ("duration of the recording", None),
    "busy_seconds": ("time from the first dispatch of a task to the last end", None),
    "core_seconds": ("available thread time", None),
    "compute_seconds": ("compute time of all attempts", None),
    "wasted_seconds": (
        "compute time of attempts whose result was not kept",
        "compute_seconds - coalesce(kept_seconds, 0)",
    ),
    "overhead_seconds": (
        "thread time in dispatch, deserialization, spilling and waiting for the scheduler",
        "uses.overhead_seconds",
    ),
    "idle_seconds": ("thread time without an assigned task", "uses.idle_seconds"),
    "transfer_seconds": ("time to fetch inputs from other workers", None),
    "workers": ("worker processes", None),
    "peak_nthreads": ("maximum number of threads at a time", None),
    "tasks": ("keys submitted", None),
    "task_runs": ("attempts at tasks", None),
    "failures": ("failed, lost or skipped attempts, skipped files and lost workers", None),
    "chunks": ("chunks processed", None),
    "events": ("events in these chunks", None),
    "events_per_second": ("rate of the whole cluster while chunks were processed", None),
    "bytes_read": ("bytes read by all attempts at chunks", None),
    "output_bytes": ("size of all results", None),
    "transfer_bytes": (
        "size of results moved between workers; null unless recorded with transfers=True",
        "(SELECT sum(bytes) FROM transfers)",
    ),
    "spilled_bytes": (
        "bytes written to disk by workers: spilled results and data of shuffles",
        "(SELECT sum(disk_write_bytes) FROM activities)",
    ),
    "peak_memory_bytes": ("peak memory of all workers together", None),
    "peak_worker_memory_bytes": ("peak memory of a single worker", None),
    "lost_records": ("records known to be missing from the trace", None),
}

#: `core_time` is computed once for all of its uses.
_QUERY: Final = f"""
WITH uses AS (
    SELECT
        sum(seconds) FILTER (
            use IN ('dispatch', 'scheduler', 'deserialize', 'disk')
        ) AS overhead_seconds,
        sum(seconds) FILTER (category = 'idle') AS idle_seconds
    FROM core_time
)
SELECT
    (SELECT any_value(label) FROM trace_info) AS label,
    run.trace_id,
    run.start_t,
    {", ".join(f"{sql or f'run.{name}'} AS {name}" for name, (_, sql) in METRICS.items())}
FROM run, uses
"""  # noqa: S608 - fixed texts


def read_metrics(trace: Session) -> dict[str, Any]:
    """Return the version, the identity of a trace, and its metrics by name."""
    relation = trace.sql(_QUERY)
    rows = relation.fetchall()
    # Metrics of several runs would look like those of one.
    if len(rows) != 1:
        raise NotATrace(f"{str(trace.path)!r} contains {len(rows)} traces: name one of them")
    return {"metrics_version": VERSION, **dict(zip(relation.columns, rows[0], strict=True))}
