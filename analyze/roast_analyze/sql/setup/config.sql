-- Needs: _is_run_specific, _options
CREATE VIEW config AS
SELECT
    name,
    value,
    process,
    default_value,
    differs,
    source,
    source_name,
    varies,
    is_declared,
    _is_run_specific(name, value) AS is_run_specific,
    processes,
    workers,
    trace_id
FROM (
    SELECT
        trace_id,
        name,
        value,
        role AS process,
        default_value,
        differs,
        source,
        source_name,
        is_declared,
        sum(processes)::BIGINT AS processes,
        CASE WHEN role = 'worker' THEN flatten(list(workers)) END AS workers,
        min(coalesce(value, '')) OVER (PARTITION BY trace_id, name)
            <> max(coalesce(value, '')) OVER (PARTITION BY trace_id, name) AS varies
    FROM _options
    GROUP BY
        trace_id, name, value, role, default_value, differs, source, source_name, is_declared
)
ORDER BY trace_id, name, process, value, source, source_name;

COMMENT ON VIEW config IS 'Dask configuration in effect. One row per option, value, source and kind of process. Values that may contain a secret are <withheld> or <redacted>.';
COMMENT ON COLUMN config.name IS 'Full name of the option, as for dask.config.get.';
COMMENT ON COLUMN config.value IS 'Value: strings unchanged, all else as JSON; null is None.';
COMMENT ON COLUMN config.process IS 'Kind of process: scheduler, client (the recording one) or worker.';
COMMENT ON COLUMN config.default_value IS 'Default of the package that declares the option. Null is None, or no package declares it.';
COMMENT ON COLUMN config.differs IS 'Whether the value is not the default; null if the defaults were not recorded.';
COMMENT ON COLUMN config.source IS 'What set the value: file, variable, or code (dask.config.set, or Dask itself). Null for a default, and if not recorded.';
COMMENT ON COLUMN config.source_name IS 'Path of the file or name of the environment variable. DASK_INTERNAL_INHERIT_CONFIG has the configuration of the process that started this one.';
COMMENT ON COLUMN config.varies IS 'Whether processes of this run have different values.';
COMMENT ON COLUMN config.is_declared IS 'Whether a loaded package declares the option. Texts of other options are withheld unless own_configuration is set.';
COMMENT ON COLUMN config.is_run_specific IS 'Whether the value naturally differs in each run. Examples are addresses, ports and folders for temporary files.';
COMMENT ON COLUMN config.processes IS 'Number of processes of that kind with this value and source.';
COMMENT ON COLUMN config.workers IS 'Addresses of workers with this value and source; null for other processes.';
COMMENT ON COLUMN config.trace_id IS 'ID of the trace.';
