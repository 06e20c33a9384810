-- Needs: _functions
-- Calls between functions: one row per caller and callee. A call is recursive if the callee was
-- already running, which Yappi reports as no actual calls.
CREATE VIEW _function_calls AS
SELECT
    caller.function AS caller,
    callee.function AS callee,
    try_cast(sum(edge.calls) AS BIGINT) AS calls,
    try_cast(sum(edge.actual_calls) AS BIGINT) AS actual_calls,
    sum(edge.self_seconds) AS self_seconds,
    sum(edge.total_seconds) AS total_seconds,
    caller.function = callee.function OR coalesce(sum(edge.actual_calls) = 0, false)
        AS is_recursive,
    caller.trace_id
FROM (SELECT function, source, trace_id, unnest(callees) AS edge FROM _functions) AS caller
INNER JOIN _functions AS callee
    ON callee.trace_id = caller.trace_id
    AND callee.source = caller.source
    AND callee."index" = caller.edge."index"
GROUP BY caller.function, callee.function, caller.trace_id;
