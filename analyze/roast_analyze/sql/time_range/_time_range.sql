-- Needs: nothing
-- Time range of each trace, [from_t, until_t) in seconds since the epoch; one row per trace. A
-- boundary that coincides with that of the recording is infinite, since clocks of workers can
-- be beyond it.
CREATE TABLE _time_range (trace_id VARCHAR, from_t DOUBLE, until_t DOUBLE);
