-- Needs: nothing
-- The scheduler, the recording client and the workers. Segments repeat these facts; each is one
-- row here. Before schema version 2.3 the recorder derived jobs, CPU model and limits of control
-- groups itself; since then it records the variables and files that they are derived from.
CREATE VIEW _processes AS
WITH recorded AS (
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
                "defaults": "VARCHAR", "config_sources": "VARCHAR",
                "packages": "VARCHAR", "plugins": ["VARCHAR"],
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
                }],
                "variables": "JSON",
                "files": [{"path": "VARCHAR", "text": "VARCHAR"}]
            }'
        ) AS process
    FROM raw.environment
    WHERE section = 'process' AND json_type(value) = 'OBJECT'
    ORDER BY rowid
)
SELECT
    seq,
    trace_id,
    t,
    worker,
    server_id,
    process.role AS role,
    process,
    coalesce(
        process.machine.cpu_model,
        trim(left(regexp_extract(
            [file.text FOR file IN process.files IF file.path = '/proc/cpuinfo'][1],
            ':(.*)$',
            1
        ), 200))
    ) AS cpu_model,
    -- A limit applies to all groups within its group, so the smallest one counts. Version 2 of
    -- control groups has "quota period" or "max period" in one file, version 1 has two files.
    coalesce(
        process.machine.cgroup_cores,
        list_min([
            cpu[1] / nullif(cpu[2], 0)
            FOR cpu IN [
                [
                    try_cast(split_part(trim(file.text), ' ', 1) AS DOUBLE),
                    try_cast(
                        coalesce(
                            [
                                other.text FOR other IN process.files
                                IF file.path LIKE '%/cpu.cfs_quota_us'
                                AND other.path = replace(file.path, 'quota', 'period')
                            ][1],
                            split_part(trim(file.text), ' ', 2)
                        ) AS DOUBLE
                    )
                ]
                FOR file IN process.files
                IF file.path LIKE '%/cpu.max' OR file.path LIKE '%/cpu.cfs_quota_us'
            ]
            IF cpu[1] >= 0
        ])
    ) AS cgroup_cores,
    -- Version 1 has a number near 2^63 where there is no limit.
    coalesce(
        process.machine.cgroup_memory_bytes,
        list_min([
            nbytes
            FOR nbytes IN [
                try_cast(trim(file.text) AS BIGINT)
                FOR file IN process.files
                IF regexp_matches(file.path, '/memory\.(max|limit_in_bytes)$')
            ]
            IF nbytes >= 0 AND nbytes < 1::BIGINT << 60
        ])
    ) AS cgroup_memory_bytes
FROM recorded
WHERE process.role IS NOT NULL;
