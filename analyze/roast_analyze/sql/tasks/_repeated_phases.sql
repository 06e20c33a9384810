-- Needs: _key_summaries
-- A worker that still has a key when it computes it again reports the phases of its earlier
-- attempts, too. By the rowid of the transition that ended such an attempt: its own phases.
CREATE TABLE _repeated_phases AS
WITH ends AS (
    SELECT
        rowid AS end_seq,
        startstops,
        lag(startstops) OVER (PARTITION BY trace_id, key, worker ORDER BY rowid) AS earlier
    FROM raw.transition
    SEMI JOIN (
        SELECT trace_id, key FROM _key_summaries WHERE has_attempts AND NOT is_simple
    ) USING (trace_id, key)
    WHERE "start" = 'processing' AND len(startstops) > 0
)
SELECT
    end_seq,
    list_filter(startstops, lambda part: NOT list_contains(earlier, part)) AS startstops
FROM ends
WHERE list_has_any(startstops, earlier);
