-- Saturated scheduler.
-- The event loop of an idle scheduler has an interval of 20 ms from tick to tick; at 100 ms it is
-- busy for four fifths of the time. The cost is the time in core_time in which threads waited for
-- tasks that were ready. Without samples of the scheduler, workers may be the cause as well. Long
-- stalls that cover this time are its cause, whatever else the scheduler does: a function that
-- waits blocks the event loop without using CPU. If the loops of all processes on its host are late and
-- its own is not on the CPU, the host lacks cores.
-- Records: transition
-- Applies: EXISTS (FROM _core_time WHERE use IN ('dispatch', 'scheduler') AND seconds > 0)
-- Explains: scheduler, dispatch, dependencies, tail
-- Source: distributed's event_loop_interval; Dask, "Where is the bottleneck of the scheduler"
-- Documentation: https://distributed.dask.org/en/stable/efficiency.html
-- $min_share = 0.15: share of the core time in which threads waited for assigned or ready tasks
-- $min_interval_seconds = 0.08: mean time from tick to tick of the event loop
-- $min_cpu_percent = 80: CPU use of the event loop
-- $max_other_share = 0.1: share of the time of its stalls in which no task ended
-- $min_stall_seconds = 0.3: duration of a long stall
-- $min_stall_share = 0.5: share of the waiting time that long stalls cover
-- $large_graph_bytes = 1e7: size of a graph that keeps the scheduler busy instead
-- $least_saved = 0.4: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.1: ratio of the largest saving to the cost; calibrated as well
WITH waited AS (
    SELECT
        trace_id,
        sum(seconds) AS seconds,
        coalesce(sum(seconds) FILTER (use = 'scheduler'), 0) AS unassigned_seconds
    FROM _core_time
    WHERE use IN ('dispatch', 'scheduler')
    GROUP BY trace_id
),
work AS (
    SELECT
        trace_id,
        count(*) AS attempts,
        avg(whole_seconds) AS mean_seconds,
        min(processing_t) AS start_t,
        max(end_t) AS stop_t
    FROM _task_runs
    GROUP BY trace_id
),
-- If tasks keep the scheduler busy, it stalls when they end. A process that lacks CPU stalls at any time.
stalled AS (
    SELECT
        stall.trace_id,
        sum(stall.seconds) AS stalled_seconds,
        count(*) FILTER (stall.seconds >= $min_stall_seconds) AS long_stalls,
        coalesce(sum(stall.seconds) FILTER (stall.seconds >= $min_stall_seconds), 0) AS long_seconds,
        coalesce(
            sum(stall.seconds) FILTER (attempt.end_t IS NULL OR attempt.end_t < stall.start_t - 0.05), 0
        ) AS other_seconds
    FROM (
        -- A stall can begin with the graph, before the first task is assigned.
        SELECT
            stalls.* EXCLUDE (seconds),
            least(stalls.stop_t, work.stop_t) - greatest(stalls.start_t, work.start_t) AS seconds,
            stalls.stop_t + 0.05 AS until_t
        FROM stalls
        INNER JOIN work
            ON stalls.trace_id = work.trace_id
            AND stalls.start_t < work.stop_t
            AND stalls.stop_t > work.start_t
        WHERE stalls.process = 'scheduler'
    ) AS stall
    ASOF LEFT JOIN (SELECT trace_id, end_t FROM _task_runs WHERE end_t IS NOT NULL) AS attempt
        ON stall.trace_id = attempt.trace_id AND stall.until_t >= attempt.end_t
    GROUP BY stall.trace_id
),
loops AS (
    SELECT
        sample.trace_id,
        count(*) AS samples,
        median(sample.event_loop_interval_seconds) AS interval_seconds,
        median(sample.loop_cpu_percent) AS cpu_percent
    FROM scheduler_samples AS sample
    INNER JOIN work ON sample.trace_id = work.trace_id AND sample.t BETWEEN start_t AND stop_t
    GROUP BY sample.trace_id
),
waiting AS (
    SELECT
        *,
        coalesce(
            stalled.long_seconds * mean_nthreads >= $min_stall_share * waited.seconds, false
        ) AS is_blocked,
        -- A thread that is on the CPU does not wait for a core.
        host IS NOT NULL AND coalesce(cpu_percent < $min_cpu_percent, true) AS lacks_cores
    FROM waited
    INNER JOIN work USING (trace_id)
    INNER JOIN _run_size USING (trace_id)
    LEFT JOIN loops USING (trace_id)
    LEFT JOIN stalled USING (trace_id)
    LEFT JOIN (
        SELECT trace_id, host, interval_seconds AS host_seconds, reason, is_sampled
        FROM _host_load
        WHERE has_scheduler AND is_loaded
    ) USING (trace_id)
)
SELECT
    NULL::VARCHAR AS entity,
    CASE
        WHEN samples IS NULL AND NOT is_blocked OR lacks_cores OR EXISTS (
            FROM graph_updates AS update
            WHERE update.trace_id = waiting.trace_id AND update.graph_bytes >= $large_graph_bytes
        ) THEN 'low'
        ELSE 'high'
    END AS confidence,
    CASE
        WHEN is_blocked THEN format(
            'The event loop of the scheduler was blocked {}, for {:.1f} s in all: threads waited for {:.1f}'
            ' core-seconds for tasks that were ready.',
            CASE long_stalls WHEN 1 THEN 'once' ELSE long_stalls || ' times' END, long_seconds, seconds
        )
        ELSE concat(
            format(
                'Threads waited {:,.1f} core-seconds for ready tasks: {:.0f} ms for each of {:,} tasks'
                ' of {:.0f} ms.', seconds, 1000 * seconds / attempts, attempts, 1000 * mean_seconds
            ),
            format(
                ' The event loop of the scheduler took {:.0f} ms from tick to tick (20 ms if idle).',
                1000 * interval_seconds
            )
        )
    END || CASE
        WHEN lacks_cores AND is_sampled THEN format(
            ' On its host ({}), {}{}.',
            host, reason, coalesce(format('; it was on the CPU for {:.0f} % of the time', cpu_percent), '')
        )
        WHEN lacks_cores THEN format(
            ' The event loops of all processes on its host ({}) were late, every {:.0f} ms or less often{}:'
            ' the cores of the host were in use.',
            host, 1000 * host_seconds,
            coalesce(format(', and its own was on the CPU for {:.0f} % of the time', cpu_percent), '')
        )
        ELSE ''
    END AS sentence,
    seconds AS core_seconds,
    $least_saved * seconds / mean_nthreads AS wall_seconds_min,
    $most_saved * seconds / mean_nthreads AS wall_seconds_max,
    CASE
        WHEN lacks_cores
            THEN 'Check which programs use the cores of host ' || host || ', and give the scheduler its own. Judge the'
            ' scheduler by a run on a host with free cores.'
        WHEN is_blocked
            THEN 'Look for functions that wait or compute on the scheduler: client.run_on_scheduler, plugins and'
            ' callbacks. Move their work to a task, a thread or the client.'
        ELSE 'Use fewer and longer tasks; remove slow plugins and callbacks of the scheduler, and give it its'
        ' own core.'
    END AS change,
    CASE
        WHEN is_blocked
            THEN 'SELECT start_t, seconds FROM stalls WHERE process = ''scheduler'' ORDER BY seconds DESC'
        ELSE 'SELECT t, loop_cpu_percent, event_loop_interval_seconds FROM scheduler_samples ORDER BY t'
    END AS evidence,
    trace_id
FROM waiting
WHERE seconds >= $min_share * run_core_seconds
    AND (
        is_blocked
        OR (
            (stalled_seconds IS NULL OR other_seconds <= $max_other_share * stalled_seconds)
            AND CASE
                WHEN samples > 0
                    THEN interval_seconds >= $min_interval_seconds OR cpu_percent >= $min_cpu_percent
                -- Without samples, the scheduler had tasks to assign, or tasks are short.
                ELSE unassigned_seconds >= 0.2 * seconds OR mean_seconds < 0.1
            END
        )
    );
