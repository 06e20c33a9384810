-- Needs: _chunk_cost_models, _chunks, _cluster_size, _round_two_digits
-- Expected time of a run with n events per chunk, of which a dataset has E events in all:
--     work of all datasets per thread + E / n * fixed / threads + (fixed + event * n) / 2
-- The first summand does not depend on n, the second is the fixed time of all chunks, and the
-- third is the tail, in which threads wait for half a chunk on average. The sum is smallest at
-- n = sqrt(2 * fixed * E / threads / event).
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
        -- Without a cluster, each process has one thread.
        coalesce(nullif(cluster.peak_nthreads, 0), max(cost.processes) OVER same_trace) AS threads,
        -- All datasets share the threads.
        sum(cost.seconds) OVER same_trace / threads AS thread_seconds
    FROM _chunk_cost_models AS cost
    LEFT JOIN files
        ON cost.trace_id = files.trace_id AND cost.dataset IS NOT DISTINCT FROM files.dataset
    LEFT JOIN _cluster_size AS cluster ON cost.trace_id = cluster.trace_id
    WINDOW same_trace AS (PARTITION BY cost.trace_id)
),
terms AS (
    SELECT
        *,
        burden_seconds * events / threads AS overhead_factor,
        event_seconds / 2 AS tail_factor,
        -- Overhead and tail may together take this long: their minimum, and 2 % of the time.
        2 * sqrt(overhead_factor * tail_factor)
            + 0.02 * (2 * sqrt(overhead_factor * tail_factor) + thread_seconds) AS allowed_seconds
    FROM inputs
),
bounds AS (
    SELECT
        *,
        -- Solutions of overhead_factor / n + tail_factor * n = allowed_seconds.
        sqrt(greatest(allowed_seconds ** 2 - 4 * overhead_factor * tail_factor, 0)) AS root,
        CASE WHEN is_known THEN (allowed_seconds - root) / (2 * tail_factor) END AS least_events,
        CASE WHEN is_known THEN (allowed_seconds + root) / (2 * tail_factor) END AS most_events
    FROM terms
),
optimal AS (
    SELECT
        *,
        CASE
            WHEN median_events < least_events THEN _round_two_digits(least_events, 1)
            WHEN median_events > most_events THEN _round_two_digits(most_events, -1)
            WHEN is_known THEN median_events
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
    all_chunks - chunks AS first_chunks,
    outliers,
    sizes,
    smallest_chunk_events,
    round(median_events)::BIGINT AS median_events,
    largest_chunk_events,
    largest_file_events,
    is_known,
    coalesce(fixed_seconds, line_fixed_seconds) AS fixed_seconds,
    fixed_error AS fixed_error_seconds,
    coalesce(event_seconds, line_event_seconds) AS seconds_per_event,
    r2,
    relative_error,
    fixed_seconds * all_chunks / seconds AS fixed_share,
    round(least_events)::BIGINT AS min_events,
    round(most_events)::BIGINT AS max_events,
    round(recommended_events)::BIGINT AS recommended_events,
    CASE
        WHEN NOT is_known THEN 'not known from this run: ' || CASE
            WHEN all_chunks = 1 THEN 'the dataset has a single chunk; record a run with smaller chunks'
            WHEN sizes = 1
                THEN 'all chunks of a dataset have the same size; record a run with two chunk sizes'
            WHEN chunks < 5 THEN 'fewer than 5 chunks besides the first ones of each process'
            WHEN line_event_seconds IS NULL AND is_wide THEN
                'fewer than 3 chunks are much smaller or larger than the others; '
                || 'record a run with more chunks of a second size'
            WHEN line_event_seconds IS NULL THEN
                'chunk sizes are too similar; record a run with two sizes that differ by 2 × or more'
            WHEN NOT grows THEN 'time does not increase with the number of events'
            WHEN line_fixed_seconds < -2 * fixed_error
                THEN 'time increases faster than the number of events'
            ELSE printf('the fixed time is only known to be below %.2g s', fixed_bound)
        END
        ELSE concat_ws(
            '; ',
            CASE
                WHEN recommended_events IS NULL THEN 'too little work for a recommendation'
                WHEN recommended_events < wanted_events
                    THEN 'whole files, smaller than the optimum: fixed time ' || fixed_then
                WHEN recommended_events > median_events
                    THEN 'larger chunks: fixed time ' || fixed_then
                WHEN recommended_events < median_events
                    THEN 'smaller chunks: less waiting for the last ones'
                ELSE 'keep the size: fixed time ' || fixed_then
            END,
            CASE
                WHEN recommended_events > 2 * largest_chunk_events THEN 'no chunk was this large'
            END
        )
    END AS note,
    trace_id
FROM with_text
ORDER BY trace_id, seconds DESC, dataset;

COMMENT ON VIEW chunk_costs IS 'Cost model of chunks, and recommended chunk size. One row per dataset, highest compute time first. The model is seconds = fixed_seconds + seconds_per_event * events, fitted to the compute times of first results. Left out are failed attempts, results from a checkpoint, and the first chunks of each process, which also import modules. The model ignores memory, which grows with the chunk size, and work of the worker other than computing.';
COMMENT ON COLUMN chunk_costs.dataset IS 'Dataset name.';
COMMENT ON COLUMN chunk_costs.chunks IS 'Chunks available for the model.';
COMMENT ON COLUMN chunk_costs.first_chunks IS 'Chunks left out because their process was warming up: its first chunk, and those that ran at the same time.';
COMMENT ON COLUMN chunk_costs.outliers IS 'Chunks left out of the fit: residual above 4 standard deviations (estimated from the median) and above 1 % of the median time. If more than a quarter are this far off, all are kept. Null if no line was fitted.';
COMMENT ON COLUMN chunk_costs.sizes IS 'Number of distinct chunk sizes.';
COMMENT ON COLUMN chunk_costs.smallest_chunk_events IS 'Events of the smallest chunk. A fit requires sizes that span a factor of 2, with three chunks on either side of the middle.';
COMMENT ON COLUMN chunk_costs.median_events IS 'Median number of events per chunk.';
COMMENT ON COLUMN chunk_costs.largest_chunk_events IS 'Events of the largest chunk.';
COMMENT ON COLUMN chunk_costs.largest_file_events IS 'Events in the largest file, as far as its chunks were recorded. A chunk cannot be larger than its file.';
COMMENT ON COLUMN chunk_costs.is_known IS 'True if the fixed time is determined to within half of its value (2 standard errors), or is below 5 % of a chunk within errors. If false, note gives the reason.';
COMMENT ON COLUMN chunk_costs.fixed_seconds IS 'Time per chunk that does not depend on its size. If it is not known, the fitted value, if any.';
COMMENT ON COLUMN chunk_costs.fixed_error_seconds IS 'Standard error of the fitted fixed time.';
COMMENT ON COLUMN chunk_costs.seconds_per_event IS 'Additional time per event.';
COMMENT ON COLUMN chunk_costs.r2 IS 'Share of the variance explained by the line.';
COMMENT ON COLUMN chunk_costs.relative_error IS 'Median relative model error over the chunks available for the model, outliers included.';
COMMENT ON COLUMN chunk_costs.fixed_share IS 'Share of the compute time that was fixed cost.';
COMMENT ON COLUMN chunk_costs.min_events IS 'Smallest size at which the expected time of the run is within 2 % of the shortest. The expected time is the work per thread, plus the fixed time of all chunks per thread, plus half a chunk in which threads wait for the last ones. For a fixed time compatible with 0, its upper bound (2 standard errors) is used.';
COMMENT ON COLUMN chunk_costs.max_events IS 'Largest size at which the expected time of the run is within 2 % of the shortest.';
COMMENT ON COLUMN chunk_costs.recommended_events IS 'Recommended chunksize of a coffea Runner: median_events if between min_events and max_events, otherwise the nearer bound, rounded to two digits within the bounds. Never more than largest_file_events.';
COMMENT ON COLUMN chunk_costs.note IS 'Effect and uncertainty of the recommendation, or the reason why there is none and how to obtain one.';
COMMENT ON COLUMN chunk_costs.trace_id IS 'ID of the trace.';
