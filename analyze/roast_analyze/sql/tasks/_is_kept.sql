-- Needs: nothing
-- Return whether an attempt computed a result that was kept, given its row of _discarded_results, if any.
CREATE MACRO _is_kept(outcome, discarded_seq) AS outcome = 'memory' AND discarded_seq IS NULL;
