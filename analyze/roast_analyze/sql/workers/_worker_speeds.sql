-- Needs: _chunks, _relative_duration, _task_runs, _workers
-- How much slower than others a worker process computed the same work, and what that cost. The
-- time of an attempt is divided by the median of attempts of its prefix that began about then:
-- work often changes over a run, and workers come and go. Chunks are compared by
-- _relative_duration, which accounts for events and files.
CREATE VIEW _worker_speeds AS
WITH attempts AS (
    SELECT
        run.trace_id,
        run.prefix,
        process.process,
        run.whole_seconds,
        row_number() OVER (
            PARTITION BY run.trace_id, run.prefix ORDER BY run.compute_start_t
        ) // 48 AS slot
    FROM _task_runs AS run
    ASOF INNER JOIN _workers AS process
        ON run.trace_id = process.trace_id
        AND run.worker = process.worker
        AND run.processing_t >= process.from_t
    WHERE run.outcome = 'memory' AND run.whole_seconds > 0 AND run.role IS DISTINCT FROM 'chunk'
),
usual AS (
    SELECT trace_id, prefix, slot, median(whole_seconds) AS usual_seconds
    FROM attempts
    GROUP BY trace_id, prefix, slot
    HAVING count(*) >= 8 AND count(DISTINCT process) > 1
),
ratios AS (
    SELECT attempts.*, ln(whole_seconds / usual_seconds) AS log_ratio
    FROM attempts
    INNER JOIN usual USING (trace_id, prefix, slot)
),
compared AS (
    SELECT
        trace_id,
        process,
        count(*) AS tasks,
        sum(whole_seconds) AS seconds,
        max_by(prefix, whole_seconds) AS prefix,
        median(log_ratio) AS log_ratio,
        1.2533 * 1.4826 * mad(log_ratio) / sqrt(count(*)) AS log_error,
        -- Most of its attempts are slower, not only the middle of them.
        quantile_cont(log_ratio, 0.25) AS low_log_ratio
    FROM ratios
    GROUP BY trace_id, process
),
-- Slower than the median worker; of an even number the faster one.
relative AS (
    SELECT
        * REPLACE (log_ratio - quantile_disc(log_ratio, 0.5) OVER of_trace AS log_ratio)
    FROM compared
    WINDOW of_trace AS (PARTITION BY trace_id)
),
of_chunks AS (
    SELECT
        speed.trace_id,
        speed.process,
        speed.chunks,
        sum(chunk.compute_seconds) AS seconds,
        speed.relative_duration,
        speed.is_slow
    FROM _relative_duration AS speed
    INNER JOIN _chunks AS chunk USING (process)
    WHERE speed.process IS NOT NULL
    GROUP BY ALL
)
SELECT
    trace_id,
    process,
    tasks,
    prefix,
    seconds,
    exp(log_ratio) AS relative_duration,
    tasks >= 5 AND log_ratio > greatest(ln(1.5), 4 * log_error) AND low_log_ratio > ln(1.2)
        AS is_slow
FROM relative
UNION ALL
SELECT trace_id, process, chunks, 'chunks', seconds, relative_duration, is_slow
FROM of_chunks;
