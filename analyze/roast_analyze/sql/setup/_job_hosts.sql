-- Needs: nothing
-- Return the hosts of a recorded file with a host per line, separated by commas.
CREATE MACRO _job_hosts(files, path) AS
    replace([f.text FOR f IN files IF f.path = path][1], chr(10), ',');
