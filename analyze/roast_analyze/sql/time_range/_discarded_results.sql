-- Needs: nothing
-- Whether a result was kept does not depend on the range.
CREATE VIEW _discarded_results AS FROM trace._discarded_results;
