-- Needs: nothing
CREATE VIEW imports AS
SELECT
    name AS tool,
    filename,
    try_cast(coalesce(list_sum(map_values(records_by_kind)), 0) AS BIGINT) AS records,
    try_cast(value ->> '$.imported_t' AS DOUBLE) AS imported_t,
    start_t,
    stop_t,
    worker,
    pid,
    versions,
    value AS facts,
    source,
    segment,
    trace_id
FROM raw.import
ORDER BY trace_id, rowid;

COMMENT ON VIEW imports IS 'Files of other tools imported into the trace. One row per imported file.';
COMMENT ON COLUMN imports.tool IS 'Tool: darshan or yappi.';
COMMENT ON COLUMN imports.filename IS 'Name of the imported file.';
COMMENT ON COLUMN imports.records IS 'Records created from the file.';
COMMENT ON COLUMN imports.imported_t IS 'Time of the import, in seconds since the epoch, on the clock of the importing machine.';
COMMENT ON COLUMN imports.start_t IS 'Start of the measurement, in seconds since the epoch, on the clock of the measured machine. Null if the file does not contain it.';
COMMENT ON COLUMN imports.stop_t IS 'End, in seconds since the epoch on the host''s clock.';
COMMENT ON COLUMN imports.worker IS 'Worker that was measured, if given at import.';
COMMENT ON COLUMN imports.pid IS 'Process that was measured, if it was one and the file contains its id.';
COMMENT ON COLUMN imports.versions IS 'Versions of the measuring tool and of the reader, by name, as JSON.';
COMMENT ON COLUMN imports.facts IS 'Other information from the file, as JSON.';
COMMENT ON COLUMN imports.source IS 'ID of the file: the first 16 hexadecimal digits of its SHA-256.';
COMMENT ON COLUMN imports.segment IS 'Segment that contains the imported records.';
COMMENT ON COLUMN imports.trace_id IS 'ID of the trace.';
