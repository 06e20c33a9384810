-- Needs: _buckets, _widening, _workers
-- Time buckets of core_time: wider ones for many workers, so that there are at most about 20,000
-- pairs of a bucket and a worker, but at least 50 buckets; of more than 20,000 workers, about a
-- million pairs, but at least 8 buckets.
CREATE VIEW _core_time_buckets AS
SELECT *, ceil(extent / width)::BIGINT AS buckets
FROM (
    SELECT
        trace_id,
        start_t,
        extent,
        least(
            extent,
            width * _widening(
                buckets, processes, 20000, greatest(8, least(50, 1000000 / processes))
            )
        ) AS width
    FROM _buckets(NULL)
    LEFT JOIN (
        SELECT trace_id, count(*) AS processes
        FROM _workers
        GROUP BY trace_id
    ) USING (trace_id)
);
