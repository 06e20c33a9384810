-- Needs: _attempt_intervals, _buckets, _task_runs, _task_states, _worker_presence, _worker_statuses, _workers
-- Every thread-second that the workers offered, by what it was used for. The sweep is exact: between
-- two changes, all counts are constant.
--
-- On each worker, in this order: threads compute, or prepare to. Of the others, each waits for
-- one attempt that was assigned to the worker: none if the worker is paused, then one that
-- fetches its inputs, one of which only the end is known, and one that is on its way. What is left
-- has no assigned task. For that, counts of the whole cluster decide, again one thread each:
-- tasks that are ready and wait for the scheduler, then tasks that wait on other workers. What is
-- left lacks tasks: dependencies are unfinished, or the run is near its end. Both are true at
-- once when a final merge waits for the last tasks, so these threads are divided as the work is:
-- seconds of waiting tasks against seconds that running tasks still need.
CREATE MACRO core_time_by(bucket_seconds) AS TABLE
WITH timeline AS MATERIALIZED (
    SELECT
        -- Numbers are faster to sort by than texts.
        row_number() OVER (ORDER BY trace_id) AS trace,
        * REPLACE (least(width, extent) AS width, greatest(buckets, 1) AS buckets)
    FROM _buckets(bucket_seconds)
),
-- Times are relative to the start of the recording, for precision.
presence AS MATERIALIZED (
    SELECT
        timeline.trace,
        process,
        present.nthreads,
        greatest(present.from_t - timeline.start_t, 0) AS joined_at,
        least(present.to_t - timeline.start_t, extent) AS left_at
    FROM _worker_presence AS present
    INNER JOIN timeline USING (trace_id)
    WHERE present.nthreads > 0 AND joined_at < left_at
),
intervals AS MATERIALIZED (
    SELECT
        trace,
        process,
        part.kind,
        part.use,
        part.prefix,
        part.dataset,
        part.span_id,
        part.stop_t - timeline.start_t AS stop_at,
        greatest(part.start_t - timeline.start_t, joined_at) AS begin_at,
        least(part.stop_t - timeline.start_t, left_at) AS end_at
    FROM _attempt_intervals AS part
    INNER JOIN presence USING (process)
    INNER JOIN timeline USING (trace)
    WHERE begin_at < end_at
),
-- Conditions of a worker. A worker that the scheduler removed after a time without heartbeats
-- was silent since its last one.
conditions AS (
    SELECT
        process.process,
        CASE WHEN status.status = 'paused' THEN 'paused' ELSE 'leaving' END AS condition,
        status.start_t,
        coalesce(status.stop_t, process.removed_t, 'infinity'::DOUBLE) AS stop_t
    FROM _worker_statuses AS status
    ASOF INNER JOIN _workers AS process
        ON status.trace_id = process.trace_id
        AND status.worker = process.worker
        AND status.start_t >= process.from_t
    WHERE status.status IN ('paused', 'closing_gracefully', 'closing')
    UNION ALL
    SELECT process.process, 'silent', max(seen.last_seen), process.removed_t
    FROM _workers AS process
    INNER JOIN raw.worker_sample AS seen
        ON process.trace_id = seen.trace_id
        AND process.worker = seen.worker
        AND seen.t BETWEEN process.from_t AND process.removed_t
    WHERE starts_with(process.removal_stimulus_id, 'check-worker-ttl')
    GROUP BY process.process, process.removed_t
    UNION ALL
    -- A worker that joined during the run joins until its first task is dispatched.
    SELECT
        process.process,
        'joining',
        process.added_t,
        coalesce(min(run.processing_t), process.removed_t, 'infinity'::DOUBLE)
    FROM _workers AS process
    INNER JOIN (SELECT trace_id, min(t) AS t FROM raw.task GROUP BY trace_id) AS submitted
        ON process.trace_id = submitted.trace_id AND process.added_t > submitted.t
    LEFT JOIN _task_runs AS run
        ON process.trace_id = run.trace_id
        AND process.worker = run.worker
        AND run.processing_t >= process.added_t
    GROUP BY process.process, process.added_t, process.removed_t
),
changes AS (
    SELECT
        any_value(trace) AS trace,
        process,
        instant,
        sum(amount) FILTER (what = 'threads') AS threads,
        sum(amount) FILTER (what = 'busy') AS busy,
        sum(amount) FILTER (what = 'transfer') AS transfer,
        sum(amount) FILTER (what = 'unreported') AS unreported,
        sum(amount) FILTER (what = 'dispatch') AS dispatch,
        sum(amount) FILTER (what = 'paused') AS paused,
        sum(amount) FILTER (what = 'silent') AS silent,
        sum(amount) FILTER (what = 'leaving') AS leaving,
        sum(amount) FILTER (what = 'joining') AS joining
    FROM (
        SELECT
            trace,
            process,
            kind AS what,
            unnest([begin_at, end_at]) AS instant,
            unnest([1, -1]::DOUBLE[]) AS amount
        FROM intervals
        UNION ALL
        SELECT
            trace,
            process,
            'threads',
            unnest([joined_at, left_at]),
            unnest([nthreads, -nthreads]::DOUBLE[])
        FROM presence
        UNION ALL
        SELECT
            trace,
            process,
            condition,
            unnest([begin_at, end_at]),
            unnest([1, -1]::DOUBLE[])
        FROM (
            SELECT
                presence.trace,
                process,
                condition,
                greatest(conditions.start_t - timeline.start_t, joined_at) AS begin_at,
                least(conditions.stop_t - timeline.start_t, left_at) AS end_at
            FROM conditions
            INNER JOIN presence USING (process)
            INNER JOIN timeline USING (trace)
        )
        WHERE begin_at < end_at
        UNION ALL
        -- The levels at the boundaries of buckets.
        SELECT trace, process, 'boundary', boundary, 0
        FROM (
            SELECT
                trace,
                process,
                joined_at,
                left_at,
                unnest(range(1, buckets)) * width AS boundary
            FROM presence
            INNER JOIN timeline USING (trace)
        )
        WHERE boundary > joined_at AND boundary < left_at
    )
    GROUP BY process, instant
),
-- The amounts of a process add up to zero, so sums need no partitions, which are slow.
levels AS (
    SELECT
        trace,
        process,
        instant,
        CASE WHEN lead(process) OVER in_order = process THEN lead(instant) OVER in_order END
            AS next_instant,
        coalesce(sum(threads) OVER so_far, 0) AS threads,
        coalesce(sum(busy) OVER so_far, 0) AS busy,
        coalesce(sum(transfer) OVER so_far, 0) AS transfer,
        coalesce(sum(unreported) OVER so_far, 0) AS unreported,
        coalesce(sum(dispatch) OVER so_far, 0) AS dispatch,
        coalesce(sum(paused) OVER so_far, 0) > 0 AS is_paused,
        coalesce(sum(silent) OVER so_far, 0) > 0 AS is_silent,
        coalesce(sum(leaving) OVER so_far, 0) > 0 AS is_leaving,
        coalesce(sum(joining) OVER so_far, 0) > 0 AS is_joining
    FROM changes
    WINDOW
        in_order AS (ORDER BY process, instant),
        so_far AS (ORDER BY process, instant ROWS UNBOUNDED PRECEDING)
),
slices AS MATERIALIZED (
    SELECT
        trace,
        process,
        instant,
        next_instant,
        coalesce(next_instant - instant, 0) AS seconds,
        is_joining,
        busy,
        transfer,
        unreported,
        dispatch,
        least(busy, threads) AS busy_threads,
        threads - busy_threads AS idle_threads,
        CASE WHEN is_silent THEN idle_threads ELSE 0 END AS silent_threads,
        CASE WHEN is_paused AND NOT is_silent THEN idle_threads ELSE 0 END AS paused_threads,
        idle_threads - silent_threads - paused_threads AS free_threads,
        least(free_threads, transfer) AS transfer_threads,
        least(free_threads - transfer_threads, unreported) AS unreported_threads,
        least(free_threads - transfer_threads - unreported_threads, dispatch) AS dispatch_threads,
        free_threads - transfer_threads - unreported_threads - dispatch_threads AS rest,
        CASE WHEN is_leaving THEN rest ELSE 0 END AS leaving_threads,
        rest - leaving_threads AS unassigned_threads,
        -- Ready tasks that wait for a thread of this worker.
        dispatch - dispatch_threads AS backlog
    FROM levels
),
-- Seconds of a thread that an attempt of each kind has received: differences count.
received AS (
    SELECT
        process,
        instant,
        coalesce(sum(seconds * busy_threads / nullif(busy, 0)) OVER before, 0) AS busy,
        coalesce(sum(seconds * transfer_threads / nullif(transfer, 0)) OVER before, 0) AS transfer,
        coalesce(sum(seconds * unreported_threads / nullif(unreported, 0)) OVER before, 0)
            AS unreported,
        coalesce(sum(seconds * dispatch_threads / nullif(dispatch, 0)) OVER before, 0) AS dispatch
    FROM slices
    WINDOW before AS (
        ORDER BY process, instant ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
pieces AS (
    -- Intervals, cut at the boundaries of buckets.
    SELECT
        * EXCLUDE (begin_at, end_at, bucket),
        bucket,
        greatest(begin_at, bucket * width) AS begin_at,
        CASE WHEN bucket < last_bucket THEN (bucket + 1) * width ELSE end_at END AS end_at
    FROM (
        SELECT
            intervals.*,
            width,
            least(ceil(end_at / width) - 1, buckets - 1)::BIGINT AS last_bucket,
            unnest(range(floor(begin_at / width)::BIGINT, last_bucket + 1)) AS bucket
        FROM intervals
        INNER JOIN timeline USING (trace)
    )
),
assigned AS (
    SELECT
        pieces.trace,
        pieces.process,
        pieces.bucket,
        pieces.kind,
        pieces.use,
        pieces.prefix,
        pieces.dataset,
        pieces.span_id,
        sum(CASE pieces.kind
            WHEN 'busy' THEN until.busy - since.busy
            WHEN 'transfer' THEN until.transfer - since.transfer
            WHEN 'unreported' THEN until.unreported - since.unreported
            ELSE until.dispatch - since.dispatch
        END) AS seconds
    FROM pieces
    INNER JOIN received AS since
        ON pieces.process = since.process
        AND pieces.begin_at = since.instant
    INNER JOIN received AS until
        ON pieces.process = until.process
        AND pieces.end_at = until.instant
    GROUP BY ALL
),
states AS MATERIALIZED (
    SELECT
        trace,
        states.from_t - timeline.start_t AS from_at,
        coalesce(states.until_t - timeline.start_t, extent) AS until_at,
        (states.state IN ('queued', 'no-worker'))::DOUBLE AS ready,
        (states.state = 'waiting')::DOUBLE AS waiting,
        CASE WHEN states.state = 'waiting' THEN durations.seconds END AS waiting_seconds
    FROM _task_states AS states
    INNER JOIN timeline USING (trace_id)
    LEFT JOIN (
        SELECT trace_id, key, max(whole_seconds) AS seconds
        FROM _task_runs
        GROUP BY trace_id, key
    ) AS durations USING (trace_id, key)
),
-- The cluster: threads without tasks, and what there was to do.
cluster_changes AS (
    SELECT
        trace,
        instant,
        sum(unassigned) AS unassigned,
        sum(backlog) AS backlog,
        sum(ready) AS ready,
        sum(unfinished) AS unfinished,
        sum(waiting) AS waiting,
        sum(waiting_seconds) AS waiting_seconds,
        sum(begun) AS begun,
        sum(running_until) AS running_until
    FROM (
        SELECT
            trace,
            unnest([instant, next_instant]) AS instant,
            unnest([unassigned_threads, -unassigned_threads]) AS unassigned,
            unnest([backlog, -backlog]) AS backlog
        FROM slices
        WHERE (unassigned_threads > 0 OR backlog > 0) AND next_instant IS NOT NULL
        UNION ALL BY NAME
        SELECT
            trace,
            unnest([greatest(from_at, 0), least(until_at, extent)]) AS instant,
            unnest([ready, -ready]) AS ready,
            unnest([1, -1]::DOUBLE[]) AS unfinished,
            unnest([waiting, -waiting]) AS waiting,
            unnest([waiting_seconds, -waiting_seconds]) AS waiting_seconds
        FROM states
        INNER JOIN timeline USING (trace)
        WHERE greatest(from_at, 0) < least(until_at, extent)
        UNION ALL BY NAME
        SELECT
            trace,
            unnest([begin_at, end_at]) AS instant,
            unnest([1, -1]::DOUBLE[]) AS begun,
            unnest([stop_at, -stop_at]) AS running_until
        FROM intervals
        WHERE kind = 'busy'
    )
    GROUP BY trace, instant
),
cluster_levels AS (
    SELECT
        trace,
        instant,
        CASE WHEN lead(trace) OVER in_order = trace
            THEN lead(instant) OVER in_order - instant
            ELSE 0
        END AS seconds,
        coalesce(sum(unassigned) OVER so_far, 0) AS unassigned,
        coalesce(sum(backlog) OVER so_far, 0) AS backlog,
        coalesce(sum(ready) OVER so_far, 0) AS ready,
        coalesce(sum(unfinished) OVER so_far, 0) AS unfinished,
        coalesce(sum(waiting) OVER so_far, 0) AS waiting,
        coalesce(sum(waiting_seconds) OVER so_far, 0) AS waiting_seconds,
        coalesce(sum(begun) OVER so_far, 0) AS running,
        -- What running tasks still need, at the beginning.
        greatest(coalesce(sum(running_until) OVER so_far, 0) - running * instant, 0)
            AS running_seconds
    FROM cluster_changes
    WINDOW
        in_order AS (ORDER BY trace, instant),
        so_far AS (ORDER BY trace, instant ROWS UNBOUNDED PRECEDING)
),
active AS (
    SELECT
        trace,
        min(from_at) AS first_at,
        max(until_at) AS last_at
    FROM states
    GROUP BY trace
),
reasons AS (
    SELECT
        trace,
        instant,
        seconds,
        running * seconds AS done_seconds,
        -- What is left at the end; rounding can leave a remainder of nothing.
        CASE WHEN running > 0 THEN greatest(running_seconds - done_seconds, 0) ELSE 0 END
            + waiting_seconds AS left_seconds,
        -- Mean of waiting_seconds / (waiting_seconds + running_seconds), which is an integral of
        -- 1 / x, since running_seconds falls evenly.
        CASE
            WHEN waiting_seconds < 1e-9 THEN (waiting > 0 AND running = 0)::DOUBLE
            WHEN done_seconds < 1e-5 * left_seconds
                THEN waiting_seconds / (left_seconds + done_seconds / 2)
            ELSE waiting_seconds * ln(1 + done_seconds / left_seconds) / done_seconds
        END AS dependent_share,
        least(ready, unassigned) AS scheduler_threads,
        least(backlog, unassigned - scheduler_threads) AS backlog_threads,
        unassigned - scheduler_threads - backlog_threads AS lacking_threads,
        CASE
            WHEN unfinished > 0 THEN [
                scheduler_threads,
                backlog_threads,
                lacking_threads * dependent_share,
                lacking_threads * (1 - dependent_share),
                0, 0, 0
            ]
            WHEN coalesce(instant < first_at, true) THEN [0, 0, 0, 0, unassigned, 0, 0]
            WHEN instant < last_at THEN [0, 0, 0, 0, 0, unassigned, 0]
            ELSE [0, 0, 0, 0, 0, 0, unassigned]
        END AS threads,
        seconds / unassigned AS thread_seconds
    FROM cluster_levels
    LEFT JOIN active USING (trace)
    WHERE unassigned > 0 AND seconds > 0
),
-- Seconds of an unassigned thread, by reason: differences count.
explained AS (
    SELECT
        trace,
        instant,
        [
            sum(threads[1] * thread_seconds) OVER so_far,
            sum(threads[2] * thread_seconds) OVER so_far,
            sum(threads[3] * thread_seconds) OVER so_far,
            sum(threads[4] * thread_seconds) OVER so_far,
            sum(threads[5] * thread_seconds) OVER so_far,
            sum(threads[6] * thread_seconds) OVER so_far,
            sum(threads[7] * thread_seconds) OVER so_far
        ] AS seconds
    FROM reasons
    WINDOW so_far AS (PARTITION BY trace ORDER BY instant ROWS UNBOUNDED PRECEDING)
),
unassigned AS (
    SELECT
        slices.trace,
        slices.process,
        slices.instant,
        slices.next_instant,
        is_joining,
        unassigned_threads,
        unnest([
            'scheduler', 'imbalance', 'dependencies', 'tail', 'before first graph', 'between graphs',
            'after last result'
        ]) AS use,
        unnest(until.seconds) AS until_seconds,
        unnest(since.seconds) AS since_seconds
    FROM slices
    ASOF INNER JOIN explained AS until
        ON slices.trace = until.trace AND slices.next_instant > until.instant
    ASOF LEFT JOIN explained AS since
        ON slices.trace = since.trace AND slices.instant > since.instant
    WHERE unassigned_threads > 0
),
parts AS (
    SELECT
        CASE WHEN kind IN ('busy', 'unreported') THEN 'busy' ELSE 'assigned' END AS category,
        * EXCLUDE (kind)
    FROM assigned
    UNION ALL BY NAME
    SELECT
        'idle' AS category,
        trace,
        process,
        floor((instant + next_instant) / 2 / width)::BIGINT AS bucket,
        CASE
            WHEN is_joining AND use IN ('scheduler', 'imbalance') THEN 'joining worker'
            ELSE use
        END AS use,
        unassigned_threads * (coalesce(until_seconds, 0) - coalesce(since_seconds, 0)) AS seconds
    FROM unassigned
    INNER JOIN timeline USING (trace)
    UNION ALL BY NAME
    SELECT
        unnest(['assigned', 'idle', 'unknown']) AS category,
        trace,
        process,
        floor((instant + next_instant) / 2 / width)::BIGINT AS bucket,
        unnest(['paused worker', 'leaving worker', 'silent worker']) AS use,
        unnest([paused_threads, leaving_threads, silent_threads]) * seconds AS seconds
    FROM slices
    INNER JOIN timeline USING (trace)
    WHERE paused_threads + leaving_threads + silent_threads > 0
)
SELECT
    timeline.start_t + bucket * width AS t,
    parts.category,
    parts.use,
    workers.worker,
    workers.name,
    parts.prefix,
    parts.dataset,
    parts.span_id,
    sum(parts.seconds) AS seconds,
    workers.server_id,
    timeline.trace_id
FROM parts
INNER JOIN timeline USING (trace)
INNER JOIN _workers AS workers USING (process)
GROUP BY ALL
-- Rounding can leave less than a nanosecond.
HAVING sum(parts.seconds) > 1e-9
ORDER BY timeline.trace_id, t, workers.worker, parts.category, parts.use, parts.prefix, parts.span_id;

CREATE VIEW core_time AS FROM core_time_by(NULL);

COMMENT ON MACRO TABLE core_time_by IS 'The view core_time with buckets of a given length in seconds; one bucket for the whole run with ''infinity''.';
COMMENT ON VIEW core_time IS 'What the thread time of the cluster was used for. One row per time bucket, worker, use, prefix, dataset and span. The seconds of all rows add up to run.core_seconds; core_time_by(''infinity'') has no time buckets.';
COMMENT ON COLUMN core_time.t IS 'Start of the time bucket, in seconds since the epoch.';
COMMENT ON COLUMN core_time.category IS 'busy: a thread computed a result or prepared to · assigned: a thread was free, and a task assigned to its worker did not compute yet · idle: no assigned task · unknown.';
COMMENT ON COLUMN core_time.use IS 'busy: kept result, recomputed result (it was lost and computed again), failed attempt, lost attempt, cancelled attempt, unfinished attempt, deserialize, disk · assigned: transfer (of inputs), dispatch (on its way to the worker or held up there), paused worker · idle: scheduler (ready tasks wait for it), imbalance (ready tasks wait on other workers), dependencies (tasks wait for others), tail (fewer tasks are left than threads), before first graph, between graphs, after last result, joining worker, leaving worker · unknown: silent worker. Attempts that were lost are taken to compute as soon as a thread is free.';
COMMENT ON COLUMN core_time.worker IS 'Worker address.';
COMMENT ON COLUMN core_time.name IS 'Worker name, which a restarted worker keeps.';
COMMENT ON COLUMN core_time.prefix IS 'Prefix of the task, if there is one (busy, transfer and dispatch).';
COMMENT ON COLUMN core_time.dataset IS 'Dataset of the chunk, if the task is one.';
COMMENT ON COLUMN core_time.span_id IS 'Span of the task.';
COMMENT ON COLUMN core_time.seconds IS 'Thread time.';
COMMENT ON COLUMN core_time.server_id IS 'Process identity.';
COMMENT ON COLUMN core_time.trace_id IS 'Trace identity.';
