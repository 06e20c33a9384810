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

COMMENT ON VIEW packages IS 'Versions of the software that scheduler, client and workers find: one row per package, version and kind of process.';
COMMENT ON COLUMN packages.package IS 'Name of the package as package indexes spell it; python is the interpreter.';
COMMENT ON COLUMN packages.version IS 'Its version there.';
COMMENT ON COLUMN packages.process IS 'Where: scheduler, client (the one that recorded) or worker.';
COMMENT ON COLUMN packages.processes IS 'How many processes of that kind have it in this version.';
COMMENT ON COLUMN packages.workers IS 'Addresses of the workers that have it in this version; null of others.';
COMMENT ON COLUMN packages.differs IS 'Whether processes of this run have it in different versions.';
COMMENT ON COLUMN packages.trace_id IS 'Identity of the recording.';
