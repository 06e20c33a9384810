-- Needs: _bucket_sums
-- Computed when a query reads it.
CREATE VIEW _bucket_totals AS FROM _bucket_sums(NULL);
