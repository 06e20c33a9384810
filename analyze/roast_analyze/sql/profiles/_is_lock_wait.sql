-- Needs: nothing
-- Functions of Python that acquire a lock. Locks of C have no function of their own: a thread that
-- waits in `with threading.Lock()` is shown in its caller, as if it computed.
CREATE MACRO _is_lock_wait(frame) AS
regexp_matches(coalesce(frame.name, ''), '^_*acquire(_.*)?$')
OR (
    coalesce(frame.name, '') = '__enter__'
    AND regexp_matches(
        coalesce(frame.filename, ''),
        '(^|[/\\])(dask[/\\]utils|threading|[a-z_]*(lock|semaphore|synchronize)s?)\.py$'
    )
);

-- Locks that the tasks of all workers share.
CREATE MACRO _is_cluster_lock(filename) AS
regexp_matches(
    coalesce(filename, ''),
    '(^|[/\\])(distributed[/\\](lock|semaphore)\.py$|filelock[/\\]|fasteners[/\\]|portalocker[/\\])'
);

-- Path of a file within its package or project.
CREATE MACRO _file_tail(filename) AS
array_to_string(
    string_split(
        regexp_replace(replace(coalesce(filename, '?'), '\', '/'), '^.*/site-packages/', ''), '/'
    )[-3:],
    '/'
);
