-- Needs: nothing
-- Roles of keys do not depend on the range.
CREATE VIEW _coffea_keys AS FROM trace._coffea_keys;
