-- Needs: _chunk_ratios
-- Records: chunk
-- Separate the effects of files and workers on chunk durations. The time of a chunk divided by
-- the time expected from its dataset and size is modeled as a file factor times a worker
-- factor. The factors are found by alternately dividing by medians (Tukey's median polish) in a
-- table of files and workers, whose cells are the medians of the ratios. With cells instead of
-- chunks, a worker that read most of its chunks from a slow file is not slow itself. Factors that
-- cannot be separated are 1: a file read by one of several workers, or a worker that read one
-- file. A busy machine makes all chunks of a period slow, so each chunk is first compared with
-- those of other files that ran at the same time.
CREATE TABLE _relative_duration AS
WITH expected AS (
    SELECT
        *,
        -- Number of a time slot in which a thread processes about two chunks.
        floor(begin_t / nullif(2 * median(whole_seconds) OVER (PARTITION BY trace_id), 0)) AS slot
    FROM _chunk_ratios
),
numbered AS (
    SELECT
        trace_id,
        process,
        begin_t,
        slot,
        dense_rank() OVER (ORDER BY trace_id, dataset, filename, treename) AS file,
        dense_rank() OVER (ORDER BY trace_id, dataset) AS of_dataset,
        ratio / median(ratio) OVER (PARTITION BY trace_id, dataset) AS ratio,
        dataset,
        filename,
        treename
    FROM expected
),
-- The usual ratio in a slot is the median over its files, or the lower of the two middle values, so
-- that the faster one of two files is the reference. A single file or a few chunks are no reference.
slots AS (
    SELECT
        trace_id,
        slot,
        count(*) > 1 AND sum(chunks) > 5 AS is_comparable,
        quantile_disc(ratio, 0.5) AS ratio
    FROM (
        SELECT trace_id, slot, file, median(ratio) AS ratio, count(*) AS chunks
        FROM numbered
        GROUP BY trace_id, slot, file
    )
    GROUP BY trace_id, slot
),
ratios AS (
    SELECT
        numbered.* REPLACE (
            numbered.ratio / CASE WHEN slots.is_comparable THEN slots.ratio ELSE 1 END AS ratio
        ),
        NOT slots.is_comparable AS is_alone,
        min(process) OVER (PARTITION BY numbered.trace_id)
            < max(process) OVER (PARTITION BY numbered.trace_id) AS is_of_several,
        -- No other file had been opened.
        min(file) OVER until_then = max(file) OVER until_then AS is_first
    FROM numbered
    INNER JOIN slots
        ON numbered.trace_id = slots.trace_id AND numbered.slot IS NOT DISTINCT FROM slots.slot
    WINDOW until_then AS (PARTITION BY numbered.trace_id ORDER BY begin_t)
),
files AS (
    SELECT
        file,
        count(*) AS chunks,
        avg(is_alone::INTEGER) > 0.5 AS is_alone,
        avg(is_first::INTEGER) > 0.5 AS is_first,
        any_value(trace_id) AS trace_id,
        any_value(of_dataset) AS of_dataset,
        any_value(dataset) AS dataset,
        any_value(filename) AS filename,
        any_value(treename) AS treename
    FROM ratios
    GROUP BY file
    -- A single file of a dataset has factor 1.
    QUALIFY (count(DISTINCT process) > 1 OR NOT any_value(is_of_several))
        AND count(*) OVER (PARTITION BY any_value(of_dataset)) > 1
),
workers AS (
    SELECT process, count(*) AS chunks, any_value(trace_id) AS trace_id
    FROM ratios
    GROUP BY process
    HAVING count(DISTINCT file) > 1
),
cells AS (
    SELECT file, process, median(ratio) AS ratio
    FROM ratios
    GROUP BY file, process
),
-- The median, or the lower of the two middle values: the other one can be that of a slow worker.
files_1 AS (
    SELECT file, quantile_disc(ratio, 0.5) AS relative_duration
    FROM cells
    SEMI JOIN files USING (file)
    GROUP BY file
),
workers_1 AS (
    SELECT process, quantile_disc(ratio / coalesce(files_1.relative_duration, 1), 0.5) AS relative_duration
    FROM cells
    SEMI JOIN workers USING (process)
    LEFT JOIN files_1 USING (file)
    GROUP BY process
),
files_2 AS (
    SELECT file, median(ratio / coalesce(workers_1.relative_duration, 1)) AS relative_duration
    FROM ratios
    SEMI JOIN files USING (file)
    LEFT JOIN workers_1 USING (process)
    GROUP BY file
),
workers_2 AS (
    SELECT process, median(ratio / coalesce(files_2.relative_duration, 1)) AS relative_duration
    FROM ratios
    SEMI JOIN workers USING (process)
    LEFT JOIN files_2 USING (file)
    GROUP BY process
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
separable AS (
    SELECT
        trace_id,
        of_dataset,
        dataset,
        filename,
        treename,
        NULL::BIGINT AS process,
        chunks,
        is_alone,
        is_first,
        relative_duration
    FROM files
    INNER JOIN files_2 USING (file)
    UNION ALL BY NAME
    SELECT trace_id, process, chunks, relative_duration
    FROM workers
    INNER JOIN workers_2 USING (process)
    QUALIFY count(*) OVER (PARTITION BY trace_id) > 1
),
-- The reference is the median, or the lower of the two middle values, so that the faster one of
-- two is the reference.
relative AS (
    SELECT * EXCLUDE (of_dataset) REPLACE (
        relative_duration / quantile_disc(relative_duration, 0.5)
            OVER (PARTITION BY trace_id, of_dataset, process IS NULL) AS relative_duration
    )
    FROM separable
),
compared AS (
    SELECT
        relative.*,
        -- The standard error of the median of normal values is 1.2533 times that of their mean.
        1.2533 * noise.sigma / sqrt(chunks) AS log_error,
        count(*) OVER peers AS peers,
        -- Half of them can be slow, such as the workers of a host: the faster half has the spread.
        1.4826 * median(-ln(relative_duration)) FILTER (relative_duration <= 1) OVER peers AS log_spread
    FROM relative
    INNER JOIN noise USING (trace_id)
    WINDOW peers AS (PARTITION BY trace_id, process IS NULL)
)
SELECT
    * EXCLUDE (is_alone, is_first, log_error, peers, log_spread),
    relative_duration * log_error AS relative_duration_error,
    -- Slow is a factor of 1.5 from at least 5 chunks that is 4 standard errors above 1 and, where
    -- 3 or more are compared, 4 times their spread. A factor of 2.5 is required where the
    -- comparison is weak: of two, or of a file that was read alone. A factor of 5 is required of a
    -- file that was read alone at the start of the run, which can be slow itself.
    chunks >= 5
        AND relative_duration >= CASE
            WHEN is_first THEN 5
            WHEN is_alone OR peers < 3 THEN 2.5
            ELSE 1.5
        END
        AND ln(relative_duration) > 4 * log_error
        AND (peers < 3 OR ln(relative_duration) > 4 * log_spread) AS is_slow
FROM compared;
