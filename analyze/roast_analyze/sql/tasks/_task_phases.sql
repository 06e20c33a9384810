-- Needs: _attempt_ends
-- Phases that workers reported at the end of an attempt (startstops), by the rowid of the
-- transition that ended it.
CREATE VIEW _task_phases AS
SELECT end_seq, action, start AS start_t, stop AS stop_t, source
FROM (SELECT seq AS end_seq, unnest(startstops, max_depth := 2) FROM _attempt_ends);
