-- Needs: nothing
-- Only those that an attempt of the excerpt points to are looked at.
CREATE VIEW _readings AS FROM trace._readings;
