-- Needs: nothing
-- Return whether an attempt ended with an exception that was not suppressed.
CREATE MACRO _has_raised(outcome) AS outcome IN ('erred', 'retried');
