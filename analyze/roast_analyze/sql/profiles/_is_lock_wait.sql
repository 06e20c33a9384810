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

-- Path of a file within its package or project.
CREATE MACRO _file_tail(filename) AS
array_to_string(
    string_split(
        regexp_replace(replace(coalesce(filename, '?'), '\', '/'), '^.*/site-packages/', ''), '/'
    )[-3:],
    '/'
);

-- Function and file of a frame. A function that was pickled by value has no file.
CREATE MACRO _frame_place(frame) AS
frame.name || CASE WHEN frame.filename LIKE '<%' THEN '' ELSE ' (' || _file_tail(frame.filename) || ')' END;
