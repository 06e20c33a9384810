-- Needs: _workers
-- Status changes reported by a worker, and its departure.
CREATE VIEW pauses AS
WITH changes AS (
    SELECT
        event.rowid AS seq,
        event.trace_id,
        event.worker,
        event.t,
        event.payload ->> '$.status' AS status
    FROM raw.event AS event
    -- Parentheses are needed: in DuckDB 1, = binds more tightly.
    WHERE event.topic = event.worker AND (event.payload ->> '$.action') = 'worker-status-change'
),
followed AS (
    SELECT
        *,
        lead(t) OVER (PARTITION BY trace_id, worker ORDER BY seq) AS next_t
    FROM changes
),
departures AS (
    SELECT trace_id, worker, removed_t
    FROM _workers
    WHERE removed_t IS NOT NULL
)
SELECT
    followed.worker,
    followed.t AS start_t,
    -- least() ignores null.
    least(followed.next_t, departure.removed_t) AS stop_t,
    least(followed.next_t, departure.removed_t) - followed.t AS seconds,
    followed.trace_id
FROM followed
ASOF LEFT JOIN departures AS departure
    ON followed.trace_id = departure.trace_id
    AND followed.worker = departure.worker
    AND followed.t <= departure.removed_t
WHERE followed.status = 'paused'
ORDER BY followed.trace_id, followed.seq;

COMMENT ON VIEW pauses IS 'Pauses of workers because of high memory use. One row per pause. A paused worker starts no tasks, but finishes those that it is computing.';
COMMENT ON COLUMN pauses.worker IS 'Worker address.';
COMMENT ON COLUMN pauses.start_t IS 'Start of the pause on the scheduler, in seconds since the epoch.';
COMMENT ON COLUMN pauses.stop_t IS 'End of the pause, or departure of the worker, in seconds since the epoch. Null if the trace ends first.';
COMMENT ON COLUMN pauses.seconds IS 'Duration.';
COMMENT ON COLUMN pauses.trace_id IS 'Trace identity.';
