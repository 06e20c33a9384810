-- Needs: _task_runs, _time_range
-- Chunk attempts that overlap the range, clipped like task attempts (_task_runs). Values of a
-- whole attempt (events, bytes, memory) count if it ends in the range. Durations without
-- instants are assumed to be spread evenly over the compute time.
CREATE TABLE _chunks AS
WITH placed AS (
    SELECT
        chunk.*,
        from_t,
        until_t,
        run.* EXCLUDE (seq),
        start_t < until_t AND stop_t >= from_t AS computes,
        coalesce(end_t, stop_t) AS known_t,
        known_t >= from_t AND known_t < until_t AS ends
    FROM trace._chunks AS chunk
    INNER JOIN _time_range USING (trace_id)
    LEFT JOIN (
        SELECT
            seq,
            true AS in_range,
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
            WHEN ends THEN 1
        END AS share
    FROM placed
    WHERE coalesce(in_range, NOT has_task AND computes)
)
SELECT
    * EXCLUDE (
        from_t, until_t, in_range, run_seconds, run_transfer_seconds, computes, known_t, ends,
        share
    )
    REPLACE (
        CASE WHEN end_t >= until_t THEN 'unfinished' ELSE outcome END AS outcome,
        CASE WHEN processing_t < from_t THEN from_t ELSE processing_t END AS processing_t,
        CASE WHEN end_t > until_t THEN until_t ELSE end_t END AS end_t,
        CASE WHEN computes THEN greatest(start_t, from_t) END AS start_t,
        CASE WHEN computes THEN least(stop_t, until_t) END AS stop_t,
        share * whole_seconds AS compute_seconds,
        share * measured_seconds AS measured_seconds,
        share * open_seconds AS open_seconds,
        share * read_seconds AS read_seconds,
        share * decompress_seconds AS decompress_seconds,
        share * process_seconds AS process_seconds,
        share * cpu_seconds AS cpu_seconds,
        share * wait_seconds AS wait_seconds,
        CASE WHEN has_task THEN run_transfer_seconds / chunks_in_task END AS transfer_seconds,
        ends AND is_first_result AS is_first_result,
        CASE WHEN ends THEN measured END AS measured,
        CASE WHEN ends THEN measured_record END AS measured_record,
        CASE WHEN ends THEN measured_events END AS measured_events,
        CASE WHEN ends THEN events END AS events,
        CASE WHEN ends THEN event_seconds END AS event_seconds,
        CASE WHEN ends THEN from_checkpoint END AS from_checkpoint,
        CASE WHEN ends THEN bytes_read END AS bytes_read,
        CASE WHEN ends THEN requests END AS requests,
        CASE WHEN ends THEN columns END AS columns,
        CASE WHEN ends THEN columns_read END AS columns_read,
        CASE WHEN ends THEN branches_read END AS branches_read,
        CASE WHEN ends THEN compressed_bytes END AS compressed_bytes,
        CASE WHEN ends THEN uncompressed_bytes END AS uncompressed_bytes,
        CASE WHEN ends THEN packed_bytes END AS packed_bytes,
        CASE WHEN ends THEN unpacked_bytes END AS unpacked_bytes,
        CASE WHEN ends THEN memory_before_bytes END AS memory_before_bytes,
        CASE WHEN ends THEN memory_after_bytes END AS memory_after_bytes,
        CASE WHEN ends THEN memory_peak_bytes END AS memory_peak_bytes,
        CASE WHEN ends THEN output_bytes END AS output_bytes,
        CASE WHEN ends THEN exception END AS exception
    )
FROM shared;
