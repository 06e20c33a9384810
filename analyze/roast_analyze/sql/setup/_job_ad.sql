-- Needs: nothing
-- Return a value of an HTCondor ad, a text of lines such as Cpus = 2 and Name = "slot1@host".
CREATE MACRO _job_ad(ad, name) AS
    nullif(regexp_extract(ad, '(?:^|\n)' || name || ' = "?([^"\n]*)', 1), '');
