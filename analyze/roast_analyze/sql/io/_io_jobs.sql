-- Needs: _workers
-- Darshan jobs, matched to worker processes by process id and lifetime. Process ids are unique
-- on a host only. Darshan records the host only in traced segments (DXT), sometimes under
-- another name than Dask's. With several candidates, the one on that host is chosen, if any.
-- The process id comes from the name of the log; without a batch system it is Darshan's job
-- number.
CREATE VIEW _io_jobs AS
WITH jobs AS (
    SELECT
        * REPLACE (
            coalesce(
                pid,
                CASE
                    WHEN value ->> '$.processes' = '1' THEN try_cast(value ->> '$.job_id' AS BIGINT)
                END
            ) AS pid
        ),
        (
            SELECT any_value(host)
            FROM raw.io_segment AS segment
            WHERE segment.source = job.source AND segment.trace_id = job.trace_id
        ) AS host
    FROM raw.import AS job
    WHERE name = 'darshan'
),
candidates AS (
    SELECT
        jobs.source,
        jobs.trace_id,
        added.worker,
        coalesce(added.host = jobs.host, false) AS same_host
    FROM jobs
    INNER JOIN raw.worker_added AS added USING (trace_id, pid)
    LEFT JOIN _workers AS workers ON workers.trace_id = added.trace_id AND workers.seq = added.rowid
    -- Some versions of Darshan record whole seconds.
    WHERE coalesce(added.t <= jobs.stop_t + 1, true)
        AND coalesce(workers.removed_t >= jobs.start_t - 1, true)
),
matched AS (
    SELECT
        source,
        trace_id,
        count(DISTINCT worker) AS candidate_workers,
        CASE
            WHEN count(DISTINCT worker) = 1 THEN any_value(worker)
            WHEN count(DISTINCT worker) FILTER (same_host) = 1
                THEN any_value(worker) FILTER (same_host)
        END AS worker
    FROM candidates
    GROUP BY source, trace_id
)
SELECT
    jobs.* EXCLUDE (worker),
    matched.worker,
    coalesce(matched.candidate_workers, 0) AS candidate_workers,
    list_filter(
        json_keys(jobs.value -> '$.modules'),
        lambda module: coalesce(
            try_cast(jobs.value -> '$.modules' -> module ->> 'partial' AS BOOLEAN), false
        )
    ) AS partial_modules
FROM jobs
LEFT JOIN matched USING (source, trace_id);
