-- Needs: _bucket_changes, _buckets, _changes_by, _widening, _workers
-- Sum of amount times seconds in each bucket, by process or of all processes together, exactly.
-- Within a bucket the level before it is extended, and each change adds its amount times the rest
-- of the bucket. Buckets of processes that have the default length are wider if there are more than
-- a million of them.
CREATE MACRO _bucket_sums(bucket_seconds, by_process) AS TABLE
WITH timeline AS (
    SELECT *, width * factor AS wide
    FROM (
        SELECT
            trace_id,
            start_t,
            extent,
            width,
            buckets,
            CASE
                WHEN by_process AND bucket_seconds IS NULL
                    THEN _widening(buckets, processes, 1000000, 8)
                ELSE 1
            END::BIGINT AS factor
        FROM _buckets(bucket_seconds)
        LEFT JOIN (
            SELECT trace_id, count(*) AS processes
            FROM _workers
            GROUP BY trace_id
        ) USING (trace_id)
    )
),
all_changes AS (
    FROM _bucket_changes
    WHERE bucket_seconds IS NULL
    UNION ALL
    FROM _changes_by(bucket_seconds)
    WHERE bucket_seconds IS NOT NULL
),
changes AS (
    SELECT
        trace_id,
        CASE WHEN by_process THEN process END AS process,
        what,
        all_changes.bucket // factor AS bucket,
        sum(change) AS change,
        sum(
            within + change * (
                least((all_changes.bucket // factor + 1) * wide, extent)
                - least((all_changes.bucket + 1) * width, extent)
            )
        ) AS within
    FROM all_changes
    INNER JOIN timeline USING (trace_id)
    GROUP BY ALL
),
-- A level holds from the bucket in which it changed to the next change.
levels AS (
    SELECT
        trace_id,
        process,
        what,
        bucket,
        within,
        coalesce(sum(change) OVER before, 0) AS level_before,
        coalesce(sum(change) OVER before, 0) + change AS level,
        coalesce(lead(bucket) OVER in_order, bucket + 1) AS until_bucket
    FROM changes
    WINDOW
        in_order AS (PARTITION BY trace_id, process, what ORDER BY bucket),
        before AS (
            PARTITION BY trace_id, process, what
            ORDER BY bucket
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
),
filled AS (
    SELECT *, unnest(range(bucket, until_bucket)) AS held_bucket
    FROM levels
)
SELECT
    process,
    what,
    held_bucket AS bucket,
    timeline.start_t + held_bucket * wide AS t,
    least(wide, extent - held_bucket * wide) AS seconds,
    greatest(
        CASE
            WHEN held_bucket = filled.bucket THEN level_before * seconds + within
            ELSE level * seconds
        END,
        0
    ) AS amount,
    trace_id
FROM filled
INNER JOIN timeline USING (trace_id);
