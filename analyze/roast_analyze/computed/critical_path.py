"""Tables ``_critical_path`` and ``_task_slack``: the frames of the views of the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.algorithms.critical_path import ATTEMPTS, DEPENDENCIES, find_path
from roast_analyze.algorithms.path_steps import path_steps

if TYPE_CHECKING:
    import duckdb

#: Chunks that were measured without a task are numbered from here, after all attempts.
_FIRST_CHUNK: Final = 2**62

_ATTEMPTS: Final = """
WITH several AS (SELECT DISTINCT trace_id, key FROM _task_runs WHERE attempt > 1),
previous AS (
    SELECT seq, lag(seq) OVER (PARTITION BY trace_id, key, submission ORDER BY seq) AS previous
    FROM _task_runs
    SEMI JOIN several USING (trace_id, key)
),
wanted AS (
    SELECT DISTINCT trace_id, unnest(change.keys) AS key
    FROM (SELECT trace_id, unnest(changes) AS change FROM raw.wanted_keys)
    WHERE change.action = 'desires'
),
-- The end of an attempt may be missing from a damaged trace.
continued AS (
    SELECT DISTINCT run.seq
    FROM _task_runs AS run
    INNER JOIN raw.transition AS later
        ON run.trace_id = later.trace_id AND run.key = later.key AND run.seq < later.rowid
    WHERE run.outcome = 'unfinished' AND run.end_t IS NULL
),
transferred AS (
    SELECT
        end_seq,
        list_max(list_transform(
            list_filter(ending.startstops, lambda part: part.action = 'transfer'),
            lambda part: part.stop
        )) AS transferred_t
    FROM (SELECT end_seq FROM _task_runs WHERE transfer_seconds > 0) AS run
    INNER JOIN (SELECT rowid AS end_seq, startstops FROM raw.transition) AS ending
        USING (end_seq)
)
SELECT
    run.trace_id,
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
    process.removed_t
FROM _task_runs AS run
ASOF LEFT JOIN _workers AS process
    ON run.trace_id = process.trace_id
    AND run.worker = process.worker
    AND coalesce(run.processing_t, '-infinity'::DOUBLE) >= process.from_t
LEFT JOIN raw.task AS task ON run.submission = task.rowid
LEFT JOIN previous ON run.seq = previous.seq
LEFT JOIN wanted ON run.trace_id = wanted.trace_id AND run.key = wanted.key
LEFT JOIN continued ON run.seq = continued.seq
LEFT JOIN transferred ON run.end_seq = transferred.end_seq
UNION ALL BY NAME
SELECT
    trace_id,
    $first_chunk + rowid AS id,
    outcome,
    false AS is_wanted,
    outcome = 'unfinished' AS is_running,
    coalesce(process, 0) AS process,
    thread,
    start_t AS compute_start_t,
    stop_t AS compute_stop_t,
    end_t
FROM _chunks
WHERE NOT has_task AND start_t IS NOT NULL AND stop_t IS NOT NULL
"""

#: The result that an attempt used is the last one before it was dispatched.
_DEPENDENCIES: Final = """
WITH several AS (SELECT DISTINCT trace_id, key FROM _task_runs WHERE attempt > 1),
results AS (
    SELECT trace_id, key, seq, end_seq, NULL::BIGINT AS next_seq
    FROM _task_runs
    ANTI JOIN several USING (trace_id, key)
    WHERE outcome = 'memory'
    UNION ALL
    SELECT
        trace_id, key, seq, end_seq,
        lead(end_seq) OVER (PARTITION BY trace_id, key ORDER BY end_seq)
    FROM _task_runs
    SEMI JOIN several USING (trace_id, key)
    WHERE outcome = 'memory'
),
needs AS (
    SELECT run.trace_id, run.seq, unnest(list_distinct(task.dependencies)) AS key
    FROM _task_runs AS run
    INNER JOIN raw.task AS task ON run.submission = task.rowid
)
SELECT needs.trace_id, needs.seq AS id, results.seq AS dependency
FROM needs
INNER JOIN results USING (trace_id, key)
WHERE results.end_seq < needs.seq AND coalesce(results.next_seq > needs.seq, true)
"""

_FACTS: Final = """
WITH datasets AS (
    SELECT seq, any_value(dataset) AS dataset FROM _chunks WHERE seq IS NOT NULL GROUP BY seq
),
graphs AS (
    SELECT
        trace_id,
        payload ->> '$.stimulus_id' AS stimulus_id,
        max(try_cast(payload ->> '$.metrics.start_timestamp_seconds' AS DOUBLE)) AS graph_t
    FROM raw.event
    WHERE (payload ->> '$.action') = 'update-graph'
    GROUP BY ALL
)
SELECT
    run.seq AS id,
    run.key,
    run.prefix,
    run.attempt,
    run.worker,
    process.name,
    datasets.dataset,
    run.outcome,
    process.process,
    process.added_t AS joined_t,
    task.t AS submitted_t,
    graphs.graph_t,
    run.processing_t,
    run.end_t
