-- Needs: _compared_attempts
-- The median duration of attempts of a prefix that began at about the same time, and its spread: work
-- often changes over a run, and workers come and go. A slot of time is as long as about 48 attempts
-- of the prefix need to begin. This is a table of its own, because DuckDB computes medians of
-- many groups in memory: together with those of _worker_speeds, ten million tasks spill 30 GB.
CREATE TABLE _usual_durations AS
WITH slots AS (
    SELECT
        trace_id,
        prefix,
        is_chunk,
        min(compute_start_t) AS first_t,
        greatest(max(compute_start_t) - min(compute_start_t), 1e-3) * 48 / count(*) AS slot_seconds
    FROM _compared_attempts
    GROUP BY trace_id, prefix, is_chunk
    HAVING count(*) >= 10
)
SELECT
    trace_id,
    prefix,
    is_chunk,
    any_value(first_t) AS first_t,
    any_value(slot_seconds) AS slot_seconds,
    floor((compute_start_t - first_t) / slot_seconds) AS slot,
    median(duration) AS duration,
    mad(ln(duration)) AS spread
FROM _compared_attempts
INNER JOIN slots USING (trace_id, prefix, is_chunk)
GROUP BY trace_id, prefix, is_chunk, slot
HAVING count(*) >= 8 AND min(process) < max(process);
