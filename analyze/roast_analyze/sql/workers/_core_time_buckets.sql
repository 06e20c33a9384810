-- Needs: _buckets, _workers
-- Time buckets of core_time: wider ones for many workers, so that there are at most about 20,000
-- pairs of a bucket and a worker, but at least 50 buckets.
CREATE VIEW _core_time_buckets AS
SELECT *, ceil(extent / width)::BIGINT AS buckets
FROM (
    SELECT
        trace_id,
        start_t,
        extent,
        -- greatest() ignores the null of a trace without workers.
        least(extent, width * 2 ** greatest(0, least(
            ceil(log2(buckets * processes / 20000)),
            floor(log2(buckets / 50))
        ))) AS width
    FROM _buckets(NULL)
    LEFT JOIN (
        SELECT trace_id, count(*) AS processes
        FROM _workers
        GROUP BY trace_id
    ) USING (trace_id)
);
