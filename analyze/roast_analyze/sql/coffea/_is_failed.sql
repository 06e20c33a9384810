-- Needs: nothing
-- Whether an attempt at a chunk came to nothing through no will of the user's.
CREATE MACRO _is_failed(outcome) AS outcome IN ('erred', 'retried', 'lost', 'skipped');
