-- Needs: _busy_time, _workers
CREATE VIEW busy_time AS
SELECT
    t,
    category,
    kind,
    detail,
    prefix,
    dataset,
    worker,
    name,
    span_id,
    seconds,
    samples,
    server_id,
    _busy_time.trace_id
FROM _busy_time
LEFT JOIN _workers USING (process);

COMMENT ON VIEW busy_time IS 'Kinds of work of the compute time of tasks. One row per time bucket, worker, prefix, dataset, span, kind and detail. The seconds add up to those with which core_time counts task attempts as computing (kept result to unfinished attempt). Samples of the profiler divide the compute time of a prefix on a worker at that time; measured decompression of chunks and measured CPU time are more exact and come first. A sample has one kind, that of the innermost function of its stack that has one, unless a function around it says what it is for, such as an import (docs: how-to/busy-time). Compiled functions are named from trace format 2.7 on; in older traces their time is that of the functions that call them.';
COMMENT ON COLUMN busy_time.t IS 'Start of the time bucket, in seconds since the epoch.';
COMMENT ON COLUMN busy_time.category IS 'waiting, working or not known.';
COMMENT ON COLUMN busy_time.kind IS 'waiting: lock, queue or event, network or storage, local files, another task, an actor, sleeping, subprocess, runnable but not on the CPU (for the GIL or a core) · working: decompressing, compressing, deserializing columns, array kernels, histogram filling, corrections, JIT compilation, imports, pickling, logging and printing, sending events (of Dask), garbage collection, dataframes (pandas, Arrow, xarray, zarr), Dask itself, other library, own code (that calls the standard library or a compiled function), Python loops (own code, in Python itself) · not known: no samples (the process sent none at that time), profiler starved (samples are missing, as while a function holds the GIL), mixed with seceded tasks (samples of the prefix can be of tasks that had left the threads), not on the CPU (own code, or a library, computed less than it was sampled). A file of the user can add kinds.';
COMMENT ON COLUMN busy_time.detail IS 'Own code and Python loops: function, file and first line · lock, another task, an actor, subprocess, queue or event, sending events, garbage collection: the function that waits, sends or is interrupted · runnable but not on the CPU: the kind of work · others: package or function.';
COMMENT ON COLUMN busy_time.prefix IS 'Key prefix of the tasks.';
COMMENT ON COLUMN busy_time.dataset IS 'Dataset of the chunks, if they have one.';
COMMENT ON COLUMN busy_time.worker IS 'Worker address.';
COMMENT ON COLUMN busy_time.name IS 'Worker name, which a restarted worker keeps.';
COMMENT ON COLUMN busy_time.span_id IS 'Span of the tasks.';
COMMENT ON COLUMN busy_time.seconds IS 'Thread time.';
COMMENT ON COLUMN busy_time.samples IS 'Number of samples of which the seconds are: a share if samples of several buckets, datasets or spans were divided together.';
COMMENT ON COLUMN busy_time.server_id IS 'ID of the process.';
COMMENT ON COLUMN busy_time.trace_id IS 'ID of the trace.';
