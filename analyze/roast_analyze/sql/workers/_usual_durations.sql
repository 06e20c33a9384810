-- Needs: _placed_attempts
-- The median duration of attempts in a slot, and its spread. This is a table of its own, because
-- DuckDB computes medians of many groups in memory: together with those of _worker_speeds, ten
-- million tasks spill 30 GB.
CREATE TABLE _usual_durations AS
SELECT trace_id, prefix, is_chunk, slot, median(duration) AS duration, mad(ln(duration)) AS spread
FROM _placed_attempts
GROUP BY trace_id, prefix, is_chunk, slot
HAVING count(*) >= 8 AND min(process) < max(process);
