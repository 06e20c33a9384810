-- Needs: nothing
CREATE VIEW imports AS
SELECT
    name AS tool,
    filename,
    (SELECT sum(records) FROM (SELECT unnest(map_values(records_by_kind)) AS records))::BIGINT
        AS records,
    (value ->> '$.imported_t')::DOUBLE AS imported_t,
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

COMMENT ON VIEW imports IS 'What was imported into the trace: one row per file of another program.';
COMMENT ON COLUMN imports.tool IS 'What measured: darshan or yappi.';
COMMENT ON COLUMN imports.filename IS 'Name of the file that was imported.';
COMMENT ON COLUMN imports.records IS 'Records that were made of it.';
COMMENT ON COLUMN imports.imported_t IS 'When it was imported, in seconds since the epoch, by the clock of the machine that did it.';
COMMENT ON COLUMN imports.start_t IS 'When what was measured began, in seconds since the epoch, by the clock of the machine that measured; null if the file does not say it.';
COMMENT ON COLUMN imports.stop_t IS 'When it ended.';
COMMENT ON COLUMN imports.worker IS 'Worker that was measured, if it was named when the file was imported.';
COMMENT ON COLUMN imports.pid IS 'Process that was measured, if it was one and the file says which.';
COMMENT ON COLUMN imports.versions IS 'Versions of what measured and of what read it, by name, as JSON.';
COMMENT ON COLUMN imports.facts IS 'What the file says of the whole, as JSON.';
COMMENT ON COLUMN imports.source IS 'Identity of the file: the first 16 hexadecimal digits of its SHA-256.';
COMMENT ON COLUMN imports.segment IS 'Segment that it lies in.';
COMMENT ON COLUMN imports.trace_id IS 'Identity of the recording.';
