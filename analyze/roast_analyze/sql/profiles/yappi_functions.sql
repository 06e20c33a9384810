-- Needs: _functions
CREATE VIEW yappi_functions AS
SELECT
    label AS function,
    name,
    filename,
    line_number,
    calls,
    actual_calls,
    self_seconds,
    total_seconds,
    total_seconds / nullif(calls, 0) AS mean_seconds,
    clock,
    thread,
    thread_name,
    tag,
    builtin,
    worker,
    log,
    source,
    trace_id
FROM _functions
ORDER BY trace_id, source, total_seconds DESC NULLS LAST, label, function;

COMMENT ON VIEW yappi_functions IS 'Functions that Yappi measured: one row per file that was imported and function. Their own times add up to all that was measured. Empty unless a file was imported.';
COMMENT ON COLUMN yappi_functions.function IS 'Function, as name (file:line), as in profile_stacks.';
COMMENT ON COLUMN yappi_functions.name IS 'Name of the function.';
COMMENT ON COLUMN yappi_functions.filename IS 'File of its code; of a built-in one its module.';
COMMENT ON COLUMN yappi_functions.line_number IS 'Line at which it begins.';
COMMENT ON COLUMN yappi_functions.calls IS 'Times that it was called (Yappi''s ncall); null if the file does not say it, as callgrind.';
COMMENT ON COLUMN yappi_functions.actual_calls IS 'Times that it was called while it was not running already.';
COMMENT ON COLUMN yappi_functions.self_seconds IS 'Time in it alone (Yappi''s tsub).';
COMMENT ON COLUMN yappi_functions.total_seconds IS 'Time in it and in what it called (Yappi''s ttot); null if the file does not say it.';
COMMENT ON COLUMN yappi_functions.mean_seconds IS 'Time of a call (Yappi''s tavg).';
COMMENT ON COLUMN yappi_functions.clock IS 'Clock of the times: cpu or wall; null if neither the file nor who imported it said it.';
COMMENT ON COLUMN yappi_functions.thread IS 'Number that Yappi gave to the thread, or context, that it was first called in.';
COMMENT ON COLUMN yappi_functions.thread_name IS 'What Yappi calls that context: the class of the thread.';
COMMENT ON COLUMN yappi_functions.tag IS 'Tag that the user gave to the context, such as the number of a coroutine.';
COMMENT ON COLUMN yappi_functions.builtin IS 'Whether it is built in, without Python code.';
COMMENT ON COLUMN yappi_functions.worker IS 'Address of the worker that was measured, if it was named when the file was imported.';
COMMENT ON COLUMN yappi_functions.log IS 'Name of the file that was imported.';
COMMENT ON COLUMN yappi_functions.source IS 'Identity of the file, as in imports.';
COMMENT ON COLUMN yappi_functions.trace_id IS 'Identity of the recording.';
