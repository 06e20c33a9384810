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
-- The last file or variable that sets an option, or code if it was changed later.
sources AS (
    SELECT
        trace_id,
        sheet,
        option AS name,
        max_by(source.kind, place) AS kind,
        max_by(source.name, place) AS source_name
    FROM (
        SELECT trace_id, sheet, source, place, unnest(source.options) AS option
        FROM (
            SELECT
                trace_id,
                sheet,
                unnest(entries) AS source,
                unnest(range(len(entries))) AS place
            FROM (
                SELECT
                    trace_id,
                    name AS sheet,
                    json_transform(
                        value, '[{"kind": "VARCHAR", "name": "VARCHAR", "options": ["VARCHAR"]}]'
                    ) AS entries
                FROM _sheets
                WHERE section = 'config_sources' AND json_type(value) = 'ARRAY'
            )
        )
    )
    GROUP BY trace_id, sheet, option
),
groups AS (
    SELECT
        trace_id,
        role,
        process.configuration AS configuration,
        process.defaults AS defaults,
        -- Not null: it is a key of joins.
        coalesce(process.config_sources, '') AS config_sources,
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
    options.trace_id,
    role,
    options.name,
    value,
    default_value,
    differs,
    is_declared,
    CASE
        WHEN config_sources <> '' AND (differs OR kind <> 'code') THEN coalesce(kind, 'code')
    END AS source,
    CASE WHEN kind <> 'code' THEN source_name END AS source_name,
    processes,
    workers
FROM (
    SELECT
        trace_id,
        role,
        config_sources,
        name,
        CASE WHEN differing.name IS NULL THEN default_value ELSE differing.value END AS value,
        default_value,
        differing.name IS NOT NULL AS differs,
        declared.name IS NOT NULL AS is_declared,
        processes,
        workers
    FROM declared
    FULL JOIN differing
        USING (trace_id, role, configuration, defaults, config_sources, processes, workers, name)
) AS options
LEFT JOIN sources
    ON sources.trace_id = options.trace_id
    AND sources.sheet = config_sources
    AND sources.name = replace(options.name, '_', '-')
UNION ALL
SELECT
    DISTINCT trace_id, 'scheduler', name, value ->> '$', NULL, NULL, NULL, NULL, NULL, 1, NULL
FROM raw.environment
WHERE section = 'dask configuration';
