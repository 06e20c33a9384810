-- Needs: _buckets, _intervals
-- How much of what there was in each bucket: amount times seconds, exactly; by process, or of
-- all together as process 0. A stretch raises the level where it begins and lowers it where it
-- ends; in a bucket the level that it begins with holds on, but for what the changes in the
-- bucket add from their instant to its end. So the work grows with the number of stretches,
-- however many buckets they cross.
--
-- A stretch is cut off where the recording begins and ends; one without an end lasts.
CREATE MACRO _bucket_sums(bucket_seconds, by_process) AS TABLE
WITH timeline AS (FROM _buckets(bucket_seconds)),
stretches AS (
    SELECT
        stretch.trace_id,
        CASE WHEN by_process THEN process ELSE 0 END AS process,
        what,
        amount,
        greatest(least(stretch.start_t - timeline.start_t, extent), 0) AS begin_at,
        greatest(least(coalesce(stop_t - timeline.start_t, extent), extent), begin_at) AS end_at,
        width,
        extent,
        buckets
    FROM _intervals AS stretch
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
            -- An end at the border of two buckets belongs to the first.
            unnest([
                least(floor(begin_at / width), buckets - 1),
                greatest(ceil(end_at / width) - 1, 0)
            ])::BIGINT AS bucket
        FROM stretches
    )
    GROUP BY trace_id, process, what, bucket
),
-- A level lasts from the bucket in which it changed to the next one in which it does.
levels AS (
    SELECT
        trace_id,
        process,
        what,
        bucket,
        within,
        coalesce(sum(change) OVER before, 0) AS level_before,
        coalesce(sum(change) OVER before, 0) + change AS level,
        -- Of lead's own default nothing is left in a database that DuckDB 1.5 wrote.
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
held AS (
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
            WHEN held_bucket = held.bucket THEN level_before * seconds + within
            ELSE level * seconds
        END,
        0
    ) AS amount,
    trace_id
FROM held
INNER JOIN timeline USING (trace_id);
