-- Needs: _chunks, _clip_negative, _cluster_size, _discarded_results, _is_failed, _is_kept, _task_runs, _tasks, _unread_files, cluster_samples, failures, loss
CREATE VIEW run AS
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
            trace_id, outcome, processing_t, end_t, compute_seconds, nbytes, transfer_seconds, role,
            _is_kept(outcome, discarded.seq) AS kept
        FROM _task_runs
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
        _clip_negative(max(end_t) - min(processing_t)) AS chunk_wall_seconds,
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
failed AS (
    SELECT trace_id, count(*) AS failures FROM failures GROUP BY trace_id
),
skipped_files AS (
    SELECT trace_id, count(*) FILTER (is_skipped) AS skipped_files
    FROM _unread_files
    GROUP BY trace_id
),
lost_records AS (
    SELECT trace_id, sum(records) AS lost_records FROM loss GROUP BY trace_id
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
    coalesce(submitted.tasks, 0) AS tasks,
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
    CASE WHEN coalesce(chunk_runs.chunks, 0) = 0 THEN 0 ELSE chunk_runs.events END::BIGINT AS events,
    chunk_runs.events / nullif(chunk_runs.chunk_wall_seconds, 0) AS events_per_second,
    chunk_runs.chunk_wall_seconds,
    chunk_runs.bytes_read::BIGINT AS bytes_read,
    runs.output_bytes::BIGINT AS output_bytes,
    runs.transfer_seconds,
    memory.peak_memory_bytes,
    coalesce(lost_records.lost_records, 0)::BIGINT AS lost_records,
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
    chunk_runs.compressed_bytes::BIGINT AS compressed_bytes,
    chunk_runs.uncompressed_bytes::BIGINT AS uncompressed_bytes,
    chunk_runs.compression_ratio,
    runs.compute_seconds / nullif(runs.busy_seconds, 0) AS speedup,
    cluster.worker_seconds / nullif(cluster.stop_t - cluster.start_t, 0) AS mean_workers,
    cluster.core_seconds / nullif(cluster.stop_t - cluster.start_t, 0) AS mean_nthreads,
    greatest(worker_memory.peak_worker_memory_bytes, chunk_runs.peak_memory_bytes)
        AS peak_worker_memory_bytes,
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
LEFT JOIN failed USING (trace_id)
LEFT JOIN lost_records USING (trace_id)
LEFT JOIN skipped_files USING (trace_id)
ORDER BY cluster.trace_id;

COMMENT ON VIEW run IS 'Summary of the run. One row per trace.';
COMMENT ON COLUMN run.start_t IS 'First record, in seconds since the epoch.';
COMMENT ON COLUMN run.stop_t IS 'Last record, in seconds since the epoch.';
COMMENT ON COLUMN run.wall_seconds IS 'Duration of the recording.';
COMMENT ON COLUMN run.busy_seconds IS 'Time from the first dispatch of a task to the last end. Without a cluster, the same for chunks.';
COMMENT ON COLUMN run.workers IS 'Number of worker processes.';
COMMENT ON COLUMN run.peak_workers IS 'Maximum number of workers at a time.';
COMMENT ON COLUMN run.peak_nthreads IS 'Maximum number of threads at a time.';
COMMENT ON COLUMN run.core_seconds IS 'Available thread time: threads of each worker times its lifetime within the recording.';
COMMENT ON COLUMN run.compute_seconds IS 'Compute time of all attempts, failed ones included. Without a cluster, of chunk attempts.';
COMMENT ON COLUMN run.core_efficiency IS 'compute_seconds / core_seconds.';
COMMENT ON COLUMN run.tasks IS 'Keys submitted.';
COMMENT ON COLUMN run.task_runs IS 'Task attempts.';
COMMENT ON COLUMN run.memory IS 'Attempts that succeeded.';
COMMENT ON COLUMN run.erred IS 'Attempts that failed for good.';
COMMENT ON COLUMN run.retried IS 'Attempts that failed and were retried.';
COMMENT ON COLUMN run.lost IS 'Attempts lost with their worker.';
COMMENT ON COLUMN run.rescheduled IS 'Attempts that raised Reschedule.';
COMMENT ON COLUMN run.cancelled IS 'Attempts cancelled because the result was no longer needed.';
COMMENT ON COLUMN run.unfinished IS 'Attempts without an end in the trace.';
COMMENT ON COLUMN run.failures IS 'Number of rows in failures.';
COMMENT ON COLUMN run.chunks IS 'Chunks processed. A chunk that was recomputed after its result was lost counts once.';
COMMENT ON COLUMN run.chunk_attempts IS 'Chunk attempts.';
COMMENT ON COLUMN run.events IS 'Events in these chunks. Events of results from a checkpoint are unknown.';
COMMENT ON COLUMN run.events_per_second IS 'events / chunk_wall_seconds: rate of the whole cluster.';
COMMENT ON COLUMN run.chunk_wall_seconds IS 'Time from the first dispatch of a chunk to the last end.';
COMMENT ON COLUMN run.bytes_read IS 'Bytes read by all chunk attempts. Null if not measured.';
COMMENT ON COLUMN run.output_bytes IS 'Total size of the results.';
COMMENT ON COLUMN run.transfer_seconds IS 'Time to fetch dependencies from other workers.';
COMMENT ON COLUMN run.peak_memory_bytes IS 'Peak memory of all worker processes together, over sampling ticks.';
COMMENT ON COLUMN run.lost_records IS 'Number of records known to be missing; see loss.';
COMMENT ON COLUMN run.failed_chunks IS 'Chunk attempts that erred, were retried, were lost with their worker, or were skipped.';
COMMENT ON COLUMN run.skipped IS 'Chunk attempts whose exception was suppressed (skipbadfiles), so that the task succeeded without a result.';
COMMENT ON COLUMN run.checkpointed_chunks IS 'Processed chunks whose result came from a checkpoint.';
COMMENT ON COLUMN run.chunk_seconds IS 'Compute time of all chunk attempts.';
COMMENT ON COLUMN run.merge_seconds IS 'Compute time of merging chunk results.';
COMMENT ON COLUMN run.process_seconds IS 'Processor time of all chunk attempts, reading included. Null if not measured.';
COMMENT ON COLUMN run.mean_process_seconds IS 'Mean processor time of a processed chunk.';
COMMENT ON COLUMN run.open_seconds IS 'File opening time of all chunk attempts.';
COMMENT ON COLUMN run.read_seconds IS 'Column read time of all chunk attempts.';
COMMENT ON COLUMN run.cpu_seconds IS 'CPU time of all chunk attempts.';
COMMENT ON COLUMN run.wait_seconds IS 'Time without CPU of all chunk attempts.';
COMMENT ON COLUMN run.events_per_process_second IS 'events / process_seconds: rate of one thread that only processes.';
COMMENT ON COLUMN run.events_per_core_second IS 'events / core_seconds: rate per available thread, idle time included.';
COMMENT ON COLUMN run.bytes_per_second IS 'bytes_read / chunk_wall_seconds: rate of the whole cluster.';
COMMENT ON COLUMN run.compressed_bytes IS 'Size in the files of the branch data read by all chunk attempts.';
COMMENT ON COLUMN run.uncompressed_bytes IS 'Size of these bytes after decompression.';
COMMENT ON COLUMN run.compression_ratio IS 'Uncompressed bytes divided by compressed bytes, where both are known.';
COMMENT ON COLUMN run.speedup IS 'compute_seconds / busy_seconds: mean number of computing threads.';
COMMENT ON COLUMN run.mean_workers IS 'Mean number of workers over the recording.';
COMMENT ON COLUMN run.mean_nthreads IS 'Mean number of threads over the recording.';
COMMENT ON COLUMN run.peak_worker_memory_bytes IS 'Peak memory of a single worker process, at a sampling tick or during a measured chunk.';
COMMENT ON COLUMN run.mean_worker_memory_bytes IS 'Mean memory of a worker process, over workers and sampling ticks.';
COMMENT ON COLUMN run.kept_seconds IS 'Compute time of attempts whose result was kept, as in task_runs.kept.';
COMMENT ON COLUMN run.skipped_files IS 'Files that coffea skipped because their number of entries could not be read (skipbadfiles). Their events are missing.';
COMMENT ON COLUMN run.trace_id IS 'Trace identity.';
