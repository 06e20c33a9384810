-- Needs: _chunks, _discarded_results, _is_kept
CREATE VIEW chunks AS
SELECT
    chunk.key,
    chunk.attempt,
    chunk.dataset,
    chunk.filename,
    chunk.treename,
    chunk.entry_start,
    chunk.entry_stop,
    chunk.events,
    chunk.bytes_read,
    chunk.columns_read,
    chunk.branches_read,
    chunk.process_seconds,
    chunk.open_seconds,
    chunk.cpu_seconds,
    chunk.worker,
    chunk.outcome,
    chunk.output_bytes,
    chunk.events / nullif(chunk.whole_seconds, 0) AS events_per_second,
    chunk.exception,
    chunk.compute_seconds,
    chunk.processing_t,
    chunk.end_t,
    chunk.file_uuid,
    coalesce(identity.usermeta, measured.usermeta) AS usermeta,
    chunk.run_id,
    chunk.read_seconds,
    chunk.wait_seconds,
    chunk.queued_seconds,
    chunk.transfer_seconds,
    chunk.start_t,
    chunk.stop_t,
    chunk.thread,
    chunk.bytes_read / nullif(chunk.whole_seconds, 0) AS bytes_per_second,
    chunk.requests,
    chunk.source,
    coalesce(chunk.columns, measured.measured.columns) AS columns,
    chunk.file_branches,
    chunk.branches_read / nullif(chunk.file_branches, 0) AS branch_share,
    chunk.file_bytes,
    chunk.compressed_bytes,
    chunk.uncompressed_bytes,
    chunk.unpacked_bytes / nullif(chunk.packed_bytes, 0) AS compression_ratio,
    chunk.memory_before_bytes,
    chunk.memory_after_bytes,
    chunk.memory_peak_bytes,
    chunk.from_checkpoint,
    chunk.measured_until,
    chunk.chunks_in_task,
    _is_kept(chunk.outcome, discarded.seq) AS kept,
    chunk.bytes_read / nullif(chunk.events, 0) AS bytes_per_event,
    chunk.decompress_seconds,
    chunk.compression,
    chunk.trace_id
FROM _chunks AS chunk
LEFT JOIN _discarded_results AS discarded USING (seq)
LEFT JOIN raw.chunk AS identity ON identity.rowid = chunk.identity_record
LEFT JOIN raw.chunk AS measured ON measured.rowid = chunk.measured_record
ORDER BY chunk.trace_id, chunk.seq NULLS LAST, chunk.start_t, chunk.part;

