-- Needs: _function_calls, _functions
-- Stacks estimated from caller-callee pairs. The self time of a function is divided among its
-- callers as measured by Yappi, and further up in proportion to total time, as in gprof. Stacks
-- below 1/2000 of the total time and recursive calls are not followed: the rest of a function's
-- self time is shown under "(unknown callers)", so that the sum equals the total self
-- time up to rounding.
CREATE VIEW _function_stacks AS
WITH RECURSIVE functions AS MATERIALIZED (
    SELECT
        *,
        coalesce(self_seconds, 0) AS own_seconds,
        sum(coalesce(self_seconds, 0)) OVER (PARTITION BY trace_id, source) AS whole_seconds
    FROM _functions
),
known_calls AS (
    -- callgrind files have no self time per caller, and mark only direct recursion.
    SELECT
        caller,
        callee,
        is_recursive,
        greatest(coalesce(total_seconds, 0), 0) AS total_seconds,
        greatest(coalesce(self_seconds, 0), 0) AS own_seconds
    FROM _function_calls
),
called AS MATERIALIZED (
    SELECT
        callee AS function,
        sum(total_seconds) FILTER (NOT is_recursive) AS total_seconds,
        sum(own_seconds) FILTER (NOT is_recursive) AS own_seconds,
        sum(own_seconds) FILTER (is_recursive) AS recursive_seconds
    FROM known_calls
    GROUP BY callee
),
calling AS (
    SELECT caller AS function, sum(total_seconds) FILTER (caller <> callee) AS total_seconds
    FROM known_calls
    GROUP BY caller
),
nodes AS MATERIALIZED (
    SELECT
        functions.function,
        functions.own_seconds,
        functions.whole_seconds,
        greatest(
            coalesce(functions.total_seconds, functions.own_seconds + coalesce(calling.total_seconds, 0)),
            coalesce(called.total_seconds, 0),
            functions.own_seconds
        ) AS total_seconds,
        coalesce(called.total_seconds, 0) AS called_total_seconds,
        -- Self time spent in recursive calls is distributed with the rest.
        coalesce(
            functions.own_seconds
            / nullif(functions.own_seconds - coalesce(called.recursive_seconds, 0), 0),
            1
        ) AS with_recursion,
        coalesce(called.own_seconds, 0) AS called_own_seconds
    FROM functions
    LEFT JOIN called USING (function)
    LEFT JOIN calling USING (function)
),
steps AS MATERIALIZED (
    SELECT
        edge.caller,
        edge.callee,
        coalesce(edge.total_seconds / nullif(node.total_seconds, 0), 0) AS share,
        CASE
            WHEN node.called_own_seconds > 0
                THEN least(edge.own_seconds * node.with_recursion, node.own_seconds)
            ELSE coalesce(edge.total_seconds / nullif(node.total_seconds, 0), 0) * node.own_seconds
        END AS own_seconds,
        node.total_seconds,
        node.whole_seconds
    FROM known_calls AS edge
    INNER JOIN nodes AS node ON node.function = edge.callee
    WHERE NOT edge.is_recursive
),
paths AS (
    SELECT
        function,
        [function] AS path,
        greatest(1 - coalesce(called_total_seconds / nullif(total_seconds, 0), 0), 0) AS share,
        CASE
            WHEN called_total_seconds = 0 THEN own_seconds
            WHEN called_own_seconds > 0
                THEN greatest(own_seconds - called_own_seconds * with_recursion, 0)
            ELSE greatest(1 - called_total_seconds / total_seconds, 0) * own_seconds
        END AS own_seconds
    FROM nodes
    UNION ALL
    SELECT
        steps.callee,
        list_append(paths.path, steps.callee),
        paths.share * steps.share,
        paths.share * steps.own_seconds
    FROM paths
    INNER JOIN steps ON steps.caller = paths.function
    WHERE NOT list_contains(paths.path, steps.callee)
        AND paths.share * steps.share * steps.total_seconds > steps.whole_seconds / 2000
        AND len(paths.path) < 200
),
assigned AS (
    SELECT function, sum(own_seconds) AS own_seconds FROM paths GROUP BY function
),
stacks AS (
    SELECT
        paths.function,
        paths.path,
        -- Inconsistent times are scaled to the self time of the function.
        paths.own_seconds
            * CASE
                WHEN assigned.own_seconds > nodes.own_seconds
                    THEN nodes.own_seconds / assigned.own_seconds
                ELSE 1
            END AS seconds
    FROM paths
    INNER JOIN assigned USING (function)
    INNER JOIN nodes USING (function)
    -- Ignore rounding errors of differences.
    WHERE paths.own_seconds > 1e-15
    UNION ALL
    SELECT nodes.function, [-1, nodes.function], nodes.own_seconds - coalesce(assigned.own_seconds, 0)
    FROM nodes
    LEFT JOIN assigned USING (function)
    -- Ignore rounding errors of sums.
    WHERE nodes.own_seconds - coalesce(assigned.own_seconds, 0) > 1e-12 * nodes.own_seconds
),
named AS (
    SELECT
        place,
        any_value(stacks.function) AS function,
        any_value(stacks.seconds) AS seconds,
        list(coalesce(functions.label, '(unknown callers)') ORDER BY step) AS stack,
        list(
            {
                name: coalesce(functions.name, '(unknown callers)'),
                filename: functions.filename,
                line_number: functions.line_number
            } ORDER BY step
        ) AS frames
    FROM (
        SELECT
            place,
            function,
            seconds,
            unnest(path) AS member,
            unnest(range(len(path))) AS step
        FROM (SELECT row_number() OVER () AS place, * FROM stacks)
    ) AS stacks
    LEFT JOIN functions ON functions.function = stacks.member
    GROUP BY place
)
SELECT
    functions.worker,
    named.stack,
    round(named.seconds * 1e6)::BIGINT AS samples,
    named.seconds,
    named.frames,
    functions.log,
    functions.trace_id
FROM named
INNER JOIN functions USING (function);
