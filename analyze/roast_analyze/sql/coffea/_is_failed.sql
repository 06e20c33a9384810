-- Needs: nothing
-- Failed outcomes of chunk attempts; cancelled and rescheduled attempts are not failures.
CREATE MACRO _is_failed(outcome) AS outcome IN ('erred', 'retried', 'lost', 'skipped');
