"""Rows of the table ``_core_time``."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

import polars as pl

from roast_analyze.algorithms.attempt_intervals import KINDS, USES, attempt_intervals
from roast_analyze.algorithms.core_time import CONDITIONS, Recording, core_time
from roast_analyze.algorithms.task_states import STATES, task_states

if TYPE_CHECKING:
    from roast_analyze.open.session import Session

#: Limits the memory of joins and sorts: about two million attempts at a time.
_TRANSITIONS_PER_QUERY: Final = 10_000_000

_RUNS: Final = (
    "SELECT trace_id, start_t, extent, width FROM _core_time_buckets ORDER BY trace_id"
)

_PRESENCE: Final = """
SELECT process, nthreads, from_t - $start_t AS start, least(to_t - $start_t, $extent) AS stop
FROM _worker_presence
WHERE trace_id = $trace_id
"""

_CONDITIONS: Final = """
SELECT
    process,
    list_position($conditions, condition) - 1 AS condition,
    start_t - $start_t AS start,
    stop_t - $start_t AS stop
FROM _worker_conditions
WHERE trace_id = $trace_id
"""

#: Groups of attempts, besides their use.
_WORKS: Final = """
SELECT row_number() OVER (ORDER BY prefix, dataset, span_id) - 1 AS work, *
FROM (
    SELECT prefix, dataset, span_id FROM _assigned_attempts WHERE trace_id = $trace_id
    UNION
    SELECT method, NULL, NULL FROM _actor_calls WHERE trace_id = $trace_id
)
"""

#: Starts of ranges of transitions that end attempts; there is at least one range.
_RANGES: Final = """
SELECT unnest(range(first_seq, last_seq + 1, $size)) AS begin
FROM (
    SELECT coalesce(min(end_seq), 0) AS first_seq, coalesce(max(end_seq), 0) AS last_seq
    FROM _task_runs
    WHERE trace_id = $trace_id
)
"""

_ATTEMPTS: Final = """
WITH works AS (
    SELECT
        unnest($prefixes::VARCHAR[]) AS prefix,
        unnest($datasets::VARCHAR[]) AS dataset,
        unnest($span_ids::VARCHAR[]) AS span_id,
        unnest(range(len($prefixes))) AS work
),
silences AS (
    SELECT process, min(start_t) AS silent_t
    FROM _worker_conditions
    WHERE condition = 'silent'
    GROUP BY process
)
SELECT
    attempts.end_seq,
    attempts.process::INTEGER AS process,
    attempts.sent_process::INTEGER AS sent_process,
    attempts.nthreads,
    (list_position($uses, attempts.use) - 1)::UTINYINT AS use,
    attempts.is_doubtful,
    works.work::INTEGER AS work,
    attempts.processing_t - $start_t AS processing_t,
    attempts.execute_start_t - $start_t AS execute_start_t,
    attempts.end_t - $start_t AS end_t,
    silences.silent_t - $start_t AS silent_t
FROM _assigned_attempts AS attempts
-- Nulls are equal here.
INNER JOIN works
    ON attempts.prefix IS NOT DISTINCT FROM works.prefix
    AND attempts.dataset IS NOT DISTINCT FROM works.dataset
    AND attempts.span_id IS NOT DISTINCT FROM works.span_id
LEFT JOIN silences USING (process)
WHERE attempts.trace_id = $trace_id
    AND (
        attempts.end_seq >= $begin AND attempts.end_seq < $begin + $size
        OR $is_first AND attempts.end_seq IS NULL
    )
"""

_PHASES: Final = """
SELECT
    end_seq,
    CASE action
        WHEN 'compute' THEN 0
        WHEN 'seceded' THEN list_position($uses, 'seceded task') - 1
        ELSE coalesce(list_position($uses, action), list_position($uses, 'disk')) - 1
    END::UTINYINT AS use,
    start_t - $start_t AS start,
    stop_t - $start_t AS stop
FROM _task_phases
WHERE end_seq >= $begin AND end_seq < $begin + $size
"""

#: What was sampled of the methods of actors. Each is a work without a dataset and a span.
_ACTORS: Final = """
SELECT
    process::INTEGER AS process,
    $kind::UTINYINT AS kind,
    (works.work * len($uses) + list_position($uses, 'actor method') - 1)::INTEGER AS label,
    from_t - $start_t AS start,
    until_t - $start_t AS stop
FROM _actor_calls
INNER JOIN (
    SELECT unnest($prefixes::VARCHAR[]) AS prefix, unnest($numbers::BIGINT[]) AS work
) AS works
    ON works.prefix = method
WHERE trace_id = $trace_id AND process IS NOT NULL AND from_t < until_t
"""

#: Changes of the states of tasks in the scheduler's order, after the initial states of tasks
#: that existed when recording began. Hashes of keys are much faster to sort than their texts.
_CHANGES: Final = """
SELECT
    key,
    (coalesce(list_position($states, state), len($states) + 1) - 1)::UTINYINT AS state,
    t
