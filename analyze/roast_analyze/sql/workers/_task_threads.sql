-- Needs: _cluster_size, _task_phases
-- Time of threads in which tasks can run: that of the workers' threads, and that of threads of tasks
-- which seceded.
CREATE VIEW _task_threads AS
SELECT
    trace_id,
    core_seconds + coalesce((
        SELECT sum(phase.stop_t - phase.start_t)
        FROM _task_phases AS phase
        INNER JOIN raw.transition AS ending ON phase.end_seq = ending.rowid
        WHERE phase.action = 'seceded' AND ending.trace_id = _cluster_size.trace_id
    ), 0) AS seconds
FROM _cluster_size;
