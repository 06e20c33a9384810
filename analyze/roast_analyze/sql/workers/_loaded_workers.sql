-- Needs: _host_load, _loop_intervals
-- Workers on hosts whose cores were in use.
CREATE VIEW _loaded_workers AS
SELECT loop.trace_id, loop.worker, load.host, load.interval_seconds, true AS is_loaded
FROM _loop_intervals AS loop
INNER JOIN _host_load AS load USING (trace_id, host)
WHERE loop.worker IS NOT NULL AND load.is_loaded;
