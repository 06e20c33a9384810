-- Needs: nothing
-- Whether an attempt computed a result that was kept, by its row of _discarded_results, if any.
CREATE MACRO _is_kept(outcome, discarded_seq) AS outcome = 'memory' AND discarded_seq IS NULL;
