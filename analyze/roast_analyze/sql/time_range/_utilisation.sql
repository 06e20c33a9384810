-- Needs: _utilisation_by
-- Computed when a query reads it.
CREATE VIEW _utilisation AS FROM utilisation_by(NULL);