FROM _task_runs AS run
SEMI JOIN (SELECT unnest($ids::BIGINT[]) AS seq) AS path ON run.seq = path.seq
ASOF LEFT JOIN _workers AS process
    ON run.trace_id = process.trace_id
    AND run.worker = process.worker
    AND coalesce(run.processing_t, '-infinity'::DOUBLE) >= process.from_t
LEFT JOIN raw.task AS task ON run.submission = task.rowid
LEFT JOIN graphs ON task.trace_id = graphs.trace_id AND task.stimulus_id = graphs.stimulus_id
LEFT JOIN datasets ON run.seq = datasets.seq
UNION ALL BY NAME
SELECT
    $first_chunk + chunk.rowid AS id,
    chunk.key,
    chunk.attempt,
    chunk.worker,
    process.name,
    chunk.dataset,
    chunk.outcome,
    coalesce(chunk.process, 0) AS process,
    chunk.end_t
FROM _chunks AS chunk
SEMI JOIN (SELECT unnest($ids::BIGINT[]) AS id) AS path ON $first_chunk + chunk.rowid = path.id
LEFT JOIN _workers AS process ON chunk.process = process.process
"""

_PHASES: Final = """
SELECT id, phase.action, phase.start AS start_t, phase.stop AS stop_t
FROM (
    SELECT run.seq AS id, unnest(ending.startstops) AS phase
    FROM (SELECT rowid AS end_seq, startstops FROM raw.transition) AS ending
    INNER JOIN _task_runs AS run USING (end_seq)
    SEMI JOIN (SELECT unnest($ids::BIGINT[]) AS seq) AS path ON run.seq = path.seq
)
WHERE phase.start < phase.stop
UNION ALL
SELECT $first_chunk + chunk.rowid, 'compute', start_t, stop_t
FROM _chunks AS chunk
SEMI JOIN (SELECT unnest($ids::BIGINT[]) AS id) AS path ON $first_chunk + chunk.rowid = path.id
"""

_PAUSES: Final = """
SELECT process.process, pause.start_t, pause.stop_t
FROM pauses AS pause
ASOF INNER JOIN _workers AS process
    ON pause.trace_id = process.trace_id
    AND pause.worker = process.worker
    AND pause.start_t >= process.from_t
"""


def compute(connection: duckdb.DuckDBPyConnection) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the steps of the critical path of each trace, and the slack of all attempts."""
    chunks = {"first_chunk": _FIRST_CHUNK}
    attempts = (
        connection.sql(_ATTEMPTS, params=chunks).pl().partition_by("trace_id", as_dict=True)
    )
    dependencies = connection.sql(_DEPENDENCIES).pl().partition_by("trace_id", as_dict=True)
    pauses = connection.sql(_PAUSES).pl()
    paths, slacks = [], []
    for trace_id, start_t, stop_t in connection.execute(
        "SELECT trace_id, start_t, stop_t FROM _trace_range ORDER BY trace_id"
    ).fetchall():
        of_trace = (trace_id,)
        path, slack = find_path(
            attempts.get(of_trace, pl.DataFrame(schema=ATTEMPTS)),
            dependencies.get(of_trace, pl.DataFrame(schema=DEPENDENCIES)),
            start_t,
            stop_t,
        )
        about = {**chunks, "ids": path["id"].to_list()}
        facts = connection.sql(_FACTS, params=about).pl()
        steps = path_steps(
            path, facts, connection.sql(_PHASES, params=about).pl(), pauses, start_t, stop_t
        )
        named = facts.select("id", "key", "prefix", "attempt", "worker", "name", "dataset")
        paths.append(
            steps.join(named, on="id", how="left", maintain_order="left").with_columns(
                trace_id=pl.lit(trace_id)
            )
        )
        slacks.append(slack)
    return pl.concat(paths).drop("id"), pl.concat(slacks).filter(pl.col("id") < _FIRST_CHUNK)
