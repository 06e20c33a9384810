-- Needs: nothing
-- What a key is does not depend on when one looks.
CREATE VIEW _coffea_roles AS FROM trace._coffea_roles;
