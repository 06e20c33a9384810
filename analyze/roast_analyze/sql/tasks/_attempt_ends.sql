-- Needs: _repeated_phases
-- Transitions that ended an attempt, with the phases of that attempt only.
CREATE VIEW _attempt_ends AS
SELECT
    ending.rowid AS seq,
    ending.* REPLACE (coalesce(own.startstops, ending.startstops) AS startstops)
FROM raw.transition AS ending
LEFT JOIN _repeated_phases AS own ON ending.rowid = own.end_seq
WHERE ending."start" = 'processing';
