-- Needs: _activity_deltas
CREATE VIEW activities AS
WITH metrics AS (
    SELECT * REPLACE (regexp_replace(activity, '^p2p-', '') AS activity)
    FROM _activity_deltas
)
SELECT
    worker,
    server_id,
    context,
    span_id,
    prefix,
    sum(delta) FILTER (unit = 'seconds') AS seconds,
    sum(delta) FILTER (activity = 'thread-cpu' AND unit = 'seconds') AS cpu_seconds,
    sum(delta) FILTER (activity = 'thread-noncpu' AND unit = 'seconds') AS noncpu_seconds,
    sum(delta) FILTER (activity = 'serialize' AND unit = 'seconds') AS serialize_seconds,
    sum(delta) FILTER (activity = 'deserialize' AND unit = 'seconds') AS deserialize_seconds,
    sum(delta) FILTER (activity = 'compress' AND unit = 'seconds') AS compress_seconds,
    sum(delta) FILTER (activity = 'decompress' AND unit = 'seconds') AS decompress_seconds,
    sum(delta) FILTER (activity IN ('disk-read', 'disk-write') AND unit = 'seconds') AS disk_seconds,
    sum(delta) FILTER (activity = 'network' AND unit = 'seconds') AS network_seconds,
    sum(delta) FILTER (activity IN ('failed', 'cancelled') AND unit = 'seconds') AS failed_seconds,
    sum(delta) FILTER (
        unit = 'seconds'
        AND coalesce(activity, '') NOT IN (
            'thread-cpu', 'thread-noncpu', 'serialize', 'deserialize', 'compress',
            'decompress', 'disk-read', 'disk-write', 'network', 'failed', 'cancelled'
        )
    ) AS other_seconds,
    try_cast(sum(delta) FILTER (activity = 'memory-read' AND unit = 'bytes') AS BIGINT) AS memory_read_bytes,
    try_cast(sum(delta) FILTER (activity = 'disk-read' AND unit = 'bytes') AS BIGINT) AS disk_read_bytes,
    try_cast(sum(delta) FILTER (activity = 'disk-write' AND unit = 'bytes') AS BIGINT) AS disk_write_bytes,
    trace_id
FROM metrics
GROUP BY trace_id, worker, server_id, context, span_id, prefix
ORDER BY trace_id, seconds DESC NULLS LAST, worker, prefix;

COMMENT ON VIEW activities IS 'Time of workers by activity, from fine performance metrics. One row per worker, context, span and prefix; rows can be summed over any of them. Idle time is excluded. Time that Dask reports both as p2p and as execute counts as execute. A time or size is null if there was none. Empty if no metrics were recorded.';
COMMENT ON COLUMN activities.worker IS 'Worker address.';
COMMENT ON COLUMN activities.server_id IS 'ID of the worker process.';
COMMENT ON COLUMN activities.context IS 'execute, get-data, gather-dep, p2p (background) or memory-monitor.';
COMMENT ON COLUMN activities.span_id IS 'Span of the work.';
COMMENT ON COLUMN activities.prefix IS 'Key prefix of the tasks. For p2p, the background task.';
COMMENT ON COLUMN activities.seconds IS 'Time of all activities.';
COMMENT ON COLUMN activities.cpu_seconds IS 'CPU time in task threads.';
COMMENT ON COLUMN activities.noncpu_seconds IS 'Other time in task threads: input and output, locks, the GIL.';
COMMENT ON COLUMN activities.serialize_seconds IS 'Serialization time.';
COMMENT ON COLUMN activities.deserialize_seconds IS 'Deserialization time.';
COMMENT ON COLUMN activities.compress_seconds IS 'Compression time.';
COMMENT ON COLUMN activities.decompress_seconds IS 'Decompression time.';
COMMENT ON COLUMN activities.disk_seconds IS 'Time to read and write spilled data and shuffle data on disk.';
COMMENT ON COLUMN activities.network_seconds IS 'Time of transfers between workers.';
COMMENT ON COLUMN activities.failed_seconds IS 'Time of failed or cancelled tasks, whatever the activity.';
COMMENT ON COLUMN activities.other_seconds IS 'Time of all other activities, including user-defined ones.';
COMMENT ON COLUMN activities.memory_read_bytes IS 'Bytes of inputs found in memory.';
COMMENT ON COLUMN activities.disk_read_bytes IS 'Bytes read from disk.';
COMMENT ON COLUMN activities.disk_write_bytes IS 'Bytes written to disk.';
COMMENT ON COLUMN activities.trace_id IS 'ID of the trace.';
