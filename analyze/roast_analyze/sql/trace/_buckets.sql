-- Needs: _trace_range
-- A recording cut into buckets of time: of so many seconds, or if that is null of 1, 2 or 5
-- times a power of ten, so that there are more than 150 and at most 400. The last one ends
-- with the recording. One row per trace; a recording of one instant has no bucket.
CREATE MACRO _buckets(bucket_seconds) AS TABLE
SELECT
    trace_id,
    start_t,
    extent,
    width,
    CASE
        WHEN extent / width > 1e6 THEN error(
            'a bucket of ' || bucket_seconds || ' s makes more than a million of them'
        )
        ELSE ceil(extent / width)
    END::BIGINT AS buckets
FROM (
    SELECT
        trace_id,
        start_t,
        extent,
        CASE
            WHEN bucket_seconds > 0 THEN bucket_seconds::DOUBLE
            WHEN bucket_seconds IS NOT NULL THEN error(
                'a bucket takes more than 0 s, not ' || bucket_seconds
            )
            -- Dividing, so that 5 / 1000 is just 0.005.
            ELSE CASE
                WHEN extent * per <= 400 THEN 1
                WHEN extent * per <= 800 THEN 2
                WHEN extent * per <= 2000 THEN 5
                ELSE 10
            END / per
        END AS width
    FROM (
        SELECT
            trace_id,
            start_t,
            stop_t - start_t AS extent,
            10.0 ** -floor(log10((stop_t - start_t) / 400)) AS per
        FROM _trace_range
        WHERE stop_t > start_t
    )
);
