-- Needs: _options, _processes, _versions
-- Each segment repeats the facts of the first one, so that it can be read alone. Views such as
-- packages and config have the complete lists; the most common facts appear here under their
-- established names.
CREATE VIEW environment AS
WITH facts AS (
    SELECT section, name, value ->> '$' AS value, t, trace_id, rowid AS seq
    FROM raw.environment
    WHERE
        rowid IN (
            SELECT min(rowid) FROM raw.environment GROUP BY trace_id, t, section, name, value
        )
        AND coalesce(section, '') NOT IN (
            'process', 'packages', 'configuration', 'config_sources', 'defaults'
        )
),
first_facts AS (
    SELECT trace_id, role, min(t) AS t, min(seq) AS seq
    FROM _processes
    WHERE role IN ('scheduler', 'client')
    GROUP BY trace_id, role
),
best_known AS (
    SELECT
        role || ' versions' AS section,
        package AS name,
        version AS value,
        first_facts.t,
        trace_id,
        seq
    FROM _versions
    INNER JOIN first_facts USING (trace_id, role)
    WHERE package IN (
        'python', 'dask', 'distributed', 'coffea', 'uproot', 'awkward', 'dask-awkward', 'numpy',
        'pandas', 'pyarrow', 'msgpack', 'tornado', 'cloudpickle', 'roast-trace'
    )
    UNION ALL
    SELECT
        role || ' machine',
        unnest(['host', 'platform', 'cores']),
        unnest([
            process.machine.host, process.machine.platform, process.machine.cores::VARCHAR
        ]),
        t,
        trace_id,
        seq
    FROM _processes
    WHERE role IN ('scheduler', 'client')
    UNION ALL
    SELECT 'dask configuration', name, value, first_facts.t, trace_id, seq
    FROM _options
    INNER JOIN first_facts USING (trace_id, role)
    WHERE
        role = 'scheduler'
        AND name IN (
            'distributed.scheduler.allowed-failures',
            'distributed.scheduler.worker-saturation',
            'distributed.scheduler.work-stealing',
            'distributed.scheduler.worker-ttl',
            'distributed.scheduler.unknown-task-duration',
            'distributed.worker.memory.target',
            'distributed.worker.memory.spill',
            'distributed.worker.memory.pause',
            'distributed.worker.memory.terminate',
            'distributed.worker.profile.enabled',
            'distributed.worker.profile.interval',
            'distributed.worker.profile.cycle',
            'distributed.comm.compression',
            'optimization.fuse.active',
            'dataframe.shuffle.method'
        )
)
SELECT section, name, value, t, trace_id
FROM (
    SELECT * FROM facts
    UNION ALL
    SELECT best_known.*
    FROM best_known
    ANTI JOIN facts USING (trace_id, section, name)
)
ORDER BY trace_id, seq, section, name;

COMMENT ON VIEW environment IS 'Recorded facts about software, machines and configuration. One row per fact; facts repeated in several segments appear once. The views packages, machines and config have the complete lists.';
COMMENT ON COLUMN environment.section IS 'Topic of the fact.';
COMMENT ON COLUMN environment.name IS 'Name of the fact.';
COMMENT ON COLUMN environment.value IS 'Text unchanged; any other value as JSON.';
COMMENT ON COLUMN environment.t IS 'Time of recording, in seconds since the epoch.';
COMMENT ON COLUMN environment.trace_id IS 'ID of the trace.';
