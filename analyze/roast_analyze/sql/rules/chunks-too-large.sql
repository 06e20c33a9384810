-- Chunks too large to keep all threads busy.
-- At the end of a run, threads are idle while the last chunks are processed. If these chunks are of
-- ordinary size, and there are few chunks per thread, smaller chunks divide the work more evenly.
-- Consecutive runs in a trace are judged separately. With the recommended number of chunks, threads
-- are idle for half a chunk at the end on average, and for a whole one at most.
-- Records: chunk
-- Explains: tail
-- Source: idle threads after the last chunk began; view chunk_costs for the size
-- Documentation: https://docs.dask.org/en/stable/best-practices.html#avoid-very-large-partitions
-- $max_chunks_per_thread = 4: chunks per thread; with more, the end of a run costs little
-- $max_ratio = 2: last chunks relative to the median; longer ones make a long tail
-- $chunks_per_thread = 8: recommended number, if the model is not known
-- $min_open_ratio = 5: time of a smaller chunk relative to that of opening its file
-- $least_saved = 0.6: part of the idle time beyond that of smaller chunks that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.1: part of the idle time that is saved at most; calibrated as well
WITH started AS (
    SELECT
        trace_id,
        process,
        compute_seconds AS seconds,
        coalesce(open_seconds, 0) AS open_seconds,
        events,
        processing_t,
        end_t - compute_seconds AS start_t,
        end_t,
        coalesce(processing_t > max(end_t) OVER before, false) AS is_new
    FROM _chunks
    WHERE outcome = 'memory' AND events > 0 AND chunks_in_task = 1
    WINDOW before AS (
        PARTITION BY trace_id ORDER BY processing_t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
numbered AS (
    SELECT
        *,
        -- Ten times faster than count(*) FILTER.
        sum(is_new::INTEGER) OVER (PARTITION BY trace_id ORDER BY processing_t) AS part
    FROM started
),
marked AS (
    SELECT
        *,
        max(start_t) OVER same AS tail_t,
        median(seconds) OVER same AS median_seconds
    FROM numbered
    WINDOW same AS (PARTITION BY trace_id, part)
),
parts AS (
    SELECT
        trace_id,
        part,
        count(*) AS chunks,
        median(events) AS events,
        sum(events) AS all_events,
        sum(seconds) AS seconds,
        any_value(median_seconds) AS median_seconds,
        median(open_seconds) AS open_seconds,
        max(seconds) FILTER (end_t > tail_t) AS last_seconds,
        max(end_t) - any_value(tail_t) AS tail_seconds,
        sum(end_t - greatest(start_t, tail_t)) FILTER (end_t > tail_t) AS tail_busy_seconds
    FROM marked
    GROUP BY trace_id, part
),
judged AS (
    SELECT
        parts.*,
        greatest(cluster.nthreads * tail_seconds - tail_busy_seconds, 0) AS idle_seconds,
        cluster.nthreads,
        cluster.wall_seconds
    FROM parts
    INNER JOIN _chunk_threads AS cluster USING (trace_id)
    WHERE chunks <= $max_chunks_per_thread * cluster.nthreads
        AND last_seconds <= $max_ratio * median_seconds
),
totals AS (
    SELECT
        trace_id,
        sum(chunks) AS chunks,
        any_value(nthreads) AS nthreads,
        any_value(wall_seconds) AS wall_seconds,
        arg_max(events, idle_seconds)::BIGINT AS events,
        arg_max(all_events, idle_seconds) AS all_events,
        count(*) AS parts,
        min(median_seconds) AS least_seconds,
        max(median_seconds) AS most_seconds,
        -- With fewer events, opening files would take too large a part of the time.
        arg_max(events * $min_open_ratio * open_seconds / median_seconds, idle_seconds)
            AS smallest_events,
        sum(idle_seconds) AS idle_seconds,
        sum(seconds) / $chunks_per_thread AS left_seconds
    FROM judged
    GROUP BY trace_id
),
recommended AS (
    SELECT trace_id, min(recommended_events) AS events
    FROM chunk_costs
    WHERE is_known
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    'high' AS confidence,
    format(
        '{} {} for {} threads: threads were idle for {:,.1f} core-seconds while the last chunks were processed.',
        _counted(chunks, 'chunk'),
        CASE
            WHEN parts = 1 THEN format('of about {} s', _three_digits(most_seconds))
            ELSE format(
                'in {} runs, of about {} to {} s,', parts, _three_digits(least_seconds), _three_digits(most_seconds)
            )
        END,
        nthreads, idle_seconds
    ) AS sentence,
    idle_seconds AS core_seconds,
    $least_saved * (idle_seconds - left_seconds) / nthreads AS wall_seconds_min,
    $most_saved * idle_seconds / nthreads AS wall_seconds_max,
    format(
        'Use chunks of about {:,} events (now {:,}).',
        greatest(
            least(
                coalesce(
                    recommended.events,
                    _round_two_digits(all_events / $chunks_per_thread / nthreads, 0)
                ),
                totals.events / 2
            ),
            _round_two_digits(smallest_events, 0)
        )::BIGINT,
        totals.events
    ) AS change,
    'SELECT key, worker, events, compute_seconds, end_t FROM chunks ORDER BY end_t DESC' AS evidence,
    totals.trace_id
FROM totals
LEFT JOIN recommended USING (trace_id)
WHERE idle_seconds > left_seconds AND smallest_events <= totals.events / 2;
