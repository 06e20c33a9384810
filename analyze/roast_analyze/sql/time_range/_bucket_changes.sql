-- Needs: _changes_by
-- Computed when a query reads it.
CREATE VIEW _bucket_changes AS FROM _changes_by(NULL);
