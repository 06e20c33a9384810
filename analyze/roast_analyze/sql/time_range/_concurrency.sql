-- Needs: _concurrency_by
-- Computed when a query reads it.
CREATE VIEW _concurrency AS FROM concurrency_by(NULL);
