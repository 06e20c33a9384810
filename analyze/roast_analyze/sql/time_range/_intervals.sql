-- Needs: nothing
-- What begins or ends outside is cut off where it is counted (_bucket_sums). What came to nothing
-- is known of the whole: an attempt that goes on may fail after the excerpt.
CREATE VIEW _intervals AS FROM trace._intervals;
