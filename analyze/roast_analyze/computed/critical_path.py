"""Rows of the table ``_critical_path``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.algorithms.critical_path import PATH, find_path, path_steps
from roast_analyze.computed.waits import waits_of_traces

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

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
    run.stolen_from IS NOT NULL AS is_stolen,
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
    _attempt_id(NULL, chunk.local_id) AS id,
    chunk.key,
    chunk.attempt,
    chunk.worker,
    process.name,
    chunk.dataset,
    chunk.outcome,
    coalesce(chunk.process, 0) AS process,
    chunk.end_t
FROM _chunks AS chunk
SEMI JOIN (SELECT unnest($ids::BIGINT[]) AS id) AS path
    ON _attempt_id(NULL, chunk.local_id) = path.id
LEFT JOIN _workers AS process ON chunk.process = process.process
"""

_PHASES: Final = """
SELECT id, phase.action, phase.start AS start_t, phase.stop AS stop_t
FROM (
    SELECT run.seq AS id, unnest(ending.startstops) AS phase
    FROM _attempt_ends AS ending
    INNER JOIN _task_runs AS run ON ending.seq = run.end_seq
    SEMI JOIN (SELECT unnest($ids::BIGINT[]) AS seq) AS path ON run.seq = path.seq
)
WHERE phase.start < phase.stop
UNION ALL
SELECT _attempt_id(NULL, chunk.local_id), 'compute', start_t, stop_t
FROM _chunks AS chunk
SEMI JOIN (SELECT unnest($ids::BIGINT[]) AS id) AS path
    ON _attempt_id(NULL, chunk.local_id) = path.id
"""

#: Times without any worker process of which at least one is recorded.
_ABSENCES: Final = """
SELECT stop_t AS start_t, next_t AS stop_t
FROM (
    SELECT
        stop_t,
        lead(start_t, 1, $stop_t) OVER (ORDER BY start_t, stop_t) AS next_t,
    FROM (
        SELECT $start_t AS start_t, $start_t AS stop_t WHERE EXISTS (
            FROM _worker_presence WHERE trace_id = $trace_id
        )
        UNION ALL
        SELECT from_t, max(to_t) OVER (ORDER BY from_t)
        FROM _worker_presence
        WHERE trace_id = $trace_id
    )
)
-- Records of the workers that were there before follow the start within milliseconds.
WHERE next_t - stop_t >= 0.1
ORDER BY start_t
"""

_PAUSES: Final = """
SELECT process.process, pause.start_t, pause.stop_t
FROM pauses AS pause
ASOF INNER JOIN _workers AS process
    ON pause.trace_id = process.trace_id
    AND pause.worker = process.worker
    AND pause.start_t >= process.from_t
"""


def query(trace: Session) -> pl.DataFrame:
    """Return the steps of the critical path of each trace."""
    pauses = trace.query_frame(_PAUSES)
    found = []
    # Facts are only queried for the attempts of the path, which are few.
    for trace_id, start_t, stop_t, waits in waits_of_traces(trace):
        path = pl.DataFrame(schema=PATH) if waits is None else find_path(waits)
        about = {"ids": path["id"].to_list()}
        facts, phases = (trace.query_frame(query, about) for query in (_FACTS, _PHASES))
        absences = trace.query_frame(
            _ABSENCES, {"trace_id": trace_id, "start_t": start_t, "stop_t": stop_t}
        )
        steps = path_steps(path, facts, phases, pauses, absences, start_t, stop_t)
        names = facts.select("id", "key", "prefix", "attempt", "worker", "name", "dataset")
        found.append(
            steps.join(names, on="id", how="left", maintain_order="left")
            .with_columns(pl.lit(trace_id).alias("trace_id"))
            .drop("id")
        )
    return pl.concat(found) if found else pl.DataFrame()
