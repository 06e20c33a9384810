-- Needs: _chunks, _clip_negative, _cluster_size, _discarded_results, _is_failed, _is_kept, _task_runs, _tasks, _unread_files, _worker_removals, cluster_samples, failures, loss
-- Totals of each run: one row per trace.
CREATE TABLE _run AS
WITH runs AS (
    SELECT
        trace_id,
        _clip_negative(max(end_t) - min(processing_t)) AS busy_seconds,
        sum(compute_seconds) AS compute_seconds,
        sum(compute_seconds) FILTER (kept) AS kept_seconds,
        count(outcome) AS task_runs,
        count(*) FILTER (outcome = 'memory') AS memory,
        count(*) FILTER (outcome = 'erred') AS erred,
        count(*) FILTER (outcome = 'retried') AS retried,
        count(*) FILTER (outcome = 'lost') AS lost,
        count(*) FILTER (outcome = 'rescheduled') AS rescheduled,
        count(*) FILTER (outcome = 'cancelled') AS cancelled,
        count(*) FILTER (outcome = 'unfinished') AS unfinished,
        sum(nbytes) AS output_bytes,
        sum(transfer_seconds) AS transfer_seconds,
        sum(compute_seconds) FILTER (role = 'merge') AS merge_seconds
    FROM (
        SELECT
            trace_id, outcome, end_t, compute_seconds, nbytes, transfer_seconds, role,
            -- Tasks that were processing when recording began were dispatched before.
            coalesce(processing_t, start_t) AS processing_t,
            _is_kept(outcome, discarded.seq) AS kept
        FROM _task_runs
        INNER JOIN _cluster_size USING (trace_id)
        LEFT JOIN _discarded_results AS discarded USING (seq)
        UNION ALL BY NAME
        SELECT
            trace_id, processing_t, end_t, compute_seconds, output_bytes AS nbytes,
            outcome = 'memory' AS kept
        FROM _chunks
        WHERE NOT has_task
    )
    GROUP BY trace_id
),
submitted AS (
    SELECT trace_id, count(*) AS tasks FROM _tasks GROUP BY trace_id
),
chunk_runs AS (
    SELECT
        trace_id,
        count(*) FILTER (is_first_result) AS chunks,
        count(*) AS chunk_attempts,
        count(*) FILTER (_is_failed(outcome)) AS failed_chunks,
        count(*) FILTER (outcome = 'skipped') AS skipped,
        count(*) FILTER (is_first_result AND from_checkpoint) AS checkpointed_chunks,
        sum(events) FILTER (is_first_result) AS events,
        _clip_negative(
            max(end_t) - min(coalesce(processing_t, if(has_task, cluster.start_t, NULL)))
        ) AS chunk_wall_seconds,
        sum(compute_seconds) AS chunk_seconds,
        sum(process_seconds) AS process_seconds,
        -- Chunks cut off by a time range are excluded.
        avg(process_seconds) FILTER (
            is_first_result AND compute_seconds IS NOT DISTINCT FROM whole_seconds
        ) AS mean_process_seconds,
        sum(events) FILTER (is_first_result AND process_seconds IS NOT NULL)
            / nullif(sum(process_seconds), 0) AS events_per_process_second,
        sum(open_seconds) AS open_seconds,
        sum(read_seconds) AS read_seconds,
        sum(cpu_seconds) AS cpu_seconds,
        sum(wait_seconds) AS wait_seconds,
        sum(bytes_read) AS bytes_read,
        max(memory_peak_bytes) AS peak_memory_bytes,
        sum(compressed_bytes) AS compressed_bytes,
        sum(uncompressed_bytes) AS uncompressed_bytes,
        sum(unpacked_bytes) / nullif(sum(packed_bytes), 0) AS compression_ratio
    FROM _chunks
    INNER JOIN _cluster_size AS cluster USING (trace_id)
    GROUP BY trace_id
),
memory AS (
    SELECT trace_id, max(memory_bytes) AS peak_memory_bytes
    FROM cluster_samples
    GROUP BY trace_id
),
worker_memory AS (
    SELECT
        trace_id,
        max(metrics.memory) AS peak_worker_memory_bytes,
        round(avg(metrics.memory))::BIGINT AS mean_worker_memory_bytes
    FROM raw.worker_sample
    GROUP BY trace_id
),
killed_memory AS (
    SELECT trace_id, max(kill_memory_bytes) AS peak_memory_bytes
    FROM _worker_removals
    GROUP BY trace_id
),
failed AS (
    SELECT trace_id, count(*) AS failures FROM failures GROUP BY trace_id
),
skipped_files AS (
    SELECT trace_id, count(*) FILTER (is_skipped) AS skipped_files
    FROM _unread_files
    GROUP BY trace_id
),
lost_records AS (
    SELECT trace_id, sum(records) AS lost_records
    FROM loss
    WHERE reason <> 'more records than were written'
    GROUP BY trace_id
)
SELECT
    cluster.start_t,
    cluster.stop_t,
    cluster.stop_t - cluster.start_t AS wall_seconds,
    runs.busy_seconds,
    cluster.workers,
    cluster.peak_workers,
    cluster.peak_nthreads,
    cluster.core_seconds,
    runs.compute_seconds,
    runs.compute_seconds / nullif(cluster.core_seconds, 0) AS core_efficiency,
    -- Attempts without any task record: those were lost.
    if(runs.task_runs > 0, submitted.tasks, coalesce(submitted.tasks, 0)) AS tasks,
    coalesce(runs.task_runs, 0) AS task_runs,
    coalesce(runs.memory, 0) AS memory,
    coalesce(runs.erred, 0) AS erred,
    coalesce(runs.retried, 0) AS retried,
    coalesce(runs.lost, 0) AS lost,
    coalesce(runs.rescheduled, 0) AS rescheduled,
    coalesce(runs.cancelled, 0) AS cancelled,
    coalesce(runs.unfinished, 0) AS unfinished,
    coalesce(failed.failures, 0) AS failures,
    coalesce(chunk_runs.chunks, 0) AS chunks,
    coalesce(chunk_runs.chunk_attempts, 0) AS chunk_attempts,
    try_cast(
        CASE WHEN coalesce(chunk_runs.chunks, 0) = 0 THEN 0 ELSE chunk_runs.events END AS BIGINT
    ) AS events,
    chunk_runs.events / nullif(chunk_runs.chunk_wall_seconds, 0) AS events_per_second,
    chunk_runs.chunk_wall_seconds,
    try_cast(chunk_runs.bytes_read AS BIGINT) AS bytes_read,
    try_cast(runs.output_bytes AS BIGINT) AS output_bytes,
    runs.transfer_seconds,
    -- Between ticks, at least as much as the worker that was killed.
    greatest(memory.peak_memory_bytes, killed_memory.peak_memory_bytes) AS peak_memory_bytes,
    try_cast(coalesce(lost_records.lost_records, 0) AS BIGINT) AS lost_records,
    coalesce(chunk_runs.failed_chunks, 0) AS failed_chunks,
    coalesce(chunk_runs.skipped, 0) AS skipped,
    coalesce(chunk_runs.checkpointed_chunks, 0) AS checkpointed_chunks,
    chunk_runs.chunk_seconds,
    runs.merge_seconds,
    chunk_runs.process_seconds,
    chunk_runs.mean_process_seconds,
    chunk_runs.open_seconds,
    chunk_runs.read_seconds,
    chunk_runs.cpu_seconds,
    chunk_runs.wait_seconds,
    chunk_runs.events_per_process_second,
    chunk_runs.events / nullif(cluster.core_seconds, 0) AS events_per_core_second,
    chunk_runs.bytes_read / nullif(chunk_runs.chunk_wall_seconds, 0) AS bytes_per_second,
    try_cast(chunk_runs.compressed_bytes AS BIGINT) AS compressed_bytes,
    try_cast(chunk_runs.uncompressed_bytes AS BIGINT) AS uncompressed_bytes,
    chunk_runs.compression_ratio,
    runs.compute_seconds / nullif(runs.busy_seconds, 0) AS speedup,
    cluster.worker_seconds / nullif(cluster.stop_t - cluster.start_t, 0) AS mean_workers,
    cluster.core_seconds / nullif(cluster.stop_t - cluster.start_t, 0) AS mean_nthreads,
    greatest(
        worker_memory.peak_worker_memory_bytes,
        chunk_runs.peak_memory_bytes,
        killed_memory.peak_memory_bytes
    ) AS peak_worker_memory_bytes,
    worker_memory.mean_worker_memory_bytes,
    runs.kept_seconds,
    coalesce(skipped_files.skipped_files, 0) AS skipped_files,
    cluster.trace_id
FROM _cluster_size AS cluster
LEFT JOIN runs USING (trace_id)
LEFT JOIN submitted USING (trace_id)
LEFT JOIN chunk_runs USING (trace_id)
LEFT JOIN memory USING (trace_id)
LEFT JOIN worker_memory USING (trace_id)
LEFT JOIN killed_memory USING (trace_id)
LEFT JOIN failed USING (trace_id)
LEFT JOIN lost_records USING (trace_id)
LEFT JOIN skipped_files USING (trace_id);
