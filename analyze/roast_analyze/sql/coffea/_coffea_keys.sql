-- Needs: nothing
-- Records: chunk
-- Keys of chunk records. A key known to the scheduler without entries reads the number of
-- entries of a file, and is not a chunk.
CREATE TABLE _coffea_keys AS
SELECT
    trace_id,
    key,
    CASE
        WHEN bool_or(measured.until = 'metadata') THEN 'file metadata'
        WHEN bool_or(entry_start IS NOT NULL OR measured.events IS NOT NULL)
            OR NOT bool_or(run_id IS NULL) THEN 'chunk'
        ELSE 'file metadata'
    END AS role,
    coalesce(bool_or(measured.until = 'read'), false) AS goes_on
FROM raw.chunk
GROUP BY trace_id, key;
