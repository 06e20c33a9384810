-- Needs: nothing
-- Return whether an attempt at a task or chunk failed; cancelled and rescheduled ones did not.
CREATE MACRO _is_failed(outcome) AS outcome IN ('erred', 'retried', 'lost', 'skipped');
