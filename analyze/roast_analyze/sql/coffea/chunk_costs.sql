-- Needs: _chunk_cost_models, _chunks, _cluster_size, _round_two_digits
CREATE VIEW chunk_costs AS
WITH files AS (
    SELECT trace_id, dataset, max(entry_stop) AS largest_file_events
    FROM _chunks
    GROUP BY trace_id, dataset
),
known AS (
    SELECT
        cost.*,
        files.largest_file_events,
        nullif(cluster.peak_nthreads, 0) AS threads,
        -- All datasets share the threads.
        sum(cost.seconds) OVER (PARTITION BY cost.trace_id) / threads AS thread_seconds
    FROM _chunk_cost_models AS cost
    LEFT JOIN files
        ON cost.trace_id = files.trace_id AND cost.dataset IS NOT DISTINCT FROM files.dataset
    LEFT JOIN _cluster_size AS cluster ON cost.trace_id = cluster.trace_id
),
bounds AS (
    SELECT
        *,
        -- fixed / (fixed + events * event) = 5 %
        19 * burden_seconds / event_seconds AS least_events,
        (thread_seconds / 4 - fixed_seconds) / event_seconds AS most_balanced_events,
        -- With longer chunks a thread spends less on fixed costs and waits longer at the end,
        -- half a chunk on average; here both grow and shrink at the same rate.
        sqrt(2 * burden_seconds * thread_seconds) / event_seconds AS compromise_events
    FROM known
),
wanted AS (
    SELECT
        *,
        CASE
            WHEN method IS NULL THEN NULL
            WHEN least_events > most_balanced_events THEN _round_two_digits(compromise_events, 0)
            WHEN median_events < least_events THEN _round_two_digits(least_events, 1)
            WHEN median_events > most_balanced_events THEN _round_two_digits(most_balanced_events, -1)
            ELSE median_events
        END AS wanted_events,
        -- least() passes over nulls.
        CASE
            WHEN wanted_events IS NOT NULL THEN least(wanted_events, largest_file_events)
        END AS recommended_events
    FROM bounds
),
told AS (
    SELECT
        *,
        printf(
            '%.2g %%',
            100 * fixed_seconds / (fixed_seconds + recommended_events * event_seconds)
        ) AS fixed_then
    FROM wanted
)
SELECT
    dataset,
    chunks,
    outliers,
    sizes,
    round(median_events)::BIGINT AS median_events,
    largest_file_events,
    method,
    coalesce(fixed_seconds, line_fixed_seconds) AS fixed_seconds,
    CASE WHEN method IS DISTINCT FROM 'opening' THEN fixed_error END AS fixed_error_seconds,
    coalesce(event_seconds, line_event_seconds) AS seconds_per_event,
    CASE WHEN method IS DISTINCT FROM 'opening' THEN r2 END AS r2,
    relative_error,
    fixed_seconds * chunks / seconds AS fixed_share,
    round(least_events)::BIGINT AS min_events,
    round(most_balanced_events)::BIGINT AS max_events,
    round(recommended_events)::BIGINT AS recommended_events,
    CASE
        WHEN method IS NULL THEN CASE
            WHEN chunks < 5 THEN 'no model: fewer than 5 chunks'
            WHEN line_event_seconds IS NULL
                THEN 'no model: chunks of fewer than 3 sizes, and no measured opening'
            WHEN NOT grows THEN 'no model: time does not grow with the events'
            WHEN line_fixed_seconds < -2 * fixed_error
                THEN 'no model: time grows faster than the events'
            ELSE printf('no model: the fixed time may be anything up to %.2g s', fixed_bound)
        END
        ELSE concat_ws(
            '; ',
            CASE
                WHEN recommended_events IS NULL THEN 'too little work to tell'
                WHEN recommended_events < wanted_events
                    THEN 'whole files, which are smaller than is best: the fixed time stays ' || fixed_then
                WHEN least_events > most_balanced_events
                    THEN 'a compromise, little work for many threads: the fixed time is ' || fixed_then
                WHEN recommended_events > median_events
                    THEN 'larger chunks: the fixed time is then ' || fixed_then
                WHEN recommended_events < median_events
                    THEN 'smaller chunks: each thread then has 4'
                ELSE 'as it is: the fixed time is ' || fixed_then
            END,
            CASE WHEN method = 'opening' THEN 'only opening counts as fixed' END,
            CASE WHEN threads IS NULL THEN 'threads are not known' END,
            CASE
                WHEN recommended_events > 2 * most_events THEN 'no chunk was as large as that'
            END
        )
    END AS note,
    trace_id
