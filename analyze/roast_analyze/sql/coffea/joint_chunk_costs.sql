-- Needs: _chunk_cost_models, _chunks, _cluster_size, _first_results, _round_two_digits
-- Records: chunk
CREATE VIEW joint_chunk_costs AS
WITH warm AS (
    FROM _first_results WHERE NOT is_warming_up AND dataset IS NOT NULL
),
-- Each run has enough chunks to know the scatter of their times.
runs AS (
    SELECT trace_id, dataset, count(*) AS chunks, median(events) AS median_events
    FROM warm
    GROUP BY trace_id, dataset
    HAVING count(*) > 2
),
spread AS (
    SELECT
        dataset,
        count(*) AS runs,
        sum(chunks)::BIGINT AS all_chunks,
        min(median_events) AS least_median,
        max(median_events) AS most_median
    FROM runs
    GROUP BY dataset
    HAVING max(median_events) >= 2 * min(median_events) AND sum(chunks) > 4
),
fitted AS (
    SELECT warm.* FROM warm INNER JOIN runs USING (trace_id, dataset) SEMI JOIN spread USING (dataset)
),
line AS (
    SELECT
        dataset,
        regr_intercept(seconds, events) AS fixed,
        regr_slope(seconds, events) AS per_event,
        regr_r2(seconds, events) AS r2,
        avg(seconds) AS mean_seconds,
        -- Standard error of the intercept.
        sqrt(
            greatest(regr_syy(seconds, events) - regr_slope(seconds, events) * regr_sxy(seconds, events), 0)
            / (count(*) - 2)
            * (1 / count(*) + regr_avgx(seconds, events) ** 2 / regr_sxx(seconds, events))
        ) AS fixed_error
    FROM fitted
    GROUP BY dataset
),
judged AS (
    SELECT
        *,
        -- As in _chunk_cost_models: the fixed time is determined to within half of its value, or compatible
        -- with 0 and below 5 % of a chunk.
        coalesce(
            per_event * most_median > 0.01 * mean_seconds
            AND (
                fixed > 2 * fixed_error
                OR greatest(greatest(fixed, 0) + 2 * fixed_error, -fixed) < 0.05 * per_event * least_median
            ),
            false
        ) AS is_known
    FROM line
    INNER JOIN spread USING (dataset)
),
residuals AS (
    SELECT
        fitted.trace_id,
        fitted.dataset,
        sum(fitted.seconds) / sum(line.fixed + line.per_event * fitted.events) AS relative_duration
    FROM fitted
    INNER JOIN line USING (dataset)
    GROUP BY fitted.trace_id, fitted.dataset
),
files AS (
    SELECT trace_id, dataset, max(entry_stop) AS largest_file_events FROM _chunks GROUP BY trace_id, dataset
)
SELECT
    dataset,
    judged.runs,
    judged.all_chunks AS chunks,
    round(runs.median_events)::BIGINT AS median_events,
    judged.is_known,
    if(judged.is_known, greatest(judged.fixed, 0), judged.fixed) AS fixed_seconds,
    judged.fixed_error AS fixed_error_seconds,
    judged.per_event AS seconds_per_event,
    judged.r2,
    residuals.relative_duration,
    CASE WHEN judged.is_known THEN round(least(
        _round_two_digits(
            sqrt(
                2 * greatest(judged.fixed, 2 * judged.fixed_error) * cost.events
                / coalesce(nullif(cluster.peak_nthreads, 0), cost.processes) / judged.per_event
            ),
            1
        ),
        files.largest_file_events
    ))::BIGINT END AS best_events,
    runs.trace_id
FROM runs
INNER JOIN judged USING (dataset)
INNER JOIN residuals USING (trace_id, dataset)
INNER JOIN _chunk_cost_models AS cost USING (trace_id, dataset)
LEFT JOIN files USING (trace_id, dataset)
LEFT JOIN _cluster_size AS cluster USING (trace_id)
ORDER BY dataset, trace_id;

COMMENT ON VIEW joint_chunk_costs IS 'Cost model of chunks, fitted to all opened traces together: for runs of which each has one chunk size, so that chunk_costs does not know the fixed time of any. One row per dataset and run, of datasets whose median chunk sizes differ by a factor of 2 or more between runs. The model is seconds = fixed_seconds + seconds_per_event * events, as in chunk_costs, without leaving out outliers. It assumes that the runs differ in nothing but the chunk size: a run that was slower for another reason, as on a loaded host, changes the model. Empty for one trace.';
COMMENT ON COLUMN joint_chunk_costs.dataset IS 'Dataset name. Chunks without one are left out.';
COMMENT ON COLUMN joint_chunk_costs.runs IS 'Runs to whose chunks the model is fitted.';
COMMENT ON COLUMN joint_chunk_costs.chunks IS 'Their chunks.';
COMMENT ON COLUMN joint_chunk_costs.median_events IS 'Median number of events per chunk of this run.';
COMMENT ON COLUMN joint_chunk_costs.is_known IS 'True if the fixed time is determined to within half of its value (2 standard errors), or is below 5 % of a chunk within errors.';
COMMENT ON COLUMN joint_chunk_costs.fixed_seconds IS 'Time per chunk that does not depend on its size, such as for opening the file. If it is not known, the fitted value.';
COMMENT ON COLUMN joint_chunk_costs.fixed_error_seconds IS 'Standard error of the fitted fixed time, by the scatter of the chunks; that of whole runs is not included.';
COMMENT ON COLUMN joint_chunk_costs.seconds_per_event IS 'Additional time per event.';
COMMENT ON COLUMN joint_chunk_costs.r2 IS 'Share of the variance explained by the line.';
COMMENT ON COLUMN joint_chunk_costs.relative_duration IS 'Compute time of the chunks of this run relative to the model. With runs of three or more sizes, a value far from 1 shows that the runs differ in something else.';
COMMENT ON COLUMN joint_chunk_costs.best_events IS 'Number of events per chunk with which the expected time of this run is shortest (see chunk_costs.min_events), rounded to two digits; at most that of the largest file.';
COMMENT ON COLUMN joint_chunk_costs.trace_id IS 'ID of the trace.';
