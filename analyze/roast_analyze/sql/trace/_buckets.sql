-- Needs: _trace_range
-- Time buckets of a recording, of a given length in seconds or, if null, of 1, 2 or 5 times a
-- power of ten, chosen so that there are more than 150 and at most 400 buckets. The last one ends with the
-- recording. One row per trace; a recording of zero length has no buckets.
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
            WHEN bucket_seconds::DOUBLE > 0 THEN bucket_seconds::DOUBLE
            WHEN bucket_seconds IS NOT NULL THEN error(
                'a bucket takes more than 0 s, not ' || bucket_seconds
            )
            -- Division makes 5 / 1000 exactly 0.005.
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
