-- Needs: _attempt_ends, _clip_phases, _phase_seconds, _time_range
-- Attempts that overlap the range, on the scheduler or on the worker. Instants and phase
-- durations are clipped. The result of an attempt is known when it ends; one that ends after
-- the range is unfinished.
CREATE TABLE _task_runs AS
WITH placed AS (
    SELECT
        run.*,
        from_t,
        until_t,
        -- least() and greatest() ignore nulls.
        CASE
            WHEN processing_t IS NULL THEN '-infinity'::DOUBLE
            ELSE least(processing_t, compute_start_t)
        END AS begin_t,
        CASE
            WHEN end_t IS NULL THEN 'infinity'::DOUBLE
            ELSE greatest(end_t, compute_stop_t)
        END AS finish_t
    FROM trace._task_runs AS run
    INNER JOIN _time_range USING (trace_id)
),
touching AS (
    SELECT
        * EXCLUDE (begin_t, finish_t),
        begin_t < from_t OR finish_t >= until_t AS is_cut,
        compute_start_t < until_t AND compute_stop_t >= from_t AS computes,
        end_t >= from_t AND end_t < until_t AS ends
    FROM placed
    WHERE begin_t < until_t AND finish_t >= from_t
),
-- Few attempts cross a boundary, and lists of phases are wide.
phases AS (
    SELECT touching.seq, startstops
    FROM _attempt_ends AS ending
    INNER JOIN touching ON is_cut AND ending.seq = touching.end_seq
)
SELECT
    touching.* EXCLUDE (from_t, until_t, is_cut, computes, ends)
    REPLACE (
        CASE WHEN end_t >= until_t THEN 'unfinished' ELSE outcome END AS outcome,
        CASE WHEN processing_t < from_t THEN from_t ELSE processing_t END AS processing_t,
        CASE WHEN end_t > until_t THEN until_t ELSE end_t END AS end_t,
        CASE WHEN computes THEN greatest(compute_start_t, from_t) END AS compute_start_t,
        greatest(execute_start_t, if(execute_start_t IS NULL, NULL, from_t)) AS execute_start_t,
        CASE WHEN computes THEN least(compute_stop_t, until_t) END AS compute_stop_t,
        CASE
            WHEN is_cut THEN _phase_seconds(_clip_phases(startstops, from_t, until_t), 'compute')
            ELSE compute_seconds
        END AS compute_seconds,
        CASE
            WHEN is_cut THEN _phase_seconds(_clip_phases(startstops, from_t, until_t), 'transfer')
            ELSE transfer_seconds
        END AS transfer_seconds,
        CASE
            WHEN is_cut THEN _phase_seconds(_clip_phases(startstops, from_t, until_t), 'deserialize')
            ELSE deserialize_seconds
        END AS deserialize_seconds,
        CASE
            WHEN is_cut THEN _phase_seconds(_clip_phases(startstops, from_t, until_t), 'disk-')
            ELSE disk_seconds
        END AS disk_seconds,
        CASE WHEN ends THEN touching.nbytes END AS nbytes,
        CASE WHEN ends THEN touching.typename END AS typename,
        CASE WHEN ends THEN touching.exception END AS exception,
        CASE WHEN ends THEN touching.traceback END AS traceback,
        CASE WHEN ends THEN end_reason END AS end_reason
    )
FROM touching
LEFT JOIN phases USING (seq);
