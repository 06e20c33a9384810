-- Needs: _core_time, _task_runs, _trace_range
-- Prefixes of tasks that a client cancelled: with client.cancel, or since the program dropped their futures and no other
-- task needs them. What is dropped after a task has failed, or within a second of the end of the recording or of a
-- client, follows from that, and is not counted. With the core time of cancelled attempts, all of it and that after the
-- first was cancelled, and the numbers of tasks of the prefix, and of cancelled ones, that gave results.
CREATE VIEW _cancelled_prefixes AS
WITH faults AS (
    SELECT trace_id, min(t) AS t FROM raw.transition WHERE finish = 'erred' GROUP BY trace_id
),
ends AS (
    SELECT trace_id, max(stop_t) AS stop_t FROM _trace_range GROUP BY trace_id
    UNION ALL
    SELECT trace_id, t FROM raw.client_removed WHERE NOT starts_with(coalesce(client, ''), 'Client-worker-')
),
dropped AS (
    SELECT
        transition.trace_id,
        transition.key,
        starts_with(transition.stimulus_id, 'cancel-key') AS is_asked,
        min(transition.t) AS t
    FROM raw.transition AS transition
    LEFT JOIN faults USING (trace_id)
    WHERE transition."start" IN ('processing', 'waiting', 'queued', 'no-worker')
        AND transition.finish IN ('released', 'forgotten')
        AND regexp_matches(transition.stimulus_id, '^(client-releases-keys|cancel-key)-[0-9]')
        AND coalesce(transition.t < faults.t, true)
        AND NOT EXISTS (
            FROM ends
            WHERE ends.trace_id = transition.trace_id
                AND transition.t BETWEEN ends.stop_t - 1 AND ends.stop_t
        )
    GROUP BY ALL
),
prefixes_of AS (
    SELECT
        dropped.trace_id,
        is_asked,
        keys.prefix,
        count(*) AS cancelled_keys,
        min(dropped.t) AS t,
        count(*) FILTER (is_done) AS done
    FROM dropped
    INNER JOIN (
        SELECT trace_id, key, any_value(prefix) AS prefix FROM raw.task GROUP BY trace_id, key
    ) AS keys USING (trace_id, key)
    LEFT JOIN (
        SELECT trace_id, key, true AS is_done FROM _task_runs WHERE outcome = 'memory' GROUP BY trace_id, key
    ) AS result USING (trace_id, key)
    GROUP BY dropped.trace_id, is_asked, keys.prefix
),
spent AS (
    SELECT
        prefix_of.trace_id,
        prefix_of.is_asked,
        prefix_of.prefix,
        sum(seconds) AS seconds,
        sum(seconds) FILTER (core_time.t >= prefix_of.t) AS seconds_after
    FROM prefixes_of AS prefix_of
    INNER JOIN (FROM _core_time WHERE use = 'cancelled attempt') AS core_time
        ON prefix_of.trace_id = core_time.trace_id AND prefix_of.prefix = core_time.prefix
    GROUP BY ALL
),
results AS (
    SELECT trace_id, prefix, count(DISTINCT key) AS kept_keys
    FROM _task_runs
    WHERE outcome = 'memory'
    GROUP BY trace_id, prefix
)
SELECT
    trace_id,
    is_asked,
    prefix,
    cancelled_keys,
    done AS repeated_keys,
    coalesce(kept_keys, 0) AS kept_keys,
    seconds,
    seconds_after
FROM prefixes_of
LEFT JOIN spent USING (trace_id, is_asked, prefix)
LEFT JOIN results USING (trace_id, prefix);
