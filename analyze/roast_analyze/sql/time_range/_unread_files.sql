-- Needs: _time_range
CREATE TABLE _unread_files AS
SELECT unread.*
FROM trace._unread_files AS unread
INNER JOIN _time_range AS time_range USING (trace_id)
WHERE unread.t >= from_t AND unread.t < until_t;
