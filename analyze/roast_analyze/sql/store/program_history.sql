-- Needs: runs, sessions
CREATE VIEW program_history AS
WITH programs AS (
    -- Clients of one process are one program.
    SELECT
        trace_id,
        program,
        user_name,
        host,
        pid,
        min(start_t) AS start_t,
        max(stop_t) AS stop_t,
        max(core_seconds) / 3600 AS core_hours,
        sum(compute_seconds) / 3600 AS compute_hours,
        sum(kept_seconds) / 3600 AS kept_hours,
        sum(failures)::BIGINT AS failures,
        sum(events)::BIGINT AS events,
        count(*) OVER (PARTITION BY trace_id) AS programs
    FROM sessions
    WHERE tasks > 0
    GROUP BY trace_id, program, user_name, host, pid
),
executed AS (
    SELECT
        program, user_name, start_t, git_commit, wall_seconds, core_hours, compute_hours,
        kept_hours, utilization, failures, events, events_per_core_second, trace_id
    FROM runs
    WHERE trace_id NOT IN (SELECT trace_id FROM programs WHERE programs > 1)
    UNION ALL
    SELECT
        programs.program,
        programs.user_name,
        programs.start_t,
        if(programs.program = runs.program, runs.git_commit, NULL),
        programs.stop_t - programs.start_t,
        programs.core_hours,
        programs.compute_hours,
        coalesce(programs.kept_hours, 0),
        programs.compute_hours / nullif(programs.core_hours, 0),
        programs.failures,
        coalesce(programs.events, 0),
        programs.events / nullif(programs.core_hours * 3600, 0),
        trace_id
    FROM programs
    INNER JOIN runs USING (trace_id)
    WHERE programs.programs > 1
)
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
    user_name,
    trace_id
FROM executed
WHERE program IS NOT NULL
WINDOW
    in_order AS (PARTITION BY program ORDER BY start_t, trace_id),
    before AS (
        PARTITION BY program ORDER BY start_t, trace_id
        ROWS BETWEEN 20 PRECEDING AND 1 PRECEDING
    )
ORDER BY program, run_number;

COMMENT ON VIEW program_history IS 'Programs over time. One row per run whose program is known or, of a scheduler that several programs used, per program of it that is known.';
COMMENT ON COLUMN program_history.program IS 'File name of the program.';
COMMENT ON COLUMN program_history.run_number IS 'Number of the run of the program, from 1.';
COMMENT ON COLUMN program_history.start_t IS 'Start of the run, or when the program connected, in seconds since the epoch.';
COMMENT ON COLUMN program_history.git_commit IS 'Commit of the working directory of the program. Null for one of several that did not record.';
COMMENT ON COLUMN program_history.is_new_commit IS 'Whether the run before had another commit.';
COMMENT ON COLUMN program_history.wall_seconds IS 'Duration of the recording, or of the connection.';
COMMENT ON COLUMN program_history.core_hours IS 'Available thread time in hours. Of one of several programs, while it was connected: others can have used it too.';
COMMENT ON COLUMN program_history.compute_hours IS 'Compute time of all attempts in hours.';
COMMENT ON COLUMN program_history.utilization IS 'compute_hours / core_hours.';
COMMENT ON COLUMN program_history.wasted_hours IS 'Available thread time in hours without a kept result, idle time included.';
COMMENT ON COLUMN program_history.failures IS 'Rows of the view failures.';
COMMENT ON COLUMN program_history.events IS 'Events of all chunks with a result.';
COMMENT ON COLUMN program_history.events_per_core_second IS 'Events per second of available thread time.';
COMMENT ON COLUMN program_history.relative_wall IS 'wall_seconds relative to the median of up to 20 runs of the program before. Null for the first run.';
COMMENT ON COLUMN program_history.relative_core_hours IS 'core_hours relative to the same runs.';
COMMENT ON COLUMN program_history.relative_event_rate IS 'events_per_core_second relative to the same runs.';
COMMENT ON COLUMN program_history.user_name IS 'User who ran it, where clients report it.';
COMMENT ON COLUMN program_history.trace_id IS 'ID of the trace.';
