-- Needs: _is_run_specific, _options
CREATE VIEW config AS
SELECT
    name,
    value,
    process,
    default_value,
    differs,
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
        is_declared,
        sum(processes)::BIGINT AS processes,
        CASE WHEN role = 'worker' THEN flatten(list(workers)) END AS workers,
        min(coalesce(value, '')) OVER (PARTITION BY trace_id, name)
            <> max(coalesce(value, '')) OVER (PARTITION BY trace_id, name) AS varies
    FROM _options
    GROUP BY trace_id, name, value, role, default_value, differs, is_declared
)
ORDER BY trace_id, name, process, value;

COMMENT ON VIEW config IS 'Dask configuration in effect: one row per option, value and kind of process. What may hold a secret is not in it: <withheld> or <redacted> stands there.';
COMMENT ON COLUMN config.name IS 'Whole name of the option, as dask.config.get takes it.';
COMMENT ON COLUMN config.value IS 'Its value there: text as it is, anything else as JSON; null is None.';
COMMENT ON COLUMN config.process IS 'Where: scheduler, client (the one that recorded) or worker.';
COMMENT ON COLUMN config.default_value IS 'What the installed package that declares the option has for it; null is None, or nobody declares it.';
COMMENT ON COLUMN config.differs IS 'Whether the value is not the default; null if the defaults were not recorded.';
COMMENT ON COLUMN config.varies IS 'Whether processes of this run have different values.';
COMMENT ON COLUMN config.is_declared IS 'Whether a package that is loaded there declares the option; texts of others are withheld unless own_configuration is set.';
COMMENT ON COLUMN config.is_run_specific IS 'Whether it is a value that each run has its own of, whatever anybody wants: an address, a port, a folder for temporary files.';
COMMENT ON COLUMN config.processes IS 'How many processes of that kind have this value.';
COMMENT ON COLUMN config.workers IS 'Addresses of the workers that have this value; null of others.';
COMMENT ON COLUMN config.trace_id IS 'Identity of the recording.';
