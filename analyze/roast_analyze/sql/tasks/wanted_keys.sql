-- Needs: _tasks
-- Only changes are recorded: after a client has requested a key, it releases the key, requests it
-- again because Dask has forgotten it in the meantime, or does neither.
CREATE VIEW wanted_keys AS
WITH changes AS (
    SELECT DISTINCT trace_id, client, change.t, change.action, unnest(change.keys) AS key
    FROM (SELECT trace_id, client, unnest(changes) AS change FROM raw.wanted_keys)
),
followed AS (
    SELECT
        *,
        lead(t) OVER (PARTITION BY trace_id, client, key ORDER BY t) AS next_t
    FROM changes
),
forgotten AS (
    SELECT trace_id, key, t FROM raw.transition WHERE finish = 'forgotten'
),
ended AS (
    SELECT trace_id, key, t FROM raw.transition WHERE finish IN ('memory', 'erred')
),
wanted AS (
    SELECT
        followed.trace_id,
        followed.key,
        followed.client,
        followed.t AS start_t,
        -- least() ignores null.
        least(
            followed.next_t,
            forgotten.t,
            -- Dask releases these itself.
            CASE WHEN followed.client = 'fire-and-forget' THEN ended.t END
        ) AS stop_t
    FROM followed
    ASOF LEFT JOIN forgotten
        ON followed.trace_id = forgotten.trace_id
        AND followed.key = forgotten.key
        AND followed.t <= forgotten.t
    ASOF LEFT JOIN ended
        ON followed.trace_id = ended.trace_id
        AND followed.key = ended.key
        AND followed.t <= ended.t
    WHERE followed.action = 'desires'
)
SELECT
    wanted.key,
    task.prefix,
    wanted.client,
    wanted.start_t,
    wanted.stop_t,
    wanted.stop_t - wanted.start_t AS seconds,
    wanted.trace_id
FROM wanted
LEFT JOIN _tasks AS task USING (trace_id, key)
ORDER BY wanted.trace_id, wanted.start_t, wanted.client, wanted.key;

COMMENT ON VIEW wanted_keys IS 'Times during which a client wanted a key: Dask keeps the result of a key that any client wants. One row per client, key and time. Futures are wanted until they are released. A client can also be a queue (queue-…), a variable (variable-…) or a published dataset (published-…) of Dask, or fire-and-forget, whose tasks are wanted until they end.';
COMMENT ON COLUMN wanted_keys.key IS 'Task key.';
COMMENT ON COLUMN wanted_keys.prefix IS 'Key prefix. Null if the task was not recorded, as of scattered data.';
COMMENT ON COLUMN wanted_keys.client IS 'Client.';
COMMENT ON COLUMN wanted_keys.start_t IS 'Time from which it wanted the key, in seconds since the epoch. For keys that were wanted before the recording, its start.';
COMMENT ON COLUMN wanted_keys.stop_t IS 'Time at which it released the key, or at which Dask forgot the task, in seconds since the epoch. Null if the trace ends first.';
COMMENT ON COLUMN wanted_keys.seconds IS 'Duration.';
COMMENT ON COLUMN wanted_keys.trace_id IS 'ID of the trace.';
