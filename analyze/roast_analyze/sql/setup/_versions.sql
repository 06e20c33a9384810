-- Needs: _processes, _sheets
-- Packages of each group of processes with the same description. Before schema version 2.2
-- only a few versions of the scheduler and the client were recorded, and for workers those that
-- Dask collects.
CREATE VIEW _versions AS
WITH sheets AS (
    SELECT
        trace_id,
        name AS sheet,
        unnest(
            CASE WHEN json_type(value) = 'ARRAY' THEN json_transform(value, '[["VARCHAR"]]') END
        ) AS entries
    FROM _sheets
    WHERE section = 'packages'
),
groups AS (
    SELECT
        trace_id,
        role,
        process.packages AS sheet,
        process.python AS python,
        count(*) AS processes,
        list(worker ORDER BY seq) AS workers
    FROM _processes
    GROUP BY ALL
),
before AS (
    SELECT
        trace_id,
        versions::VARCHAR AS text,
        count(*) AS processes,
        list(worker ORDER BY rowid) AS workers
    FROM raw.worker_added
    WHERE
        json_type(versions) = 'OBJECT'
        AND (trace_id, server_id) NOT IN (
            SELECT (trace_id, server_id) FROM _processes WHERE server_id IS NOT NULL
        )
    GROUP BY ALL
)
SELECT
    trace_id,
    role,
    sheets.entries[1] AS package,
    sheets.entries[2] AS version,
    processes,
    workers
FROM groups
INNER JOIN sheets USING (trace_id, sheet)
UNION ALL
SELECT trace_id, role, 'python', python, processes, workers
FROM groups
WHERE python IS NOT NULL
UNION ALL
SELECT DISTINCT trace_id, split_part(section, ' ', 1), name, value ->> '$', 1, NULL
FROM raw.environment
WHERE section IN ('scheduler versions', 'client versions')
UNION ALL
-- Dask calls it 3.11.7.final.0.
SELECT
    trace_id,
    'worker',
    entry.key,
    regexp_replace(entry.value, '\.final\.0$', ''),
    processes,
    workers
FROM (
    SELECT
        trace_id,
        processes,
        workers,
        unnest(map_entries(json_transform(text::JSON, '"MAP(VARCHAR, VARCHAR)"'))) AS entry
    FROM before
)
WHERE entry.value IS NOT NULL;
