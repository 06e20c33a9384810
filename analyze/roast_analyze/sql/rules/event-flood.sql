-- Many events of one topic.
-- Workers send each event to the scheduler, which keeps the last ones of each topic and passes each to those who
-- subscribe, in the event loop that also assigns tasks. Topics that Dask writes by itself, such as those of workers
-- and clients, are not counted. The cost is the sampled time that tasks spent on sending events, of any topic, in log_event
-- of Dask; that of the scheduler is not known, and counted in scheduler-saturated.
-- Records: event
-- Applies: EXISTS (SELECT topic FROM raw.event WHERE NOT _is_topic_of_dask(topic) GROUP BY trace_id, topic HAVING count(*) >= $min_events)
-- Source: Dask events (view events), and kinds of work of view busy_time
-- Documentation: https://distributed.dask.org/en/stable/logging.html#structured-logs
-- $min_events = 2000: events of the topic
-- $min_rate = 100: events per second, from the first to the last of the topic
-- $min_share = 0.1: share of the sampled time of a prefix that its tasks spent on sending events
-- $least_saved = 0.3: part of this time, on all threads, that is saved at least; assumed
WITH topics AS (
    SELECT
        trace_id,
        topic,
        count(*) AS events,
        max(t) - min(t) AS seconds,
        events / nullif(max(t) - min(t), 0) AS rate,
        count(DISTINCT worker) AS workers
    FROM raw.event
    WHERE NOT _is_topic_of_dask(topic)
    GROUP BY trace_id, topic
    HAVING count(*) >= $min_events AND coalesce(rate >= $min_rate, true)
    QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY count(*) DESC, topic) = 1
),
spent AS (
    SELECT
        trace_id,
        prefix,
        sum(seconds) FILTER (
            -- What waits for the GIL or a core is named by what it would compute.
            if(kind = 'runnable but not on the CPU', detail, kind) = 'sending events'
        ) AS spent_seconds,
        sum(seconds) FILTER (samples > 0) AS sampled_seconds
    FROM _busy_time
    SEMI JOIN topics USING (trace_id)
    GROUP BY trace_id, prefix
    HAVING spent_seconds >= $min_share * sampled_seconds
    QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY spent_seconds DESC, prefix) = 1
)
SELECT
    topics.topic AS entity,
    'medium' AS confidence,
    concat(
        format(
            '{:,} events of topic {} in {:.1f} s ({:,.0f} per second) reached the scheduler{}.',
            events, topic, topics.seconds, coalesce(rate, events),
            CASE workers WHEN 0 THEN '' WHEN 1 THEN ' from one worker' ELSE format(' from {} workers', workers) END
        ),
        format(
            ' Tasks of {} spent {:.1f} of {:.1f} sampled core-seconds on sending events.',
            spent.prefix, spent.spent_seconds, spent.sampled_seconds
        )
    ) AS sentence,
    spent.spent_seconds AS core_seconds,
    $least_saved * spent.spent_seconds / mean_nthreads AS wall_seconds_min,
    spent.spent_seconds / mean_nthreads AS wall_seconds_max,
    format(
        'Call log_event less often: sum up within a task, and log one event for it, or write such lines to the log of'
        ' the worker (logging). Each event of topic {} is handled in the event loop of the scheduler.', topic
    ) AS change,
    'SELECT topic, count(*) AS events, min(t) AS start_t, max(t) AS stop_t FROM events GROUP BY topic'
        ' ORDER BY events DESC' AS evidence,
    trace_id
FROM topics
INNER JOIN _run_size USING (trace_id)
LEFT JOIN spent USING (trace_id);
