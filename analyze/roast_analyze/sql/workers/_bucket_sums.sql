-- Needs: _buckets, _intervals
-- Sum of amount times seconds in each bucket by process, exactly. An interval raises the level at
-- its start and lowers it at its end. Within a bucket the initial level is extended, and each
-- change adds its amount times the rest of the bucket. The cost grows with the number of
-- intervals, not with the number of buckets they cross. Intervals are clipped to the recording;
-- one without an end extends to its end.
CREATE MACRO _bucket_sums(bucket_seconds) AS TABLE
WITH timeline AS (FROM _buckets(bucket_seconds)),
clipped AS (
    SELECT
        interval.trace_id,
        process,
        what,
        amount,
        greatest(least(interval.start_t - timeline.start_t, extent), 0) AS begin_at,
        greatest(least(coalesce(stop_t - timeline.start_t, extent), extent), begin_at) AS end_at,
        width,
        extent,
        buckets
    FROM _intervals AS interval
    INNER JOIN timeline USING (trace_id)
    WHERE amount IS NOT NULL AND begin_at < end_at
),
changes AS (
    SELECT
        trace_id,
        process,
        what,
        bucket,
        sum(change) AS change,
        sum(change * (least((bucket + 1) * width, extent) - change_at)) AS within
    FROM (
        SELECT
            trace_id,
            process,
            what,
            width,
            extent,
            unnest([amount, -amount]) AS change,
            unnest([begin_at, end_at]) AS change_at,
            -- An end at the boundary of two buckets belongs to the first.
            unnest([
                least(floor(begin_at / width), buckets - 1),
                greatest(ceil(end_at / width) - 1, 0)
            ])::BIGINT AS bucket
        FROM clipped
    )
    GROUP BY trace_id, process, what, bucket
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
        -- coalesce instead of the default of lead(), which is lost in a database written by
        -- DuckDB 1.5.
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
    timeline.start_t + held_bucket * width AS t,
    least(width, extent - held_bucket * width) AS seconds,
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