COMMENT ON VIEW chunks IS 'Attempts at coffea chunks. One row per chunk and attempt, with the same attempt number as in task_runs. Without a cluster there are no tasks, and the attempts are those that were measured. A dask-awkward task that reads several chunks has one row per chunk. Values that were not measured are null.';
COMMENT ON COLUMN chunks.key IS 'Key of the task that processes the chunk. Without a cluster, a key assigned by the recorder.';
COMMENT ON COLUMN chunks.attempt IS 'Attempt number within the key, from 1. Null if the attempt itself is missing from the trace.';
COMMENT ON COLUMN chunks.dataset IS 'Dataset of the file.';
COMMENT ON COLUMN chunks.filename IS 'File name, as coffea gives it.';
COMMENT ON COLUMN chunks.treename IS 'Tree or table in the file.';
COMMENT ON COLUMN chunks.entry_start IS 'First entry of the chunk.';
COMMENT ON COLUMN chunks.entry_stop IS 'End of the chunk: the entry after its last.';
COMMENT ON COLUMN chunks.events IS 'Events processed: measured, otherwise the number of entries of the chunk. Null if the attempt failed or its result came from a checkpoint.';
COMMENT ON COLUMN chunks.bytes_read IS 'Bytes requested from the source, including those needed to open the file.';
COMMENT ON COLUMN chunks.columns_read IS 'Number of columns read.';
COMMENT ON COLUMN chunks.branches_read IS 'Number of branches read.';
COMMENT ON COLUMN chunks.process_seconds IS 'Time in the processor, reading included. For dask-awkward: compute time of the task minus measured read time; null if the task reads several chunks.';
COMMENT ON COLUMN chunks.open_seconds IS 'Time until events were available: opening the file, its metadata, preloading.';
COMMENT ON COLUMN chunks.cpu_seconds IS 'CPU time of the thread from start_t to stop_t. Null if the task went on with the chunk after stop_t (dask-awkward).';
COMMENT ON COLUMN chunks.worker IS 'Address of the worker that ran the attempt or was assigned it. Without a cluster, the process.';
COMMENT ON COLUMN chunks.outcome IS 'Outcome of the attempt, as in task_runs; skipped if the exception was suppressed (skipbadfiles), so that the task succeeded without a result.';
COMMENT ON COLUMN chunks.output_bytes IS 'Size of the result. For a task that reads several chunks, an equal share.';
COMMENT ON COLUMN chunks.events_per_second IS 'events / compute_seconds.';
COMMENT ON COLUMN chunks.exception IS 'Exception text.';
COMMENT ON COLUMN chunks.compute_seconds IS 'Compute time of the attempt, as in task_runs. For a task that reads several chunks, an equal share. Without a cluster, stop_t - start_t.';
COMMENT ON COLUMN chunks.processing_t IS 'Dispatch to the worker, in seconds since the epoch. Without a cluster, the start.';
COMMENT ON COLUMN chunks.end_t IS 'End as recorded by the scheduler, in seconds since the epoch. Without a cluster, the measured end.';
COMMENT ON COLUMN chunks.file_uuid IS 'UUID stored in the file.';
COMMENT ON COLUMN chunks.usermeta IS 'User metadata of the dataset, as JSON.';
COMMENT ON COLUMN chunks.run_id IS 'Dask''s run id of the attempt. Without a cluster, assigned by the recorder.';
COMMENT ON COLUMN chunks.read_seconds IS 'Time to read, decompress and interpret columns.';
COMMENT ON COLUMN chunks.wait_seconds IS 'Time from start_t to stop_t in which the thread used no CPU: input, locks, other threads.';
COMMENT ON COLUMN chunks.queued_seconds IS 'Time on the scheduler before dispatch, as in task_runs.';
COMMENT ON COLUMN chunks.transfer_seconds IS 'Time to fetch dependencies, such as the processor, from other workers. For a task that reads several chunks, an equal share.';
COMMENT ON COLUMN chunks.start_t IS 'Start of the measurement, in seconds since the epoch.';
COMMENT ON COLUMN chunks.stop_t IS 'End of the measurement (see measured_until), in seconds since the epoch.';
COMMENT ON COLUMN chunks.thread IS 'Thread id on the worker.';
COMMENT ON COLUMN chunks.bytes_per_second IS 'bytes_read / compute_seconds.';
COMMENT ON COLUMN chunks.requests IS 'Requests to the source.';
COMMENT ON COLUMN chunks.source IS 'File format: TTree, RNTuple or Parquet.';
COMMENT ON COLUMN chunks.columns IS 'Names of the columns read, as coffea gives them.';
COMMENT ON COLUMN chunks.file_branches IS 'Branches in the file.';
COMMENT ON COLUMN chunks.branch_share IS 'branches_read / file_branches.';
COMMENT ON COLUMN chunks.file_bytes IS 'File size.';
COMMENT ON COLUMN chunks.compressed_bytes IS 'Size in the file of the branch data read.';
COMMENT ON COLUMN chunks.uncompressed_bytes IS 'Size of these bytes after decompression.';
COMMENT ON COLUMN chunks.compression_ratio IS 'Uncompressed bytes divided by compressed bytes, of branches for which both are known.';
COMMENT ON COLUMN chunks.memory_before_bytes IS 'Process memory before the chunk.';
COMMENT ON COLUMN chunks.memory_after_bytes IS 'Process memory after the chunk.';
COMMENT ON COLUMN chunks.memory_peak_bytes IS 'Peak process memory during the chunk, other threads included.';
COMMENT ON COLUMN chunks.from_checkpoint IS 'True if the result was loaded from a checkpoint, without reading or processing.';
COMMENT ON COLUMN chunks.measured_until IS 'What ended at stop_t: processed, or read if the task went on with the data (dask-awkward).';
COMMENT ON COLUMN chunks.chunks_in_task IS 'Number of chunks that the task reads. More than 1 only with dask-awkward.';
COMMENT ON COLUMN chunks.kept IS 'True if the attempt computed a result that was kept, as in task_runs. False for a skipped chunk.';
COMMENT ON COLUMN chunks.bytes_per_event IS 'bytes_read / events.';
COMMENT ON COLUMN chunks.decompress_seconds IS 'The part of read_seconds that decompressed ROOT data. Null if nothing was compressed, for Parquet, and before trace format 2.4.';
COMMENT ON COLUMN chunks.compression IS 'Algorithms of the ROOT data that was decompressed: ZSTD, LZMA, LZ4, ZLIB.';
COMMENT ON COLUMN chunks.trace_id IS 'ID of the trace.';
