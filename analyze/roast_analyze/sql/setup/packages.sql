-- Needs: _versions
CREATE VIEW packages AS
SELECT
    package,
    version,
    role AS process,
    sum(processes)::BIGINT AS processes,
    CASE WHEN role = 'worker' THEN flatten(list(workers)) END AS workers,
    min(version) OVER (PARTITION BY trace_id, package)
        <> max(version) OVER (PARTITION BY trace_id, package) AS differs,
    trace_id
FROM _versions
WHERE package IS NOT NULL
GROUP BY trace_id, role, package, version
ORDER BY trace_id, package, process, version;

COMMENT ON VIEW packages IS 'Package versions of scheduler, client and workers. One row per package, version and kind of process.';
COMMENT ON COLUMN packages.package IS 'Normalized name of the package; python is the interpreter.';
COMMENT ON COLUMN packages.version IS 'Version of the package.';
COMMENT ON COLUMN packages.process IS 'Kind of process: scheduler, client (the recording one) or worker.';
COMMENT ON COLUMN packages.processes IS 'Number of processes of that kind with this version.';
COMMENT ON COLUMN packages.workers IS 'Addresses of workers with this version; null for other processes.';
COMMENT ON COLUMN packages.differs IS 'Whether processes of this run have different versions.';
COMMENT ON COLUMN packages.trace_id IS 'ID of the trace.';
