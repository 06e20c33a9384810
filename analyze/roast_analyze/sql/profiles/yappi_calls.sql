-- Needs: _function_calls, _functions
CREATE VIEW yappi_calls AS
SELECT
    caller.label AS caller,
    callee.label AS callee,
    calls.calls,
    calls.actual_calls,
    calls.self_seconds,
    calls.total_seconds,
    caller.log,
    caller.source,
    caller.trace_id
FROM _function_calls AS calls
INNER JOIN _functions AS caller ON calls.caller = caller.function
INNER JOIN _functions AS callee ON calls.callee = callee.function
ORDER BY caller.trace_id, caller.source, calls.total_seconds DESC, caller.label, callee.label, calls.caller, calls.callee;

COMMENT ON VIEW yappi_calls IS 'Calls between functions, measured by Yappi. One row per caller and callee.';
COMMENT ON COLUMN yappi_calls.caller IS 'Calling function, as in yappi_functions.';
COMMENT ON COLUMN yappi_calls.callee IS 'Called function.';
COMMENT ON COLUMN yappi_calls.calls IS 'Number of calls.';
COMMENT ON COLUMN yappi_calls.actual_calls IS 'Number of nonrecursive calls. Null if the file does not contain it.';
COMMENT ON COLUMN yappi_calls.self_seconds IS 'Self time of the callee in these calls. Null if the file does not contain it.';
COMMENT ON COLUMN yappi_calls.total_seconds IS 'Total time of the callee in these calls.';
COMMENT ON COLUMN yappi_calls.log IS 'Name of the imported file.';
COMMENT ON COLUMN yappi_calls.source IS 'ID of the file, as in imports.';
COMMENT ON COLUMN yappi_calls.trace_id IS 'ID of the trace.';
