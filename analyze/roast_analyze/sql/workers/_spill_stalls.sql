-- Needs: nothing
-- Stalls of the event loops of workers that spilled results or read them back at the same time: the
-- amount on disk differs between two samples around a stall.
CREATE VIEW _spill_stalls AS
WITH changes AS (
    SELECT
        trace_id,
        worker,
        lag(t) OVER before AS from_t,
        t AS to_t
    FROM raw.worker_sample
    SEMI JOIN raw.stall USING (trace_id, worker)
    WINDOW before AS (PARTITION BY trace_id, worker ORDER BY t)
    QUALIFY metrics.spilled_memory <> lag(metrics.spilled_memory) OVER before
)
SELECT
    stall.trace_id,
    stall.rowid AS stall,
    stall.start_t,
    stall.stop_t
FROM raw.stall AS stall
WHERE EXISTS (
    FROM changes
    WHERE changes.trace_id = stall.trace_id
        AND changes.worker = stall.worker
        AND changes.from_t < stall.stop_t
        AND changes.to_t > stall.start_t
);
