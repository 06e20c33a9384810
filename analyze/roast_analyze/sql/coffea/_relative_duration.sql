-- Needs: _chunk_cost_models, _chunks
-- Files and workers told apart: how many times as long as usual the chunks of a file took
-- whichever worker had them, and those of a worker whichever file they were of. A chunk's
-- time, by what its dataset and size make one expect, is taken for the product of the two;
-- medians are taken off in turns (Tukey's median polish, of ratios). What cannot be told
-- apart counts as usual: a file that one worker had, a worker that had one file.
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
    -- One of a kind is what is usual.
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
-- What is left when both are taken off, as a standard deviation of logarithms.
noise AS (
    SELECT
        ratios.trace_id,
        1.4826 * mad(
            ln(ratio / coalesce(files_2.relative_duration, 1) / coalesce(workers_2.relative_duration, 1))
        ) AS sigma
    FROM ratios
    LEFT JOIN files_2 USING (file)
    LEFT JOIN workers_2 USING (process)
    GROUP BY ratios.trace_id
),
-- Usual is the median, of an even number the lower one: of two, the faster one.
told AS (
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
    told.*,
    -- Half as long again, of three chunks at least, and by far more than chance makes: the
    -- standard error of a median of normal values is 1.2533 times that of their mean.
    relative_duration >= 1.5
        AND chunks > 2
        AND ln(relative_duration) > 4 * 1.2533 * noise.sigma / sqrt(chunks) AS is_slow
FROM told
INNER JOIN noise USING (trace_id);
