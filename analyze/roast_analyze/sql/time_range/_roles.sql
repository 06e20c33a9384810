-- Needs: nothing
-- What a key is does not depend on when one looks.
CREATE VIEW _roles AS FROM trace._roles;
