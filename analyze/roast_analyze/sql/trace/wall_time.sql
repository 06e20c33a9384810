-- Needs: _wall_time
CREATE VIEW wall_time AS SELECT * FROM _wall_time ORDER BY trace_id, start_t;

COMMENT ON VIEW wall_time IS 'State of the run at any time of the recording. One row per period in one state; the periods of a trace follow each other, and their seconds add up to run.wall_seconds.';
COMMENT ON COLUMN wall_time.start_t IS 'Start, in seconds since the epoch.';
COMMENT ON COLUMN wall_time.stop_t IS 'End, in seconds since the epoch.';
COMMENT ON COLUMN wall_time.seconds IS 'Duration.';
COMMENT ON COLUMN wall_time.state IS 'The first that holds. working: an attempt was assigned to a worker, or an actor computed · no worker: no worker was there, while tasks or the client waited · tasks not assigned: tasks waited, and no attempt was assigned · client makes graphs: the recording client was in functions of Dask other than waiting · client computes: it did its own work · client waits: it waited for Dask, without a task that waited (these three only if its program submitted tasks, or it is not known who did) · no client: no client that submitted tasks was connected, as between two programs · starting: nothing was submitted yet, and the activity of the client is not known · ending: the same after the last task · client not known: the same between them.';
COMMENT ON COLUMN wall_time.trace_id IS 'ID of the trace.';
