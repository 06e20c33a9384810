-- Blocked event loops of workers.
-- While its event loop is blocked, a worker does not start tasks, report results, or send data and
-- heartbeats; threads that compute continue. The cost of a stall is therefore the time in which threads
-- were free while tasks of the worker waited to begin, or their results waited to be reported. Stalls
-- count without the time in which the scheduler was blocked, too, which is only in the upper end of the
-- saving: the machine was overloaded, or the scheduler was busy with work that such stalls had delayed.
-- The CPU use of a host is not recorded: if the loops of all processes on a host are late, or if all
-- processes are on one host, the scheduler is blocked as well, and threads are rarely on the CPU, a lack of
-- free cores is possible. Stalls of a worker that writes results to disk belong to rule spilling. Coroutines
-- run in the event loop: they block it if they computed one after another during most of the stalls, and
-- hardly at other times.
-- Records: stall
-- Applies: (SELECT count(*) FROM raw.stall WHERE worker IS NOT NULL) >= $min_stalls
-- Applies: EXISTS (FROM raw.stall WHERE worker IS NOT NULL AND stop_t - start_t >= $long_seconds)
-- Explains: dispatch, dependencies, tail, imbalance, scheduler
-- Source: stalls of event loops, and phases of attempts during them
-- Documentation: https://distributed.dask.org/en/stable/worker.html
-- $min_share = 0.1: stalls of a worker relative to the time of the run
-- $min_stalls = 3: stalls of a worker; imports and the first graph block it once
-- $long_seconds = 4.5: duration of a stall from which fewer count; imports take less
-- $max_stalls = 200: longest stalls of a worker that are examined
-- $max_computing_share = 0.5: share of the stalls in which threads compute
-- $min_cpu_share = 0.5: CPU time of task threads relative to their compute time, below which cores can be lacking
-- $entity_share = 0.6: share of the cost that makes one worker the entity
-- $min_coroutine_share = 0.6: share of the stalls during which coroutines had begun and not ended, if they are named
-- $min_blocking_share = 0.8: share of the compute time of these coroutines that is within stalls, if they block
-- $max_overlap = 1.2: their compute time within stalls relative to the time that it covers, if they block
-- $named_share = 0.1: share of the compute time of coroutines within stalls from which a prefix is named
-- $least_saved = 0.6: part of the cost, on all threads, that is saved at least; calibrated with benchmarks/illnesses
-- $most_saved = 1.5: ratio of the largest saving to the cost; calibrated as well
WITH all_stalls AS (
    SELECT
        stall.trace_id,
        stall.rowid AS stall,
        workers.process,
        workers.worker,
        workers.name,
        coalesce(workers.nthreads, 1) AS nthreads,
        stall.start_t,
        stall.stop_t,
        stall.stop_t - stall.start_t AS seconds
    FROM raw.stall AS stall
    INNER JOIN _workers AS workers USING (trace_id, server_id)
    WHERE stall.worker IS NOT NULL
        AND stall.rowid NOT IN (SELECT spill.stall FROM _spill_stalls AS spill)
),
-- Those of the scheduler follow each other.
both_blocked AS (
    SELECT
        stall.stall,
        greatest(other.start_t, stall.start_t) AS start_t,
        least(other.stop_t, stall.stop_t) AS stop_t
    FROM all_stalls AS stall
    INNER JOIN raw.stall AS other
        ON stall.trace_id = other.trace_id
        AND other.start_t < stall.stop_t
        AND other.stop_t > stall.start_t
    WHERE other.worker IS NULL
),
stalls AS (
    SELECT
        stall.*,
        coalesce(shared.seconds, 0) AS shared_seconds,
        stall.seconds - shared_seconds AS own_seconds,
        count(*) OVER same AS stalls,
        sum(stall.seconds) OVER same AS stalled_seconds,
        sum(shared_seconds) OVER same AS with_scheduler_seconds
    FROM all_stalls AS stall
    INNER JOIN _cluster_size AS cluster USING (trace_id)
    LEFT JOIN (SELECT stall, sum(stop_t - start_t) AS seconds FROM both_blocked GROUP BY stall) AS shared
        USING (stall)
    WINDOW same AS (PARTITION BY trace_id, process)
    QUALIFY (
            count(*) FILTER (own_seconds > 0) OVER same >= $min_stalls
            OR max(own_seconds) OVER same >= $long_seconds
        )
        AND sum(own_seconds) OVER same >= $min_share * (cluster.stop_t - cluster.start_t)
        AND row_number() OVER (same ORDER BY own_seconds DESC) <= $max_stalls
),
-- Parts of stalls in which the scheduler was not blocked.
pieces AS (
    SELECT piece.stall, piece.start_t, piece.stop_t, stalls.trace_id, stalls.worker
    FROM (
        SELECT
            stall,
            coalesce(
                lag(both_blocked.stop_t) OVER (PARTITION BY stall ORDER BY both_blocked.start_t),
                stalls.start_t
            )
                AS start_t,
            both_blocked.start_t AS stop_t
        FROM both_blocked
        INNER JOIN stalls USING (stall)
        UNION ALL
        SELECT stall, coalesce(max(both_blocked.stop_t), any_value(stalls.start_t)), any_value(stalls.stop_t)
        FROM stalls
        LEFT JOIN both_blocked USING (stall)
        GROUP BY stall
    ) AS piece
    INNER JOIN stalls USING (stall)
    WHERE piece.start_t < piece.stop_t
),
attempts AS (
    SELECT
        stall,
        pieces.worker,
        attempt.prefix,
        coroutine.prefix IS NOT NULL AS is_coroutine,
        greatest(compute_start_t, start_t) AS from_t,
        least(compute_stop_t, stop_t) AS until_t,
        -- An attempt that fetches its inputs may wait for them, and for the disk.
        coalesce(transfer_seconds, 0) = 0 AND coalesce(disk_seconds, 0) = 0 AS is_local,
        CASE WHEN is_local THEN least(compute_start_t, stop_t) - greatest(processing_t, start_t) END
            AS before_seconds,
        least(compute_stop_t, stop_t) - greatest(compute_start_t, start_t) AS compute_seconds,
        CASE WHEN is_local THEN least(end_t, stop_t) - greatest(compute_stop_t, start_t) END
            AS after_seconds
    FROM pieces
    INNER JOIN _task_runs AS attempt
        ON pieces.trace_id = attempt.trace_id
        AND pieces.worker = attempt.worker
        -- What a worker computes while the scheduler moves the task to another one and back began before.
        AND least(attempt.processing_t, attempt.compute_start_t) < pieces.stop_t
        AND attempt.end_t > pieces.start_t
    LEFT JOIN _coroutine_prefixes AS coroutine
        ON attempt.trace_id = coroutine.trace_id AND attempt.prefix = coroutine.prefix
),
waits AS (
    SELECT
        stall,
        sum(greatest(before_seconds, 0) + greatest(after_seconds, 0)) AS wait_seconds,
        sum(greatest(compute_seconds, 0)) AS compute_seconds,
        coalesce(sum(greatest(compute_seconds, 0)) FILTER (NOT is_coroutine), 0) AS thread_seconds
    FROM attempts
    GROUP BY stall
),
-- What each coroutine adds to the time of a stall that the earlier ones cover.
coroutines AS (
    SELECT
        stall,
        worker,
        prefix,
        until_t - from_t AS seconds,
        greatest(until_t - greatest(from_t, coalesce(max(until_t) OVER before, from_t)), 0) AS covered_seconds
    FROM attempts
    WHERE is_coroutine AND until_t > from_t
    WINDOW before AS (PARTITION BY stall ORDER BY from_t, until_t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
coroutine_prefixes AS (
    SELECT
        stalls.trace_id,
        coroutines.prefix,
        sum(coroutines.seconds) AS seconds,
        sum(covered_seconds) AS covered_seconds
    FROM coroutines
    INNER JOIN stalls USING (stall)
    GROUP BY stalls.trace_id, coroutines.prefix
),
-- On the workers of these stalls, with the time outside of them.
coroutine_totals AS (
    SELECT trace_id, prefix, sum(compute_seconds) AS compute_seconds
    FROM _task_runs
    WHERE (trace_id, worker) IN (SELECT (trace_id, worker) FROM stalls)
        AND (trace_id, prefix) IN (SELECT (trace_id, prefix) FROM coroutine_prefixes)
    GROUP BY trace_id, prefix
),
named AS (
    SELECT *, seconds >= $named_share * sum(seconds) OVER (PARTITION BY trace_id) AS is_named
    FROM coroutine_prefixes
    INNER JOIN coroutine_totals USING (trace_id, prefix)
),
in_loops AS (
    SELECT
        trace_id,
        string_agg(prefix, ', ' ORDER BY seconds DESC, prefix) FILTER (is_named) AS prefixes,
        if(count(*) FILTER (is_named) = 1, any_value(prefix) FILTER (is_named), NULL) AS prefix,
        sum(covered_seconds) AS covered_seconds,
        sum(seconds) >= $min_blocking_share * sum(compute_seconds)
            AND sum(seconds) <= $max_overlap * sum(covered_seconds) AS is_blocking
    FROM named
    GROUP BY trace_id
    HAVING sum(covered_seconds) >= $min_coroutine_share * (
        SELECT sum(own_seconds) FROM stalls WHERE stalls.trace_id = named.trace_id
    )
),
by_worker AS (
    SELECT
        trace_id,
        name,
        any_value(stalls) AS stalls,
        any_value(stalled_seconds) AS stalled_seconds,
        any_value(with_scheduler_seconds) AS with_scheduler_seconds,
        coalesce(sum(least(waits.thread_seconds, own_seconds)), 0) AS computing_seconds,
        coalesce(
            sum(greatest(least(wait_seconds, nthreads * own_seconds - waits.compute_seconds), 0)), 0
        ) AS seconds
    FROM stalls
    LEFT JOIN waits USING (stall)
    GROUP BY trace_id, process, name
),
-- A worker and its replacement count once.
by_name AS (
    SELECT trace_id, name, sum(COLUMNS(* EXCLUDE (trace_id, name)))
    FROM by_worker
    GROUP BY trace_id, name
),
longest AS (
    SELECT stall.trace_id, workers.process, sum(stall.stop_t - stall.start_t) AS seconds
    FROM raw.stall AS stall
    INNER JOIN _workers AS workers USING (trace_id, server_id)
    SEMI JOIN stalls ON stalls.process = workers.process
    WHERE stall.worker IS NOT NULL
        AND stall.rowid NOT IN (SELECT spill.stall FROM _spill_stalls AS spill)
    GROUP BY ALL
),
scheduler_stalls AS (
    SELECT stall.trace_id, sum(stall.stop_t - stall.start_t) AS seconds
    FROM raw.stall AS stall
    INNER JOIN _cluster_size AS cluster USING (trace_id)
    SEMI JOIN (
        SELECT trace_id FROM machines WHERE process IN ('scheduler', 'worker') GROUP BY trace_id
        HAVING count(DISTINCT host) = 1 AND count(DISTINCT process) = 2
    ) AS one_host USING (trace_id)
    WHERE stall.worker IS NULL
    GROUP BY stall.trace_id, cluster.start_t, cluster.stop_t
    HAVING count(*) >= $min_stalls AND seconds >= $min_share * (cluster.stop_t - cluster.start_t)
),
shortages AS (
    SELECT trace_id, cpu_share, seconds AS scheduler_seconds
    FROM _cpu_shares
    INNER JOIN scheduler_stalls USING (trace_id)
    WHERE cpu_share < $min_cpu_share
),
loads AS (
    SELECT trace_id, max(host) AS host, arg_max(reason, host) AS reason
    FROM _loaded_workers
    WHERE worker IN (SELECT worker FROM stalls)
    GROUP BY trace_id
),
totals AS (
    SELECT
        trace_id,
        count(*) AS blocked_workers,
        arg_max(name, seconds) AS worst,
        max(seconds) AS worst_seconds,
        worst_seconds >= $entity_share * sum(seconds) AS is_one,
        (SELECT max(longest.seconds) FROM longest WHERE longest.trace_id = by_name.trace_id)
            AS longest_seconds,
        -- Of the worker that is named.
        if(is_one, arg_max(stalled_seconds, seconds), sum(stalled_seconds)) AS stalled_seconds,
        if(is_one, arg_max(with_scheduler_seconds, seconds), sum(with_scheduler_seconds))
            AS with_scheduler_seconds,
        if(is_one, arg_max(computing_seconds, seconds), sum(computing_seconds)) AS computing_seconds,
        if(is_one, arg_max(stalls, seconds), sum(stalls))::BIGINT AS stalls,
        sum(seconds) AS seconds
    FROM by_name
    GROUP BY trace_id
)
SELECT
    CASE WHEN is_blocking AND in_loops.prefix IS NOT NULL THEN in_loops.prefix WHEN is_one THEN worst END AS entity,
    -- Tasks that compute may hold the GIL: see rule gil.
    CASE
        WHEN is_blocking THEN if(loads.host IS NULL, 'high', 'medium')
        WHEN cpu_share IS NULL AND loads.host IS NULL
            AND computing_seconds < $max_computing_share * (stalled_seconds - with_scheduler_seconds)
            THEN 'high'
        ELSE 'low'
    END AS confidence,
    CASE
        WHEN is_one THEN format('The event loop of worker {} was', worst)
        WHEN blocked_workers = 1 THEN 'The event loop of 1 worker was'
        ELSE format('The event loops of {} workers were', blocked_workers)
    END || format(
        ' blocked {}, {:.1f} s{}{}. Meanwhile, free threads waited for {:,.1f} core-seconds.',
        CASE stalls WHEN 1 THEN 'once' WHEN 2 THEN 'twice' ELSE stalls || ' times' END,
        stalled_seconds,
        if(stalls > 1, ' in all', ''),
        CASE WHEN with_scheduler_seconds >= 0.05 THEN format(
            ', {:.1f} s of it while that of the scheduler was, too, which is not counted below',
            with_scheduler_seconds
        ) ELSE '' END,
        seconds
    ) || coalesce(
        format(
            ' Tasks of {} are coroutines (async def), which run in the event loop: {} during {:.1f} s of the stalls.',
            in_loops.prefixes, if(is_blocking, 'they computed one after another', 'some had begun and not ended'),
            in_loops.covered_seconds
        ),
        ''
    ) || coalesce(
        format(' On host {}, {}.', loads.host, loads.reason),
        if(is_blocking, '', NULL),
        format(
            ' Task threads were on the CPU for {:.0f} % of the compute time, and the event loop of the scheduler,'
            ' on the same host, was blocked for {:.1f} s: a lack of free cores is a possible cause.',
            100 * cpu_share, scheduler_seconds
        ),
        ''
    ) AS sentence,
    seconds AS core_seconds,
    $least_saved * seconds / greatest(cluster.peak_nthreads, 1) AS wall_seconds_min,
    -- The last results can depend on one worker, and other workers on its results.
    least(longest_seconds, $most_saved * worst_seconds, cluster.stop_t - cluster.start_t) AS wall_seconds_max,
    CASE WHEN is_blocking
        THEN format(
            'The coroutines of {} block the event loop, as they compute or wait without await. Define them with def, so that'
            ' they run in threads of the workers, or await functions of asynchronous libraries in them.',
            in_loops.prefixes
        )
    ELSE CASE WHEN cpu_share IS NOT NULL OR loads.host IS NOT NULL
        THEN 'Check which other programs use the host. ' ELSE '' END
    || coalesce(
        format(
            'Check whether coroutines of {} compute or wait without await: with def, they run in threads. ',
            in_loops.prefixes
        ),
        ''
    )
    || CASE
        WHEN computing_seconds >= $max_computing_share * stalled_seconds
            THEN 'Check whether tasks hold the GIL: tasks ran during the stalls, and the loop needs it as well. Otherwise,'
            ' look'
        WHEN cpu_share IS NOT NULL OR loads.host IS NOT NULL OR in_loops.prefixes IS NOT NULL THEN 'Otherwise, look'
        ELSE 'Look'
    END
    || ' for plugins, async tasks, callbacks and functions of client.run on workers that compute or wait synchronously:'
    ' move that work to tasks or threads.'
    || if(
        stalls < $min_stalls * blocked_workers,
        ' Imports of large packages block the loop as well: let a preload of the workers import them.', ''
    ) END AS change,
    'SELECT worker, start_t, seconds FROM stalls WHERE process = ''worker'' ORDER BY seconds DESC' AS evidence,
    totals.trace_id
FROM totals
INNER JOIN _cluster_size AS cluster USING (trace_id)
LEFT JOIN shortages USING (trace_id)
LEFT JOIN loads USING (trace_id)
LEFT JOIN in_loops USING (trace_id)
WHERE seconds > 0;