FROM (
    SELECT hash(key || $salt) AS key, state, t - $start_t AS t
    FROM (
        FROM (
            SELECT key, state, t
            FROM raw.task
            WHERE state IS NOT NULL AND trace_id = $trace_id
            ORDER BY rowid DESC
        )
        UNION ALL
        SELECT key, finish, t FROM raw.transition WHERE trace_id = $trace_id
    )
)
WHERE key % $parts::UBIGINT = $part::UBIGINT
"""

_DURATIONS: Final = """
SELECT key, whole_seconds AS seconds
FROM (
    SELECT hash(key || $salt) AS key, whole_seconds FROM _task_runs WHERE trace_id = $trace_id
)
WHERE key % $parts::UBIGINT = $part::UBIGINT
"""

#: States of chunks without a task, like those of tasks.
_CHUNK_STATES: Final = """
SELECT
    (list_position($states, 'processing') - 1)::UTINYINT AS state,
    from_t - $start_t AS start,
    until_t - $start_t AS stop,
    0::DOUBLE AS compute_seconds
FROM _chunk_states
WHERE trace_id = $trace_id
"""

_HASHES_DIFFER: Final = """
SELECT count(DISTINCT hash(key || $salt)) = count(*)
FROM _key_summaries
WHERE trace_id = $trace_id
"""

_TRANSITIONS: Final = "SELECT count(*) FROM raw.transition WHERE trace_id = $trace_id"


def query(trace: Session) -> pl.DataFrame:
    """Return the core time of all traces by process, time bucket and use."""
    found = []
    for trace_id, start_t, extent, width in trace.rows(_RUNS):
        run = {"trace_id": trace_id}
        recording = {**run, "start_t": start_t}
        presence = trace.query_frame(_PRESENCE, {**recording, "extent": extent})
        conditions = trace.query_frame(_CONDITIONS, {**recording, "conditions": CONDITIONS})
        works = trace.query_frame(_WORKS, run)
        spent = core_time(
            Recording(
                seconds=extent,
                bucket_seconds=width,
                presence=presence,
                intervals=_intervals(trace, trace_id, start_t, works),
                conditions=conditions,
                states=_states(trace, trace_id, start_t, extent),
            )
        )
        uses = pl.lit(pl.Series(USES))
        found.append(
            spent.with_columns(
                pl.coalesce("use", uses.gather(pl.col("label") % len(USES))),
                work=pl.col("label") // len(USES),
            )
            .join(works, on="work", how="left", maintain_order="left")
            .with_columns(
                (start_t + pl.col("bucket") * width).alias("t"),
                pl.lit(trace_id).alias("trace_id"),
            )
            .drop("bucket", "label", "work")
        )
    return pl.concat(found) if found else pl.DataFrame()


def _intervals(
    trace: Session, trace_id: str, start_t: float, works: pl.DataFrame
) -> pl.DataFrame:
    """Return the intervals of the attempts and actors of a trace."""
    # Joining attempts with phases takes several times as much memory, so it is done in parts.
    size = {"size": _TRANSITIONS_PER_QUERY}
    names = {
        "prefixes": works["prefix"].to_list(),
        "datasets": works["dataset"].to_list(),
        "span_ids": works["span_id"].to_list(),
    }
    intervals = []
    for number, (begin,) in enumerate(trace.rows(_RANGES, {**size, "trace_id": trace_id})):
        part = {**size, "begin": begin, "start_t": start_t, "uses": USES}
        attempts = {**part, **names, "trace_id": trace_id, "is_first": number == 0}
        intervals.append(
            attempt_intervals(
                trace.query_frame(_ATTEMPTS, attempts), trace.query_frame(_PHASES, part)
            )
        )
    methods = works.filter(pl.col("dataset").is_null() & pl.col("span_id").is_null())
    calls = {
        "trace_id": trace_id,
        "start_t": start_t,
        "uses": USES,
        "kind": KINDS.index("actor"),
        "prefixes": methods["prefix"].to_list(),
        "numbers": methods["work"].to_list(),
    }
    intervals.append(trace.query_frame(_ACTORS, calls))
    return pl.concat(intervals).rechunk()


def _states(trace: Session, trace_id: str, start_t: float, extent: float) -> pl.DataFrame:
    """Return the times of the tasks of a trace, and of chunks without one, before a result."""
    for salt in map(str, count()):
        keys = {"trace_id": trace_id, "salt": salt}
        [(differ,)] = trace.rows(_HASHES_DIFFER, keys)
        if differ:
            break
    # All changes of a key are in the same part.
    [(transitions,)] = trace.rows(_TRANSITIONS, {"trace_id": trace_id})
    parts = 1 + transitions // _TRANSITIONS_PER_QUERY
    chunks = {"trace_id": trace_id, "start_t": start_t, "states": STATES}
    states: list[pl.DataFrame] = [trace.query_frame(_CHUNK_STATES, chunks)]
    for number in range(parts):
        part = {**keys, "parts": parts, "part": number}
        changes = {**part, "start_t": start_t, "states": STATES}
        states.append(
            task_states(
                trace.query_frame(_CHANGES, changes),
                trace.query_frame(_DURATIONS, part),
                extent,
            )
        )
    return pl.concat(states).rechunk()
