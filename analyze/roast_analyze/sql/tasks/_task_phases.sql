-- Needs: nothing
-- Phases that workers reported at the end of an attempt (startstops), by the rowid of the
-- transition that ended it.
CREATE VIEW _task_phases AS
SELECT end_seq, action, start AS start_t, stop AS stop_t, source
FROM (SELECT rowid AS end_seq, unnest(startstops, max_depth := 2) FROM raw.transition);
