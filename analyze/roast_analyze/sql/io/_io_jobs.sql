-- Needs: _workers
-- Jobs of Darshan, and the worker process that each was, if it was one: one with the same
-- process id that was there meanwhile. Process ids are those of a host, and Darshan tells its
-- host only where it traced segments, by another name than Dask's at times: with several
-- workers it is the one on that host, or nobody knows. The name of a log tells the process;
-- without a batch system Darshan numbers the job by it.
CREATE VIEW _io_jobs AS
WITH jobs AS (
    SELECT
        * REPLACE (
            coalesce(
                pid,
                CASE
                    WHEN (value ->> '$.processes')::BIGINT = 1 THEN (value ->> '$.job_id')::BIGINT
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
        coalesce(added.host = jobs.host, false) AS is_there
    FROM jobs
    INNER JOIN raw.worker_added AS added USING (trace_id, pid)
    LEFT JOIN _workers AS workers ON workers.trace_id = added.trace_id AND workers.seq = added.rowid
    -- Darshan counts whole seconds in some versions.
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
            WHEN count(DISTINCT worker) FILTER (is_there) = 1
                THEN any_value(worker) FILTER (is_there)
        END AS worker
    FROM candidates
    GROUP BY source, trace_id
)
SELECT
    jobs.* EXCLUDE (worker),
    matched.worker,
    coalesce(matched.candidate_workers, 0) AS candidate_workers
FROM jobs
LEFT JOIN matched USING (source, trace_id);
