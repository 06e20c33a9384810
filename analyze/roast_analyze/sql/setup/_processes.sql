-- Needs: nothing
-- The scheduler, the client that records, and the workers, as they told of themselves. What
-- several segments repeat is one; a worker that was recorded before tells only its versions.
CREATE VIEW _processes AS
WITH told AS (
    SELECT DISTINCT ON (trace_id, name, server_id)
        rowid AS seq,
        trace_id,
        t,
        worker,
        server_id,
        json_transform(
            value,
            '{
                "role": "VARCHAR", "pid": "BIGINT", "python": "VARCHAR",
                "implementation": "VARCHAR", "configuration": "VARCHAR",
                "defaults": "VARCHAR", "packages": "VARCHAR", "plugins": ["VARCHAR"],
                "machine": {
                    "host": "VARCHAR", "system": "VARCHAR", "platform": "VARCHAR",
                    "kernel": "VARCHAR", "architecture": "VARCHAR", "cpu_model": "VARCHAR",
                    "cores": "BIGINT", "usable_cores": "BIGINT", "cgroup_cores": "DOUBLE",
                    "memory_bytes": "BIGINT", "cgroup_memory_bytes": "BIGINT",
                    "open_files_limit": "BIGINT"
                },
                "jobs": [{
                    "system": "VARCHAR", "job_id": "VARCHAR", "array_id": "VARCHAR",
                    "array_index": "VARCHAR", "name": "VARCHAR", "queue": "VARCHAR",
                    "cluster": "VARCHAR", "namespace": "VARCHAR", "node": "VARCHAR",
                    "slot": "VARCHAR", "nodes": "BIGINT", "cores": "BIGINT",
                    "memory_bytes": "BIGINT", "start_t": "DOUBLE", "end_t": "DOUBLE"
                }]
            }'
        ) AS process
    FROM raw.environment
    WHERE section = 'process' AND json_type(value) = 'OBJECT'
    ORDER BY rowid
)
SELECT seq, trace_id, t, worker, server_id, process.role AS role, process
FROM told
WHERE process.role IS NOT NULL;
