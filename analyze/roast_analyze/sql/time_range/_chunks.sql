-- Needs: _task_runs, _time_range
-- Attempts at chunks, as those at tasks are (_task_runs); without a cluster, of which anything
-- lies in the excerpt. What was measured of an attempt as a whole is told when it ends: events,
-- bytes, memory. Seconds of which nobody knows the instants are taken to be spread evenly over
-- its computing.
CREATE TABLE _chunks AS
WITH placed AS (
    SELECT
        chunk.*,
        from_t,
        until_t,
        run.* EXCLUDE (seq),
        start_t < until_t AND stop_t >= from_t AS measures,
        coalesce(end_t, stop_t) AS told_t,
        told_t >= from_t AND told_t < until_t AS is_told
    FROM trace._chunks AS chunk
    INNER JOIN _time_range USING (trace_id)
    LEFT JOIN (
        SELECT
            seq,
            true AS is_there,
            compute_seconds AS run_seconds,
            transfer_seconds AS run_transfer_seconds
        FROM _task_runs
    ) AS run USING (seq)
),
shared AS (
    SELECT
        *,
        CASE
            WHEN has_task AND whole_seconds > 0
                THEN run_seconds / chunks_in_task / whole_seconds
            WHEN NOT has_task AND stop_t > start_t
                THEN greatest(least(stop_t, until_t) - greatest(start_t, from_t), 0)
                    / (stop_t - start_t)
            WHEN is_told THEN 1
        END AS share
    FROM placed
    WHERE coalesce(is_there, NOT has_task AND measures)
)
SELECT
    * EXCLUDE (
        from_t, until_t, is_there, run_seconds, run_transfer_seconds, measures, told_t, is_told,
        share
    )
    REPLACE (
        CASE WHEN end_t >= until_t THEN 'unfinished' ELSE outcome END AS outcome,
        CASE WHEN processing_t < from_t THEN from_t ELSE processing_t END AS processing_t,
        CASE WHEN end_t > until_t THEN until_t ELSE end_t END AS end_t,
        CASE WHEN measures THEN greatest(start_t, from_t) END AS start_t,
        CASE WHEN measures THEN least(stop_t, until_t) END AS stop_t,
        share * whole_seconds AS compute_seconds,
        share * measured_seconds AS measured_seconds,
        share * open_seconds AS open_seconds,
        share * read_seconds AS read_seconds,
        share * process_seconds AS process_seconds,
        share * cpu_seconds AS cpu_seconds,
        share * wait_seconds AS wait_seconds,
        CASE WHEN has_task THEN run_transfer_seconds / chunks_in_task END AS transfer_seconds,
        is_told AND is_first_result AS is_first_result,
        CASE WHEN is_told THEN measured END AS measured,
        CASE WHEN is_told THEN measured_record END AS measured_record,
        CASE WHEN is_told THEN measured_events END AS measured_events,
        CASE WHEN is_told THEN events END AS events,
        CASE WHEN is_told THEN event_seconds END AS event_seconds,
        CASE WHEN is_told THEN from_checkpoint END AS from_checkpoint,
        CASE WHEN is_told THEN bytes_read END AS bytes_read,
        CASE WHEN is_told THEN requests END AS requests,
        CASE WHEN is_told THEN columns END AS columns,
        CASE WHEN is_told THEN columns_read END AS columns_read,
        CASE WHEN is_told THEN branches_read END AS branches_read,
        CASE WHEN is_told THEN compressed_bytes END AS compressed_bytes,
        CASE WHEN is_told THEN uncompressed_bytes END AS uncompressed_bytes,
        CASE WHEN is_told THEN packed_bytes END AS packed_bytes,
        CASE WHEN is_told THEN unpacked_bytes END AS unpacked_bytes,
        CASE WHEN is_told THEN memory_before_bytes END AS memory_before_bytes,
        CASE WHEN is_told THEN memory_after_bytes END AS memory_after_bytes,
        CASE WHEN is_told THEN memory_peak_bytes END AS memory_peak_bytes,
        CASE WHEN is_told THEN output_bytes END AS output_bytes,
        CASE WHEN is_told THEN exception END AS exception
    )
FROM shared;
