-- Needs: _processes
CREATE VIEW machines AS
WITH before AS (
    SELECT
        trace_id,
        split_part(section, ' ', 1) AS process,
        max(value ->> '$') FILTER (name = 'host') AS host,
        max(value ->> '$') FILTER (name = 'platform') AS platform,
        max(try_cast(value ->> '$' AS BIGINT)) FILTER (name = 'cores') AS cores
    FROM raw.environment
    WHERE section IN ('scheduler machine', 'client machine')
    GROUP BY trace_id, section
)
SELECT
    host,
    process,
    processes,
    cores,
    usable_cores,
    cgroup_cores,
    memory_bytes,
    cgroup_memory_bytes,
    cpu_model,
    architecture,
    "system",
    kernel,
    platform,
    python,
    open_files_limit,
    workers,
    trace_id
FROM (
    SELECT
        * EXCLUDE (seq, worker),
        count(*) AS processes,
        list(worker ORDER BY seq) FILTER (process = 'worker') AS workers
    FROM (
        SELECT
            trace_id,
            seq,
            worker,
            role AS process,
            process.python AS python,
            process.machine.host AS host,
            process.machine.cores AS cores,
            process.machine.usable_cores AS usable_cores,
            cgroup_cores,
            process.machine.memory_bytes AS memory_bytes,
            cgroup_memory_bytes,
            cpu_model,
            process.machine.architecture AS architecture,
            process.machine."system" AS "system",
            process.machine.kernel AS kernel,
            process.machine.platform AS platform,
            process.machine.open_files_limit AS open_files_limit
        FROM _processes
        WHERE process.machine IS NOT NULL
    )
    GROUP BY ALL
    UNION ALL BY NAME
    SELECT *, 1 AS processes
    FROM before
)
ORDER BY trace_id, process, host;

COMMENT ON VIEW machines IS 'Hosts of scheduler, client and workers, with resource limits. One row per host, kind of process and limits.';
COMMENT ON COLUMN machines.host IS 'Name of the host.';
COMMENT ON COLUMN machines.process IS 'Kind of process: scheduler, client (the recording one) or worker.';
COMMENT ON COLUMN machines.processes IS 'Number of processes of that kind with the same limits.';
COMMENT ON COLUMN machines.cores IS 'Cores of the host.';
COMMENT ON COLUMN machines.usable_cores IS 'Cores that the process may run on.';
COMMENT ON COLUMN machines.cgroup_cores IS 'CPU limit of the control group, in cores; null means no limit.';
COMMENT ON COLUMN machines.memory_bytes IS 'Memory of the host.';
COMMENT ON COLUMN machines.cgroup_memory_bytes IS 'Memory limit of the control group; null means no limit.';
COMMENT ON COLUMN machines.cpu_model IS 'Model of the CPU.';
COMMENT ON COLUMN machines.architecture IS 'Architecture of the CPU.';
COMMENT ON COLUMN machines."system" IS 'Operating system.';
COMMENT ON COLUMN machines.kernel IS 'Release of the kernel.';
COMMENT ON COLUMN machines.platform IS 'Operating system, kernel and C library, as reported by Python.';
COMMENT ON COLUMN machines.python IS 'Version of Python.';
COMMENT ON COLUMN machines.open_files_limit IS 'Maximum number of open files of a process.';
COMMENT ON COLUMN machines.workers IS 'Addresses of the workers; null for other processes.';
COMMENT ON COLUMN machines.trace_id IS 'ID of the trace.';
