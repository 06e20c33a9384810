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
    CASE
        -- CO_COROUTINE, CO_ITERABLE_COROUTINE and CO_ASYNC_GENERATOR of Python's inspect
        WHEN code_flags IS NOT NULL THEN code_flags & (128 | 256 | 512) <> 0
        WHEN builtin THEN false
    END AS is_coroutine,
    worker,
    log,
    source,
    trace_id
FROM _functions
ORDER BY trace_id, source, total_seconds DESC NULLS LAST, label, function;

COMMENT ON VIEW yappi_functions IS 'Functions measured by Yappi. One row per imported file and function. Self times add up to the measured time. Empty unless a file was imported.';
COMMENT ON COLUMN yappi_functions.function IS 'Function as name (file:line), as in profile_stacks.';
COMMENT ON COLUMN yappi_functions.name IS 'Function name.';
COMMENT ON COLUMN yappi_functions.filename IS 'Source file. For a built-in function, its module.';
COMMENT ON COLUMN yappi_functions.line_number IS 'Line at which the function is defined.';
COMMENT ON COLUMN yappi_functions.calls IS 'Number of calls (Yappi''s ncall). Null if the file does not contain it, as with callgrind.';
COMMENT ON COLUMN yappi_functions.actual_calls IS 'Number of nonrecursive calls.';
COMMENT ON COLUMN yappi_functions.self_seconds IS 'Self time (Yappi''s tsub).';
COMMENT ON COLUMN yappi_functions.total_seconds IS 'Total time (Yappi''s ttot). Null if the file does not contain it.';
COMMENT ON COLUMN yappi_functions.mean_seconds IS 'Mean time of a call (Yappi''s tavg).';
COMMENT ON COLUMN yappi_functions.clock IS 'Clock type: cpu or wall. Null if unknown.';
COMMENT ON COLUMN yappi_functions.thread IS 'Yappi''s number of the thread, or context, of the first call.';
COMMENT ON COLUMN yappi_functions.thread_name IS 'Yappi''s name of that context: the class of the thread.';
COMMENT ON COLUMN yappi_functions.tag IS 'User-defined tag of the context, such as the number of a coroutine.';
COMMENT ON COLUMN yappi_functions.builtin IS 'True if the function is built in, without Python code.';
COMMENT ON COLUMN yappi_functions.is_coroutine IS 'Whether the function is a coroutine or an asynchronous generator: async def or types.coroutine. Null unless known: Yappi does not save it, except that a built-in function has no Python code. A script can add it to a ystat file (docs: how-to/yappi).';
COMMENT ON COLUMN yappi_functions.worker IS 'Worker address, if given when the file was imported.';
COMMENT ON COLUMN yappi_functions.log IS 'Name of the imported file.';
COMMENT ON COLUMN yappi_functions.source IS 'ID of the file, as in imports.';
COMMENT ON COLUMN yappi_functions.trace_id IS 'ID of the trace.';
