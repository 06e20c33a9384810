-- Needs: nothing
-- Only those that an attempt of the excerpt points to are looked at.
CREATE VIEW _measured AS FROM trace._measured;
