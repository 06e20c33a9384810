-- Needs: _critical_path
CREATE VIEW critical_path AS FROM _critical_path ORDER BY trace_id, step;

COMMENT ON VIEW critical_path IS 'What the run waited for, from its start to its end. One row per step; each begins when the one before ends, and their seconds add up to run.wall_seconds. The path is followed backwards from the last result that a client wanted, else of a task without dependents, or from a task that was still computing: before each attempt comes what ended last before it could start. That is a dependency, the previous attempt on the thread, a failed attempt at the task, the loss of its result, or the result that the client had last before it submitted the graph. A final merge that waits for the last chunk therefore follows that chunk.';
COMMENT ON COLUMN critical_path.step IS 'Number within the trace, from 1.';
COMMENT ON COLUMN critical_path.start_t IS 'Start, in seconds since the epoch.';
COMMENT ON COLUMN critical_path.stop_t IS 'End, in seconds since the epoch.';
COMMENT ON COLUMN critical_path.seconds IS 'Duration.';
COMMENT ON COLUMN critical_path.share IS 'seconds / run.wall_seconds, from 0 to 1.';
COMMENT ON COLUMN critical_path.cause IS 'compute, deserialize, disk or transfer (of inputs): the attempt did this · dispatch: it was being sent to its worker, or was delayed there · scheduler: it was ready and not assigned, its graph was processed, or its result was being sent · worker: the worker had not joined yet, or was paused · retry: the whole attempt failed, or raised Reschedule · recompute: the attempt was lost with its worker, or repeated one whose result was lost · client: the client had not submitted the task, or had its results · unknown: nothing was recorded.';
COMMENT ON COLUMN critical_path.key IS 'Key of the task that waited or computed. Null for the client.';
COMMENT ON COLUMN critical_path.prefix IS 'Key prefix.';
COMMENT ON COLUMN critical_path.attempt IS 'Attempt number within the key, from 1.';
COMMENT ON COLUMN critical_path.worker IS 'Address of the worker that ran the attempt or was to run it. Null for the client.';
COMMENT ON COLUMN critical_path.name IS 'Worker name, which a restarted worker keeps.';
COMMENT ON COLUMN critical_path.dataset IS 'Dataset of the chunk, if the task is one.';
COMMENT ON COLUMN critical_path.detail IS 'More about the cause: assignment, graph or result (scheduler) · joined late, paused or no worker (worker) · before the first graph, between graphs, after the last result or nothing was computed (client) · the outcome of an attempt other than memory (compute, retry, recompute) · until it was stolen (dispatch, while it waited on another worker) · result was lost (recompute) · no submission was recorded or until the result was lost (unknown). Null for the other causes.';
COMMENT ON COLUMN critical_path.trace_id IS 'ID of the trace.';
