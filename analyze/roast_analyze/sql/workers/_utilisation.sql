-- Needs: _utilisation_by
CREATE TABLE _utilisation AS FROM utilisation_by(NULL);
