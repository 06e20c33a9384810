-- Needs: _chunks, _discarded_results, _is_kept, _task_phases, _task_runs, _worker_conditions, _workers
-- What an attempt did on its worker from dispatch to the end of its computation, in intervals that do
-- not overlap: `busy` held a thread, `transfer` fetched its inputs, `dispatch` is the rest. An attempt without phases that began to execute before its worker
-- was lost is `busy` as long as the worker was seen. Nothing but the outcome is known of others without
-- phases: their interval is `unreported`.
CREATE VIEW _attempt_intervals AS
WITH datasets AS (
    SELECT seq, any_value(dataset) AS dataset FROM _chunks WHERE seq IS NOT NULL GROUP BY seq
),
attempts AS (
    SELECT
        run.trace_id,
        run.end_seq,
        process.process,
        run.prefix,
        run.span_id,
        datasets.dataset,
        CASE
            WHEN _is_kept(run.outcome, discarded.seq) THEN 'kept result'
            WHEN run.outcome = 'memory' THEN 'recomputed result'
            WHEN run.outcome IN ('erred', 'retried') THEN 'failed attempt'
            WHEN run.outcome = 'lost' THEN 'lost attempt'
            WHEN run.outcome = 'unfinished' THEN 'unfinished attempt'
            ELSE 'cancelled attempt'
        END AS use,
        -- A task that was already processing when recording began has no time of dispatch.
        coalesce(run.processing_t, '-infinity'::DOUBLE) AS processing_t,
        coalesce(run.end_t, 'infinity'::DOUBLE) AS end_t,
        run.execute_start_t,
        run.seq
    FROM _task_runs AS run
    ASOF INNER JOIN _workers AS process
        ON run.trace_id = process.trace_id
        AND run.worker = process.worker
        AND coalesce(run.processing_t, '-infinity'::DOUBLE) >= process.from_t
    LEFT JOIN _discarded_results AS discarded ON run.seq = discarded.seq
    LEFT JOIN datasets ON run.seq = datasets.seq
),
phases AS (
    SELECT * FROM _task_phases SEMI JOIN attempts USING (end_seq) WHERE start_t < stop_t
),
starts AS (
    SELECT
        end_seq,
        min(start_t) FILTER (action <> 'transfer') AS busy_t,
        min(start_t) FILTER (action = 'transfer') AS transfer_t,
        max(stop_t) FILTER (action = 'transfer') AS transferred_t
    FROM phases
    GROUP BY end_seq
    HAVING busy_t IS NOT NULL
),
-- Between deserializing, reading from disk and computing.
gaps AS (
    SELECT
        end_seq,
        max(stop_t) OVER (
            PARTITION BY end_seq
            ORDER BY start_t, stop_t
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS gap_t,
        start_t
    FROM phases
    WHERE action <> 'transfer'
),
waits AS (
    SELECT
        attempts.*,
        busy_t,
        -- least() and greatest() ignore nulls.
        CASE WHEN transfer_t IS NOT NULL
            THEN least(greatest(transfer_t, processing_t), busy_t)
        END AS transfer_t,
        CASE WHEN transfer_t IS NOT NULL THEN least(transferred_t, busy_t) END AS transferred_t
    FROM attempts
    INNER JOIN starts USING (end_seq)
),
unreported AS (
    SELECT * FROM attempts ANTI JOIN starts USING (end_seq)
),
intervals AS (
    SELECT
        attempts.*,
        'busy' AS kind,
        CASE
            WHEN action = 'compute' THEN use
            WHEN action = 'deserialize' THEN 'deserialize'
            ELSE 'disk'
        END AS used_for,
        start_t,
        stop_t
    FROM attempts
    INNER JOIN phases USING (end_seq)
    WHERE action <> 'transfer'
    UNION ALL BY NAME
    SELECT *, 'transfer' AS kind, 'transfer' AS used_for, transfer_t AS start_t, transferred_t AS stop_t
    FROM waits
    UNION ALL BY NAME
    SELECT
        *,
        'dispatch' AS kind,
        'dispatch' AS used_for,
        processing_t AS start_t,
        coalesce(transfer_t, busy_t) AS stop_t
    FROM waits
    UNION ALL BY NAME
    SELECT *, 'dispatch' AS kind, 'dispatch' AS used_for, transferred_t AS start_t, busy_t AS stop_t
    FROM waits
    UNION ALL BY NAME
    SELECT
        attempts.*,
        'dispatch' AS kind,
        'dispatch' AS used_for,
        gap_t AS start_t,
        gaps.start_t AS stop_t
    FROM attempts
    INNER JOIN gaps USING (end_seq)
    UNION ALL BY NAME
    SELECT
        *,
        'dispatch' AS kind,
        'dispatch' AS used_for,
        processing_t AS start_t,
        execute_start_t AS stop_t
    FROM unreported
    WHERE execute_start_t IS NOT NULL
    UNION ALL BY NAME
    SELECT
        unreported.*,
        'busy' AS kind,
        use AS used_for,
        execute_start_t AS start_t,
        least(end_t, silence.start_t) AS stop_t
    FROM unreported
    LEFT JOIN _worker_conditions AS silence
        ON unreported.process = silence.process AND silence.condition = 'silent'
    WHERE execute_start_t IS NOT NULL
    UNION ALL BY NAME
    SELECT *, 'unreported' AS kind, use AS used_for, processing_t AS start_t, end_t AS stop_t
    FROM unreported
    WHERE execute_start_t IS NULL
)
SELECT trace_id, process, kind, used_for AS use, start_t, stop_t, prefix, dataset, span_id
FROM intervals
WHERE start_t < stop_t;
