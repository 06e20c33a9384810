-- Needs: runs
CREATE VIEW program_history AS
SELECT
    program,
    row_number() OVER in_order AS run_number,
    start_t,
    git_commit,
    git_commit IS DISTINCT FROM lag(git_commit, 1, git_commit) OVER in_order AS is_new_commit,
    wall_seconds,
    core_hours,
    compute_hours,
    utilization,
    core_hours - kept_hours AS wasted_hours,
    failures,
    events,
    events_per_core_second,
    wall_seconds / median(wall_seconds) OVER before AS relative_wall,
    core_hours / median(core_hours) OVER before AS relative_core_hours,
    events_per_core_second / median(events_per_core_second) OVER before
        AS relative_event_rate,
    trace_id
FROM runs
WHERE program IS NOT NULL
WINDOW
    in_order AS (PARTITION BY program ORDER BY start_t, trace_id),
    before AS (
        PARTITION BY program ORDER BY start_t, trace_id
        ROWS BETWEEN 20 PRECEDING AND 1 PRECEDING
    )
ORDER BY program, run_number;

COMMENT ON VIEW program_history IS 'Programs over time. One row per run whose program is known.';
COMMENT ON COLUMN program_history.program IS 'File name of the program.';
COMMENT ON COLUMN program_history.run_number IS 'Number of the run of the program, from 1.';
COMMENT ON COLUMN program_history.start_t IS 'Start of the run, in seconds since the epoch.';
COMMENT ON COLUMN program_history.git_commit IS 'Commit of the working directory of the program.';
COMMENT ON COLUMN program_history.is_new_commit IS 'Whether the run before had another commit.';
COMMENT ON COLUMN program_history.wall_seconds IS 'Duration of the recording.';
COMMENT ON COLUMN program_history.core_hours IS 'Available thread time in hours.';
COMMENT ON COLUMN program_history.compute_hours IS 'Compute time of all attempts in hours.';
COMMENT ON COLUMN program_history.utilization IS 'compute_hours / core_hours.';
COMMENT ON COLUMN program_history.wasted_hours IS 'Available thread time in hours without a kept result, idle time included.';
COMMENT ON COLUMN program_history.failures IS 'Rows of the view failures.';
COMMENT ON COLUMN program_history.events IS 'Events of all chunks with a result.';
COMMENT ON COLUMN program_history.events_per_core_second IS 'Events per second of available thread time.';
COMMENT ON COLUMN program_history.relative_wall IS 'wall_seconds relative to the median of up to 20 runs of the program before. Null for the first run.';
COMMENT ON COLUMN program_history.relative_core_hours IS 'core_hours relative to the same runs.';
COMMENT ON COLUMN program_history.relative_event_rate IS 'events_per_core_second relative to the same runs.';
COMMENT ON COLUMN program_history.trace_id IS 'ID of the trace.';
