-- Needs: _attempt_slots, _compared_attempts
CREATE VIEW _placed_attempts AS
SELECT attempt.*, floor((compute_start_t - first_t) / slot_seconds) AS slot
FROM _compared_attempts AS attempt
INNER JOIN _attempt_slots USING (trace_id, prefix, is_chunk);
