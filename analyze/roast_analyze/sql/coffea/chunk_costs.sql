-- Needs: _chunk_cost_models, _chunks, _cluster_size, _round_two_digits
CREATE VIEW chunk_costs AS
WITH files AS (
    SELECT trace_id, dataset, max(entry_stop) AS largest_file_events
    FROM _chunks
    GROUP BY trace_id, dataset
),
inputs AS (
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
        -- Larger chunks reduce the fixed cost per thread and increase the idle time at the end,
        -- half a chunk on average. Here the two derivatives cancel.
        sqrt(2 * burden_seconds * thread_seconds) / event_seconds AS compromise_events
    FROM inputs
),
optimal AS (
    SELECT
        *,
        CASE
            WHEN method IS NULL THEN NULL
            WHEN least_events > most_balanced_events THEN _round_two_digits(compromise_events, 0)
            WHEN median_events < least_events THEN _round_two_digits(least_events, 1)
            WHEN median_events > most_balanced_events THEN _round_two_digits(most_balanced_events, -1)
            ELSE median_events
        END AS wanted_events,
        -- least() ignores null.
        CASE
            WHEN wanted_events IS NOT NULL THEN least(wanted_events, largest_file_events)
        END AS recommended_events
    FROM bounds
),
with_text AS (
    SELECT
        *,
        printf(
            '%.2g %%',
            100 * fixed_seconds / (fixed_seconds + recommended_events * event_seconds)
        ) AS fixed_then
    FROM optimal
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
                THEN 'no model: fewer than 3 chunk sizes, and file opening was not measured'
            WHEN NOT grows THEN 'no model: time does not increase with the number of events'
            WHEN line_fixed_seconds < -2 * fixed_error
                THEN 'no model: time increases faster than the number of events'
            ELSE printf('no model: fixed time only known to be below %.2g s', fixed_bound)
        END
        ELSE concat_ws(
            '; ',
            CASE
                WHEN recommended_events IS NULL THEN 'too little work for a recommendation'
                WHEN recommended_events < wanted_events
                    THEN 'whole files, smaller than the optimum: fixed time ' || fixed_then
                WHEN least_events > most_balanced_events
                    THEN 'compromise, little work for many threads: fixed time ' || fixed_then
                WHEN recommended_events > median_events
                    THEN 'larger chunks: fixed time ' || fixed_then
                WHEN recommended_events < median_events
                    THEN 'smaller chunks: 4 per thread'
                ELSE 'keep the size: fixed time ' || fixed_then
            END,
            CASE WHEN method = 'opening' THEN 'fixed time covers file opening only' END,
            CASE WHEN threads IS NULL THEN 'number of threads unknown' END,
            CASE
                WHEN recommended_events > 2 * most_events THEN 'no chunk was this large'
            END
        )
    END AS note,
    trace_id
FROM with_text
ORDER BY trace_id, seconds DESC, dataset;

COMMENT ON VIEW chunk_costs IS 'Cost model of chunks, and recommended chunk size. One row per dataset, highest compute time first. The model is seconds = fixed_seconds + seconds_per_event * events, fitted to the compute times of first results. Failed attempts and results from a checkpoint are excluded. The model ignores memory, which grows with the chunk size, and work of the worker other than computing.';
COMMENT ON COLUMN chunk_costs.dataset IS 'Dataset name.';
COMMENT ON COLUMN chunk_costs.chunks IS 'Chunks available for the model.';
COMMENT ON COLUMN chunk_costs.outliers IS 'Chunks left out of the fit: residual above 4 standard deviations (estimated from the median) and above 1 % of the median time. If more than a quarter are this far off, all are kept. Null if no line was fitted.';
COMMENT ON COLUMN chunk_costs.sizes IS 'Number of distinct chunk sizes. A fit needs 3 sizes and 5 chunks.';
COMMENT ON COLUMN chunk_costs.median_events IS 'Median number of events per chunk.';
COMMENT ON COLUMN chunk_costs.largest_file_events IS 'Events in the largest file, as far as its chunks were recorded. A chunk cannot be larger than its file.';
COMMENT ON COLUMN chunk_costs.method IS 'fit: least-squares line, used if the fixed time is determined to within half of its value, or is below 5 % of a chunk within errors. opening: otherwise, the measured median time to open a file replaces the fixed time and is a lower bound of it. Null: no model; note gives the reason.';
COMMENT ON COLUMN chunk_costs.fixed_seconds IS 'Time per chunk that does not depend on its size. Without a method: the fitted value, if any.';
COMMENT ON COLUMN chunk_costs.fixed_error_seconds IS 'Standard error of the fitted fixed time.';
COMMENT ON COLUMN chunk_costs.seconds_per_event IS 'Additional time per event.';
COMMENT ON COLUMN chunk_costs.r2 IS 'Share of the variance explained by the line. Small if sizes are similar, even for a good model.';
COMMENT ON COLUMN chunk_costs.relative_error IS 'Median relative model error over all chunks, outliers included.';
COMMENT ON COLUMN chunk_costs.fixed_share IS 'Share of the compute time that was fixed cost.';
COMMENT ON COLUMN chunk_costs.min_events IS 'Smallest size at which the fixed time is at most 5 % of a chunk: 19 * fixed_seconds / seconds_per_event. For a fixed time compatible with 0, its upper bound (2 standard errors) is used.';
COMMENT ON COLUMN chunk_costs.max_events IS 'Largest size at which each thread still gets at least 4 chunks, so that threads do not idle at the end: (compute time of all datasets / peak threads / 4 - fixed_seconds) / seconds_per_event. Null if the number of threads is unknown.';
COMMENT ON COLUMN chunk_costs.recommended_events IS 'Recommended chunksize of a coffea Runner: median_events if between min_events and max_events, otherwise the nearer bound, rounded to two digits within the bounds. If min_events exceeds max_events: sqrt(2 * fixed_seconds * compute time per thread) / seconds_per_event, which minimizes the sum of fixed time and idle time at the end. Never more than largest_file_events.';
COMMENT ON COLUMN chunk_costs.note IS 'Effect and uncertainty of the recommendation, or the reason why there is none.';
COMMENT ON COLUMN chunk_costs.trace_id IS 'Trace identity.';
