-- Needs: _processes, _sheets
-- Dask's configuration of each group of processes with the same one. Before schema version 2.2
-- only a few options of the scheduler were recorded, without their defaults.
CREATE VIEW _options AS
WITH entries AS (
    SELECT
        trace_id,
        section,
        sheet,
        entry.key AS name,
        entry.value ->> '$' AS value
    FROM (
        SELECT
            trace_id,
            section,
            name AS sheet,
            unnest(map_entries(json_transform(value, '"MAP(VARCHAR, JSON)"'))) AS entry
        FROM _sheets
        WHERE section IN ('configuration', 'defaults') AND json_type(value) = 'OBJECT'
    )
),
groups AS (
    SELECT
        trace_id,
        role,
        process.configuration AS configuration,
        process.defaults AS defaults,
        count(*) AS processes,
        list(worker ORDER BY seq) AS workers
    FROM _processes
    WHERE process.configuration IS NOT NULL
    GROUP BY ALL
),
declared AS (
    SELECT groups.*, entries.name, entries.value AS default_value
    FROM groups
    INNER JOIN entries
        ON groups.trace_id = entries.trace_id
        AND groups.defaults = entries.sheet
        AND entries.section = 'defaults'
),
differing AS (
    SELECT groups.*, entries.name, entries.value
    FROM groups
    INNER JOIN entries
        ON groups.trace_id = entries.trace_id
        AND groups.configuration = entries.sheet
        AND entries.section = 'configuration'
)
SELECT
    trace_id,
    role,
    name,
    CASE WHEN differing.name IS NULL THEN default_value ELSE differing.value END AS value,
    default_value,
    differing.name IS NOT NULL AS differs,
    declared.name IS NOT NULL AS is_declared,
    processes,
    workers
FROM declared
FULL JOIN differing USING (trace_id, role, configuration, defaults, processes, workers, name)
UNION ALL
SELECT DISTINCT trace_id, 'scheduler', name, value ->> '$', NULL, NULL, NULL, 1, NULL
FROM raw.environment
WHERE section = 'dask configuration';
