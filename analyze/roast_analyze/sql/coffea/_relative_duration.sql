-- Needs: _chunk_cost_models, _chunks
-- Separate the effects of files and workers on chunk durations. The time of a chunk divided by
-- the time expected from its dataset and size is modeled as a file factor times a worker
-- factor. The factors are found by alternately dividing by medians (Tukey's median polish of
-- ratios). Factors that cannot be separated are 1: a file read by one worker, or a worker that
-- read one file.
CREATE TABLE _relative_duration AS
WITH expected AS (
    SELECT
        chunk.trace_id,
        chunk.dataset,
        chunk.filename,
        chunk.treename,
        chunk.process,
        chunk.whole_seconds / CASE
            WHEN cost.method IS NULL
                THEN chunk.events * median(chunk.event_seconds) OVER same_dataset
            ELSE cost.fixed_seconds + cost.event_seconds * chunk.events
        END AS ratio
    FROM _chunks AS chunk
    LEFT JOIN _chunk_cost_models AS cost
        ON chunk.trace_id = cost.trace_id
        AND chunk.dataset IS NOT DISTINCT FROM cost.dataset
    WHERE chunk.event_seconds > 0 AND chunk.process IS NOT NULL
    WINDOW same_dataset AS (PARTITION BY chunk.trace_id, chunk.dataset)
),
ratios AS (
    SELECT
        trace_id,
        process,
        dense_rank() OVER (ORDER BY trace_id, dataset, filename, treename) AS file,
        dense_rank() OVER (ORDER BY trace_id, dataset) AS of_dataset,
        ratio / median(ratio) OVER (PARTITION BY trace_id, dataset) AS ratio,
        dataset,
        filename,
        treename
    FROM expected
),
files AS (
    SELECT
        file,
        count(*) AS chunks,
        any_value(trace_id) AS trace_id,
        any_value(of_dataset) AS of_dataset,
        any_value(dataset) AS dataset,
        any_value(filename) AS filename,
        any_value(treename) AS treename
    FROM ratios
    GROUP BY file
    -- A single file or worker has factor 1.
    QUALIFY count(DISTINCT process) > 1 AND count(*) OVER (PARTITION BY any_value(of_dataset)) > 1
),
workers AS (
    SELECT process, count(*) AS chunks, any_value(trace_id) AS trace_id
    FROM ratios
    GROUP BY process
    HAVING count(DISTINCT file) > 1
),
workers_1 AS (
    SELECT process, median(ratio) AS relative_duration
    FROM ratios
    SEMI JOIN workers USING (process)
    GROUP BY process
),
files_1 AS (
    SELECT file, median(ratio / coalesce(workers_1.relative_duration, 1)) AS relative_duration
    FROM ratios
    SEMI JOIN files USING (file)
    LEFT JOIN workers_1 USING (process)
    GROUP BY file
),
workers_2 AS (
    SELECT process, median(ratio / coalesce(files_1.relative_duration, 1)) AS relative_duration
    FROM ratios
    SEMI JOIN workers USING (process)
    LEFT JOIN files_1 USING (file)
    GROUP BY process
),
files_2 AS (
    SELECT file, median(ratio / coalesce(workers_2.relative_duration, 1)) AS relative_duration
    FROM ratios
    SEMI JOIN files USING (file)
    LEFT JOIN workers_2 USING (process)
    GROUP BY file
),
-- Residual after both factors are removed, as the standard deviation of logarithms.
noise AS (
    SELECT
        ratios.trace_id,
        1.4826 * mad(
            ln(
                ratio
                / coalesce(files_2.relative_duration, 1)
                / coalesce(workers_2.relative_duration, 1)
            )
        ) AS sigma
    FROM ratios
    LEFT JOIN files_2 USING (file)
    LEFT JOIN workers_2 USING (process)
    GROUP BY ratios.trace_id
),
-- The reference is the median; of an even number the lower one, so that of two the faster one
-- is the reference.
separable AS (
    SELECT
        files.trace_id,
        files.dataset,
        files.filename,
        files.treename,
        NULL::BIGINT AS process,
        files.chunks,
        files_2.relative_duration / quantile_disc(files_2.relative_duration, 0.5)
            OVER (PARTITION BY files.of_dataset) AS relative_duration
    FROM files
    INNER JOIN files_2 USING (file)
    UNION ALL
    SELECT
        workers.trace_id,
        NULL,
        NULL,
        NULL,
        workers.process,
        workers.chunks,
        workers_2.relative_duration / quantile_disc(workers_2.relative_duration, 0.5)
            OVER (PARTITION BY workers.trace_id) AS relative_duration
    FROM workers
    INNER JOIN workers_2 USING (process)
    QUALIFY count(*) OVER (PARTITION BY workers.trace_id) > 1
)
SELECT
    separable.*,
    -- A factor of 1.5, from at least 3 chunks, and significant: the standard error of the
    -- median of normal values is 1.2533 times that of their mean.
    relative_duration >= 1.5
        AND chunks > 2
        AND ln(relative_duration) > 4 * 1.2533 * noise.sigma / sqrt(chunks) AS is_slow
FROM separable
INNER JOIN noise USING (trace_id);
