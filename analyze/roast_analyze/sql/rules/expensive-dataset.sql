-- Dataset with a high cost per event.
-- This is not a problem, and saves nothing: it is reported so that it is not mistaken for one. The
-- cost is the compute time of its events, also without opening and reading, and without slow files,
-- which other rules cover.
-- Records: chunk
-- Source: time per event by dataset, in all and as the median of chunks
-- Documentation: https://coffea-hep.readthedocs.io/en/latest/notebooks/processor.html
-- $min_ratio = 2: time per event relative to that of the next most expensive dataset
-- $min_share = 0.2: share of the compute time of all chunks
WITH datasets AS (
    SELECT
        trace_id,
        dataset,
        median(
            greatest(compute_seconds - coalesce(open_seconds, 0) - coalesce(read_seconds, 0), 0) / events
        ) FILTER (NOT is_warming_up) AS usual_event_seconds,
        sum(events) AS events,
        sum(compute_seconds) AS seconds,
        sum(compute_seconds) / sum(events) AS event_seconds,
        min(start_t) AS start_t
    FROM _chunks AS chunk
    WHERE is_first_result AND events > 0 AND NOT EXISTS (
        FROM _relative_duration AS file
        WHERE file.is_slow
            AND file.trace_id = chunk.trace_id
            AND file.dataset IS NOT DISTINCT FROM chunk.dataset
            AND file.filename = chunk.filename
            AND file.treename IS NOT DISTINCT FROM chunk.treename
    )
    GROUP BY ALL
),
compared AS (
    SELECT
        *,
        seconds / sum(seconds) OVER same AS share,
        events / sum(events) OVER same AS event_share,
        max(usual_event_seconds) OVER others AS next_usual_event_seconds,
        max(event_seconds) OVER others AS next_event_seconds,
        arg_max(dataset, event_seconds) OVER others AS next_dataset,
        start_t = min(start_t) OVER same AS is_first
    FROM datasets
    WINDOW
        same AS (PARTITION BY trace_id),
        others AS (
            PARTITION BY trace_id ORDER BY dataset
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW
        )
)
SELECT
    dataset AS entity,
    'high' AS confidence,
    format(
        'Events of {} take {:.2g} ms each, {:.1f} times as long as those of the next dataset, {}: {:.0f} % of'
        ' the compute time for {:.0f} % of the events{}. This is not a fault.',
        dataset, 1e3 * event_seconds, event_seconds / next_event_seconds, next_dataset, 100 * share,
        100 * event_share,
        CASE
            WHEN EXISTS (
                FROM _relative_duration AS file
                WHERE file.is_slow AND file.filename IS NOT NULL AND file.trace_id = compared.trace_id
            )
                THEN ', without slow files'
            ELSE ''
        END
    ) AS sentence,
    NULL::DOUBLE AS core_seconds,
    NULL::DOUBLE AS wall_seconds_min,
    NULL::DOUBLE AS wall_seconds_max,
    CASE
        WHEN is_first THEN 'No change is needed.'
        ELSE 'No change to the data is needed. Submit this dataset first, so that its chunks do not run last.'
    END AS change,
    'SELECT dataset, events, compute_seconds, events_per_second, compute_share FROM datasets' AS evidence,
    compared.trace_id
FROM compared
WHERE next_usual_event_seconds > 0
    AND usual_event_seconds >= $min_ratio * next_usual_event_seconds
    AND event_seconds >= $min_ratio * next_event_seconds
    AND share >= $min_share;
