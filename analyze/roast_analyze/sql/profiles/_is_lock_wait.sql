-- Needs: nothing
-- Functions of Python that acquire a lock, in files of locks: other functions of these names open files
-- (xarray's file managers) or take connections from a pool. Locks of C have no function of their own: a
-- thread that waits in `with threading.Lock()` is shown in its caller, as if it computed.
CREATE MACRO _is_lock_wait(frame) AS
coalesce(
    regexp_matches(frame.name, '^(__enter__|_*acquire(_lock|_read|_write)?)$')
    AND regexp_matches(
        frame.filename,
        '(^|[/\\])(dask[/\\]utils|threading|synchronize|([a-z_]*_)?(file|rw)?(lock|semaphore)s?)\.py$'
        '|[/\\](filelock|fasteners|portalocker)[/\\]'
    ),
    false
);

-- Locks that the tasks of all workers share.
CREATE MACRO _is_cluster_lock(filename) AS
regexp_matches(
    coalesce(filename, ''),
    '(^|[/\\])(distributed[/\\](lock|semaphore)\.py$|filelock[/\\]|fasteners[/\\]|portalocker[/\\])'
);
