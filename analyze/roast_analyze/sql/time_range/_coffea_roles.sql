-- Needs: nothing
-- Roles of keys do not depend on the range.
CREATE VIEW _coffea_roles AS FROM trace._coffea_roles;
