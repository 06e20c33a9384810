-- Needs: _profile_stacks
CREATE VIEW profile_stacks AS
SELECT * EXCLUDE (record, place)
FROM _profile_stacks
ORDER BY trace_id, record, place;

COMMENT ON VIEW profile_stacks IS 'Call stacks of statistical profiles, with samples and time. Profiler dask: one row per worker, prefix, profiling cycle and stack; the samples of a stack are those in which its last function was innermost. Dask does not count the innermost function; the recorder adds it, except in the cycle in which the recording began. Samples that cannot be assigned to one function count as ambiguous at the stack of the caller, so that samples and ambiguous samples add up to all samples. Malformed profiles are excluded and listed in loss. Profiler yappi: functions measured by Yappi, with callers as far as they are known (docs: how-to/yappi). The two profilers cover the same time and must not be added.';
COMMENT ON COLUMN profile_stacks.worker IS 'Worker address. Null for the scheduler''s event loop, and for Yappi data imported without a worker.';
COMMENT ON COLUMN profile_stacks.prefix IS 'Key prefix of the tasks. Null for Yappi.';
COMMENT ON COLUMN profile_stacks.start_t IS 'Start of the profiling cycle, in seconds since the epoch. Null for Yappi.';
COMMENT ON COLUMN profile_stacks.stop_t IS 'End of the profiling cycle, in seconds since the epoch.';
COMMENT ON COLUMN profile_stacks.stack IS 'Functions from outermost to innermost, as name (file:line), with the line at which the function is defined. Empty for ambiguous samples between outermost functions.';
COMMENT ON COLUMN profile_stacks.samples IS 'Samples in which the last function of the stack was innermost. For Yappi, its self time in microseconds, rounded.';
COMMENT ON COLUMN profile_stacks.seconds IS 'Time of the samples and ambiguous samples.';
COMMENT ON COLUMN profile_stacks.ambiguous_samples IS 'Samples in which one of several callees of the last function was innermost, but it is unknown which.';
COMMENT ON COLUMN profile_stacks.counted_samples IS 'Dask''s count of the last function minus the counts of its callees: exclusive samples if Dask counted innermost functions.';
COMMENT ON COLUMN profile_stacks.frames IS 'Functions of the stack as name, filename and line number.';
COMMENT ON COLUMN profile_stacks.lines IS 'Line first sampled in each function, in the same record.';
COMMENT ON COLUMN profile_stacks.server_id IS 'ID of the process.';
COMMENT ON COLUMN profile_stacks.interval_seconds IS 'Sampling interval of a thread. For Yappi, one microsecond.';
COMMENT ON COLUMN profile_stacks.profiler IS 'Profiler: dask or yappi.';
COMMENT ON COLUMN profile_stacks.log IS 'File name of the imported Yappi file.';
COMMENT ON COLUMN profile_stacks.trace_id IS 'ID of the trace.';
