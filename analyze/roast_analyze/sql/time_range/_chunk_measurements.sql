-- Needs: nothing
-- Only those that an attempt of the excerpt points to are looked at.
CREATE VIEW _chunk_measurements AS FROM trace._chunk_measurements;
