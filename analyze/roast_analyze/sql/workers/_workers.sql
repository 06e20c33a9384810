-- Needs: _task_runs
-- Worker processes. Addresses can be reused, so each process owns its address in [from_t, next
-- from_t), and runs and samples are matched with ASOF joins. The first process of an address
-- owns it from the beginning. An address that ran tasks or chunks or was sampled, but was never
-- recorded as added, gets a process without further facts.
CREATE TABLE _workers AS
WITH added AS (
    SELECT rowid AS seq, *
    FROM raw.worker_added
    QUALIFY row_number() OVER (
        PARTITION BY trace_id, worker, coalesce(server_id, rowid::VARCHAR) ORDER BY rowid
    ) = 1
),
removed AS (
    -- The removal of a process is the first one that names it, or else the first one of its
    -- address after it joined.
    SELECT trace_id, seq, t, stimulus_id
    FROM (
        SELECT added.trace_id, added.seq, removal.rowid AS removal, removal.t, removal.stimulus_id
        FROM raw.worker_removed AS removal
        INNER JOIN added USING (trace_id, server_id)
        UNION ALL
        SELECT added.trace_id, added.seq, removal.rowid, removal.t, removal.stimulus_id
        FROM raw.worker_removed AS removal
        -- If one process replaced another at that very time, the first one left.
        ASOF INNER JOIN (SELECT DISTINCT ON (trace_id, worker, t) * FROM added ORDER BY seq) AS added
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
),
-- Without a cluster, the threads of a process are unknown until they process chunks. Threads of
-- one pool can follow those of another, and clocks can make chunks of one thread overlap.
chunk_threads AS (
    SELECT
        trace_id,
        worker,
        least(nullif(count(DISTINCT thread), 0), max(chunks))::BIGINT AS nthreads
    FROM (
        SELECT *, sum(change) OVER (PARTITION BY trace_id, worker ORDER BY t, change) AS chunks
        FROM (
            SELECT
                trace_id, worker, thread,
                unnest([start_t, stop_t]) AS t, unnest([1, -1]) AS change
            FROM raw.chunk
            WHERE worker LIKE 'pid:%'
        )
    )
    GROUP BY trace_id, worker
)
SELECT
    row_number() OVER (ORDER BY trace_id, seq NULLS FIRST, worker) AS process,
    workers.* REPLACE (greatest(workers.nthreads, chunk_threads.nthreads) AS nthreads)
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
) AS workers
LEFT JOIN chunk_threads USING (trace_id, worker);
