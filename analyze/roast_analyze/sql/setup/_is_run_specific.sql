-- Needs: nothing
-- Whether a value of the configuration is another one in each run, whatever anybody wants: an
-- address, a port, a folder for temporary files, or a list that Dask makes longer with each
-- scheduler of a process.
CREATE MACRO _is_run_specific(name, value) AS
    name = 'distributed.scheduler.http.routes'
    OR regexp_matches(name, '(^|[.-])(address|port|host|temporary-directory|local-directory|log-directory|scheduler-file|pid-file)$')
    OR regexp_matches(coalesce(value, ''), '^(tcp|tls|ws|wss|ucx|ucxx|inproc|http|https)://|^/(tmp|scratch|var/tmp|run)(/|$)|:[0-9]{4,5}$');
