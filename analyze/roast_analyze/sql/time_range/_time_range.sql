-- Needs: nothing
-- The stretch of each trace that is told of: from from_t and before until_t, in seconds since
-- the epoch. Where it begins or ends with the recording it is open, since workers' clocks can
-- be beyond that. One row per trace.
CREATE TABLE _time_range (trace_id VARCHAR, from_t DOUBLE, until_t DOUBLE);
