-- Needs: _first_results
-- Records: chunk
-- Cost model of chunks by dataset: fixed time plus time per event, a least-squares line. Chunks
-- that ran while their process warmed up are left out, and so are outliers of a first fit. The line
-- is fitted only to sizes that differ by a factor of 2 or more: if a line through similar sizes
-- were extrapolated to size 0, any trend of the run would become a fixed time.
CREATE TABLE _chunk_cost_models AS
WITH results AS (FROM _first_results),
-- At least three chunks are on either side of the middle (of logarithms): one odd chunk, such as
-- the rest of a file, does not determine the line.
sizes AS (
    SELECT *, sqrt(min(events) OVER same * max(events) OVER same) AS middle
    FROM results
    WHERE NOT is_warming_up
    WINDOW same AS (PARTITION BY trace_id, dataset)
),
spread AS (
    SELECT trace_id, dataset
    FROM sizes
    GROUP BY trace_id, dataset
    HAVING max(events) >= 2 * min(events)
        AND least(count(*) FILTER (events < middle), count(*) FILTER (events > middle)) > 2
),
warm AS (
    SELECT results.*
    FROM results
    INNER JOIN spread
        ON results.trace_id = spread.trace_id
        AND results.dataset IS NOT DISTINCT FROM spread.dataset
    WHERE NOT results.is_warming_up
),
rough AS (
    SELECT
        trace_id,
        dataset,
        regr_intercept(seconds, events) AS fixed_seconds,
        regr_slope(seconds, events) AS event_seconds,
        -- Smaller residuals are not outliers.
        0.01 * median(seconds) AS tolerance
    FROM warm
    GROUP BY trace_id, dataset
),
residuals AS (
    SELECT
        warm.*,
        rough.tolerance,
        warm.seconds - rough.fixed_seconds - rough.event_seconds * warm.events AS residual
    FROM warm
    INNER JOIN rough
        ON warm.trace_id = rough.trace_id AND warm.dataset IS NOT DISTINCT FROM rough.dataset
),
near AS (
    SELECT
        *,
        -- 4 standard deviations of a normal distribution, estimated by the median absolute
        -- deviation.
        abs(residual - median(residual) OVER same)
            <= greatest(4 * 1.4826 * mad(residual) OVER same, tolerance) AS is_near
    FROM residuals
    WINDOW same AS (PARTITION BY trace_id, dataset)
),
fitted AS (
    SELECT *
    FROM near
    WINDOW same AS (PARTITION BY trace_id, dataset)
    -- If there are many outliers, the line is wrong, not the chunks.
    QUALIFY is_near OR count(*) FILTER (NOT is_near) OVER same > 0.25 * count(*) OVER same
),
line AS (
    SELECT
        trace_id,
        dataset,
        count(*) AS fitted_chunks,
        regr_intercept(seconds, events) AS line_fixed_seconds,
        regr_slope(seconds, events) AS line_event_seconds,
        regr_r2(seconds, events) AS r2,
        -- Standard error of the intercept.
        sqrt(
            greatest(
                regr_syy(seconds, events)
                - regr_slope(seconds, events) * regr_sxy(seconds, events),
                0
            )
            / (count(*) - 2)
            * (1 / count(*) + regr_avgx(seconds, events) ** 2 / regr_sxx(seconds, events))
        ) AS fixed_error
    FROM fitted
    GROUP BY trace_id, dataset
    HAVING count(*) > 4 AND max(events) > min(events)
),
totals AS (
    SELECT
        trace_id,
        dataset,
        count(*) AS all_chunks,
        count(*) FILTER (NOT is_warming_up) AS chunks,
        count(DISTINCT events) AS sizes,
        max(events) FILTER (NOT is_warming_up) >= 2 * min(events) FILTER (NOT is_warming_up)
            AS is_wide,
        count(DISTINCT process) AS processes,
        min(events) AS smallest_chunk_events,
        median(events) AS median_events,
        max(events) AS largest_chunk_events,
        sum(events) AS events,
        sum(seconds) AS seconds
    FROM results
    GROUP BY trace_id, dataset
),
judged AS (
    SELECT
        totals.*,
        totals.chunks - line.fitted_chunks AS outliers,
        line.line_fixed_seconds,
        line.fixed_error,
        line.line_event_seconds,
        line.r2,
        -- Upper bound of the fixed time.
        greatest(line_fixed_seconds, 0) + 2 * line.fixed_error AS fixed_bound,
        -- Below 1 % of the mean, the time of a chunk does not depend on its number of events.
        line_event_seconds > 0.01 * totals.seconds / totals.all_chunks / totals.median_events
            AS grows,
        -- The fixed time is determined to within half of its value, or compatible with 0 and
        -- below 5 % of a chunk.
        coalesce(
            grows AND (
                line_fixed_seconds > 2 * line.fixed_error
                OR greatest(fixed_bound, -line_fixed_seconds)
                    < 0.05 * line_event_seconds * totals.median_events
            ),
            false
        ) AS is_known
    FROM totals
    LEFT JOIN line
        ON totals.trace_id = line.trace_id AND totals.dataset IS NOT DISTINCT FROM line.dataset
),
models AS (
    SELECT
        *,
        CASE WHEN is_known THEN greatest(line_fixed_seconds, 0) END AS fixed_seconds,
        CASE WHEN is_known THEN line_event_seconds END AS event_seconds,
        -- Fixed time used for the recommendation: its upper bound if it is compatible with 0.
        CASE
            WHEN line_fixed_seconds <= 2 * fixed_error THEN fixed_bound
            ELSE line_fixed_seconds
        END AS burden_seconds
    FROM judged
),
errors AS (
    SELECT
        results.trace_id,
        results.dataset,
        median(
            abs(results.seconds - models.fixed_seconds - models.event_seconds * results.events)
            / results.seconds
        ) AS relative_error
    FROM results
    INNER JOIN models
        ON results.trace_id = models.trace_id
        AND results.dataset IS NOT DISTINCT FROM models.dataset
    WHERE models.is_known AND NOT results.is_warming_up
    GROUP BY results.trace_id, results.dataset
)
SELECT models.*, errors.relative_error
FROM models
LEFT JOIN errors
    ON models.trace_id = errors.trace_id
    AND models.dataset IS NOT DISTINCT FROM errors.dataset;
