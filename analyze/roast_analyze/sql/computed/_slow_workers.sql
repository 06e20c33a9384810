-- Needs: _worker_presence, _worker_speeds, _workers
-- Worker processes that are slower than others at the same work. A host is slow if it has
-- several processes that computed, at least one of them is slow, nearly all take 1.5 times as long
-- as others, and on other hosts few do: together, they are no chance.
CREATE TABLE _slow_workers AS
WITH measured AS (
    SELECT
        speed.*,
        coalesce(worker.name, worker.worker) AS name,
        worker.worker,
        worker.host,
        presence.nthreads
    FROM _worker_speeds AS speed
    INNER JOIN _workers AS worker USING (process)
    INNER JOIN _worker_presence AS presence USING (process)
),
hosts AS (
    SELECT
        trace_id,
        host,
        -- A process can be compared by its chunks and by other tasks.
        bool_or(is_slow)
            AND count(DISTINCT process) FILTER (is_slow OR relative_duration >= 1.5)
                >= greatest(2, 0.75 * count(DISTINCT process)) AS is_slow
    FROM measured
    GROUP BY trace_id, host
)
SELECT
    measured.* EXCLUDE (is_slow),
    coalesce(hosts.is_slow, false) AND EXISTS (
        FROM hosts AS other
        WHERE other.trace_id = measured.trace_id
            AND other.host <> measured.host
            AND NOT other.is_slow
    ) AS is_of_slow_host
FROM measured
LEFT JOIN hosts USING (trace_id, host)  -- a host can be unknown
WHERE measured.is_slow OR (hosts.is_slow AND measured.relative_duration >= 1.5);
