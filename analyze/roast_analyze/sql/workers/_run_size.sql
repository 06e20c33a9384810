-- Needs: _cluster_size
-- Columns of the view run that rules of findings need; the view itself takes longer to compute.
CREATE VIEW _run_size AS
SELECT
    trace_id,
    stop_t - start_t AS run_seconds,
    core_seconds AS run_core_seconds,
    core_seconds / nullif(stop_t - start_t, 0) AS mean_nthreads,
    peak_nthreads
FROM _cluster_size
WHERE core_seconds > 0;
