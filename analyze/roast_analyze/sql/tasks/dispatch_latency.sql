-- Needs: _task_runs, _worker_arrivals
-- An arrival belongs to the attempt that ended next, on the scheduler's clock alone: work
-- stealing sends a task again while an attempt goes on.
CREATE VIEW dispatch_latency AS
WITH runs AS (
    SELECT *, coalesce(end_t, 'infinity'::DOUBLE) AS until_t
    FROM _task_runs
    SEMI JOIN (SELECT DISTINCT trace_id FROM raw.worker_transition) USING (trace_id)
),
placed AS (
    SELECT arrival.*, run.seq
    FROM _worker_arrivals AS arrival
    ASOF INNER JOIN runs AS run
        ON arrival.trace_id = run.trace_id
        AND arrival.key = run.key
        AND arrival.sent_t <= run.until_t
),
arrivals AS (
    -- The last time that it came to a worker.
    SELECT seq, worker, max_by(placed, sent_t) AS there
    FROM placed
    GROUP BY seq, worker
),
instants AS (
    SELECT
        run.*,
        there.stimulus_id AS worker_stimulus_id,
        there.sent_t,
        there.arrived_t,
        there.ready_t,
        there.executing_t,
        coalesce(there.arrived_t, run.processing_t) AS here_t,
        coalesce(there.ready_t, there.arrived_t, run.processing_t) AS waited_t,
        coalesce(there.executing_t, there.ready_t, there.arrived_t, run.processing_t) AS begun_t
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
                    least(part.stop, compute_start_t) - greatest(part.start, begun_t), 0
                )
            )
        ) AS parts
    FROM instants
    LEFT JOIN raw.transition AS sent ON instants.seq = sent.rowid
    LEFT JOIN raw.transition AS ending ON instants.end_seq = ending.rowid
),
split AS (
    SELECT
        *,
        list_sum(list_transform(
            list_filter(parts, lambda part: part.action = 'deserialize'), lambda part: part.seconds
        )) AS deserialize,
        list_sum(list_transform(
            list_filter(parts, lambda part: part.action = 'disk-read'), lambda part: part.seconds
        )) AS disk
    FROM execution
),
seconds AS (
    SELECT
        *,
        arrived_t - processing_t AS underway,
        ready_t - here_t AS transfer_wait,
        executing_t - waited_t AS queue,
        compute_start_t - begun_t - coalesce(deserialize, 0) - coalesce(disk, 0) AS rest
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
    underway AS dispatch_seconds,
    transfer_wait AS transfer_wait_seconds,
    queue AS queue_seconds,
    CASE WHEN rest IS NOT NULL THEN coalesce(deserialize, 0) END AS deserialize_seconds,
    CASE WHEN rest IS NOT NULL THEN coalesce(disk, 0) END AS disk_seconds,
    rest AS other_seconds,
    compute_start_t - processing_t AS dispatch_latency_seconds,
    coalesce(sent_t > processing_t, false) AS is_stolen,
    coalesce(least(underway, transfer_wait, queue, rest) < 0, false) AS clocks_disagree,
    stimulus_id,
    worker_stimulus_id,
    run_id,
    trace_id
FROM seconds
ORDER BY trace_id, seq;

COMMENT ON VIEW dispatch_latency IS 'What lay between the scheduler''s sending of a task and the begin of its computation: one row per attempt, as in task_runs. dispatch_latency_seconds = dispatch_seconds + transfer_wait_seconds + queue_seconds + deserialize_seconds + disk_seconds + other_seconds (what is null counts as 0). Empty unless the recorder was asked for worker_transitions; latencies tells what can be known without.';
COMMENT ON COLUMN dispatch_latency.key IS 'Key of the task.';
COMMENT ON COLUMN dispatch_latency.prefix IS 'Key prefix: what kind of task it is; null if the task was not recorded.';
COMMENT ON COLUMN dispatch_latency.attempt IS 'Number of the attempt within its key, from 1.';
COMMENT ON COLUMN dispatch_latency.worker IS 'Address of the worker that it ran on, or was sent to if it never ended.';
COMMENT ON COLUMN dispatch_latency.outcome IS 'How it ended, as in task_runs.';
COMMENT ON COLUMN dispatch_latency.processing_t IS 'When the scheduler sent it to a worker, in seconds since the epoch; null if that was before the recording.';
COMMENT ON COLUMN dispatch_latency.arrived_t IS 'When the worker got to know of it (→waiting), in seconds since the epoch; null if it told nothing of it: it had died, or the result was there already.';
COMMENT ON COLUMN dispatch_latency.ready_t IS 'When the results that it takes were there (→ready or →constrained), in seconds since the epoch.';
COMMENT ON COLUMN dispatch_latency.executing_t IS 'When it got a thread (→executing), in seconds since the epoch.';
COMMENT ON COLUMN dispatch_latency.compute_start_t IS 'When the computation began, in seconds since the epoch; null if it never did, or nobody told.';
COMMENT ON COLUMN dispatch_latency.dispatch_seconds IS 'Time from the scheduler to the worker, and until its event loop came to it. Includes the way from one worker to another if it was stolen.';
COMMENT ON COLUMN dispatch_latency.transfer_wait_seconds IS 'Time on the worker until the results that it takes were there: their transfer, and waiting for that to begin.';
COMMENT ON COLUMN dispatch_latency.queue_seconds IS 'Time on the worker, ready, until it had a thread, or the resources that the task needs.';
COMMENT ON COLUMN dispatch_latency.deserialize_seconds IS 'Time of deserialising the task before it was computed, if the worker tells of it.';
COMMENT ON COLUMN dispatch_latency.disk_seconds IS 'Time of reading what it takes from disk, if the worker tells of it: from 5 ms on.';
COMMENT ON COLUMN dispatch_latency.other_seconds IS 'What is left of the time from →executing to the begin of the computation: waking the thread, above all. Without →executing it is from the last instant that is known.';
COMMENT ON COLUMN dispatch_latency.dispatch_latency_seconds IS 'Time from the scheduler''s sending to the begin of the computation: compute_start_t - processing_t; null if either is.';
COMMENT ON COLUMN dispatch_latency.is_stolen IS 'Whether the scheduler sent it to this worker later than processing_t: work stealing took it from another one.';
COMMENT ON COLUMN dispatch_latency.clocks_disagree IS 'Whether a part is less than nothing: dispatch_seconds if the worker''s estimate of the scheduler''s clock is off by more than that, the others if it estimated anew in between, with a heartbeat.';
COMMENT ON COLUMN dispatch_latency.stimulus_id IS 'What made the scheduler send it: stimulus_id of its transition →processing.';
COMMENT ON COLUMN dispatch_latency.worker_stimulus_id IS 'The message that brought it: stimulus_id of the worker''s transition →waiting.';
COMMENT ON COLUMN dispatch_latency.run_id IS 'Number that Dask gave the attempt.';
COMMENT ON COLUMN dispatch_latency.trace_id IS 'Identity of the recording.';
