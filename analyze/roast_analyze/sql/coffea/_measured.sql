-- Needs: _readings, _total
-- What workers measured of attempts at chunks: one row per task attempt and chunk.
CREATE TABLE _measured AS
WITH told AS (
    SELECT
        reading.measured,
        reading.record,
        chunk.* EXCLUDE (measured),
        unnest(chunk.measured),
        list_filter(
            chunk.measured.branches,
            lambda read: read.compressed_bytes IS NOT NULL AND read.uncompressed_bytes IS NOT NULL
        ) AS sized
    FROM _readings AS reading
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
    last(worker ORDER BY record) AS worker,
    last(thread ORDER BY record) AS thread,
    min(start_t) AS start_t,
    max(stop_t) AS stop_t,
    sum(stop_t - start_t) AS seconds,
    last(until ORDER BY record) AS measured_until,
    last(source ORDER BY record) AS source,
    max(events) AS events,
    sum(open_seconds) AS open_seconds,
    sum(process_seconds) AS process_seconds,
    sum(read_seconds) AS read_seconds,
    sum(cpu_seconds) AS cpu_seconds,
    sum(bytes_read)::BIGINT AS bytes_read,
    sum(requests)::BIGINT AS requests,
    -- One reading is the rule; the list is then where it was recorded.
    CASE WHEN count(*) > 1 THEN list_sort(list_distinct(flatten(list(columns)))) END AS columns,
    CASE
        WHEN count(*) > 1 THEN len(list_distinct(flatten(list(columns))))
        ELSE any_value(len(columns))
    END AS columns_read,
    CASE
        WHEN count(*) > 1 THEN len(list_distinct(flatten(list(
            list_transform(branches, lambda read: read.branch)
        ))))
        ELSE any_value(len(branches))
    END AS branches_read,
    max(file_branches) AS file_branches,
    max(file_bytes) AS file_bytes,
    sum(_total(list_transform(branches, lambda read: read.compressed_bytes)))::BIGINT
        AS compressed_bytes,
    sum(_total(list_transform(branches, lambda read: read.uncompressed_bytes)))::BIGINT
        AS uncompressed_bytes,
    -- Of branches of which both are known: what a ratio can be made of.
    sum(list_sum(list_transform(sized, lambda read: read.compressed_bytes)))::BIGINT
        AS packed_bytes,
    sum(list_sum(list_transform(sized, lambda read: read.uncompressed_bytes)))::BIGINT
        AS unpacked_bytes,
    first(memory_before ORDER BY record) AS memory_before_bytes,
    last(memory_after ORDER BY record) AS memory_after_bytes,
    max(memory_peak) AS memory_peak_bytes,
    coalesce(bool_and(from_checkpoint), false) AS from_checkpoint,
    last(nbytes ORDER BY record) AS nbytes,
    last(exception ORDER BY record) AS exception
FROM told
GROUP BY measured;
