"""Attempts and dependencies of a trace, for tables that need the waits of attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roast_analyze.algorithms.waits import find_waits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roast_analyze.algorithms.waits import Waits
    from roast_analyze.open.session import Session

#: Chunks that were measured without a task are numbered from here, after all attempts.
FIRST_CHUNK: Final = 2**62

_ATTEMPTS: Final = """
WITH several AS (
    SELECT DISTINCT key FROM _task_runs WHERE attempt > 1 AND trace_id = $trace_id
),
previous AS (
    SELECT seq, lag(seq) OVER (PARTITION BY key, submission ORDER BY seq) AS previous
    FROM _task_runs
    SEMI JOIN several USING (key)
    WHERE trace_id = $trace_id
),
wanted AS (
    SELECT DISTINCT unnest(change.keys) AS key
    FROM (SELECT unnest(changes) AS change FROM raw.wanted_keys WHERE trace_id = $trace_id)
    WHERE change.action = 'desires'
),
-- The end of an attempt may be missing from a damaged trace.
continued AS (
    SELECT DISTINCT run.seq
    FROM _task_runs AS run
    INNER JOIN raw.transition AS later
        ON run.trace_id = later.trace_id AND run.key = later.key AND run.seq < later.rowid
    WHERE run.outcome = 'unfinished' AND run.end_t IS NULL AND run.trace_id = $trace_id
),
transferred AS (
    SELECT
        end_seq,
        list_max(list_transform(
            list_filter(ending.startstops, lambda part: part.action = 'transfer'),
            lambda part: part.stop
        )) AS transferred_t
    FROM (
        SELECT end_seq FROM _task_runs WHERE transfer_seconds > 0 AND trace_id = $trace_id
    ) AS run
    INNER JOIN _attempt_ends AS ending ON run.end_seq = ending.seq
)
SELECT
    run.seq AS id,
    previous.previous,
    run.outcome,
    wanted.key IS NOT NULL AS is_wanted,
    run.outcome = 'unfinished' AND continued.seq IS NULL AS is_running,
    process.process,
    run.thread,
    task.t AS submitted_t,
    run.processing_t - run.queued_seconds AS waiting_t,
    run.processing_t,
    transferred.transferred_t,
    run.compute_start_t,
    run.compute_stop_t,
    run.end_t,
    worker.removed_t
FROM _task_runs AS run
LEFT JOIN _process_addresses AS process
    ON run.trace_id = process.trace_id
    AND run.worker = process.worker
    AND coalesce(run.processing_t, '-infinity'::DOUBLE) >= process.from_t
    AND coalesce(run.processing_t, '-infinity'::DOUBLE) < process.until_t
LEFT JOIN _workers AS worker ON process.process = worker.process
LEFT JOIN raw.task AS task ON run.submission = task.rowid
LEFT JOIN previous ON run.seq = previous.seq
LEFT JOIN wanted ON run.key = wanted.key
LEFT JOIN continued ON run.seq = continued.seq
LEFT JOIN transferred ON run.end_seq = transferred.end_seq
WHERE run.trace_id = $trace_id
UNION ALL BY NAME
SELECT
    _attempt_id(seq, local_id) AS id,
    outcome,
    false AS is_wanted,
    outcome = 'unfinished' AS is_running,
    coalesce(process, 0) AS process,
    thread,
    start_t AS compute_start_t,
    stop_t AS compute_stop_t,
    end_t
FROM _chunks
WHERE NOT has_task AND start_t IS NOT NULL AND stop_t IS NOT NULL AND trace_id = $trace_id
"""

#: The result that an attempt used is the last one before it was dispatched.
_DEPENDENCIES: Final = """
WITH several AS (
    SELECT DISTINCT key FROM _task_runs WHERE attempt > 1 AND trace_id = $trace_id
),
results AS (
    SELECT key, seq, end_seq, NULL::BIGINT AS next_seq
    FROM _task_runs
    ANTI JOIN several USING (key)
    WHERE outcome = 'memory' AND trace_id = $trace_id
    UNION ALL
    SELECT key, seq, end_seq, lead(end_seq) OVER (PARTITION BY key ORDER BY end_seq)
    FROM _task_runs
    SEMI JOIN several USING (key)
    WHERE outcome = 'memory' AND trace_id = $trace_id
),
needs AS (
    SELECT run.seq, unnest(task.dependencies) AS key
    FROM _task_runs AS run
    INNER JOIN raw.task AS task ON run.submission = task.rowid
    WHERE run.trace_id = $trace_id
)
SELECT needs.seq AS id, results.seq AS dependency
FROM needs
INNER JOIN results USING (key)
WHERE results.end_seq < needs.seq AND coalesce(results.next_seq > needs.seq, true)
"""


def waits_of_traces(trace: Session) -> Iterator[tuple[str, float, float, Waits | None]]:
    """Return identity, start, end and waits of each trace; waits are None without attempts.

    A trace that was cut within its first line has no times, and is left out.
    """
    for trace_id, start_t, stop_t in trace.rows(
        "SELECT trace_id, start_t, stop_t FROM _trace_range "
        "WHERE start_t IS NOT NULL ORDER BY trace_id"
    ):
        attempts = trace.query_frame(_ATTEMPTS, {"trace_id": trace_id})
        waits = None
        if not attempts.is_empty():
            dependencies = trace.query_frame(_DEPENDENCIES, {"trace_id": trace_id})
            waits = find_waits(attempts, dependencies, start_t, stop_t)
        yield trace_id, start_t, stop_t, waits
