"""Rows of the table ``_core_time``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.algorithms.core_time import Recording, core_time

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

_RUNS: Final = (
    "SELECT trace_id, start_t, extent, width FROM _core_time_buckets ORDER BY trace_id"
)

#: What the label of an interval stands for.
_LABEL: Final = ("use", "prefix", "dataset", "span_id")

_PRESENCE: Final = """
SELECT process, nthreads, from_t - $start_t AS start, least(to_t - $start_t, $extent) AS stop
FROM _worker_presence
WHERE trace_id = $trace_id
"""

_INTERVALS: Final = """
SELECT
    process,
    kind,
    use,
    prefix,
    dataset,
    span_id,
    start_t - $start_t AS start,
    stop_t - $start_t AS stop
FROM _attempt_intervals
WHERE trace_id = $trace_id
"""

_CONDITIONS: Final = """
SELECT process, condition, start_t - $start_t AS start, stop_t - $start_t AS stop
FROM _worker_conditions
WHERE trace_id = $trace_id
"""

_STATES: Final = """
SELECT
    states.state,
    states.from_t - $start_t AS start,
    coalesce(states.until_t - $start_t, $extent) AS stop,
    durations.seconds AS compute_seconds
FROM _task_states AS states
LEFT JOIN (
    SELECT key, max(whole_seconds) AS seconds
    FROM _task_runs
    WHERE trace_id = $trace_id
    GROUP BY key
) AS durations USING (key)
WHERE states.trace_id = $trace_id
"""


_WORKERS: Final = "SELECT process, worker, name, server_id FROM _workers"


def query(trace: Session) -> pl.DataFrame:
    """Return the core time of all traces by process, time bucket and use."""
    workers = trace.sql(_WORKERS).pl()
    found = []
    for trace_id, start_t, extent, width in trace.sql(_RUNS).fetchall():
        run = {"trace_id": trace_id, "start_t": start_t}

        def frame(query: str, **more: object) -> pl.DataFrame:
            rows: pl.DataFrame = trace.sql(query, {**run, **more}).pl()  # noqa: B023 - used at once
            return rows

        intervals = frame(_INTERVALS)
        labels = (
            intervals.select(_LABEL)
            .unique(maintain_order=True)
            .select(pl.int_range(pl.len()).alias("label"), *_LABEL)
        )
        spent = core_time(
            Recording(
                seconds=extent,
                bucket_seconds=width,
                presence=frame(_PRESENCE, extent=extent),
                intervals=intervals.join(labels, on=_LABEL, nulls_equal=True),
                conditions=frame(_CONDITIONS),
                states=frame(_STATES, extent=extent),
            )
        )
        found.append(
            # By numbers, which are faster to sort by than texts.
            spent.sort("bucket", "process", "label", "use")
            .join(labels, on="label", how="left", maintain_order="left")
            .join(workers, on="process", maintain_order="left")
            .with_columns(
                (start_t + pl.col("bucket") * width).alias("t"),
                pl.coalesce("use", "use_right"),
                pl.lit(trace_id).alias("trace_id"),
            )
            .drop("bucket", "label", "use_right")
        )
    return pl.concat(found) if found else pl.DataFrame()
