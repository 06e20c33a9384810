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

COMMENT ON VIEW yappi_calls IS 'What functions called, as Yappi measured it: one row per caller and callee.';
COMMENT ON COLUMN yappi_calls.caller IS 'Function that called, as in yappi_functions.';
COMMENT ON COLUMN yappi_calls.callee IS 'Function that was called.';
COMMENT ON COLUMN yappi_calls.calls IS 'Times that it was called from there.';
COMMENT ON COLUMN yappi_calls.actual_calls IS 'Times of these while it was not running already; null if the file does not say it.';
COMMENT ON COLUMN yappi_calls.self_seconds IS 'Time in the callee alone when called from there; null if the file does not say it.';
COMMENT ON COLUMN yappi_calls.total_seconds IS 'Time in the callee and what it called.';
COMMENT ON COLUMN yappi_calls.log IS 'Name of the file that was imported.';
COMMENT ON COLUMN yappi_calls.source IS 'Identity of the file, as in imports.';
COMMENT ON COLUMN yappi_calls.trace_id IS 'Identity of the recording.';
