-- Needs: nothing
CREATE VIEW client_activity AS
SELECT
    client,
    start_t,
    stop_t,
    stop_t - start_t AS seconds,
    activity,
    name AS "function",
    filename,
    measured.cpu_seconds,
    trace_id
FROM raw.client_activity
ORDER BY trace_id, start_t, rowid;

COMMENT ON VIEW client_activity IS 'Activity of the program of the recording client, sampled every 0.1 s. One row per period of at most 10 s in one function. Between rows no code of the program ran, as in a notebook that waits for its user. Empty for asynchronous clients and before trace format 2.4.';
COMMENT ON COLUMN client_activity.client IS 'Client.';
COMMENT ON COLUMN client_activity.start_t IS 'Start, in seconds since the epoch.';
COMMENT ON COLUMN client_activity.stop_t IS 'End, in seconds since the epoch.';
COMMENT ON COLUMN client_activity.seconds IS 'Duration.';
COMMENT ON COLUMN client_activity.activity IS 'wait: for Dask · dask: other work of Dask that the program called, such as making graphs · own: everything else.';
COMMENT ON COLUMN client_activity."function" IS 'Innermost function of the program, which may have called installed packages.';
COMMENT ON COLUMN client_activity.filename IS 'File of the function.';
COMMENT ON COLUMN client_activity.cpu_seconds IS 'CPU time of the main thread. Much less than seconds for own work means that it waited, as for files.';
COMMENT ON COLUMN client_activity.trace_id IS 'ID of the trace.';
