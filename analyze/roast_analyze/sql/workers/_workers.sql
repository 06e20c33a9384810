-- Needs: _task_runs
-- Worker processes. An address can be used again, so each process has the stretch of time
-- [from_t, next from_t) of its address, by which runs and samples find it (ASOF). The first
-- process of an address owns it since ever. An address that ran tasks or chunks or was sampled but was
-- never recorded as added is a process of which nothing more is known.
CREATE TABLE _workers AS
WITH added AS (
    SELECT rowid AS seq, *
    FROM raw.worker_added
    QUALIFY row_number() OVER (
        PARTITION BY trace_id, worker, coalesce(server_id, rowid::VARCHAR) ORDER BY rowid
    ) = 1
),
removed AS (
    -- The removal that ended a process is the first one that names it; if none does, the
    -- first one of its address after it came.
    SELECT trace_id, seq, t, stimulus_id
    FROM (
        SELECT added.trace_id, added.seq, removal.rowid AS removal, removal.t, removal.stimulus_id
        FROM raw.worker_removed AS removal
        INNER JOIN added USING (trace_id, server_id)
        UNION ALL
        SELECT added.trace_id, added.seq, removal.rowid, removal.t, removal.stimulus_id
        FROM raw.worker_removed AS removal
        ASOF INNER JOIN added
            ON removal.trace_id = added.trace_id
            AND removal.worker = added.worker
            AND removal.t >= added.t
        WHERE removal.server_id IS NULL OR added.server_id IS NULL
    )
    QUALIFY row_number() OVER (PARTITION BY trace_id, seq ORDER BY removal) = 1
),
unknown AS (
    SELECT trace_id, worker FROM _task_runs WHERE worker IS NOT NULL
    UNION
    SELECT trace_id, worker FROM raw.worker_sample WHERE worker IS NOT NULL
    UNION
    SELECT trace_id, worker FROM raw.chunk WHERE worker IS NOT NULL
    EXCEPT
    SELECT trace_id, worker FROM added
)
SELECT
    row_number() OVER (ORDER BY trace_id, seq NULLS FIRST, worker) AS process,
    *
FROM (
    SELECT
        added.seq,
        added.worker,
        added.name,
        added.host,
        added.nthreads,
        nullif(added.memory_limit, 0) AS memory_limit_bytes,
        added.t AS added_t,
        removed.t AS removed_t,
        removed.stimulus_id AS removal_stimulus_id,
        added.server_id,
        CASE
            WHEN row_number() OVER (PARTITION BY added.trace_id, worker ORDER BY added.seq) = 1
                THEN '-infinity'::DOUBLE
            ELSE added.t
        END AS from_t,
        added.trace_id
    FROM added
    LEFT JOIN removed USING (trace_id, seq)
    UNION ALL BY NAME
    SELECT worker, '-infinity'::DOUBLE AS from_t, trace_id FROM unknown
);
