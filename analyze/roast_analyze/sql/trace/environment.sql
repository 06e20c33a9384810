-- Needs: nothing
-- Each segment of a folder repeats the facts of the first, so that it can be read alone.
CREATE VIEW environment AS
SELECT section, name, value ->> '$' AS value, t, trace_id
FROM raw.environment
WHERE rowid IN (SELECT min(rowid) FROM raw.environment GROUP BY trace_id, t, section, name, value)
ORDER BY trace_id, rowid;

COMMENT ON VIEW environment IS 'Recorded facts about software, machines and set-up: one row per fact; what several segments repeat is one.';
COMMENT ON COLUMN environment.section IS 'What the fact is about.';
COMMENT ON COLUMN environment.name IS 'Name of the fact.';
COMMENT ON COLUMN environment.value IS 'The fact: text as it is, anything else as JSON.';
COMMENT ON COLUMN environment.t IS 'When it was recorded, in seconds since the epoch.';
COMMENT ON COLUMN environment.trace_id IS 'Identity of the recording.';
