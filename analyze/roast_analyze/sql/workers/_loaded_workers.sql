-- Needs: _host_load, _process_hosts
-- Workers on hosts whose cores were in use.
CREATE VIEW _loaded_workers AS
SELECT trace_id, worker, load.host, load.reason, true AS is_loaded
FROM _process_hosts
INNER JOIN _host_load AS load USING (trace_id, host)
WHERE worker IS NOT NULL AND load.is_loaded;
