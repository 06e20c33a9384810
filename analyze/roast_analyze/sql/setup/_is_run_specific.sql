-- Needs: nothing
-- Return whether a value of the configuration differs between runs with equal settings: an address,
-- a port, a folder for temporary files, or a list that Dask extends with each scheduler of a process.
CREATE MACRO _is_run_specific(name, value) AS
    name = 'distributed.scheduler.http.routes'
    OR regexp_matches(name, '(^|[.-])(address|port|host|temporary-directory|local-directory|log-directory|scheduler-file|pid-file)$')
    OR regexp_matches(coalesce(value, ''), '^(tcp|tls|ws|wss|ucx|ucxx|inproc|http|https)://|^/(tmp|scratch|var/tmp|run)(/|$)|:[0-9]{4,5}$');
