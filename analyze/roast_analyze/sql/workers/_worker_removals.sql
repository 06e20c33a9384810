-- Needs: _task_runs, _workers
-- Workers that left, with the reason, and whether Dask expected it. The event `remove-worker`
-- decides; without it, a broken connection counts as unexpected. Since distributed 2024.4.2, a
-- nanny that kills its worker for memory logs an event. A worker that closes logs the reason: its
-- cluster or a user can have asked for it (is_requested), which Dask does not expect if the worker was not
-- retired before. Workers are not lost (is_lost) if nothing was on them and if they were asked to close, or
-- were not needed any more: a batch system also stops those.
CREATE TABLE _worker_removals AS
WITH removal_events AS (
    SELECT
        trace_id,
        coalesce(worker, payload ->> '$.worker') AS worker,
        payload ->> '$.stimulus_id' AS stimulus_id,
        (payload ->> '$.expected') = 'true' AS expected,
        json_array_length(payload, '$."processing-tasks"') AS processing_tasks,
        json_array_length(payload, '$."lost-computed-tasks"') AS lost_results,
        json_array_length(payload, '$."lost-scattered-tasks"') AS lost_data
    FROM raw.event
    -- Parentheses are needed: in DuckDB 1, = binds more tightly.
    WHERE topic = 'all' AND (payload ->> '$.action') = 'remove-worker'
    QUALIFY row_number() OVER (
        PARTITION BY trace_id, coalesce(worker, payload ->> '$.worker'), payload ->> '$.stimulus_id'
        ORDER BY rowid
    ) = 1
),
worker_events AS (
    SELECT worker.process, worker.memory_limit_bytes, event.topic, event.payload
    FROM raw.event AS event
    ASOF INNER JOIN _workers AS worker
        ON event.trace_id = worker.trace_id
        -- The topic of events that a worker logs about itself is its address.
        AND coalesce(event.worker, event.payload ->> '$.worker', event.topic) = worker.worker
        AND event.t >= worker.from_t
    WHERE event.topic = 'worker-restart-memory'
        OR (event.payload ->> '$.action') = 'closing-worker'
),
kills AS (
    SELECT
        process,
        memory_bytes,
        CASE WHEN coalesce(limit_bytes, memory_bytes) >= 2 ** 30 THEN 'GiB' ELSE 'MiB' END AS unit,
        CASE unit WHEN 'GiB' THEN 2 ** 30 ELSE 2 ** 20 END AS unit_bytes,
        CASE unit WHEN 'GiB' THEN '%.1f' ELSE '%.0f' END AS number,
        concat_ws(
            ' ',
            'killed by its nanny at',
            printf(number, memory_bytes / unit_bytes),
            'of ' || printf(number, limit_bytes / unit_bytes),
            unit
        ) AS kill
    FROM (
        SELECT
            process,
            any_value(memory_limit_bytes) AS limit_bytes,
            max(try_cast(payload ->> '$.rss' AS DOUBLE)) AS memory_bytes
        FROM worker_events
        WHERE topic = 'worker-restart-memory'
        GROUP BY process
    )
),
closings AS (
    SELECT
        process,
        -- Such as client-restart-1700000000.5, signal-15 or nanny-close.
        any_value(regexp_replace(payload ->> '$.reason', '-[0-9]+[.][0-9]+$', '')) AS closing
    FROM worker_events
    WHERE topic <> 'worker-restart-memory'
    GROUP BY process
),
-- Dask closes a worker without heartbeats by asking it, and its nanny can be the first to end it.
expired AS (
    SELECT DISTINCT worker.process
    FROM (
        SELECT trace_id, t, unnest(from_json(payload -> '$.workers', '["VARCHAR"]')) AS worker
        FROM raw.event
        WHERE (payload ->> '$.action') = 'worker-ttl-timed-out'
    ) AS event
    ASOF INNER JOIN _workers AS worker
        ON event.trace_id = worker.trace_id AND event.worker = worker.worker AND event.t >= worker.from_t
)
SELECT
    *,
    NOT expected AND NOT coalesce(
        processing_tasks + lost_results + lost_data = 0
        AND kill IS NULL
        AND (is_requested OR removed_t > last_t),
        false
    ) AS is_lost
FROM (
    SELECT
        workers.process,
        workers.worker,
        workers.removed_t,
        workers.removal_stimulus_id AS stimulus_id,
        kills.kill,
        try_cast(kills.memory_bytes AS BIGINT) AS kill_memory_bytes,
        closings.closing,
        coalesce(
            kills.kill,
            closings.closing,
            CASE WHEN expired.process IS NOT NULL THEN 'check-worker-ttl' END,
            regexp_replace(workers.removal_stimulus_id, '-[0-9.]+$', '')
        ) AS reason,
        coalesce(
            removal_events.expected,
            NOT starts_with(workers.removal_stimulus_id, 'handle-worker-cleanup'),
            true
        ) AS expected,
        removal_events.processing_tasks,
        removal_events.lost_results,
        removal_events.lost_data,
        coalesce(
            closings.closing IN ('nanny-close', 'worker-close', 'adaptive-deleted', 'worker-lifetime-reached'),
            false
        ) AS is_requested,
        last.last_t,
        workers.trace_id
    FROM _workers AS workers
    LEFT JOIN removal_events
        ON workers.trace_id = removal_events.trace_id
        AND workers.worker = removal_events.worker
        AND workers.removal_stimulus_id = removal_events.stimulus_id
    LEFT JOIN kills USING (process)
    LEFT JOIN closings USING (process)
    LEFT JOIN expired USING (process)
    LEFT JOIN (
        SELECT trace_id, max(coalesce(end_t, 'infinity')) AS last_t FROM _task_runs GROUP BY trace_id
    ) AS last ON workers.trace_id = last.trace_id
    WHERE workers.removed_t IS NOT NULL
);
