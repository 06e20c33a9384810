-- Needs: _is_run_specific, _options, _processes, _versions
-- Compares the sets of values of each kind of process that both traces describe. A name that
-- only one trace contains is a difference only if both were recorded by the same rules; before
-- schema version 2.2 only a few names were recorded.
CREATE VIEW differences AS
WITH opened AS (
    SELECT trace_id, min(rowid) AS seq FROM raw.segments GROUP BY trace_id
),
first_opened AS (
    SELECT min_by(trace_id, seq) AS trace_id FROM opened
),
facts AS (
    SELECT trace_id, 'package' AS category, role, package AS name, version AS value
    FROM _versions
    UNION ALL
    SELECT trace_id, 'configuration', role, name, coalesce(value, 'None')
    FROM _options
    WHERE NOT _is_run_specific(name, value)
    UNION ALL
    SELECT trace_id, 'cluster', 'client', name, value ->> '$'
    FROM raw.environment
    WHERE section = 'cluster'
),
rules AS (
    SELECT
        facts.trace_id,
        category,
        facts.role,
        CASE
            WHEN any_value(process.role) IS NULL THEN 'few'
            WHEN category = 'package' THEN coalesce(any_value(header.settings ->> '$.packages'), 'all')
            ELSE 'all'
        END AS rule
    FROM facts
    LEFT JOIN _processes AS process ON facts.trace_id = process.trace_id AND facts.role = process.role
    LEFT JOIN raw.header AS header ON facts.trace_id = header.trace_id AND header.segment = 1
    GROUP BY facts.trace_id, category, facts.role
),
-- Kinds of process with such facts in both traces.
pairs AS (
    SELECT other.trace_id, other.category, other.role, one.rule = other.rule AND one.rule <> 'few' AS by_same_rule
    FROM rules AS other
    INNER JOIN rules AS one ON one.category = other.category AND one.role = other.role
    WHERE
        one.trace_id = (SELECT trace_id FROM first_opened)
        AND other.trace_id <> one.trace_id
),
held AS (
    SELECT trace_id, category, role, name, list(DISTINCT value ORDER BY value) AS held
    FROM facts
    GROUP BY trace_id, category, role, name
),
there AS (
    SELECT held.trace_id, held.category, held.role, held.name, held.held, by_same_rule
    FROM held
    INNER JOIN pairs USING (trace_id, category, role)
),
here AS (
    SELECT pairs.trace_id, pairs.category, pairs.role, held.name, held.held, by_same_rule
    FROM held
    INNER JOIN pairs ON held.category = pairs.category AND held.role = pairs.role
    WHERE held.trace_id = (SELECT trace_id FROM first_opened)
),
compared AS (
    SELECT trace_id, category, role, name, there.held AS there, here.held AS here
    FROM there
    FULL JOIN here USING (trace_id, category, role, name)
    WHERE
        there.held IS DISTINCT FROM here.held
        AND (
            coalesce(there.by_same_rule, here.by_same_rule)
            OR (there.held IS NOT NULL AND here.held IS NOT NULL)
        )
)
SELECT
    category,
    name,
    array_to_string(nullif(list_sort(list_distinct(flatten(list(here)))), []), '; ') AS first_value,
    array_to_string(nullif(list_sort(list_distinct(flatten(list(there)))), []), '; ') AS value,
    list(role ORDER BY role) AS processes,
    trace_id
FROM compared
GROUP BY trace_id, category, name
ORDER BY trace_id, category, name;

COMMENT ON VIEW differences IS 'Differences in setup between each trace and the first opened one. One row per package, option of Dask''s configuration or argument of the cluster. Values that naturally differ in each run (addresses, ports, folders for temporary files) are left out, and so is what only one of the two traces recorded.';
COMMENT ON COLUMN differences.category IS 'package, configuration or cluster.';
COMMENT ON COLUMN differences.name IS 'Name of the package, the option or the argument.';
COMMENT ON COLUMN differences.first_value IS 'Version or value in the first trace; null if it is absent. Only processes that differ are included.';
COMMENT ON COLUMN differences.value IS 'Version or value in this trace; null if it is absent.';
COMMENT ON COLUMN differences.processes IS 'Kinds of process that differ: client, scheduler, worker.';
COMMENT ON COLUMN differences.trace_id IS 'ID of the trace.';