FROM told
ORDER BY trace_id, seconds DESC, dataset;

COMMENT ON VIEW chunk_costs IS 'What a chunk costs by its size, and which size to choose: one row per dataset, the costliest first. The model is seconds = fixed_seconds + seconds_per_event * events, of computing times of first results; failed attempts and results from a checkpoint do not count. It knows nothing of memory, which grows with the size, and not what a worker does beside computing.';
COMMENT ON COLUMN chunk_costs.dataset IS 'Name of the dataset.';
COMMENT ON COLUMN chunk_costs.chunks IS 'Chunks that the model was made of.';
COMMENT ON COLUMN chunk_costs.outliers IS 'Of these, chunks so far off the line (4 standard deviations, judged by the median, and 1 % of the median time at least) that it was fitted again without them; if that were more than a quarter, none is left out. Null if no line was fitted.';
COMMENT ON COLUMN chunk_costs.sizes IS 'Different numbers of events of these chunks; a line needs 3, and 5 chunks.';
COMMENT ON COLUMN chunk_costs.median_events IS 'Events of a chunk as they were, in the median.';
COMMENT ON COLUMN chunk_costs.largest_file_events IS 'Events of the largest file as far as chunks of it are known; no chunk is larger than its file.';
COMMENT ON COLUMN chunk_costs.method IS 'fit: a line by least squares, taken if its fixed time is known to a half or is surely under 5 % of a chunk. opening: else, if it was measured, the median time of opening a file stands for the fixed time, which is at least that. Null: there is no model, and note says why.';
COMMENT ON COLUMN chunk_costs.fixed_seconds IS 'What a chunk costs whatever its size. Without a method: what the line says, if there is one.';
COMMENT ON COLUMN chunk_costs.fixed_error_seconds IS 'Standard error of the fitted fixed time.';
COMMENT ON COLUMN chunk_costs.seconds_per_event IS 'What an event costs on top of that.';
COMMENT ON COLUMN chunk_costs.r2 IS 'Part of the variance that the line explains; it is small when sizes are alike, however good the model.';
COMMENT ON COLUMN chunk_costs.relative_error IS 'How far the model is off, as a part of a chunk''s time, in the median over all chunks, outliers too.';
COMMENT ON COLUMN chunk_costs.fixed_share IS 'Part of the computing time that was fixed cost.';
COMMENT ON COLUMN chunk_costs.min_events IS 'From this size on the fixed time is at most 5 % of a chunk: 19 * fixed_seconds / seconds_per_event, with the upper bound (2 standard errors) of a fixed time that is surely small.';
COMMENT ON COLUMN chunk_costs.max_events IS 'Up to this size each thread has at least 4 chunks to do, so that none waits long for the last ones: (computing time of all datasets / peak threads / 4 - fixed_seconds) / seconds_per_event. Null if threads are not known.';
COMMENT ON COLUMN chunk_costs.recommended_events IS 'Size to choose (chunksize of a Runner): median_events if it lies between min_events and max_events, else the nearer bound, to two digits within the bounds. If no size satisfies both: sqrt(2 * fixed_seconds * computing time per thread) / seconds_per_event, which makes fixed time and waiting for the last chunk shortest together. Never more than largest_file_events.';
COMMENT ON COLUMN chunk_costs.note IS 'What the recommendation changes and how sure it is, or why there is none.';
COMMENT ON COLUMN chunk_costs.trace_id IS 'Identity of the recording.';
