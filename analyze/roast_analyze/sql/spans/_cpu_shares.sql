-- Needs: _activity_deltas
-- CPU time of task threads relative to their compute time, from Dask's metrics of spans.
CREATE VIEW _cpu_shares AS
SELECT
    trace_id,
    sum(delta) FILTER (activity = 'thread-cpu') / nullif(sum(delta), 0) AS cpu_share
FROM _activity_deltas
WHERE unit = 'seconds' AND context = 'execute' AND activity IN ('thread-cpu', 'thread-noncpu')
GROUP BY trace_id;
