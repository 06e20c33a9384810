"""Rows of the table ``_chain_waits``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Number of attempts whose dependencies are followed: those with the most idle time.
_MAX_ATTEMPTS: Final = 1000

#: Number of dependencies that are followed from each attempt.
_MAX_STEPS: Final = 8

_ATTEMPTS: Final = """
SELECT seq AS last_seq, seq
FROM _scarce_attempts
WHERE dependencies = 1 AND seq NOT IN (SELECT seq FROM _chained_attempts)
QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY idle_seconds DESC) <= $max_attempts
"""

_BEFORE: Final = """
SELECT DISTINCT link.last_seq, before.seq
FROM (SELECT unnest($last_seqs::BIGINT[]) AS last_seq, unnest($seqs::BIGINT[]) AS seq) AS link
INNER JOIN _task_runs AS run USING (seq)
INNER JOIN raw.task AS task ON run.submission = task.rowid
INNER JOIN _task_runs AS before
    ON run.trace_id = before.trace_id
    AND task.dependencies[1] = before.key
    AND before.outcome = 'memory'
    AND before.seq < run.seq
WHERE len(task.dependencies) = 1
"""

_WAITS: Final = """
WITH waits AS (
    SELECT
        link.last_seq,
        run.seq,
        any_value(run.compute_start_t)
            - least(any_value(run.processing_t), max(held.t)) AS seconds
    FROM (
        SELECT unnest($last_seqs::BIGINT[]) AS last_seq, unnest($seqs::BIGINT[]) AS seq
    ) AS link
    INNER JOIN _task_runs AS run USING (seq)
    LEFT JOIN raw.transition AS held
        ON run.trace_id = held.trace_id
        AND run.key = held.key
        AND held.rowid < run.seq
        AND held.finish IN ('queued', 'no-worker')
    GROUP BY ALL
)
SELECT last_seq AS seq, sum(seconds) AS before_seconds FROM waits GROUP BY last_seq
"""


def query(trace: Session) -> pl.DataFrame:
    """Return the waits before attempts of ``_scarce_attempts``.

    Each step is a separate query: the hash tables of a recursive query would contain all
    attempts, and DuckDB cannot spill them to disk.
    """
    links = trace.query_frame(_ATTEMPTS, {"max_attempts": _MAX_ATTEMPTS})
    found = []
    for _ in range(_MAX_STEPS):
        if links.is_empty():
            break
        links = trace.query_frame(_BEFORE, _parameters(links))
        found.append(links)
    return trace.query_frame(_WAITS, _parameters(pl.concat(found))) if found else pl.DataFrame()


def _parameters(links: pl.DataFrame) -> dict[str, list[int]]:
    return {f"{name}s": links[name].to_list() for name in ("last_seq", "seq")}
