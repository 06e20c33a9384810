-- Needs: _repeated_phases, _secede_phases, _secessions
-- Transitions that ended an attempt, with the phases of that attempt only.
CREATE VIEW _attempt_ends AS
SELECT
    ending.rowid AS seq,
    ending.* REPLACE (
        CASE
            WHEN secession.t IS NULL THEN coalesce(own.startstops, ending.startstops)
            ELSE _secede_phases(coalesce(own.startstops, ending.startstops), secession.t)
        END AS startstops
    )
FROM raw.transition AS ending
LEFT JOIN _repeated_phases AS own ON ending.rowid = own.end_seq
LEFT JOIN _secessions AS secession ON ending.rowid = secession.end_seq
WHERE ending."start" = 'processing';
