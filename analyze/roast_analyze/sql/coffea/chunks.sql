-- Needs: _chunks
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
    chunk.trace_id
FROM _chunks AS chunk
LEFT JOIN raw.chunk AS identity ON identity.rowid = chunk.identity_record
LEFT JOIN raw.chunk AS measured ON measured.rowid = chunk.measured_record
ORDER BY chunk.trace_id, chunk.seq NULLS LAST, chunk.start_t, chunk.part;

COMMENT ON VIEW chunks IS 'Attempts at coffea chunks: one row per attempt, the same attempt as in task_runs. Without a cluster there are no tasks, and attempts are those that were measured. A task of dask-awkward that reads several chunks has a row for each. What a chunk is was told when its task entered the graph, else by what was measured of any attempt. What was not measured is null.';
COMMENT ON COLUMN chunks.key IS 'Key of the task that processes the chunk; without a cluster, one that the recorder gave it.';
COMMENT ON COLUMN chunks.attempt IS 'Number of the attempt within its key, from 1; null if the trace has lost the attempt itself.';
COMMENT ON COLUMN chunks.dataset IS 'Dataset that the file belongs to.';
COMMENT ON COLUMN chunks.filename IS 'File that is read, as coffea names it.';
COMMENT ON COLUMN chunks.treename IS 'Tree or table within the file.';
COMMENT ON COLUMN chunks.entry_start IS 'First entry of the chunk.';
COMMENT ON COLUMN chunks.entry_stop IS 'Entry after its last.';
COMMENT ON COLUMN chunks.events IS 'Events processed: as measured, else the entries of the chunk. Null if the attempt did not end well, or its result came from a checkpoint.';
COMMENT ON COLUMN chunks.bytes_read IS 'Bytes requested from the source, all that opening the file takes included.';
COMMENT ON COLUMN chunks.columns_read IS 'Number of columns that were read.';
COMMENT ON COLUMN chunks.branches_read IS 'Number of branches that were read.';
COMMENT ON COLUMN chunks.process_seconds IS 'Time in the processor, reading included. Of a task of dask-awkward: its computing time less that of the reading; null if it reads several chunks.';
COMMENT ON COLUMN chunks.open_seconds IS 'Time until there were events: opening the file, its metadata, preloading.';
COMMENT ON COLUMN chunks.cpu_seconds IS 'CPU time of the thread from start_t to stop_t; null if the task went on with the chunk after that (dask-awkward).';
COMMENT ON COLUMN chunks.worker IS 'Address of the worker that it ran on, or was sent to; without a cluster, the process.';
COMMENT ON COLUMN chunks.outcome IS 'How the attempt ended, as in task_runs; skipped if its exception was swallowed (skipbadfiles), so that the task ended well without a result.';
COMMENT ON COLUMN chunks.output_bytes IS 'Size of the result; of a task that reads several chunks, an equal share.';
COMMENT ON COLUMN chunks.events_per_second IS 'events / compute_seconds.';
COMMENT ON COLUMN chunks.exception IS 'Text of the exception.';
COMMENT ON COLUMN chunks.compute_seconds IS 'Computing time of the attempt, as in task_runs; of a task that reads several chunks, an equal share. Without a cluster: from start_t to stop_t.';
COMMENT ON COLUMN chunks.processing_t IS 'When it was sent to the worker, in seconds since the epoch; without a cluster, when it began.';
COMMENT ON COLUMN chunks.end_t IS 'When the scheduler heard of its end, in seconds since the epoch; without a cluster, when it ended.';
COMMENT ON COLUMN chunks.file_uuid IS 'UUID that the file carries.';
COMMENT ON COLUMN chunks.usermeta IS 'Metadata that the user gave the dataset, as JSON.';
COMMENT ON COLUMN chunks.run_id IS 'Number that Dask gave the attempt; without a cluster, the recorder.';
COMMENT ON COLUMN chunks.read_seconds IS 'Time of reading, decompressing and interpreting columns.';
COMMENT ON COLUMN chunks.wait_seconds IS 'Time from start_t to stop_t in which the thread used no CPU: waiting for the source, for locks, for its turn.';
COMMENT ON COLUMN chunks.queued_seconds IS 'Time on the scheduler before processing_t, as in task_runs.';
COMMENT ON COLUMN chunks.transfer_seconds IS 'Time of fetching dependencies, such as the processor, from other workers; of a task that reads several chunks, an equal share.';
COMMENT ON COLUMN chunks.start_t IS 'When the worker began to measure, in seconds since the epoch.';
COMMENT ON COLUMN chunks.stop_t IS 'When the worker had done what measured_until says, in seconds since the epoch.';
COMMENT ON COLUMN chunks.thread IS 'Thread that computed, within its worker.';
COMMENT ON COLUMN chunks.bytes_per_second IS 'bytes_read / compute_seconds.';
COMMENT ON COLUMN chunks.requests IS 'Requests made to the source.';
COMMENT ON COLUMN chunks.source IS 'What was read: TTree, RNTuple or Parquet.';
COMMENT ON COLUMN chunks.columns IS 'Columns that were read, as coffea names them.';
COMMENT ON COLUMN chunks.file_branches IS 'Branches in the file.';
COMMENT ON COLUMN chunks.branch_share IS 'branches_read / file_branches.';
COMMENT ON COLUMN chunks.file_bytes IS 'Size of the whole file.';
COMMENT ON COLUMN chunks.compressed_bytes IS 'Size in the file of what was read of its branches.';
COMMENT ON COLUMN chunks.uncompressed_bytes IS 'Size of that when decompressed.';
COMMENT ON COLUMN chunks.compression_ratio IS 'Uncompressed by compressed bytes, of the branches of which both are known.';
COMMENT ON COLUMN chunks.memory_before_bytes IS 'Memory of the process before.';
COMMENT ON COLUMN chunks.memory_after_bytes IS 'Memory of the process after.';
COMMENT ON COLUMN chunks.memory_peak_bytes IS 'Most memory of the process meanwhile, that of other threads included.';
COMMENT ON COLUMN chunks.from_checkpoint IS 'Whether the result was loaded from a checkpoint, and nothing read or processed.';
COMMENT ON COLUMN chunks.measured_until IS 'What ends at stop_t: processed, or read if the task goes on with what it has read (dask-awkward).';
COMMENT ON COLUMN chunks.chunks_in_task IS 'Chunks that the task reads: more than 1 in dask-awkward only.';
COMMENT ON COLUMN chunks.trace_id IS 'Identity of the recording.';
