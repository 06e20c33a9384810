-- Needs: _chunk_reads, _clip_negative, _sum_or_zero
-- Records: chunk
-- Measurements of chunk attempts: one row per task attempt and chunk.
CREATE TABLE _chunk_measurements AS
WITH readings AS (
    SELECT
        reading.measured,
        reading.record,
        reading.of_several,
        chunk.* EXCLUDE (measured),
        unnest(chunk.measured),
        list_filter(
            chunk.measured.branches,
            lambda read: read.compressed_bytes IS NOT NULL AND read.uncompressed_bytes IS NOT NULL
        ) AS sized
    FROM _chunk_reads AS reading
    INNER JOIN raw.chunk AS chunk ON chunk.rowid = reading.record
)
SELECT
    measured,
    max(record) AS last_record,
    any_value(trace_id) AS trace_id,
    any_value(key) AS key,
    any_value(run_id) AS run_id,
    any_value(dataset) AS dataset,
    any_value(filename) AS filename,
    any_value(treename) AS treename,
    any_value(entry_start) AS entry_start,
    any_value(entry_stop) AS entry_stop,
    any_value(file_uuid) AS file_uuid,
    arg_max_null(worker, record) AS worker,
    arg_max_null(thread, record) AS thread,
    min(start_t) AS start_t,
    max(stop_t) AS stop_t,
    sum(_clip_negative(stop_t - start_t)) AS seconds,
    arg_max_null(until, record) AS measured_until,
    arg_max_null(source, record) AS source,
    max(events) AS events,
    sum(open_seconds) AS open_seconds,
    sum(process_seconds) AS process_seconds,
    sum(read_seconds) AS read_seconds,
    sum(decompress_seconds) AS decompress_seconds,
    arg_max_null(compression, record) AS compression,
    sum(cpu_seconds) AS cpu_seconds,
    try_cast(sum(bytes_read) AS BIGINT) AS bytes_read,
    try_cast(sum(requests) AS BIGINT) AS requests,
    -- Usually there is one record per attempt, and chunks reads the list from it directly.
    list_sort(list_distinct(flatten(list(columns) FILTER (of_several)))) AS columns,
    coalesce(
        len(list_distinct(flatten(list(columns) FILTER (of_several)))),
        any_value(len(columns))
    ) AS columns_read,
    coalesce(
        len(list_distinct(flatten(list(
            list_transform(branches, lambda read: read.branch)
        ) FILTER (of_several)))),
        any_value(len(branches))
    ) AS branches_read,
    max(file_branches) AS file_branches,
    max(file_bytes) AS file_bytes,
    try_cast(
        sum(_sum_or_zero(list_transform(branches, lambda read: read.compressed_bytes))) AS BIGINT
    ) AS compressed_bytes,
    try_cast(
        sum(_sum_or_zero(list_transform(branches, lambda read: read.uncompressed_bytes))) AS BIGINT
    ) AS uncompressed_bytes,
    -- Branches with both sizes known, for the compression ratio.
    try_cast(
        sum(list_sum(list_transform(sized, lambda read: read.compressed_bytes))) AS BIGINT
    ) AS packed_bytes,
    try_cast(
        sum(list_sum(list_transform(sized, lambda read: read.uncompressed_bytes))) AS BIGINT
    ) AS unpacked_bytes,
    arg_min_null(memory_before, record) AS memory_before_bytes,
    arg_max_null(memory_after, record) AS memory_after_bytes,
    max(memory_peak) AS memory_peak_bytes,
    coalesce(bool_and(from_checkpoint), false) AS from_checkpoint,
    arg_max_null(nbytes, record) AS nbytes,
    arg_max_null(exception, record) AS exception
FROM readings
GROUP BY measured;
