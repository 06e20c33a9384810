-- Needs: _workers
-- Statuses that workers reported, each until the next one or the departure of the worker.
CREATE VIEW _worker_statuses AS
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
    followed.seq,
    followed.worker,
    followed.status,
    followed.t AS start_t,
    -- least() ignores null.
    least(followed.next_t, departure.removed_t) AS stop_t,
    followed.trace_id
FROM followed
ASOF LEFT JOIN departures AS departure
    ON followed.trace_id = departure.trace_id
    AND followed.worker = departure.worker
    AND followed.t <= departure.removed_t;
