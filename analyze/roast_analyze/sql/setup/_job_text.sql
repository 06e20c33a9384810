-- Needs: nothing
-- Return the first variable that is set, as text of at most 200 characters.
CREATE MACRO _job_text(variables, names) AS
    left(trim([variables ->> name FOR name IN names IF trim(variables ->> name) <> ''][1]), 200);
