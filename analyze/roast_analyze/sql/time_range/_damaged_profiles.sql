-- Needs: nothing
-- A record is damaged as a whole.
CREATE VIEW _damaged_profiles AS FROM trace._damaged_profiles;
