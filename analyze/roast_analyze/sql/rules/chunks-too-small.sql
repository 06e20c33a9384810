-- Chunks too small for their fixed cost.
-- The fixed time of a chunk is that of the model in view chunk_costs. If all chunks have the same
-- size, the model cannot be fitted, and only the time outside of the processor is known:
-- dispatching the task, opening the file (unless branches are preloaded, because opening includes
-- preloading), and coffea's own work. The fixed time of the processor is then unknown, between zero and
-- all of its time. The rule therefore applies only to short chunks, if a part of their fixed time is
-- known or their events take longer than columnar code needs.
-- Records: chunk
-- Explains: dispatch, deserialize, scheduler
-- Source: cost model of view chunk_costs; Dask's advice against tasks of less than a second
-- Documentation: https://docs.dask.org/en/stable/best-practices.html#avoid-very-large-graphs
-- $min_ratio = 1.5: recommended relative to present chunk size
-- $same_ratio = 1.25: ratio of sizes that are about the same
-- $short_seconds = 0.4: median time of chunks that are short, if the model is not known
-- $few_events = 2000: largest size of such chunks, in events: calls of numpy and awkward cost more than data
-- $min_share = 0.05: known fixed time relative to the time of a chunk, if the model is not known
-- $slow_event_seconds = 0.0001: time of the processor per event, longer than columnar code needs
-- $min_chunks_per_thread = 8: chunks per thread, if the model is not known
-- $certain_share = 0.2: known fixed time relative to the time of all chunks, from which the confidence is medium
-- $events_factor = 20: ratio of the recommended to the present chunk size, if the model is not known
-- $least_saved = 0.7: part of the known time that is saved at least, on all threads; calibrated with benchmarks/illnesses
-- $most_saved = 1.3: ratio of the saving to the possible time, because each chunk also costs scheduling; calibrated as well
WITH dispatched AS (
    SELECT trace_id, dataset, sum(seconds) AS seconds
    FROM _core_time
    WHERE use IN ('dispatch', 'deserialize') AND dataset IS NOT NULL
    GROUP BY ALL
),
fixed AS (
    SELECT
        trace_id,
        dataset,
        sum(compute_seconds) AS seconds,
        count(*) AS chunks,
        median(compute_seconds) AS chunk_seconds,
        -- Medians, so that a slow worker or file does not count.
        median(
            compute_seconds - process_seconds - CASE
                WHEN _is_preloaded(read_seconds / nullif(branches_read, 0)) THEN coalesce(open_seconds, 0)
                ELSE 0
            END
        ) FILTER (NOT is_warming_up)
            + coalesce(any_value(dispatched.seconds), 0) / count(*) AS outside_seconds,
        median(process_seconds - coalesce(read_seconds, 0)) FILTER (NOT is_warming_up)
            AS processor_seconds
    FROM _chunks
    LEFT JOIN dispatched USING (trace_id, dataset)
    WHERE is_first_result AND events > 0 AND chunks_in_task = 1
    GROUP BY trace_id, dataset
),
sizes AS (
    SELECT
        fixed.*,
        cost.is_known,
        cost.median_events,
        CASE
            WHEN cost.is_known THEN cost.recommended_events
            ELSE least(
                _round_two_digits($events_factor * cost.median_events, 0), cost.largest_file_events
            )
        END::BIGINT AS better_events,
        CASE WHEN cost.is_known THEN cost.fixed_seconds ELSE outside_seconds END AS known_fixed_seconds
    FROM fixed
    INNER JOIN chunk_costs AS cost
        ON fixed.trace_id = cost.trace_id AND fixed.dataset IS NOT DISTINCT FROM cost.dataset
    INNER JOIN _chunk_threads AS cluster ON fixed.trace_id = cluster.trace_id
    WHERE better_events >= $min_ratio * cost.median_events
        AND (
            cost.is_known OR (
                fixed.chunk_seconds < $short_seconds
                AND cost.median_events <= $few_events
                AND (
                    outside_seconds >= $min_share * fixed.chunk_seconds
                    OR processor_seconds >= $slow_event_seconds * cost.median_events
                )
                AND fixed.chunks >= $min_chunks_per_thread * cluster.nthreads / 2
            )
        )
),
-- Chunks of a dataset can have several sizes, not all of which are too small.
small AS (
    SELECT
        sizes.trace_id,
        sizes.is_known,
        sizes.better_events,
        chunk.events,
        chunk.compute_seconds,
        1 - chunk.events / sizes.better_events AS saved_chunks,
        saved_chunks * known_fixed_seconds AS known_seconds,
        known_seconds + CASE WHEN sizes.is_known THEN 0 ELSE saved_chunks * processor_seconds END
            AS possible_seconds
    FROM sizes
    INNER JOIN _chunks AS chunk
        ON sizes.trace_id = chunk.trace_id AND sizes.dataset IS NOT DISTINCT FROM chunk.dataset
    WHERE chunk.is_first_result
        AND chunk.events > 0
        AND chunk.chunks_in_task = 1
        AND sizes.better_events >= $min_ratio * chunk.events
),
totals AS (
    SELECT
        trace_id,
        bool_and(is_known) AS is_known,
        count(*) AS chunks,
        sum(compute_seconds) AS seconds,
        quantile_disc(events, 0.1) AS least_events,
        median(events)::BIGINT AS median_events,
        quantile_disc(events, 0.9) AS most_events,
        CASE
            WHEN least_events * $same_ratio >= median_events AND most_events <= $same_ratio * median_events
                THEN format('about {:,}', median_events)
            ELSE format('{:,} to {:,}', min(events), max(events))
        END AS sizes,
        min(better_events) AS least_better_events,
        max(better_events) AS most_better_events,
        median(compute_seconds) AS chunk_seconds,
        sum(known_seconds) AS known_seconds,
        sum(possible_seconds) AS possible_seconds
    FROM small
    GROUP BY trace_id
),
counted AS (
    SELECT trace_id, count(*) AS all_chunks
    FROM _chunks
    WHERE is_first_result AND events > 0
    GROUP BY trace_id
)
SELECT
    NULL::VARCHAR AS entity,
    CASE
        WHEN is_known THEN 'high'
        WHEN known_seconds >= $certain_share * totals.seconds THEN 'medium'
        ELSE 'low'
    END AS confidence,
    format(
        '{}{:,} chunks of {} events take {} s each. ', CASE WHEN chunks < all_chunks THEN format('{:,} of ', chunks) ELSE '' END,
        all_chunks, sizes, _three_digits(chunk_seconds)
    ) || CASE
        WHEN is_known
            THEN format('{:.1f} core-seconds are fixed cost that larger chunks avoid.', known_seconds)
        ELSE format(
            'Larger chunks avoid at least {:.1f} core-seconds outside of the processor; its own fixed'
            ' time is not known.', known_seconds
        )
    END AS sentence,
    known_seconds AS core_seconds,
    $least_saved * known_seconds / cluster.nthreads AS wall_seconds_min,
    least($most_saved * possible_seconds / cluster.mean_nthreads, cluster.wall_seconds) AS wall_seconds_max,
    format(
        'Use chunks of about {} events (now {}).',
        CASE
            WHEN least_better_events = most_better_events THEN format('{:,}', most_better_events)
            ELSE format('{:,} to {:,}, depending on the dataset,', least_better_events, most_better_events)
        END,
        replace(sizes, 'about ', '')
    ) AS change,
    'SELECT dataset, chunks, median_events, fixed_seconds, seconds_per_event, recommended_events, note'
    ' FROM chunk_costs' AS evidence,
    totals.trace_id
FROM totals
INNER JOIN counted USING (trace_id)
INNER JOIN _chunk_threads AS cluster USING (trace_id);
