-- Needs: _time_range
-- Clipped to the range like attempts; measured values count if the section ends in the range.
CREATE VIEW raw.section AS
SELECT
    record.rowid,
    record.* REPLACE (
        greatest(record.start_t, from_t) AS start_t,
        least(record.stop_t, until_t) AS stop_t,
        CASE WHEN record.stop_t < until_t THEN record.measured END AS measured,
        CASE WHEN record.stop_t < until_t THEN record.exception END AS exception
    )
FROM trace.raw.section AS record
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE record.start_t < until_t AND record.stop_t >= from_t;
