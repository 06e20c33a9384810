-- Different package versions.
-- Data and tasks are pickled and sent between client, scheduler and workers. With different versions of
-- Python, of Dask or of a package whose classes are pickled, this can fail or change results. The saving
-- is unknown.
-- Source: recorded packages, see view packages
-- Documentation: https://distributed.dask.org/en/stable/api.html#distributed.Client.get_versions
WITH differing AS (
    SELECT trace_id, package, string_agg(DISTINCT version, ' and ' ORDER BY version) AS versions
    FROM packages
    WHERE differs
    GROUP BY ALL
),
totals AS (
    SELECT
        trace_id,
        count(*) AS packages,
        list(
            package || ' ' || versions
            -- Packages that affect whether tasks can be sent come first.
            ORDER BY
                package NOT IN (
                    'python', 'dask', 'distributed', 'msgpack', 'cloudpickle', 'toolz', 'numpy',
                    'pandas', 'coffea', 'awkward', 'uproot'
                ),
                package
        ) AS names
    FROM differing
    GROUP BY trace_id
)
SELECT
    split_part(names[1], ' ', 1) AS entity,
    'low' AS confidence,
    concat(
        CASE packages
            WHEN 1 THEN 'A package differs'
            ELSE format('{} packages differ', packages)
        END,
        ' between processes: ', array_to_string(names[:3], ', '),
        CASE WHEN packages > 3 THEN ' and others.' ELSE '.' END
    ) AS sentence,
    NULL::DOUBLE AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    'Use the same environment, such as one container image, for scheduler, client and workers.' AS change,
    'SELECT package, version, process, workers FROM packages WHERE differs' AS evidence,
    totals.trace_id
FROM totals;
