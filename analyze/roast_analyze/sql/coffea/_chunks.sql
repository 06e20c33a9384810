-- Needs: _chunk_measurements, _clip_negative, _coffea_keys, _task_runs, _workers
-- Records: chunk
-- Chunk attempts, merged from three sources: task attempts on the scheduler (_task_runs), chunk
-- records without run_id (the identity of a chunk) and chunk records with run_id (the
-- measurement of an attempt, _chunk_measurements). Without a cluster only the last ones exist.
CREATE TABLE _chunks AS
WITH identity AS (
    SELECT
        chunk.rowid AS record,
        trace_id,
        key,
        chunk.dataset,
        chunk.filename,
        chunk.treename,
        chunk.entry_start,
        chunk.entry_stop
    FROM raw.chunk AS chunk
    SEMI JOIN (FROM _coffea_keys WHERE role = 'chunk') AS chunks USING (trace_id, key)
    WHERE chunk.entry_start IS NOT NULL
    -- If a chunk has no identity record, any of its measurements identifies it.
    QUALIFY bool_and(chunk.run_id IS NOT NULL) OVER (PARTITION BY trace_id, key)
            IS NOT DISTINCT FROM (chunk.run_id IS NOT NULL)
        AND row_number() OVER (
            PARTITION BY trace_id, key, dataset, filename, treename, entry_start, entry_stop
            ORDER BY chunk.run_id IS NOT NULL, record
        ) = 1
),
-- Missing values match everything.
recognised AS (
    SELECT measured.measured, min(identity.record) AS record
    FROM _chunk_measurements AS measured
    INNER JOIN identity
        ON measured.trace_id = identity.trace_id
        AND measured.key = identity.key
        AND coalesce(measured.dataset = identity.dataset, true)
        AND coalesce(measured.filename = identity.filename, true)
        AND coalesce(measured.treename = identity.treename, true)
        AND coalesce(measured.entry_start = identity.entry_start, true)
        AND coalesce(measured.entry_stop = identity.entry_stop, true)
    GROUP BY measured.measured
),
run AS (
    SELECT run.*
    FROM _task_runs AS run
    SEMI JOIN (FROM _coffea_keys WHERE role = 'chunk') AS chunks USING (trace_id, key)
),
-- Traces of a Dask whose run ids could not be read (loss says so). A measurement then belongs to
-- the last attempt at its key that began before it ended.
without_run_ids AS (
    SELECT trace_id
    FROM _task_runs
    GROUP BY trace_id
    HAVING count(run_id) = 0
    UNION
    SELECT trace_id FROM _chunk_measurements WHERE run_id < 0
),
with_measurement AS (
    SELECT run.seq, measured.measured, recognised.record
    FROM run
    INNER JOIN _chunk_measurements AS measured USING (trace_id, key, run_id)
    LEFT JOIN recognised USING (measured)
    -- If records are out of order, two attempts can appear to have the same run_id; the
    -- measurement counts once.
    QUALIFY row_number() OVER (PARTITION BY measured.measured ORDER BY run.seq) = 1
    UNION ALL
    SELECT run.seq, measured.measured, recognised.record
    FROM run
    SEMI JOIN without_run_ids USING (trace_id)
    INNER JOIN _chunk_measurements AS measured
        ON run.trace_id = measured.trace_id
        AND run.key = measured.key
        AND run.run_id IS DISTINCT FROM measured.run_id
        AND coalesce(run.processing_t, '-infinity'::DOUBLE) <= measured.stop_t
    LEFT JOIN recognised USING (measured)
    QUALIFY row_number() OVER (PARTITION BY measured.measured ORDER BY run.seq DESC) = 1
),
-- Without a cluster each measurement is an attempt, followed by the next one at its key. If the
-- task was recorded but this attempt is missing, its number is unknown.
without_task AS (
    SELECT
        measured.measured,
        CASE WHEN ran.key IS NULL THEN dense_rank() OVER in_order END AS attempt,
        min(measured.start_t) OVER (PARTITION BY trace_id, key, measured.run_id) < max(
            measured.start_t
        ) OVER (PARTITION BY trace_id, key) AS is_followed
    FROM (
        SELECT *, min(start_t) OVER (PARTITION BY trace_id, key, run_id) AS begin_t
        FROM _chunk_measurements
        ANTI JOIN with_measurement USING (measured)
    ) AS measured
    LEFT JOIN (SELECT DISTINCT trace_id, key FROM run) AS ran USING (trace_id, key)
    WINDOW in_order AS (PARTITION BY trace_id, key ORDER BY begin_t, measured.run_id)
),
unmeasured AS (
    SELECT run.seq, identity.record
    FROM run
    INNER JOIN identity USING (trace_id, key)
    ANTI JOIN with_measurement USING (seq)
    UNION ALL
    -- Chunks that a task of several chunks did not reach.
    SELECT run.seq, identity.record
    FROM run
    SEMI JOIN with_measurement USING (seq)
    INNER JOIN identity USING (trace_id, key)
    INNER JOIN (
        SELECT trace_id, key FROM identity GROUP BY trace_id, key HAVING count(*) > 1
    ) AS several USING (trace_id, key)
    ANTI JOIN with_measurement AS known
        ON run.seq = known.seq AND identity.record = known.record
),
attempt_chunks AS (
    SELECT seq, measured, record FROM with_measurement
    UNION ALL
    SELECT seq, NULL, record FROM unmeasured
    UNION ALL
    SELECT NULL, measured, record FROM without_task LEFT JOIN recognised USING (measured)
),
numbered AS (
    SELECT
        *,
        count(*) OVER (PARTITION BY seq) AS chunks_in_task,
        row_number() OVER (PARTITION BY seq ORDER BY measured NULLS LAST, record) AS part
    FROM attempt_chunks
),
attempts AS (
    SELECT
        coalesce(run.trace_id, measured.trace_id) AS trace_id,
        coalesce(run.key, measured.key) AS key,
        run.seq,
        run.seq IS NOT NULL AS has_task,
        run.submission,
        coalesce(run.run_id, measured.run_id) AS run_id,
        coalesce(run.attempt, without_task.attempt) AS attempt,
        -- A stolen task ran on another worker than the one it was sent to.
        coalesce(measured.worker, run.worker) AS worker,
        coalesce(run.thread, measured.thread) AS thread,
        CASE
            WHEN run.outcome = 'memory' AND measured.exception IS NOT NULL THEN 'skipped'
            WHEN run.seq IS NOT NULL THEN run.outcome
            WHEN measured.exception IS NULL THEN 'memory'
            WHEN without_task.is_followed THEN 'retried'
            ELSE 'erred'
        END AS outcome,
        coalesce(measured.dataset, identity.dataset) AS dataset,
        coalesce(measured.filename, identity.filename) AS filename,
        coalesce(measured.treename, identity.treename) AS treename,
        coalesce(measured.entry_start, identity.entry_start) AS entry_start,
        coalesce(measured.entry_stop, identity.entry_stop) AS entry_stop,
        coalesce(measured.file_uuid, identity_chunk.file_uuid) AS file_uuid,
        numbered.record AS identity_record,
        numbered.measured,
        -- Identifies an attempt without a task, also in a time range.
        CASE WHEN run.seq IS NULL THEN numbered.measured END AS local_id,
        measured.last_record AS measured_record,
        numbered.part,
        CASE WHEN run.seq IS NULL THEN 1 ELSE numbered.chunks_in_task END AS chunks_in_task,
        measured.events AS measured_events,
        measured.from_checkpoint,
        measured.source,
        measured.measured_until,
        measured.seconds AS measured_seconds,
        measured.open_seconds,
        measured.read_seconds,
        measured.decompress_seconds,
        measured.compression,
        measured.process_seconds,
        measured.cpu_seconds,
        measured.bytes_read,
        measured.requests,
        measured.columns,
        measured.columns_read,
        measured.branches_read,
        measured.file_branches,
        measured.file_bytes,
        measured.compressed_bytes,
        measured.uncompressed_bytes,
        measured.packed_bytes,
        measured.unpacked_bytes,
        measured.memory_before_bytes,
        measured.memory_after_bytes,
        measured.memory_peak_bytes,
        CASE
            WHEN run.seq IS NULL THEN measured.nbytes
            -- Integer shares that add up to the total.
            ELSE run.nbytes // numbered.chunks_in_task
                + (numbered.part <= run.nbytes % numbered.chunks_in_task)::BIGINT
        END AS output_bytes,
        coalesce(run.exception, measured.exception) AS exception,
        CASE
            WHEN run.seq IS NOT NULL THEN run.whole_seconds / numbered.chunks_in_task
            WHEN measured.measured_until IS DISTINCT FROM 'read' THEN measured.seconds
        END AS whole_seconds,
        run.queued_seconds,
        run.transfer_seconds / numbered.chunks_in_task AS transfer_seconds,
        CASE WHEN run.seq IS NULL THEN measured.start_t ELSE run.processing_t END AS processing_t,
        CASE WHEN run.seq IS NULL THEN measured.stop_t ELSE run.end_t END AS end_t,
        measured.start_t,
        measured.stop_t
    FROM numbered
    LEFT JOIN run USING (seq)
    LEFT JOIN _chunk_measurements AS measured USING (measured)
    LEFT JOIN without_task USING (measured)
    LEFT JOIN identity USING (record)
    LEFT JOIN raw.chunk AS identity_chunk ON identity_chunk.rowid = numbered.record
),
judged AS (
    SELECT
        * REPLACE (
            -- A dask-awkward task also processes what it has read.
            CASE
                WHEN measured_until = 'read' AND chunks_in_task = 1 AND has_task
                    THEN _clip_negative(whole_seconds - measured_seconds)
                ELSE process_seconds
            END AS process_seconds
        ),
        _clip_negative(measured_seconds - cpu_seconds) AS wait_seconds,
        CASE
            WHEN outcome = 'memory' AND from_checkpoint IS NOT TRUE
                THEN coalesce(measured_events, entry_stop - entry_start)
        END AS events,
        -- A chunk recomputed after its result was lost counts once; a key that was submitted
        -- again is another chunk. Without a cluster results are not lost.
        outcome = 'memory' AND row_number() OVER (
            PARTITION BY trace_id, key, submission, has_task,
                CASE WHEN NOT has_task AND attempt IS NOT NULL THEN measured END,
                outcome, dataset, filename, treename, entry_start, entry_stop
            ORDER BY seq, start_t, part
        ) = 1 AS is_first_result
    FROM attempts
)
SELECT
    judged.*,
    -- A time range can cut it off.
    whole_seconds AS compute_seconds,
    CASE WHEN chunks_in_task = 1 THEN whole_seconds / nullif(events, 0) END AS event_seconds,
    process.process,
    -- The first chunk of a process and those that began beside it also pay for imports and for
    -- the first opening of a file. The next one on the same thread begins within 1 ms.
    coalesce(
        process.process IS NOT NULL
        AND begin_t + 0.001 < first_value(begin_t + whole_seconds) OVER (
            PARTITION BY process.process ORDER BY begin_t, judged.seq, start_t, part
        ),
        false
    ) AS is_warming_up
FROM (
    SELECT *, coalesce(start_t, end_t - whole_seconds) AS begin_t FROM judged
) AS judged
ASOF LEFT JOIN _workers AS process
    ON judged.trace_id = process.trace_id
    AND judged.worker = process.worker
    -- Attempts that began before the recording belong to the first process of the address.
    AND coalesce(judged.processing_t, '-infinity') >= process.from_t;
