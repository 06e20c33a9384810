-- Needs: nothing
-- Use of the thread time in which an attempt computes, by its outcome and whether its result was kept.
CREATE MACRO _attempt_use(outcome, is_kept) AS CASE outcome
    WHEN 'memory' THEN if(is_kept, 'kept result', 'recomputed result')
    WHEN 'erred' THEN 'failed attempt'
    WHEN 'retried' THEN 'failed attempt'
    WHEN 'skipped' THEN 'failed attempt'
    WHEN 'lost' THEN 'lost attempt'
    WHEN 'rescheduled' THEN 'rescheduled attempt'
    WHEN 'cancelled' THEN 'cancelled attempt'
    WHEN 'unfinished' THEN 'unfinished attempt'
END;
