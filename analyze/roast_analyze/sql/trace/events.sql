-- Needs: nothing
CREATE VIEW events AS
SELECT t, topic, worker, payload, trace_id
FROM raw.event
ORDER BY trace_id, rowid;

COMMENT ON VIEW events IS 'What the scheduler, a worker, a client or the user logged: one row per Dask event and topic.';
COMMENT ON COLUMN events.t IS 'When it was logged, in seconds since the epoch.';
COMMENT ON COLUMN events.topic IS 'Topic that it was logged under.';
COMMENT ON COLUMN events.worker IS 'Address of the worker that it is about or comes from.';
COMMENT ON COLUMN events.payload IS 'The message, as JSON.';
COMMENT ON COLUMN events.trace_id IS 'Identity of the recording.';
