-- Needs: _chunks
-- Cost model of chunks by dataset: fixed time plus time per event. A least-squares line is
-- fitted, outliers are removed, and the line is fitted again. If the sizes are too similar to
-- determine the fixed time, the measured time to open a file replaces it.
CREATE TABLE _chunk_cost_models AS
WITH results AS (
    SELECT trace_id, dataset, events, compute_seconds AS seconds, open_seconds
    FROM _chunks
    WHERE is_first_result AND chunks_in_task = 1 AND events > 0 AND compute_seconds > 0
        -- Chunks cut off by a time range are excluded.
        AND compute_seconds = whole_seconds
),
rough AS (
    SELECT
        trace_id,
        dataset,
        regr_intercept(seconds, events) AS fixed_seconds,
        regr_slope(seconds, events) AS event_seconds,
        -- Smaller residuals are not outliers.
        0.01 * median(seconds) AS tolerance
    FROM results
    GROUP BY trace_id, dataset
    HAVING count(DISTINCT events) > 2
),
residuals AS (
    SELECT
        results.*,
        rough.tolerance,
        results.seconds - rough.fixed_seconds - rough.event_seconds * results.events AS residual
    FROM results
    INNER JOIN rough
        ON results.trace_id = rough.trace_id
        AND results.dataset IS NOT DISTINCT FROM rough.dataset
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
kept AS (
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
        count(*) AS chunks,
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
    FROM kept
    GROUP BY trace_id, dataset
    HAVING count(*) > 4 AND count(DISTINCT events) > 2
),
opening AS (
    SELECT
        trace_id,
        dataset,
        count(*) AS chunks,
        count(DISTINCT events) AS sizes,
        median(events) AS median_events,
        max(events) AS most_events,
        sum(seconds) AS seconds,
        CASE WHEN count(open_seconds) = count(*) THEN median(open_seconds) END AS open_seconds,
        CASE
            WHEN count(open_seconds) = count(*) THEN median((seconds - open_seconds) / events)
        END AS open_event_seconds
    FROM results
    GROUP BY trace_id, dataset
),
chosen AS (
    SELECT
        opening.* EXCLUDE (open_event_seconds),
        opening.chunks - line.chunks AS outliers,
        line.line_fixed_seconds,
        line.fixed_error,
        line.line_event_seconds,
        line.r2,
        -- Upper bound of the fixed time.
        greatest(line_fixed_seconds, 0) + 2 * line.fixed_error AS fixed_bound,
        -- Below this, the time of a chunk is considered independent of its number of events.
        0.01 * opening.seconds / opening.chunks / opening.median_events AS least_event_seconds,
        line_event_seconds > least_event_seconds AS grows,
        CASE
            WHEN grows AND line_fixed_seconds > 2 * line.fixed_error THEN 'fit'
            -- A fixed time compatible with 0 and below 5 % is determined well enough, too.
            WHEN grows
                AND greatest(fixed_bound, -line_fixed_seconds)
                    < 0.05 * line_event_seconds * opening.median_events THEN 'fit'
            WHEN coalesce(line_fixed_seconds, 0) >= -2 * coalesce(line.fixed_error, 0)
                AND opening.chunks > 4
                AND open_event_seconds > least_event_seconds THEN 'opening'
        END AS method,
        CASE method
            WHEN 'fit' THEN greatest(line_fixed_seconds, 0)
            WHEN 'opening' THEN opening.open_seconds
        END AS fixed_seconds,
        CASE method
            WHEN 'fit' THEN line_event_seconds
            WHEN 'opening' THEN open_event_seconds
        END AS event_seconds,
        -- Fixed time used for min_events: its upper bound if it is compatible with 0.
        CASE
            WHEN method = 'fit' AND line_fixed_seconds <= 2 * line.fixed_error THEN fixed_bound
            ELSE fixed_seconds
        END AS burden_seconds
    FROM opening
    LEFT JOIN line
        ON opening.trace_id = line.trace_id
        AND opening.dataset IS NOT DISTINCT FROM line.dataset
),
errors AS (
    SELECT
        results.trace_id,
        results.dataset,
        median(
            abs(results.seconds - chosen.fixed_seconds - chosen.event_seconds * results.events)
            / results.seconds
        ) AS relative_error
    FROM results
    INNER JOIN chosen
        ON results.trace_id = chosen.trace_id
        AND results.dataset IS NOT DISTINCT FROM chosen.dataset
    WHERE chosen.method IS NOT NULL
    GROUP BY results.trace_id, results.dataset
)
SELECT chosen.*, errors.relative_error
FROM chosen
LEFT JOIN errors
    ON chosen.trace_id = errors.trace_id
    AND chosen.dataset IS NOT DISTINCT FROM errors.dataset;
