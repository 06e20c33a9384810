"""Rows of the table ``_slow_workers``, which several rules of findings need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

    from roast_analyze.open.session import Session

_WORKERS: Final = """
WITH measured AS (
    SELECT
        speed.*,
        coalesce(worker.name, worker.worker) AS name,
        worker.worker,
        worker.host,
        presence.nthreads
    FROM _worker_speeds AS speed
    INNER JOIN _workers AS worker USING (process)
    INNER JOIN _worker_presence AS presence USING (process)
),
hosts AS (
    SELECT
        trace_id,
        host,
        -- A process can be compared by its chunks and by other tasks.
        count(DISTINCT process) FILTER (is_slow)
            >= greatest(2, 0.75 * count(DISTINCT process)) AS is_slow
    FROM measured
    GROUP BY trace_id, host
)
SELECT
    measured.* EXCLUDE (is_slow),
    coalesce(hosts.is_slow, false) AND EXISTS (
        FROM hosts AS other
        WHERE other.trace_id = measured.trace_id
            AND other.host <> measured.host
            AND NOT other.is_slow
    ) AS is_of_slow_host
FROM measured
LEFT JOIN hosts USING (trace_id, host)  -- a host can be unknown
WHERE measured.is_slow
"""


def query(trace: Session) -> pl.DataFrame:
    """Return the worker processes that are slower than others at the same work."""
    rows: pl.DataFrame = trace.sql(_WORKERS).pl()
    return rows
