-- Needs: _attempt_ends, _task_runs, _worker_arrivals
-- An arrival belongs to the attempt that ended next on the scheduler's clock, because work
-- stealing can send a task again within an attempt.
CREATE VIEW dispatch_latency AS
WITH runs AS (
    SELECT *, coalesce(end_t, 'infinity'::DOUBLE) AS until_t
    FROM _task_runs
    SEMI JOIN (SELECT DISTINCT trace_id FROM raw.worker_transition) USING (trace_id)
),
assigned AS (
    SELECT arrival.*, run.seq
    FROM _worker_arrivals AS arrival
    ASOF INNER JOIN runs AS run
        ON arrival.trace_id = run.trace_id
        AND arrival.key = run.key
        AND arrival.sent_t <= run.until_t
),
arrivals AS (
    -- Last arrival at the worker.
    SELECT seq, worker, max_by(assigned, sent_t) AS last_arrival
    FROM assigned
    GROUP BY seq, worker
),
instants AS (
    SELECT
        run.*,
        last_arrival.stimulus_id AS worker_stimulus_id,
        last_arrival.sent_t,
        last_arrival.arrived_t,
        last_arrival.ready_t,
        last_arrival.executing_t,
        coalesce(last_arrival.arrived_t, run.processing_t) AS waiting_from_t,
        coalesce(last_arrival.ready_t, last_arrival.arrived_t, run.processing_t) AS ready_from_t,
        coalesce(
            last_arrival.executing_t,
            last_arrival.ready_t,
            last_arrival.arrived_t,
            run.processing_t
        ) AS executing_from_t
    FROM runs AS run
    LEFT JOIN arrivals AS arrival USING (seq, worker)
),
execution AS (
    SELECT
        instants.*,
        sent.stimulus_id,
        list_transform(
            list_filter(ending.startstops, lambda part: part.action IN ('deserialize', 'disk-read')),
            lambda part: struct_pack(
                action := part.action,
                seconds := greatest(
                    least(part.stop, compute_start_t) - greatest(part.start, executing_from_t), 0
                )
            )
        ) AS phases
    FROM instants
    LEFT JOIN raw.transition AS sent ON instants.seq = sent.rowid
    LEFT JOIN _attempt_ends AS ending ON instants.end_seq = ending.seq
),
split AS (
    SELECT
        *,
        list_sum(list_transform(
            list_filter(phases, lambda part: part.action = 'deserialize'), lambda part: part.seconds
        )) AS deserialize,
        list_sum(list_transform(
            list_filter(phases, lambda part: part.action = 'disk-read'), lambda part: part.seconds
        )) AS disk
    FROM execution
),
seconds AS (
    SELECT
        *,
        arrived_t - processing_t AS dispatch,
        ready_t - waiting_from_t AS transfer_wait,
        executing_t - ready_from_t AS queue,
        compute_start_t - executing_from_t - coalesce(deserialize, 0) - coalesce(disk, 0) AS other
    FROM split
)
SELECT
    key,
    prefix,
    attempt,
    worker,
    outcome,
    processing_t,
    arrived_t,
    ready_t,
    executing_t,
    compute_start_t,
    dispatch AS dispatch_seconds,
    transfer_wait AS transfer_wait_seconds,
    queue AS queue_seconds,
    CASE WHEN other IS NOT NULL THEN coalesce(deserialize, 0) END AS deserialize_seconds,
    CASE WHEN other IS NOT NULL THEN coalesce(disk, 0) END AS disk_seconds,
    other AS other_seconds,
    compute_start_t - processing_t AS dispatch_latency_seconds,
    coalesce(sent_t > processing_t, false) AS is_stolen,
    coalesce(least(dispatch, transfer_wait, queue, other) < 0, false) AS clocks_disagree,
    stimulus_id,
    worker_stimulus_id,
    run_id,
    trace_id
FROM seconds
ORDER BY trace_id, seq;

COMMENT ON VIEW dispatch_latency IS 'Time from task dispatch to the start of its computation. One row per attempt, as in task_runs. dispatch_latency_seconds = dispatch_seconds + transfer_wait_seconds + queue_seconds + deserialize_seconds + disk_seconds + other_seconds (null counts as 0). Empty unless recorded with worker_transitions=True; latencies has the times that are known without it.';
COMMENT ON COLUMN dispatch_latency.key IS 'Task key.';
COMMENT ON COLUMN dispatch_latency.prefix IS 'Key prefix. Null if the task was not recorded.';
COMMENT ON COLUMN dispatch_latency.attempt IS 'Attempt number within the key, from 1.';
COMMENT ON COLUMN dispatch_latency.worker IS 'Address of the worker that ran the attempt, or was assigned it if it never ended.';
COMMENT ON COLUMN dispatch_latency.outcome IS 'Outcome of the attempt, as in task_runs.';
COMMENT ON COLUMN dispatch_latency.processing_t IS 'Dispatch by the scheduler, in seconds since the epoch. Null if before the recording.';
COMMENT ON COLUMN dispatch_latency.arrived_t IS 'Arrival at the worker (→waiting), in seconds since the epoch. Null if not reported: the worker died, or already had the result.';
COMMENT ON COLUMN dispatch_latency.ready_t IS 'All dependencies available on the worker (→ready or →constrained), in seconds since the epoch.';
COMMENT ON COLUMN dispatch_latency.executing_t IS 'Thread assigned (→executing), in seconds since the epoch.';
COMMENT ON COLUMN dispatch_latency.compute_start_t IS 'Start of the computation, in seconds since the epoch. Null if it never started or was not reported.';
COMMENT ON COLUMN dispatch_latency.dispatch_seconds IS 'Time from the scheduler to the event loop of the worker. Includes the move between workers if the task was stolen.';
COMMENT ON COLUMN dispatch_latency.transfer_wait_seconds IS 'Time on the worker until all dependencies were available, including the wait for transfers to start.';
COMMENT ON COLUMN dispatch_latency.queue_seconds IS 'Time on the worker, ready, until a thread and the task''s resources were available.';
COMMENT ON COLUMN dispatch_latency.deserialize_seconds IS 'Time to deserialize the task before its computation, if reported.';
COMMENT ON COLUMN dispatch_latency.disk_seconds IS 'Time to read dependencies from disk, if reported: from 5 ms on.';
COMMENT ON COLUMN dispatch_latency.other_seconds IS 'Remaining time from →executing to the start of the computation, mainly waking the thread. Without →executing, from the last known instant.';
COMMENT ON COLUMN dispatch_latency.dispatch_latency_seconds IS 'Time from dispatch to the start of the computation: compute_start_t - processing_t.';
COMMENT ON COLUMN dispatch_latency.is_stolen IS 'True if the task was sent to this worker after processing_t: work stealing moved it from another worker.';
COMMENT ON COLUMN dispatch_latency.clocks_disagree IS 'True if a part is negative: dispatch_seconds if the worker''s estimate of the scheduler clock is off, other parts if the estimate was corrected in between, by a heartbeat.';
COMMENT ON COLUMN dispatch_latency.stimulus_id IS 'Stimulus of the transition to processing on the scheduler.';
COMMENT ON COLUMN dispatch_latency.worker_stimulus_id IS 'Stimulus of the transition to waiting on the worker.';
COMMENT ON COLUMN dispatch_latency.run_id IS 'Dask''s run id of the attempt.';
COMMENT ON COLUMN dispatch_latency.trace_id IS 'ID of the trace.';
