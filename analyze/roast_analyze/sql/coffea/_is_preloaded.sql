-- Needs: nothing
-- Whether branches were read before the processor accessed them (preload), according to the mean
-- time of an access: reading a branch from a file takes longer.
CREATE MACRO _is_preloaded(branch_seconds) AS coalesce(branch_seconds < 0.0002, false);
