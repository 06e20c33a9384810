-- Needs: _chunks, _placed_attempts, _relative_duration, _usual_durations
-- Slowness of worker processes compared with others at the same work, and its cost. The time of
-- an attempt is divided by the usual one of its prefix at that time. A worker can be slow for one
-- prefix, or for a part of the run, or only now and then: the row of a slow worker describes the
-- part that cost most. This is a table, because queries that join it as a view take several times
-- as long and as much memory.
CREATE TABLE _worker_speeds AS
WITH ratios AS (
    SELECT
        attempt.*,
        ln(attempt.duration / usual.duration) AS log_ratio,
        spread,
        whole_seconds * usual.duration / attempt.duration AS usual_seconds
    FROM _placed_attempts AS attempt
    INNER JOIN _usual_durations AS usual USING (trace_id, prefix, is_chunk, slot)
),
-- Attempts of a process that are tested: all of them, those of each prefix, and those of parts of the run.
loads AS (
    SELECT
        trace_id,
        is_chunk,
        process,
        min(compute_start_t) AS start_t,
        max(compute_start_t) - min(compute_start_t) AS extent,
        sum(whole_seconds) / sum(usual_seconds) AS load
    FROM ratios
    GROUP BY trace_id, is_chunk, process
),
-- If a process is not slower in total, none of its parts costs much.
loaded AS (
    FROM loads
    QUALIFY load > 1.1 * quantile_disc(load, 0.5) OVER (PARTITION BY trace_id, is_chunk)
),
parts AS (
    SELECT
        trace_id, is_chunk, process, 'all' AS part, prefix, whole_seconds, log_ratio, spread, usual_seconds
    FROM ratios
    UNION ALL
    SELECT
        trace_id,
        is_chunk,
        process,
        unnest(list_filter(
            [
                CASE WHEN NOT is_chunk THEN prefix END,
                CASE WHEN elapsed < 0.5 * extent THEN 'first half' END,
                CASE WHEN elapsed >= 0.25 * extent THEN 'from the first quarter' END,
                CASE WHEN elapsed >= 0.5 * extent THEN 'second half' END,
                CASE WHEN elapsed >= 0.75 * extent THEN 'last quarter' END
            ],
            lambda part: part IS NOT NULL
        )) AS part,
        prefix,
        whole_seconds,
        log_ratio,
        spread,
        usual_seconds
    FROM (
        SELECT ratios.*, extent, compute_start_t - start_t AS elapsed
        FROM ratios
        INNER JOIN loaded USING (trace_id, is_chunk, process)
    )
),
compared AS (
    SELECT
        trace_id,
        is_chunk,
        process,
        part,
        count(*) AS tasks,
        sum(whole_seconds) AS seconds,
        max_by(prefix, whole_seconds) AS prefix,
        median(log_ratio) AS log_ratio,
        -- The spread of a few attempts can be too small by chance.
        1.2533 * 1.4826 * greatest(mad(log_ratio), any_value(spread)) / sqrt(count(*)) AS log_error,
        -- Most of its work is slower, not only the middle of it. Short tasks of another prefix
        -- need not be slower: a slow disk or network only affects tasks that read.
        sum(usual_seconds) FILTER (log_ratio > ln(1.2)) / sum(usual_seconds) AS slower_share
    FROM parts
    GROUP BY trace_id, is_chunk, process, part
),
-- Many attempts of a process that take more than twice as long, if hardly any of others do: a cache
-- that is too small, or a disk that hangs. The number is compared with a binomial distribution.
intermittent AS (
    SELECT *, (slow_tasks - tasks * usual_share) / sqrt(tasks * usual_share * (1 - usual_share)) AS deviation
    FROM (
        SELECT
            *,
            greatest(quantile_disc(slow_tasks / tasks, 0.5) OVER same, 0.05) AS usual_share,
            quantile_disc(load, 0.5) OVER same AS usual_load
        FROM (
            SELECT
                trace_id,
                is_chunk,
                process,
                prefix,
                count(*) AS tasks,
                count(*) FILTER (log_ratio > ln(2)) AS slow_tasks,
                sum(whole_seconds) AS seconds,
                sum(whole_seconds) / sum(usual_seconds) AS load
            FROM ratios
            GROUP BY trace_id, is_chunk, process, prefix
        )
        WINDOW same AS (PARTITION BY trace_id, prefix)
    )
),
found AS (
    -- Slower than the median worker, or than the faster of the two middle ones.
    SELECT
        compared.* REPLACE (compared.log_ratio - usual_log_ratio AS log_ratio),
        tasks >= CASE part WHEN 'all' THEN 3 ELSE 6 END
            AND compared.log_ratio - usual_log_ratio > greatest(ln(1.5), 4 * log_error)
            AND slower_share > 0.75 AS is_slow
    FROM compared
    INNER JOIN (
        SELECT trace_id, is_chunk, quantile_disc(log_ratio, 0.5) AS usual_log_ratio
        FROM compared
        WHERE part = 'all'
        GROUP BY trace_id, is_chunk
    ) USING (trace_id, is_chunk)
    WHERE part <> 'all' OR NOT is_chunk
    UNION ALL BY NAME
    SELECT
        trace_id,
        is_chunk,
        process,
        'now and then' AS part,
        tasks,
        seconds,
        prefix,
        ln(load / usual_load) AS log_ratio,
        true AS is_slow
    FROM intermittent
    WHERE slow_tasks >= 4 AND deviation > 5 AND load > 1.5 * usual_load AND usual_share < 0.2
    UNION ALL BY NAME
    SELECT
        speed.trace_id,
        true AS is_chunk,
        speed.process,
        'all' AS part,
        speed.chunks AS tasks,
        sum(chunk.compute_seconds) AS seconds,
        'chunks' AS prefix,
        ln(speed.relative_duration) AS log_ratio,
        speed.is_slow
    FROM _relative_duration AS speed
    INNER JOIN _chunks AS chunk USING (process)
    WHERE speed.process IS NOT NULL
    GROUP BY ALL
)
SELECT trace_id, process, tasks, prefix, seconds, exp(log_ratio) AS relative_duration, is_slow
FROM found
QUALIFY row_number() OVER (
    PARTITION BY trace_id, is_chunk, process
    ORDER BY
        is_slow DESC,
        CASE WHEN is_slow THEN seconds * (1 - exp(-log_ratio)) END DESC,
        part = 'all' DESC,
        part
) = 1;
