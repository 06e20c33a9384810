-- Needs: nothing
CREATE VIEW events AS
SELECT t, topic, worker, payload, trace_id
FROM raw.event
ORDER BY trace_id, rowid;

COMMENT ON VIEW events IS 'Events logged by scheduler, workers, clients or the user. One row per Dask event and topic.';
COMMENT ON COLUMN events.t IS 'Time of logging, in seconds since the epoch.';
COMMENT ON COLUMN events.topic IS 'Topic of the event.';
COMMENT ON COLUMN events.worker IS 'Address of the worker that the event is about or comes from.';
COMMENT ON COLUMN events.payload IS 'Event message, as JSON.';
COMMENT ON COLUMN events.trace_id IS 'ID of the trace.';
