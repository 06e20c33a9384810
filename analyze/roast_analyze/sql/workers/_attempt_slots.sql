-- Needs: _compared_attempts
-- Slots of time in which about 48 attempts of a prefix begin: work often changes over a run, and
-- workers come and go, so attempts are compared with those that began at about the same time.
CREATE TABLE _attempt_slots AS
SELECT
    trace_id,
    prefix,
    is_chunk,
    min(compute_start_t) AS first_t,
    greatest(max(compute_start_t) - min(compute_start_t), 1e-3) * 48 / count(*) AS slot_seconds
FROM _compared_attempts
GROUP BY trace_id, prefix, is_chunk
HAVING count(*) >= 10;
