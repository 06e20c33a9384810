-- Needs: nothing
-- Records: worker_transition
-- Times at which tasks left the threads of their worker (secede, worker_client), by the rowid of the
-- transition that ended the attempt.
CREATE TABLE _secessions AS
SELECT ending.rowid AS end_seq, min(secession.t) AS t
FROM (
    SELECT trace_id, worker, key, t FROM raw.worker_transition WHERE finish = 'long-running'
) AS secession
ASOF INNER JOIN (FROM raw.transition SELECT rowid, * WHERE "start" = 'processing') AS ending
    ON secession.trace_id = ending.trace_id
    AND secession.key = ending.key
    AND secession.t <= ending.t
WHERE secession.worker = ending.worker
GROUP BY ending.rowid;
