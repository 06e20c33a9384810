-- Needs: nothing
CREATE VIEW trace_info AS
SELECT
    segments.segment,
    header.schema_version,
    segments.start_t,
    segments.stop_t,
    segments.has_trailer AS clean_end,
    trailer.reason AS end_reason,
    header.versions ->> 'dask' AS dask_version,
    header.versions ->> 'distributed' AS distributed_version,
    header.versions ->> 'python' AS python_version,
    header.versions ->> 'roast-trace' AS recorder_version,
    header.scheduler,
    header.utc_offset_seconds,
    header.clock_offset_seconds,
    header.settings,
    segments.records,
    trailer.redacted_values,
    segments.path,
    header.settings ->> 'label' AS label,
    segments.trace_id
FROM raw.segments AS segments
LEFT JOIN (
    FROM raw.header
    WHERE rowid IN (SELECT min(rowid) FROM raw.header GROUP BY trace_id, segment)
) AS header USING (trace_id, segment)
LEFT JOIN (
    FROM raw.trailer
    WHERE rowid IN (SELECT min(rowid) FROM raw.trailer GROUP BY trace_id, segment)
) AS trailer USING (trace_id, segment)
ORDER BY segments.trace_id, segments.segment;

COMMENT ON VIEW trace_info IS 'Segments of the trace, with versions and settings. One row per segment.';
COMMENT ON COLUMN trace_info.segment IS 'Segment number, from 1.';
COMMENT ON COLUMN trace_info.schema_version IS 'Version of the trace format. Null if the header is missing.';
COMMENT ON COLUMN trace_info.start_t IS 'First record, in seconds since the epoch.';
COMMENT ON COLUMN trace_info.stop_t IS 'Last record, in seconds since the epoch.';
COMMENT ON COLUMN trace_info.clean_end IS 'True if the segment ends with a trailer: the recording ended cleanly.';
COMMENT ON COLUMN trace_info.end_reason IS 'Why the segment ended, such as: recording was stopped · the recorded block raised ValueError · the program raised ValueError · the scheduler closed. Null if it did not end cleanly.';
COMMENT ON COLUMN trace_info.dask_version IS 'Version of dask on the scheduler.';
COMMENT ON COLUMN trace_info.distributed_version IS 'Version of distributed on the scheduler.';
COMMENT ON COLUMN trace_info.python_version IS 'Version of Python on the scheduler.';
COMMENT ON COLUMN trace_info.recorder_version IS 'Version of roast that made the recording.';
COMMENT ON COLUMN trace_info.scheduler IS 'Address of the scheduler.';
COMMENT ON COLUMN trace_info.utc_offset_seconds IS 'Local time of the scheduler minus UTC.';
COMMENT ON COLUMN trace_info.clock_offset_seconds IS 'Clock of the process that wrote the file minus the scheduler''s clock.';
COMMENT ON COLUMN trace_info.settings IS 'Recorder settings, as JSON.';
COMMENT ON COLUMN trace_info.records IS 'Records of known kinds in the segment.';
COMMENT ON COLUMN trace_info.redacted_values IS 'Number of secrets replaced by <redacted> up to the end of this segment. Null if it did not end cleanly.';
COMMENT ON COLUMN trace_info.path IS 'File name.';
COMMENT ON COLUMN trace_info.label IS 'Name of the run, given when it was recorded.';
COMMENT ON COLUMN trace_info.trace_id IS 'ID of the trace.';
