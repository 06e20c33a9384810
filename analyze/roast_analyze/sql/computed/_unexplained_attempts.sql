-- Needs: _scarce_attempts, _silences, _slow_workers
-- First attempts of _scarce_attempts whose duration no slow or silent worker explains.
CREATE TABLE _unexplained_attempts AS
SELECT *
FROM _scarce_attempts AS attempt
WHERE attempt.attempt = 1
    AND NOT EXISTS (
        FROM _slow_workers AS slow
        WHERE slow.trace_id = attempt.trace_id AND slow.worker = attempt.worker
    )
    AND NOT EXISTS (
        FROM _silences AS silence
        WHERE silence.trace_id = attempt.trace_id
            AND silence.worker = attempt.worker
            AND silence.start_t < attempt.compute_stop_t
            AND attempt.compute_start_t < silence.stop_t
    );
