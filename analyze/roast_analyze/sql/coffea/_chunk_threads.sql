-- Needs: _chunks, _cluster_size
-- Threads that processed chunks: one row per trace. Compute time that all chunks save shortens
-- the run by this time divided by a number of threads between mean_nthreads and nthreads.
CREATE VIEW _chunk_threads AS
SELECT
    chunk.trace_id,
    sum(chunk.compute_seconds) AS seconds,
    -- If the trace does not contain the number of threads, each process has one.
    coalesce(
        nullif(any_value(cluster.peak_nthreads), 0), greatest(count(DISTINCT chunk.worker), 1)
    ) AS nthreads,
    least(
        nthreads,
        sum(chunk.compute_seconds) / nullif(max(chunk.end_t) - min(chunk.processing_t), 0)
    ) AS mean_nthreads,
    any_value(cluster.stop_t - cluster.start_t) AS wall_seconds
FROM _chunks AS chunk
INNER JOIN _cluster_size AS cluster USING (trace_id)
GROUP BY chunk.trace_id
HAVING sum(chunk.compute_seconds) > 0;
