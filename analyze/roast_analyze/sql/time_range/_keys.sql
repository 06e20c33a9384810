-- Needs: nothing
-- What a key is does not depend on when one looks.
CREATE VIEW _keys AS FROM trace._keys;
