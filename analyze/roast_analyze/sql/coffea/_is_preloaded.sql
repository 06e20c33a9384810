-- Needs: nothing
-- Whether branches were read before the processor asked for them (uproot's preload), by the mean
-- seconds in which it gets one: reading it from a file takes longer.
CREATE MACRO _is_preloaded(branch_seconds) AS coalesce(branch_seconds < 0.0002, false);
