-- Needs: _buckets, _intervals
-- Changes of amounts in each bucket by process, for buckets of a given length; null is the default
-- length. An interval raises the level at its start and lowers it at its end; `within` is the change
-- times the rest of the bucket. Intervals are clipped to the recording; one without an end extends
-- to its end. There are at most two rows per interval, however many buckets it crosses.
CREATE MACRO _changes_by(bucket_seconds) AS TABLE
WITH clipped AS (
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
    INNER JOIN _buckets(bucket_seconds) AS timeline USING (trace_id)
    WHERE amount IS NOT NULL AND begin_at < end_at
)
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
GROUP BY trace_id, process, what, bucket;
